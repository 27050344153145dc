"""What every script's `main` shares: settings, one-line errors, exit statuses."""

import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from qkvtrace.conversion import from_config
from qkvtrace.errors import Interrupted, UserError
from qkvtrace.runs.folder import Run, stored_config
from qkvtrace.settings import Settings

CONFIGS = Path(__file__).parents[2] / "configs"
CHANGEABLE = (
    "training.epochs",
    "training.steps",
    "training.device",
    "training.checkpoint_every",
    "snapshots.epochs",
    "snapshots.every",
    "snapshots.parameters",
    "snapshots.tensorboard",
)

OmegaConf.register_new_resolver("unless", lambda value, path: path if value is None else ".")


def command(config_name: str) -> Callable[[Callable[[DictConfig], Any]], Callable[[], None]]:
    """Make a script's main function from `main(config)`, with `configs/<config_name>.yaml`.

    A UserError, a wrong override or a full disk ends the process with one line on stderr and
    status 1, Ctrl-C with 130, and an `Interrupted` with its own status. With HYDRA_FULL_ERROR=1
    they show their tracebacks instead.
    """

    def decorate(main: Callable[[DictConfig], Any]) -> Callable[[], None]:
        wanted = os.environ.get("HYDRA_FULL_ERROR") == "1"

        def task(config: DictConfig) -> Any:
            os.environ["HYDRA_FULL_ERROR"] = str(int(wanted))  # as it was, for what `main` starts
            try:
                with _told(wanted):  # Here already: Hydra would add a line of its own.
                    return main(config)
            except BaseException:
                with suppress(OSError, ValueError):  # Hydra made a folder; keep it only if used.
                    Path(HydraConfig.get().runtime.output_dir).rmdir()
                raise

        def run() -> None:
            os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises, and we do the telling.
            with _told(wanted):
                hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=config_name)(
                    task
                )()

        return run

    return decorate


@contextmanager
def heavy_imports() -> Iterator[None]:
    """Import PyTorch and the like a tenth faster: nothing they make is garbage to be looked for."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def train_settings(config: DictConfig) -> Settings:
    """What to train: the composed settings, or with `resume` those of the run that goes on.

    A resumed run keeps its own settings; the command line may change those in CHANGEABLE alone,
    since with others it would not be the same training any more. Raises UserError.
    """
    if config.resume is None:
        return from_config(Settings, plain(config))
    stored = stored_config(Run.open(config.resume).folder)
    for override in HydraConfig.get().overrides.task:
        key = override.partition("=")[0]
        if key == "resume":
            continue
        if key not in CHANGEABLE:
            raise UserError(
                f"{key}: a resumed run keeps its settings; expected one of {', '.join(CHANGEABLE)}"
            )
        group, name = key.split(".")
        stored[group][name] = plain(config)[group][name]
    return from_config(Settings, stored)


def composed(config_name: str, *overrides: str) -> dict[str, Any]:
    """The configuration that a command of this name has with `overrides`, within a command."""
    return plain(hydra.compose(config_name, list(overrides)))


def plain(config: DictConfig) -> dict[str, Any]:
    """A composed configuration as nested dicts and lists."""
    container: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    return container


@contextmanager
def _told(wanted: bool) -> Iterator[None]:
    """End the process as `command` promises; wanted: show tracebacks instead."""
    try:
        yield
    except Interrupted as stop:
        _leave(str(stop), stop.exit_status)
    except KeyboardInterrupt:
        _leave("interrupted", 130)
    except BrokenPipeError:  # who reads stdout has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (UserError, HydraException, OmegaConfBaseException, OSError) as error:
        if wanted:
            raise
        _leave(_sentence(error), 1)


def _leave(message: str, status: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(status)


def _sentence(error: Exception) -> str:
    """One line for a person: what was expected, what was found and where."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"
    if isinstance(error, MissingConfigException) and error.options is not None:
        choice = (error.missing_cfg_file or "").replace("/", "=", 1)
        return f"{choice}: no such choice; there are {', '.join(error.options)}"
    if isinstance(error, OverrideParseException):
        return f"expected name=value, quoted as Hydra wants it, found {error.override!r}"
    unknown = re.search(r"Could not override '([^']+)'", str(error))
    if unknown:
        return f"{unknown[1]}: no such setting; the files in configs/ list them all"
    ambiguous = re.search(r"Ambiguous value for argument '([^']+)'", str(error))
    if ambiguous:
        return f"expected [a,b] for a list, or -m for a sweep, found {ambiguous[1]!r}"
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and "HYDRA_FULL_ERROR" not in line)
