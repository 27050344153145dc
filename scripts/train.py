"""Train a Transformer, watch it learn, and write a run folder: make train.

On stdout: where the run lies and what it reached. All else goes to stderr.
"""

import sys
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from qkvtrace.command import command, heavy_imports, train_settings


@command("train")
def main(config: DictConfig) -> float:
    """Train what the configuration describes; returns the last validation loss, for sweepers."""
    settings = train_settings(config)

    with heavy_imports():
        import torch

        from qkvtrace.corpus.batches import Batches
        from qkvtrace.corpus.prepared import prepare
        from qkvtrace.model.device import choose_device, choose_threads
        from qkvtrace.model.stored import build_model
        from qkvtrace.model.taps import taps
        from qkvtrace.runs.folder import Run
        from qkvtrace.runs.manifest import manifest
        from qkvtrace.snapshots.probes import observe, probes
        from qkvtrace.snapshots.store import Store
        from qkvtrace.training.loop import EpochEnd, train
        from qkvtrace.training.saving import Saver
        from qkvtrace.training.schedule import last_step_and_epoch
        from qkvtrace.training.stopping import stoppable
        from qkvtrace.training.trainer import Trainer
        from qkvtrace.translation.quality import exact_match
        from qkvtrace.views.progress import Progress
        from qkvtrace.views.tensorboard import Board

    # What is trained on, and where.
    device = choose_device(settings.training.device)
    corpus = prepare(settings.data, Path(settings.outputs) / "prepared")
    source, target = corpus.source, corpus.target

    def batches(split: str, size: int) -> Batches:
        return Batches(corpus.splits[split], source, target, size=size, device=device)

    training, valid = batches("train", settings.training.batch_size), batches("valid", 64)
    last_step, last_epoch = last_step_and_epoch(settings.training, len(training))
    shown = settings.snapshots.shown(last_epoch)
    stored = settings.snapshots.stored(last_epoch)

    # What is trained.
    torch.manual_seed(settings.training.seed)
    model = build_model(settings, source, target).to(device)
    choose_threads(model)
    corpus.check_lengths(model.max_positions)
    trainer = Trainer(model, settings.training, last_step)

    # Where it is kept.
    if config.resume is None:
        made_of = manifest(
            seed=settings.training.seed,
            device=device.type,
            corpus=corpus.fingerprint,
            parameters=sum(p.numel() for p in model.parameters()),
        )
        run = Run.create(Path(HydraConfig.get().runtime.output_dir), settings, made_of)
    else:
        run = Run.open(config.resume)
        run.check_corpus(corpus.fingerprint)
    saver = Saver(run, trainer, source, target)
    saver.restore()
    run.store_settings(settings)
    run.point_latest(Path(settings.outputs))
    source.save(run.vocabulary("source"))
    target.save(run.vocabulary("target"))

    # How it is watched.
    looked_at, left_out = probes(corpus)
    if left_out:
        print(f"data.probes: {len(left_out)} left out for unknown words", file=sys.stderr)
    axes = {name: tap.axes for name, tap in taps(model).items()}
    store = Store(run.snapshots)
    first = trainer.epoch + 1 if trainer.step else 0
    board = Board(run.folder, first) if settings.snapshots.tensorboard else None

    def look(epoch: int) -> None:
        if epoch in stored and settings.snapshots.parameters:
            store.save_parameters(epoch, trainer.model_tensors())
        if epoch in stored:
            store.save(observe(model, looked_at, source, target, epoch, trainer.step), axes)
        if epoch in shown and board:
            board.snapshot(store.load(epoch))
            board.projector([store.load(e) for e in store.epochs() if e in shown and e <= epoch])

    def at_epoch_end(end: EpochEnd) -> None:
        progress.at_epoch_end(end)
        look(end.metrics.epoch)
        if board:
            board.scalars(end)
        saver.at_epoch_end(end)

    with Progress(trainer) as progress, stoppable(saver.stop) as check_stop:
        if trainer.step == 0:
            look(0)
        train(
            trainer,
            training,
            valid=valid,
            exact_match=lambda: exact_match(model, valid, corpus.splits["valid"], target),
            after_step=[progress.after_step, check_stop],
            at_epoch_end=[at_epoch_end],
        )

    final = saver.metrics[-1]
    if board:
        board.close(settings, final)
    print(
        f"{run}: epoch {final.epoch}, exact_match {final.exact_match:.3f}, "
        f"valid_loss {final.valid_loss:.3f}"
    )
    return final.valid_loss


if __name__ == "__main__":
    main()
