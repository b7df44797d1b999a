"""Lines of sight inside a domain, decided by balls that touch the boundary and not by samples."""

from __future__ import annotations

import numpy as np

from parasol.space.geometry.domain import Domain
from parasol.space.wrap import Depth

_SHRINK = 4.0 ** -np.arange(14)  # depths tried for a point in a narrow place, as parts of the wanted one
_SURE = 30.0  # times the room: farther inside a lower bound of the depth will do
_ROUNDS = 200  # balls along one line
OVERLAP = 0.95  # balls that only touch may touch in a wall: each counts for less than its radius


def walk(domain: Domain, start, direction, near, far, floor) -> np.ndarray:
    """How far one can go from each start before the boundary is met, (n,); at least `far` where it is not met.

    The line start + t direction (unit vectors) is known to be free up to t = `near`. A ball around a point of the line
    whose radius is the distance to the boundary is free as well, so a chain of such balls without gaps proves a piece
    of the line free, however thin the walls are. Where balls become smaller than `floor` the line is at a wall.
    """
    near = OVERLAP * near
    reach = np.where(near > 0, near, 0.5 * far)  # radius asked of the next ball
    active = np.flatnonzero(near < far)
    for _ in range(_ROUNDS):
        if not len(active):
            break
        # two balls that touch leave no gap; the last one may be as small as what is left
        reach[active] = np.minimum(reach[active], np.maximum(0.5 * (far[active] - near[active]), floor[active]))
        at = near[active] + reach[active]
        radius = np.abs(domain.distance(start[active] + at[:, None] * direction[active]))
        free = radius >= reach[active] * (1 - 1e-9)
        passed, stopped = active[free], active[~free]
        near[passed] = at[free] + OVERLAP * radius[free]
        reach[passed] = radius[free]
        reach[stopped] *= 0.5
        active = active[(near[active] < far[active]) & (reach[active] >= floor[active])]
    return near


def lifted(domain: Domain, points: np.ndarray, room: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, dimension) moved away from the boundary to a depth of `room` (n,), or less in narrow places; depths, at least.

    A point on the boundary has no free ball around it, and a line along a wall or over a convex corner would be stopped
    at once. From the lifted place a line passes over anything lower than `room`, but not through a wall.
    """
    places = points.copy()
    depth = np.maximum(Depth(domain).at_least(points, _SURE * room), 0.0)
    low = np.flatnonzero(depth < room)
    for shrink in _SHRINK:
        if not len(low):
            break
        wanted = shrink * room[low]
        trial = points[low].copy()
        reached = -domain.distance(trial)
        total = np.zeros_like(trial)  # of the normals of the sides that meet here: a corner is left between them
        for count in range(1, domain.dimension + 1):
            rows = np.flatnonzero(reached < 0.5 * wanted)
            if not len(rows):
                break
            total[rows] += domain.normal(trial[rows])
            square = np.maximum(np.sum(total[rows] ** 2, axis=1), 1e-4)
            trial[rows] = points[low[rows]] - (count * wanted[rows] / square)[:, None] * total[rows]
            reached[rows] = -domain.distance(trial[rows])
        back = points[low] - trial
        length = np.linalg.norm(back, axis=1)
        direction = back / np.maximum(length, 1e-300)[:, None]
        enough = length - 1e-8 * wanted  # a wall between the place and the point would be thinner than this
        fine = reached >= 0.5 * wanted
        on = np.flatnonzero(fine)
        fine[on] = walk(domain, trial[on], direction[on], reached[on], enough[on], 1e-9 * wanted[on]) >= enough[on]
        better = fine & (reached > depth[low])
        places[low[better]], depth[low[better]] = trial[better], reached[better]
        low = low[~fine & (depth[low] < wanted)]
    return places, depth
