"""How the values of unknown functions stand in one vector: function after function, at the nodes, then at the ghosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FieldLayout:
    """Unknown functions one after the other, each by its values at the nodes and at as many ghosts as the others.

    What a solution holds are the values at the nodes alone, (..., n_fields * n_nodes); the linear systems have
    n_unknowns = n_fields * (n_nodes + n_ghosts).

    >>> layout = FieldLayout(("u", "v"), n_nodes=2, n_ghosts=1)
    >>> layout.at_nodes(np.arange(6)), layout.at_ghosts(np.arange(6))
    (array([0, 1, 3, 4]), array([2, 5]))
    """

    names: tuple[str, ...]
    n_nodes: int
    n_ghosts: int

    @property
    def n_fields(self) -> int:
        """Number of unknown functions."""
        return len(self.names)

    @property
    def n_unknowns(self) -> int:
        """Values of all functions at nodes and ghosts."""
        return self.n_fields * (self.n_nodes + self.n_ghosts)

    def fields(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """The unknown functions by name, each (..., n_nodes), from stacked values (..., n_fields * n_nodes)."""
        return dict(zip(self.names, np.split(np.asarray(values), self.n_fields, axis=-1), strict=True))

    def at_nodes(self, unknowns: np.ndarray) -> np.ndarray:
        """Without the ghosts: (..., n_unknowns) to (..., n_fields * n_nodes)."""
        return self._apart(unknowns)[..., : self.n_nodes].reshape(*unknowns.shape[:-1], -1)

    def at_ghosts(self, unknowns: np.ndarray) -> np.ndarray:
        """The values at ghosts alone: (..., n_unknowns) to (..., n_fields * n_ghosts)."""
        return self._apart(unknowns)[..., self.n_nodes :].reshape(*unknowns.shape[:-1], self.n_fields * self.n_ghosts)

    def unknowns(self, at_nodes: np.ndarray, at_ghosts: np.ndarray) -> np.ndarray:
        """Values at nodes (..., n_fields * n_nodes) and at ghosts (..., n_fields * n_ghosts) as (..., n_unknowns)."""
        parts = [self._apart(part) for part in (at_nodes, at_ghosts)]
        return np.concatenate(parts, axis=-1).reshape(*at_nodes.shape[:-1], self.n_unknowns)

    def weights(self, at_nodes: np.ndarray) -> np.ndarray:
        """Weights of an inner product for all unknowns, (n_unknowns,): at ghosts the mean of those of the same function."""
        return self.unknowns(at_nodes, np.repeat(np.mean(self._apart(at_nodes), axis=1), self.n_ghosts))

    def _apart(self, values: np.ndarray) -> np.ndarray:
        """(..., n_fields * n) as (..., n_fields, n)."""
        return values.reshape(*values.shape[:-1], self.n_fields, values.shape[-1] // self.n_fields)
