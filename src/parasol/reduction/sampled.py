"""The nonlinear part of an equation from few of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parasol.pde.model import Model
from parasol.pde.rows import NonlinearRows


@dataclass(frozen=True, eq=False)
class SampledRows:
    """The nonlinear part of one equation at chosen rows, as a function of coefficients c of the modes V.

    N(V c + G b; μ), seen in some other space, is n W with n its values at the chosen rows. b are boundary data, if any.
    """

    rows: NonlinearRows  # at the chosen rows
    places: tuple[np.ndarray, ...]  # of the values of each function parameter in mu, (n_points,)
    jets: tuple[np.ndarray, ...]  # of each jet: (n_points, n_modes), its derivative of V at the chosen rows
    lift: np.ndarray  # W, (n_points, n_seen)
    of_data: tuple[np.ndarray, ...] = ()  # of each jet: (n_points, n_data), its derivative of G
    unseen: np.ndarray | None = (
        None  # (n_points, n_points): takes n to what of it the collateral modes cannot represent
    )

    @classmethod
    def at(
        cls,
        model: Model,
        rows: NonlinearRows,
        modes: np.ndarray,
        lift: np.ndarray,
        data: np.ndarray | None = None,
        unseen: np.ndarray | None = None,
    ) -> SampledRows:
        """At rows that were chosen, for modes (n_unknowns, n_modes) and data that stand for G (n_unknowns, n_data)."""
        places = [model.inputs.places(f, rows.nodes) for f in rows.functions]
        jets, of_data = (() if columns is None else _jets(rows, columns) for columns in (modes, data))
        return cls(rows, tuple(p for p in places if p is not None), jets, lift, of_data, unseen)

    def truncated(self, n_modes: int, n_seen: int) -> SampledRows:
        """For the first modes and the first n_seen numbers of the space it is seen in."""
        jets = tuple(jet[:, :n_modes].copy() for jet in self.jets)
        return replace(self, jets=jets, lift=self.lift[:, :n_seen].copy())

    def values(self, mus: np.ndarray, c: np.ndarray, t: float = 0.0, data: np.ndarray | None = None) -> np.ndarray:
        """n, (n_samples, n_points)."""
        return self.rows.value(mus, t, *self._arguments(mus, c, data))

    def slopes(self, mus: np.ndarray, c: np.ndarray, t: float = 0.0, data: np.ndarray | None = None) -> np.ndarray:
        """∂n/∂c, (n_samples, n_modes, n_points)."""
        arguments = self._arguments(mus, c, data)
        out = np.zeros((*c.shape, len(self.lift)))
        for slope, jet in zip(self.rows.slopes, self.jets, strict=True):
            out += slope(mus, t, *arguments)[:, None, :] * jet.T
        return out

    def _arguments(self, mus: np.ndarray, c: np.ndarray, data: np.ndarray | None) -> list[np.ndarray]:
        jets: Sequence[np.ndarray] = [c @ jet.T for jet in self.jets]
        if data is not None and data.shape[1]:
            jets = [jet + data @ extra.T for jet, extra in zip(jets, self.of_data, strict=True)]
        return [*jets, *[mus[:, places] for places in self.places]]


def _jets(rows: NonlinearRows, columns: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.einsum("ij,ijk->ik", w, columns[c]) for w, c in zip(rows.weights, rows.columns, strict=True))


def nonlinear_values(model: Model, mus, states: np.ndarray, times: np.ndarray | None = None) -> list:
    """N of each part on all its rows, (n_samples, n_rows), for states (n_samples, n_unknowns), each with its μ and t."""
    out = []
    for part in model.terms.nonlinear:
        values = np.empty((len(mus), len(part.rows)))
        places = [model.inputs.places(f, part.nodes) for f in part.functions]
        for k, (mu, u) in enumerate(zip(mus, states, strict=True)):
            t = 0.0 if times is None else float(times[k])
            values[k] = part.value(mu, t, *part.jets(u), *[mu[p] for p in places])
        out.append(values)
    return out
