"""Sparse differentiation matrices from stencil weights."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from parasol.checks import ParasolError, ParasolWarning
from parasol.space.kernels import MultiIndex, n_monomials
from parasol.space.stencils import Scheme, n_workers, stencil_weights
from parasol.space.wrap import Wrap

ILL_CONDITIONED = 1e12  # estimated; a known answer then comes back with fewer than four digits


@dataclass(frozen=True)
class StencilReport:
    """How well conditioned the local systems were."""

    n_stencils: int
    n_ill_conditioned: int
    median_condition: float
    worst_condition: float


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Matrices D^a of shape (n_centers, n_points), one per multi-index, with the report of their stencils."""

    matrices: Mapping[MultiIndex, sparse.csr_array]
    report: StencilReport

    def __getitem__(self, index: MultiIndex) -> sparse.csr_array:
        return self.matrices[index]


def differentiate(
    points: np.ndarray,
    centers: np.ndarray,
    derivatives: Sequence[MultiIndex],
    scheme: Scheme,
    *,
    wrap: Wrap | None = None,
) -> Derivatives:
    """Matrices that take values at `points` to the derivatives D^a at `centers`.

    Neighbours are found across periodic axes where `wrap` says so. All multi-indices of one center share a stencil and
    one factorisation; the index (0, ..., 0) is interpolation.
    Ill-conditioned stencils are reported by a warning, singular ones refused.

    >>> from parasol.space.kernels import PHS
    >>> x = np.linspace(0, 1, 11)[:, None]
    >>> d = differentiate(x, x, [(1,)], Scheme(PHS(3), 2, 5))
    >>> np.allclose(d[(1,)] @ x[:, 0] ** 2, 2 * x[:, 0])
    True
    """
    size = scheme.stencil_size
    if size > len(points):
        raise ParasolError(
            f"stencil_size={size} is more than the {len(points)} nodes there are. Use more nodes, or a smaller stencil_size."
        )
    wrap = wrap or Wrap(np.zeros(points.shape[1]), np.zeros(points.shape[1]))
    workers = n_workers(len(centers) // 1000)
    columns = wrap.query(wrap.tree(points), centers, size, workers=workers)[1].astype(np.int32)
    columns.sort(axis=1)  # the matrices share them: sorted, no use of one matrix can reorder those of another
    offsets = points[columns]
    offsets -= centers[:, None, :]
    offsets = wrap.shortest(offsets)
    found = stencil_weights(offsets, derivatives, kernel=scheme.kernel, degree=scheme.degree)
    _check(found.weights, offsets, derivatives, found.condition, scheme)
    indptr = np.arange(0, len(centers) * size + 1, size, dtype=np.int32)
    shape = (len(centers), len(points))
    matrices = {
        a: sparse.csr_array((found.weights[:, j].ravel(), columns.ravel(), indptr), shape=shape)
        for j, a in enumerate(derivatives)
    }
    ill = int(np.count_nonzero(found.condition > ILL_CONDITIONED))
    report = StencilReport(
        len(centers), ill, float(np.median(found.condition)), float(np.max(found.condition, initial=0.0))
    )
    if ill:
        warnings.warn(
            f"{ill} of {len(centers)} stencils are ill-conditioned (worst {report.worst_condition:.0e}, limit "
            f"{ILL_CONDITIONED:.0e}): their weights may be wrong. Use a larger epsilon, a smaller stencil or PHS.",
            ParasolWarning,
            stacklevel=2,
        )
    return Derivatives(matrices, report)


def _check(weights, offsets, derivatives, condition, scheme: Scheme) -> None:
    """Refuse stencils that have no weights, or whose weights do not reproduce the constant they were built to."""
    bad = ~np.all(np.isfinite(weights), axis=(1, 2))
    if scheme.degree >= 0:
        for j, a in enumerate(derivatives):
            size = np.sum(np.abs(weights[:, j]), axis=1)
            defect = np.abs(np.sum(weights[:, j], axis=1) - (sum(a) == 0))
            bad |= ~(defect <= 1e-6 * np.maximum(size, 1e-300))
    if np.any(bad):
        needed = n_monomials(offsets.shape[2], scheme.degree)
        raise ParasolError(
            f"{np.count_nonzero(bad)} of {len(bad)} stencils of {scheme.stencil_size} nodes are singular for "
            f"degree={scheme.degree} ({needed} monomials) and {scheme.kernel}. "
            f"Use a larger stencil_size, a smaller degree, or less regular nodes."
        )
