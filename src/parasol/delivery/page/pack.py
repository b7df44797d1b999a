"""Numbers inside a page: a tree of plain data, and arrays as base64 text that the tree refers to."""

from __future__ import annotations

import base64
import json

import numpy as np

from parasol.errors import InputError

_TYPES = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "u2": "<u2"}


class Pack:
    """Collects the arrays of a page; `add` returns what stands for an array in the tree.

    >>> pack = Pack()
    >>> pack.add(np.array([[1.0, 2.0]]), "f4")
    {'array': 0, 'type': 'f4', 'shape': [1, 2]}
    >>> pack.texts[0]
    'AACAPwAAAEA='
    """

    def __init__(self):
        self.texts: list[str] = []

    def add(self, array, kind: str = "f8") -> dict:
        """Keep an array with numbers of the given kind."""
        array = np.ascontiguousarray(array, dtype=_TYPES[kind])
        self.texts.append(base64.b64encode(array.tobytes()).decode("ascii"))
        return {"array": len(self.texts) - 1, "type": kind, "shape": list(array.shape)}

    def places(self, array: np.ndarray) -> dict:
        """Keep whole numbers from 0 on, short where they are small."""
        return self.add(array, "u2" if np.max(array, initial=0) < 2**16 else "i4")

    @property
    def size(self) -> int:
        """Characters so far."""
        return sum(map(len, self.texts))


def script_text(data) -> str:
    """Plain data as JSON that can stand in a script element: no character in it ends the element."""
    try:
        text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise InputError("a number of this surrogate is NaN or infinite, so it makes no page.") from None
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
