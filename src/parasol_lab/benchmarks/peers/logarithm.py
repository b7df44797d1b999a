"""The same data with log a in place of a: for peers that do not take logarithms themselves."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np


def with_logarithm(folder: Path, key: str) -> Path:
    """A folder beside `folder`, written anew where the data are others than those of the `key`."""
    out = folder.with_name(f"{folder.name}-log")
    mark = out / "key"
    if mark.exists() and mark.read_text() == key:
        return out
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(folder, out)
    for name in ("train_mus", "test_mus"):
        mus = np.load(folder / f"{name}.npy")
        np.save(out / f"{name}.npy", np.column_stack([np.log(mus[:, 0]), mus[:, 1:]]))
    mark.write_text(key)
    return out
