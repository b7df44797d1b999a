"""Where and when the values of a field are, and which unknown functions they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import check_finite, check_shape, unmasked
from parasol.errors import InputError, did_you_mean
from parasol.runtime.outline import Outline
from parasol.runtime.ranges import check_name
from parasol.runtime.theta import Theta

AXES = ("x", "y", "z")  # what the coordinates are called where nobody named them
_HIGHEST = 40  # degree of polynomials in stencils: no local system of higher degree can be solved


@dataclass(frozen=True, eq=False)
class RegionNodes:
    """A region of the domain: its outline, and the nodes in it and on its interfaces."""

    outline: Outline
    members: np.ndarray  # (n_members,) numbers of the nodes


@dataclass(frozen=True, eq=False)
class GivenJumps:
    """What unknowns in regions exceed the values of nodes by: Σ_p θ_p(μ) values_p, 0 but at nodes on interfaces."""

    theta: Theta  # θ_p
    regions: np.ndarray  # (n_parts,) that each part is of
    unknowns: np.ndarray  # (n_parts,) likewise
    values: np.ndarray  # (n_parts, n_nodes)

    def __post_init__(self):
        n = self.theta.n_terms
        check_finite(check_shape(self.values, (n, None), "given jumps"), "given jumps")
        check_shape(self.regions, (n,), "regions of given jumps")
        check_shape(self.unknowns, (n,), "unknowns of given jumps")

    def seen(self, mus: np.ndarray, weights: Any, regions: np.ndarray, n_unknowns: int) -> np.ndarray:
        """What is added to interpolated values at points of these regions (n_points,): (n_samples, n_unknowns, n_points)."""
        parts = (weights @ self.values.T).T * (regions == self.regions[:, None])
        owners = np.arange(n_unknowns)[:, None] == self.unknowns
        return np.einsum("np,fp,px->nfx", self.theta(mus), owners, parts)


@dataclass(frozen=True, eq=False)
class Layout:
    """What the values of a field are: unknown functions at nodes, at times where there are any.

    A file holds the `outline` of the domain, but not the domain. Values between nodes are computed from the outline before
    saving too, so that they are the same after loading.
    """

    names: tuple[str, ...] = ("u",)
    points: np.ndarray | None = None  # (n_nodes, dimension), interior first
    n_interior: int = 0
    scheme: Any | None = None  # stencils for values between nodes
    times: np.ndarray | None = None
    domain: Any | None = None  # not part of a file
    outline: Outline | None = None
    coordinates: tuple[str, ...] = field(default=(), metadata={"optional": True})  # their names; () is x, y, z
    time: str = field(default="t", metadata={"optional": True})  # what time is called
    # where the field has kinks: values between nodes are computed within a region
    regions: tuple[RegionNodes, ...] = field(default=(), metadata={"optional": True})
    # (n_cells, n_nodes of each), corners first: values between nodes are those of elements, where the solver has them
    cells: np.ndarray | None = field(default=None, metadata={"optional": True})
    # whether unknowns jump at interfaces, where nodes have the value of one side, and by how much the other one differs
    jumps: bool = field(default=False, metadata={"optional": True})
    given_jumps: GivenJumps | None = field(default=None, metadata={"optional": True})
    # fields of several components, and others, with their numbers of components, in the order of the names; (): one each
    vectors: tuple[tuple[str, int], ...] = field(default=(), metadata={"optional": True})

    def __post_init__(self):
        if not self.names or not all(isinstance(name, str) for name in self.names):
            raise InputError(f"the unknown functions are named {self.names!r}. Give names, one per function.")
        if self.times is not None and not len(check_finite(check_shape(self.times, (None,), "times"), "times")):
            raise InputError("a layout in time needs at least one time.")
        for name in (*self.coordinates, self.time):
            check_name(name)
        if self.vectors and sum(n for _, n in self.vectors) != len(self.names):
            raise InputError(f"{len(self.names)} functions are not the components of {self.vectors!r}.")
        if self.points is None:
            return
        points = check_finite(check_shape(self.points, (None, None), "points"), "points")
        if type(self.n_interior) is not int or not 0 <= self.n_interior <= len(points):
            raise InputError(f"n_interior={self.n_interior!r} does not fit {len(points)} nodes.")
        if self.coordinates and len(set(self.coordinates)) != points.shape[1]:
            raise InputError(f"{self.coordinates!r} do not name the {points.shape[1]} coordinates of the nodes.")
        if self.outline is not None:
            check_shape(self.outline.bounds, (2, points.shape[1]), "bounds of the outline")
        for region in self.regions:
            check_nodes(region.members, len(points))
        if self.given_jumps is not None:
            check_shape(self.given_jumps.values, (None, len(points)), "given jumps")
        if self.cells is not None:
            known = {1: (2, 3), 2: (3, 6, 10, 15), 3: (4,)}.get(points.shape[1], ())
            if check_shape(self.cells, (None, None), "cells").shape[1] not in known:
                raise InputError(f"cells of {self.cells.shape[1]} nodes in {points.shape[1]} dimensions are not known.")
            check_nodes(self.cells.ravel(), len(points))
        if self.scheme is not None:
            if not hasattr(self.scheme, "stencil_size"):
                raise InputError(f"the scheme of a layout is a {type(self.scheme).__name__}.")
            size, degree = self.scheme.stencil_size, self.scheme.degree
            if not (1 <= size < 2**31 and -1 <= degree <= _HIGHEST and hasattr(self.scheme.kernel, "radial")):
                raise InputError(f"{self.scheme} is no scheme for values between nodes.")

    @property
    def n_times(self) -> int:
        """Number of stored times; 1 for steady problems."""
        return 1 if self.times is None else len(self.times)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields: of the functions, those that are components of one field under its name."""
        return tuple(name for name, _ in self.vectors) or self.names

    def members(self, name: str) -> list[int]:
        """Places of the components of a field among the names; of a single function its own."""
        if name in self.names:
            return [self.names.index(name)]
        start = 0
        for field_name, n in self.vectors:
            if field_name == name:
                return list(range(start, start + n))
            start += n
        known = dict.fromkeys([*self.names, *self.fields])
        raise InputError(f"there is no unknown {name!r}. {did_you_mean(name, known)}There are: {', '.join(known)}.")

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the coordinates, one for each axis; bare data have none."""
        return () if self.points is None else self.coordinates or AXES[: self.points.shape[1]]

    def check_values(self, n_values: int) -> None:
        """Refuse fields of a length that does not fit the nodes, the functions and the times."""
        per_node = len(self.names) * self.n_times
        if n_values % per_node or (self.points is not None and n_values != per_node * len(self.points)):
            nodes = "" if self.points is None else f", {len(self.points)} nodes"
            raise InputError(f"{n_values} values do not fit {len(self.names)} functions, {self.n_times} times{nodes}.")

    def time_indices(self, times: ArrayLike) -> np.ndarray:
        """Places of the given times among the stored ones, or a clear error."""
        if self.times is None:
            raise InputError("times are for problems in time; this one is steady.")
        wanted = check_shape(np.atleast_1d(times), (None,), "times")
        if not len(wanted):
            raise InputError("times is empty. Give at least one stored time.")
        indices = np.argmin(np.abs(self.times[None, :] - wanted[:, None]), axis=1)
        gaps = np.diff(self.times, prepend=-np.inf, append=np.inf)
        gaps = np.minimum(np.minimum(gaps[:-1], gaps[1:]), np.ptp(self.times) or np.abs(self.times))
        off = ~(np.abs(self.times[indices] - wanted) <= 1e-6 * gaps[indices])
        if np.any(off):
            raise InputError(
                f"t={wanted[off][0]:g} is not a stored time. Stored are {len(self.times)} from "
                f"{self.times[0]:g} to {self.times[-1]:g}."
            )
        return indices


def check_nodes(nodes: ArrayLike, n_nodes: int) -> np.ndarray:
    """Indices of nodes as an array, refused where they are none."""
    index = np.asarray(unmasked(nodes))
    if index.ndim != 1 or index.dtype.kind not in "iu" or not len(index) or np.any((index < 0) | (index >= n_nodes)):
        raise InputError(f"nodes must be whole numbers from 0 to {n_nodes - 1}, got {nodes!r}.")
    return index
