"""Where snapshots come from, an array or blocks of rows, and what is counted as they pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from parasol.checks import check_finite, check_shape, unmasked
from parasol.errors import InputError
from parasol.reduction.products import MatrixRoot
from parasol.runtime.basis import slices
from parasol.runtime.products import Weights, energies

IN_MEMORY = 2**27  # numbers of a stored set up to which it is read as a whole: 1 GB
BLOCK = 2**22  # numbers that a block of snapshots should have: 32 MB, of which a few copies are made


class Source:
    """Snapshots as one array where they fit in memory and are to be `read`, and in blocks of rows in any case."""

    def __init__(self, given, name: str = "snapshots", *, read: bool = True):
        self.name, self.given = name, given
        self.array: np.ndarray | None = None
        self.hidden: np.ndarray | None = None
        if hasattr(given, "blocks"):
            first = None if not read else self._rows(next(iter(given.blocks()), np.empty((0, 0))))
            self.n_values = given.n_values if first is None else first.shape[1]
            mus = getattr(given, "mus", None)
            n = None if mus is None else len(mus)
            if read and n is not None and n * self.n_values <= IN_MEMORY and hasattr(given, "solutions"):
                self.array = self._rows(given.solutions)
            hidden = getattr(given, "hidden", None)
            if hidden is not None and np.shape(hidden)[1] > 0:
                self.hidden = check_shape(hidden, (None, None), "hidden")
        else:
            self.array = self._rows(given)
            self.n_values = self.array.shape[1]
        if self.n_values == 0 or (self.array is not None and len(self.array) == 0):
            raise InputError(f"{name} are empty: there is nothing to decompose. Solve at some parameters first.")

    def _rows(self, block) -> np.ndarray:
        """Rows (m, n_values) of floats, in the precision they have."""
        given = block
        try:
            block = np.asarray(unmasked(given))
            block = block if block.dtype.kind == "f" else block.astype(float, casting="same_kind")
        except (TypeError, ValueError):
            of = f" of {given.dtype}" if isinstance(given, np.ndarray) else ""
            raise InputError(
                f"{self.name} must be real numbers, got {type(given).__name__}{of}. Give Snapshots, or rows of numbers."
            ) from None
        if block.ndim != 2:
            raise InputError(
                f"{self.name} have shape {block.shape}, expected (n_samples, n_values): samples on axis 0."
            )
        return block

    def whole(self) -> np.ndarray:
        """All rows in one array, also where they do not fit well: the caller has asked for it."""
        if self.array is None:
            given = getattr(self.given, "solutions", None)  # which joins them without a second copy
            self.array = self._rows(np.concatenate(list(self.given.blocks())) if given is None else given)
        return self.array

    def turned(self, root: MatrixRoot) -> Source:
        """The same in coordinates in which the inner product of a matrix is the plain one; a block at a time if need be."""
        if self.array is None:
            return Source(_Turned(self, root))
        return Source(np.ascontiguousarray(root.into(self.array.T).T))

    def blocks(self) -> Iterator[np.ndarray]:
        """Blocks of a useful size: small ones are joined, large ones cut."""
        length = max(16, BLOCK // self.n_values)
        if self.array is not None:
            length = max(2, min(length, -(-len(self.array) // 8)))
        waiting: list[np.ndarray] = []
        for block in [self.array] if self.array is not None else self.given.blocks():
            block = self._rows(block)
            if block.shape[1] != self.n_values:
                raise InputError(f"{self.name} come in blocks of {self.n_values} and {block.shape[1]} values.")
            for part in slices(len(block), length):
                if waiting and sum(map(len, waiting)) + part.stop - part.start > length:
                    yield _joined(waiting)
                    waiting = []
                waiting.append(block[part])
        if waiting:
            yield _joined(waiting)


@dataclass(frozen=True, eq=False)
class _Turned:
    """Blocks of snapshots in the coordinates of a matrix' square root."""

    source: Source
    root: MatrixRoot

    def blocks(self) -> Iterator[np.ndarray]:
        """One after the other."""
        return (np.ascontiguousarray(self.root.into(block.T).T) for block in self.source.blocks())


def _joined(blocks: list[np.ndarray]) -> np.ndarray:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


class Tally:
    """Counts snapshots and their energy as they pass, and stops what is not finite."""

    def __init__(self, weights: Weights | None):
        self.weights, self.n, self.energy = weights, 0, 0.0

    def count(self, block: np.ndarray) -> np.ndarray:
        """The same block."""
        with np.errstate(over="ignore", invalid="ignore"):
            energy = float(np.sum(energies(block, self.weights)))
        if not np.isfinite(energy):
            check_finite(block, "snapshots")
            raise InputError("snapshots are so large that their squares overflow. Scale them.")
        self.n += len(block)
        self.energy += energy
        return block
