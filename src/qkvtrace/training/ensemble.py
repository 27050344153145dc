"""Many models that learn side by side as one: the same network from different seeds.

Small networks spend their time on calls, not on numbers; with the parameters of N members stacked,
one call serves them all. Shapes: N members, B sentences, P parameters of a member.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from qkvtrace.corpus.batches import Batch, Batches
from qkvtrace.corpus.vocabulary import PAD, SOS
from qkvtrace.model.attention import Attention
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import TrainingSettings
from qkvtrace.training.dropout import Dropouts
from qkvtrace.training.objective import loss_sum
from qkvtrace.training.optimizer import Adam
from qkvtrace.training.schedule import learning_rate


class Ensemble:
    """N models in training, which take each step together and know nothing of one another.

    Member i is what the ordinary loop trains with its seed: it begins with the same parameters,
    sees the same batches, and on a CPU drops the same values: in float64 the two agree within
    1e-10. In float32 they round differently, since products of stacked matrices are summed in
    another order. Where a gradient is hardly more than rounding, Adam scales that up to whole
    steps: so key biases, which the softmax cancels, drift from the first step on, and late in a
    training single weights of feed-forward units that hardly ever fire. On a GPU other random
    numbers decide what is dropped.
    """

    def __init__(
        self,
        build: Callable[[], Transformer],
        seeds: Sequence[int],
        settings: TrainingSettings,
        last_step: int,
        device: torch.device,
    ) -> None:
        """Args:
        build: makes a new model from PyTorch's random state, on the CPU.
        seeds: of the members, in their order.
        settings: the recipe; its own seed does not matter.
        last_step: steps of the whole training, which some schedules end at.
        device: where they are trained.
        """
        self.seeds = list(seeds)
        self.settings = settings
        self.last_step = last_step
        self.step = 0
        models, self.generators = zip(
            *(_beginning(build, seed, device) for seed in seeds), strict=True
        )
        self.model = models[0].to(device).eval()  # whose parameters are never used
        for module in self.model.modules():
            if isinstance(module, Attention):
                module.implementation = "explicit"  # the kernel would drop weights by itself
        self.dropouts = Dropouts(self.model)
        rows = [torch.cat([p.detach().flatten() for p in m.parameters()]) for m in models]
        self.rows = torch.stack(rows).to(device)  # (N, P)
        self.optimizer = Adam(self.rows, settings)
        self.parameters = self._views()

    def train_step(self, batches: Sequence[Batch]) -> Tensor:
        """Forward, backward, clip, update, each member by its own batch.

        Returns the losses, nats a token, (N,).
        """
        tokens = torch.tensor([batch.tokens for batch in batches], device=self.rows.device)
        sums = vmap(self._loss)(
            self.parameters,
            _stacked([batch.source for batch in batches]),
            _stacked([batch.target for batch in batches]),
            self.dropouts.draw(batches, self.generators),
        )
        losses = sums / tokens
        # No member's loss depends on another's parameters: the sum's gradient is each one's own.
        gradients = torch.autograd.grad(losses.sum(), list(self.parameters.values()))
        self.rows.grad = self._clipped(torch.cat([g.flatten(1) for g in gradients], dim=1))
        self.step += 1
        self.optimizer.step(learning_rate(self.settings, self.step, self.last_step))
        return losses.detach()

    def tensors(self, member: int) -> dict[str, Tensor]:
        """Copies of a member's parameters by name, on the CPU."""
        return {name: p[member].detach().cpu().clone() for name, p in self.parameters.items()}

    def _loss(
        self,
        parameters: dict[str, Tensor],
        source: Tensor,
        target: Tensor,
        masks: tuple[Tensor, ...],
    ) -> Tensor:
        """The summed loss of one member, as `vmap` sees it."""
        self.dropouts.put(masks)
        return loss_sum(
            lambda *ids: functional_call(self.model, parameters, ids),
            Batch(source, target, 0),
            self.settings.label_smoothing,
        )

    def _clipped(self, gradients: Tensor) -> Tensor:
        """(N, P), as `clip_grad_norm_` leaves each member's."""
        if self.settings.clip_norm is None:
            return gradients
        norms = torch.linalg.vector_norm(gradients, dim=1, keepdim=True)
        return gradients.mul_((self.settings.clip_norm / (norms + 1e-6)).clamp(max=1))

    def _views(self) -> dict[str, Tensor]:
        """The rows as parameters by name, (N, ...) each."""
        named = dict(self.model.named_parameters())
        columns = self.rows.split([p.numel() for p in named.values()], dim=1)
        return {
            name: column.view(len(self.rows), *p.shape).requires_grad_()
            for (name, p), column in zip(named.items(), columns, strict=True)
        }


def train(
    ensemble: Ensemble,
    batches: Batches,
    *,
    after_step: Iterable[Callable[[Tensor], None]] = (),
    at_epoch_end: Iterable[Callable[[int], None]] = (),
) -> None:
    """Train a new ensemble to its last step.

    Args:
        ensemble: takes the steps.
        batches: the training split, which each member sees in the order of its own seed.
        after_step: called after each step, with the members' losses, (N,).
        at_epoch_end: called after each epoch, with its number.
    """
    epoch = 0
    while ensemble.step < ensemble.last_step:
        epoch += 1
        orders = (batches.shuffled(seed, epoch) for seed in ensemble.seeds)
        for each in zip(*orders, strict=True):
            losses = ensemble.train_step(each)
            for act in after_step:
                act(losses)
            if ensemble.step == ensemble.last_step:
                break
        for act_at_end in at_epoch_end:
            act_at_end(epoch)


def _beginning(
    build: Callable[[], Transformer], seed: int, device: torch.device
) -> tuple[Transformer, torch.Generator]:
    """A new model of a seed, and the random numbers that its training goes on with."""
    generator = torch.Generator(device).manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = build()
        if device.type == "cpu":
            generator.set_state(torch.get_rng_state())
    return model, generator


def _stacked(ids: Sequence[Tensor]) -> Tensor:
    """Batches of different shapes as one, (N, B, longest).

    What is added is padding, from which no target token is to be predicted. Each added sentence
    has a first token, since attention needs one to look at.
    """
    sentences, longest = (max(sizes) for sizes in zip(*(i.shape for i in ids), strict=True))
    stacked = ids[0].new_full((len(ids), sentences, longest), PAD)
    stacked[:, :, 0] = SOS
    for member, own in zip(stacked, ids, strict=True):
        member[: own.shape[0], : own.shape[1]] = own
    return stacked
