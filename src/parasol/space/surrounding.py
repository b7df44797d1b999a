"""Values at places between nodes, from stencils that surround these places."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.sparse import csr_array, diags_array

from parasol.checks import ParasolWarning
from parasol.space.neighbours import Cloud
from parasol.space.operators import differentiate
from parasol.space.stencils import Scheme

_WILD = 16.0  # Σ|weights| of a stencil that does not surround its point; up to 14 is usual
_SAID = 50.0  # beyond which it is said
_SEEN = 4000  # nodes among which a stencil that does is looked for
_APART = 0.3  # of its distance from the point: how far a node is at least from the others of such a stencil


def value_weights(cloud: Cloud, points: np.ndarray, scheme: Scheme) -> csr_array:
    """Weights (n_points, n_nodes) that turn values at nodes into values at points.

    Where nodes are strongly graded, the nearest ones may all lie on one side, and their weights extrapolate. There nodes
    are taken that stand the farther apart the farther they are, so that they lie on all sides.
    """
    zero = (0,) * points.shape[1]
    rows = csr_array(differentiate(cloud, points, [zero], scheme)[zero])
    sizes = np.asarray(abs(rows).sum(axis=1)).ravel()
    kept_rows, others = np.ones(len(points)), []  # which of the rows stay, and what stands in place of the others
    for i in np.flatnonzero(sizes > _WILD):
        index, distance = (found[0] for found in cloud.nearest(points[i : i + 1], min(_SEEN, len(cloud.points))))
        offsets = cloud.wrap.shortest(cloud.points[index] - points[i])
        kept, left = [], np.arange(len(index))
        while len(left) and len(kept) < scheme.stencil_size:
            kept.append(left[0])
            # hidden nodes are infinitely far, and never far enough from others
            left = left[np.linalg.norm(offsets[left] - offsets[left[0]], axis=1) > _APART * distance[left]]
        if len(kept) < scheme.stencil_size:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)  # these nodes are one stencil
            row = differentiate(Cloud(offsets[kept]), np.zeros((1, len(zero))), [zero], scheme)[zero].tocoo()
        if np.sum(np.abs(row.data)) < sizes[i]:
            sizes[i], kept_rows[i] = np.sum(np.abs(row.data)), 0.0
            others.append((row.data, np.full(row.nnz, i), index[kept][row.col]))
    if others:
        data, at, columns = map(np.concatenate, zip(*others, strict=True))
        rows = csr_array(diags_array(kept_rows) @ rows + csr_array((data, (at, columns)), rows.shape))
    if np.any(wild := sizes > _SAID):
        worst = int(np.argmax(sizes))
        place = ", ".join(f"{value:.4g}" for value in points[worst])
        warnings.warn(
            f"no nodes surround {np.count_nonzero(wild)} of {len(points)} places, such as ({place}): values there may be "
            f"wrong by {sizes[worst]:.0f} times what the nodes are. Use more nodes.",
            ParasolWarning,
            stacklevel=3,
        )
    return rows
