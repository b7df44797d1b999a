"""Rows of a system that carry one equation, and the points from which their stencils are taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.pde.equation import Form
from parasol.space.kernels import MultiIndex
from parasol.space.neighbours import Cloud


@dataclass(frozen=True, eq=False)
class Stencils:
    """The points from which derivatives at some centers are computed, and their weights."""

    columns: np.ndarray  # (n_rows, width)
    weights: dict[MultiIndex, np.ndarray]  # each (n_rows, width)
    condition: np.ndarray  # of the local systems


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of the system that carry one equation: where they stand and at which points it is evaluated."""

    form: Form
    rows: np.ndarray  # (n_rows,) row of the system
    centers: np.ndarray  # (n_rows,) point at which the equation is evaluated
    normals: np.ndarray | None  # (n_rows, dimension)
    region: int = 0  # whose points the stencils take
    scale: np.ndarray | None = None  # (n_rows,) by which the equation is multiplied
    stencils: Stencils | None = None  # where they are not those of the scheme


@dataclass(frozen=True, eq=False)
class Points:
    """Nodes and ghosts: all of them, and for each region those that its stencils may take."""

    points: np.ndarray  # (n, dimension)
    clouds: tuple[Cloud, ...]  # one per region, one where there are none
    members: tuple[np.ndarray, ...]  # of each cloud: its points among all, (n_members,)
