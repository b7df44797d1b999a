"""What JSON knows: its type, and values made of nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Plain = dict[str, Any]  # numbers, texts, truth values, None, and lists and dicts of these


def plain(value: Any) -> Any:
    """Numbers, strings, lists and dictionaries that JSON can hold; NaN and infinity become None."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            value = np.where(np.isfinite(value), value.astype(object), None)  # type: ignore[call-overload]
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
