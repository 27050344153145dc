"""What a run is: enough to know later what made it."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("qkvtrace", "torch", "torchtext", "spacy", "hydra-core", "tensorboard", "numpy")


def manifest(*, seed: int, device: str, corpus: str, parameters: int) -> dict[str, Any]:
    """The content of manifest.json.

    Args:
        seed: the training seed.
        device: where it is trained, "cpu" or "cuda".
        corpus: SHA-256 of the texts and how they were prepared.
        parameters: how many numbers are trained.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "git_revision": git_revision(),
        "seed": seed,
        "device": device,
        "corpus": corpus,
        "parameters": parameters,
    }


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on, by name."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def git_revision() -> str | None:
    """The commit this package runs from, or None outside a checkout; "-dirty" if changed since."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip()
