"""A virtual environment for each peer, made when it is first needed and kept under its pinned versions."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from parasol.cache import claim
from parasol.errors import ParasolError

_READY = "ready"
_SECONDS = 1800  # one of the peers compiles


class PeerFailed(ParasolError):
    """A peer that could not be installed or run; the others go on."""


class PeerTooSlow(PeerFailed):
    """A peer that did not finish in the time it was given."""


def default_cache() -> Path:
    """Where environments and results are kept unless another folder is given."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parasol" / "peers"


def interpreter(requirements: Path, cache: Path, *, timeout: float = _SECONDS) -> Path:
    """The Python of the environment with these requirements; it is made and filled by pip if it is not there."""
    text = requirements.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{sys.version_info[:2]} {text}".encode()).hexdigest()[:12]
    folder = cache / "environments" / f"{requirements.stem}-{key}"
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / _READY).exists():
        return python
    with claim(folder, "environment"):
        shutil.rmtree(folder / "venv", ignore_errors=True)  # half of one, of a run that was stopped
        try:
            venv.create(folder / "venv", with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise PeerFailed(f"no virtual environment could be made: {last_words(str(error))}") from None
        quiet = ["--quiet", "--disable-pip-version-check", "--no-compile", "--no-input"]
        command = [str(python), "-m", "pip", "install", *quiet, "--requirement", str(requirements)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=clean_environment())
        except subprocess.TimeoutExpired:
            raise PeerFailed(
                f"installing it took more than {timeout:.0f} s. Try again with a faster network."
            ) from None
        if run.returncode:
            shutil.rmtree(folder / "venv", ignore_errors=True)
            raise PeerFailed(f"could not be installed: {last_words(run.stderr)}")
        (folder / _READY).touch()
    return python


def clean_environment(**more: str) -> dict[str, str]:
    """Variables of this process without those that would mix environments; one thread, for times that can be compared."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**kept, **threads, "PYTHONNOUSERSITE": "1", "MPLBACKEND": "agg", **more}


def last_words(text: str) -> str:
    """The line of a program's complaints that says most, in one line of bounded length."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines
    return (errors[-1] if errors else "it said nothing")[:200]
