"""What a file keeps of a domain: its boundary as small flat pieces, or as a solid of boxes and balls."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError


@dataclass(frozen=True, eq=False)
class Outline:
    """The bounding box of a domain, its periods, and its boundary as many small flat pieces.

    In the plane these are straight segments. In space, and where axes are periodic, they are discs (in the plane
    intervals) around points of the boundary, perpendicular to its normals. Files of version 0.1.0 have the box alone where
    there are discs now. `parasol.space.outline` says which points lie inside.
    """

    bounds: np.ndarray  # (2, dimension)
    periods: np.ndarray  # (dimension,), 0 where not periodic
    segments: np.ndarray | None = None  # (n_segments, 2, 2): start and end of each
    slack: float = 0.0  # how far the boundary may lie from the pieces
    convex: bool = field(default=False, metadata={"optional": True})  # whether all points see each other
    discs: np.ndarray | None = field(default=None, metadata={"optional": True})  # (n_discs, dimension): their centres
    normals: np.ndarray | None = field(default=None, metadata={"optional": True})  # (n_discs, dimension), outwards
    radii: np.ndarray | None = field(default=None, metadata={"optional": True})  # (n_discs,)
    solid: tuple | None = field(default=None, metadata={"optional": True})  # what `height` reads: then inside is exact

    def __post_init__(self):
        bounds = check_finite(check_shape(self.bounds, (2, None), "bounds"), "bounds")
        periods = check_finite(check_shape(self.periods, (bounds.shape[1],), "periods"), "periods")
        if not np.all(bounds[0] < bounds[1]) or np.any(periods < 0) or not 0 <= self.slack < np.inf:
            raise InputError("the outline of the domain is no outline: its box is empty, or a number in it negative.")
        if self.segments is not None:
            check_finite(check_shape(self.segments, (None, 2, 2), "segments"), "segments")
        if self.discs is not None:
            check_finite(check_shape(self.discs, (None, bounds.shape[1]), "discs"), "discs")
            check_finite(check_shape(self.normals, self.discs.shape, "normals"), "normals")
            check_finite(check_shape(self.radii, (len(self.discs),), "radii"), "radii")
        if self.solid is not None:
            check_finite(check_shape(height(self.solid, bounds), (2,), "height of a solid"), "height of a solid")

    @property
    def dimension(self) -> int:
        """Of the domain."""
        return self.bounds.shape[1]


def height(solid: tuple, points: np.ndarray) -> np.ndarray:
    """A number for each point, negative inside a solid and positive outside, near its sides the distance from them: (n,).

    A solid is ("box", lower, upper), ("ball", center, radius), or a union, an intersection or a difference of two.

    >>> shell = ("difference", ("box", np.zeros(3), np.full(3, 4.0)), ("ball", np.full(3, 2.0), 1.0))
    >>> height(shell, np.array([[2.0, 2.0, 2.5], [2.0, 2.0, 3.5], [2.0, 2.0, 4.25]]))
    array([ 0.5 , -0.5 ,  0.25])
    """
    kind, one, other = solid
    if kind == "box":
        return np.max(np.maximum(one - points, points - other), axis=1)
    if kind == "ball":
        return np.linalg.norm(points - one, axis=1) - other
    if kind not in ("union", "intersection", "difference"):
        raise InputError(f"a solid is a {kind!r}, which this version of parasol does not know.")
    first, second = height(one, points), height(other, points)
    return np.minimum(first, second) if kind == "union" else np.maximum(first, -second if kind[0] == "d" else second)
