"""A run folder, all that passes between commands: `train` writes it, the others read it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from qkvtrace.conversion import from_config
from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.settings import Settings


class Run:
    """Where each thing of a run lies. The README has the table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings_file = folder / ".hydra" / "config.yaml"
        self.manifest = folder / "manifest.json"
        self.metrics = folder / "metrics.jsonl"
        self.checkpoints = folder / "checkpoints"
        self.snapshots = folder / "snapshots"
        self.studies = folder / "studies"
        self.page = folder / "page.html"

    def __str__(self) -> str:
        here = Path.cwd()
        return str(
            self.folder.relative_to(here) if self.folder.is_relative_to(here) else self.folder
        )

    def vocabulary(self, side: str) -> Path:
        """The token list of `side`, "source" or "target"."""
        return self.folder / f"vocabulary.{side}.json"

    @classmethod
    def create(cls, folder: Path, settings: Settings, manifest: dict[str, Any]) -> "Run":
        """Start a new run in `folder`; raises UserError if another run lives there."""
        run = cls(folder.resolve())
        if run.manifest.exists():
            raise UserError(f"expected a new folder, found a run (resume= continues it): {folder}")
        run.checkpoints.mkdir(parents=True, exist_ok=True)
        run.snapshots.mkdir(exist_ok=True)
        run.settings_file.parent.mkdir(exist_ok=True)
        run.store_settings(settings)
        files.write_json(run.manifest, manifest)
        return run

    @classmethod
    def open(cls, folder: str | Path) -> "Run":
        """An existing run; raises UserError if `folder` is none."""
        run = cls(Path(folder).resolve())
        if not run.manifest.exists():
            raise UserError(f"expected a run folder (make train writes one), found none: {folder}")
        return run

    def settings(self) -> Settings:
        """The settings that the run was made with."""
        return from_config(Settings, stored_config(self.folder))

    def check_corpus(self, fingerprint: str) -> None:
        """Raise UserError unless the run was trained on this very corpus."""
        if files.read_json(self.manifest)["corpus"] != fingerprint:
            raise UserError(
                f"expected the corpus that the run was started with, found another: {self.folder}"
            )

    def store_settings(self, settings: Settings) -> None:
        """Write the composed configuration to `.hydra/config.yaml`."""
        text = yaml.safe_dump(nested(settings), sort_keys=False, allow_unicode=True)
        files.write_text(self.settings_file, text)

    def point_latest(self, outputs: Path) -> None:
        """Make `outputs/latest` point here."""
        target = self.folder.resolve()
        root = outputs.resolve()
        inside = target.is_relative_to(root)
        files.point(outputs / "latest", str(target.relative_to(root) if inside else target))


def stored_config(folder: Path) -> dict[str, Any]:
    """A run's configuration as it was stored; raises UserError if it is missing or damaged."""
    path = Run(folder).settings_file
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"expected a run's configuration, found none: {path}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UserError(f"expected a run's configuration, found a damaged file: {path}") from None
    if not isinstance(config, dict):
        raise UserError(f"expected a run's configuration, found a damaged file: {path}")
    return config


def nested(settings: Settings) -> dict[str, Any]:
    """The settings as nested dicts and lists, as YAML and JSON know them."""

    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: convert(item) for name, item in value.items()}
        return [convert(item) for item in value] if isinstance(value, tuple) else value

    converted: dict[str, Any] = convert(asdict(settings))
    return converted
