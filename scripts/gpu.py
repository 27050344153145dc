"""The same training on CPU and on GPU, compared: make gpu.

Trains twice with scripts/train.py, without dropout, since the devices draw other random numbers.
Writes losses, their differences, seconds and milliseconds a step to a Markdown file.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from qkvtrace.command import command, plain
from qkvtrace.conversion import from_config
from qkvtrace.settings import GpuSettings


@command("gpu")
def main(config: DictConfig) -> None:
    """Train on each device, compare, report; a UserError if the losses do not agree."""
    own = ("devices", "tolerance", "report")
    settings = from_config(GpuSettings, {name: plain(config)[name] for name in own})
    overrides = [
        override
        for override in HydraConfig.get().overrides.task
        if override.partition("=")[0] not in own
    ]

    from qkvtrace.errors import UserError
    from qkvtrace.model.device import choose_device
    from qkvtrace.runs.metrics import read_metrics
    from qkvtrace.views.device_report import device_report, largest_difference

    for device in settings.devices:
        choose_device(device)
    trainings = []
    with tempfile.TemporaryDirectory() as folder:
        for number, device in enumerate(settings.devices):
            run = Path(folder) / f"{number}-{device}"
            train = [sys.executable, "scripts/train.py", "model.dropout=0", *overrides]
            train += [f"training.device={device}", f"outputs={folder}", f"hydra.run.dir={run}"]
            if subprocess.run(train, stdout=sys.stderr, check=False).returncode:
                raise UserError(f"expected a training on {device}, but it ended early")
            trainings.append(read_metrics(run / "metrics.jsonl"))
    report = device_report(settings, overrides, trainings)
    Path(settings.report).parent.mkdir(parents=True, exist_ok=True)
    Path(settings.report).write_text(report, encoding="utf-8")
    print(report)
    difference = largest_difference(*trainings)
    if difference > settings.tolerance:
        raise UserError(
            f"expected losses within {settings.tolerance} of each other, found {difference:.2g}"
        )


if __name__ == "__main__":
    main()
