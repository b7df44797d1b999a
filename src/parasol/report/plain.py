"""Results as plain values: as JSON on the screen or in a file."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from parasol import __version__
from parasol.cache.disk import check_output, replacing

Facts = dict[str, Any]  # numbers, texts, truth values, None, and lists and dicts of these
Stage = Callable[[str], Callable[[float], None] | None]  # told what begins, may return whom to tell the fraction done


def machine_facts() -> Facts:
    """The machine and the versions behind measured figures."""
    return {
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "parasol": __version__,
    }


def as_json(facts: Facts | list[Facts]) -> str:
    """Facts as JSON text, null for what JSON has no number for.

    >>> print(as_json({"error": math.nan, "unknown": "u"}), end="")
    {
      "error": null,
      "unknown": "u"
    }
    """
    return json.dumps(_finite(facts), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def write_json(facts: Facts | list[Facts], path: str | Path) -> Path:
    """Write facts as JSON; the file appears complete or not at all."""
    path = check_output(path, None)
    with replacing(path) as temporary:
        temporary.write_text(as_json(facts), encoding="utf-8")
    return path


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
