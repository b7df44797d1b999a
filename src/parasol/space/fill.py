"""Advancing-front fill with a minimum distance, whole generations at a time, in two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parasol.space.wrap import Depth, Wrap

# How far (in spacings) an interior node stays from the boundary; the triangle on two boundary nodes has height 0.87.
_MARGIN = 0.6
_N_DIRECTIONS = {2: 15, 3: 24}


class _Forest:
    """All nodes so far, in trees of at least doubling size: adding a generation rebuilds only the small ones."""

    def __init__(self, wrap: Wrap):
        self.wrap = wrap
        self.trees: list = []
        self.blocks: list[np.ndarray] = []

    def add(self, points: np.ndarray) -> None:
        while self.blocks and len(self.blocks[-1]) < 2 * len(points):
            points = np.concatenate([self.blocks.pop(), points])
            self.trees.pop()
        self.blocks.append(points)
        self.trees.append(self.wrap.tree(points))

    def tightness(self, parents: np.ndarray, offsets: np.ndarray, h: np.ndarray) -> np.ndarray:
        """How close each candidate `parent + offset` is to nodes other than its parent, (n, n_directions).

        With |offset| = h and d the way from the parent to another node, |offset - d|^2 = h^2 - (2 offset.d - |d|^2):
        the bracket over h^2 is positive where the candidate is too close, 0 where it just touches.
        """
        tight = np.full(offsets.shape[:2], -4.0)
        for tree, block in zip(self.trees, self.blocks, strict=True):
            k, rows = min(len(block), 10 if parents.shape[1] == 2 else 20), np.arange(len(parents))
            while rows.size:
                distance, index = self.wrap.query(tree, parents[rows], k, bound=2 * float(h[rows].max()))
                near = np.isfinite(distance)
                full = near[:, -1] if k < len(block) else np.zeros(rows.size, dtype=bool)
                used = np.flatnonzero(near.any(axis=1) & ~full)
                if used.size:
                    width = int(near[used].sum(axis=1).max())
                    distance, index, near = distance[used, :width], index[used, :width], near[used, :width]
                    away = self.wrap.shortest(block[np.where(near, index, 0)] - parents[rows[used], None, :])
                    # the parent itself touches every candidate
                    ignored = ~near | (distance < 1e-9 * h[rows[used], None])
                    square = np.where(ignored, np.inf, distance**2)
                    bracket = 2 * (offsets[rows[used]] @ away.transpose(0, 2, 1)) - square[:, None, :]
                    best = bracket.max(axis=2) / h[rows[used], None] ** 2
                    tight[rows[used]] = np.maximum(tight[rows[used]], best)
                rows, k = rows[full], min(4 * k, len(block))
        return tight


def independent(points: np.ndarray, radii: np.ndarray, rank: np.ndarray, wrap: Wrap) -> np.ndarray:
    """Indices of points kept when they are visited by rank and each kept one removes those nearer than its radius.

    The greedy answer is found in rounds: whoever ranks first among its undecided neighbours is kept, its neighbours go.

    >>> independent(np.array([[0.0], [0.6], [1.2]]), np.ones(3), np.array([0, 1, 2]), Wrap([0.0], [0.0]))
    array([0, 2])
    """
    undecided = np.ones(len(points), dtype=bool)
    kept = np.zeros(len(points), dtype=bool)
    reach = float(radii.max()) * (1 - 1e-10)
    pairs = wrap.tree(points).query_pairs(reach, output_type="ndarray")
    first, second = pairs[:, 0], pairs[:, 1]
    swap = rank[first] > rank[second]
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    if radii.min() < reach:
        gap = np.linalg.norm(wrap.shortest(points[first] - points[second]), axis=1)
        close = gap < radii[first] * (1 - 1e-10)
        first, second = first[close], second[close]
    while first.size:
        beaten = np.zeros(len(points), dtype=bool)
        beaten[second] = True
        winners = undecided & ~beaten
        kept |= winners
        undecided &= ~winners
        undecided[second[winners[first]]] = False
        open_pairs = undecided[first] & undecided[second]
        first, second = first[open_pairs], second[open_pairs]
    return np.flatnonzero(kept | undecided)


def fill(
    domain,
    spacing: Callable[[np.ndarray, np.ndarray], np.ndarray],
    boundary: np.ndarray,
    *,
    rng: np.random.Generator,
    depths: Depth | None = None,
    graded: bool = True,
    limit: int | None = None,
) -> np.ndarray:
    """Fill a domain from its boundary nodes inwards, nodes at least the local spacing apart.

    Every node of a generation offers candidates on the sphere of radius h around it, at a random rotation; kept are
    those inside, at least 0.6 h from the boundary and h from every node so far, the tightest first (Slak and
    Kosec 2019, there one node at a time).

    `spacing(points, depth)` takes (n, dimension) points and their (n,) distances from the boundary, `boundary` is
    (n_boundary, dimension); the answer is (n_interior, dimension). `graded=False` promises that `spacing` ignores its
    second argument, which saves asking for distances. Beyond `limit` nodes the fill gives up and returns what it has.
    """
    wrap = Wrap.of(domain)
    depths = depths or Depth(domain)
    forest = _Forest(wrap)
    points, depth, generations, count = boundary, np.zeros(len(boundary)), [boundary[:0]], 0
    if not len(boundary):
        points = domain.bounds[0] + rng.random((1, domain.dimension)) * (domain.bounds[1] - domain.bounds[0])
        depth, generations = depths.exact(points), [points]
    forest.add(points)
    waiting = (points, depth, spacing(points, depth))
    while len(waiting[0]) and (limit is None or count <= limit):
        points, depth, h = waiting
        # one scale at a time, the finest first, so that one search radius serves the whole generation
        now = h <= 1.5 * h.min()
        waiting = tuple(a[~now] for a in waiting)
        points, depth, h = points[now], depth[now], h[now]
        candidates, parents, tight = _offers(forest, wrap, points, h, rng)
        # the distance is 1-Lipschitz: a parent deep enough vouches for its candidates
        near = np.flatnonzero(depth[parents] < (1 + _MARGIN) * h[parents] * 1.01)
        inside = np.ones(len(candidates), dtype=bool)
        if near.size:
            least = _MARGIN * h[parents[near]]
            inside[near] = depths.at_least(candidates[near], least) >= least
        candidates, parents, tight = candidates[inside], parents[inside], tight[inside]
        if len(candidates) == 0:
            continue
        rank = np.empty(len(candidates), dtype=np.int64)
        rank[np.argsort(-tight, kind="stable")] = np.arange(len(candidates))
        new = candidates[independent(candidates, h[parents], rank, wrap)]
        forest.add(new)
        generations.append(new)
        count += len(new)
        if graded:
            depth = depths.exact(new)
            new_h = spacing(new, depth)
        else:
            new_h = spacing(new, np.zeros(len(new)))
            depth = depths.at_least(new, 1.02 * (1 + _MARGIN) * new_h)
        waiting = tuple(np.concatenate([a, b]) for a, b in zip(waiting, (new, depth, new_h), strict=True))
    return np.concatenate(generations)


def _offers(forest: _Forest, wrap: Wrap, points: np.ndarray, h: np.ndarray, rng: np.random.Generator):
    """Candidates around all points that no node so far blocks: positions, index of the parent, tightness."""
    n_directions = _N_DIRECTIONS[points.shape[1]]
    positions, parents, tightness = [], [], []
    for start in range(0, len(points), 4000):  # bounds the (n, n_directions, n_neighbours) work array
        chunk = slice(start, start + 4000)
        offsets = h[chunk, None, None] * _directions(len(h[chunk]), n_directions, points.shape[1], rng)
        tight = forest.tightness(points[chunk], offsets, h[chunk])
        row, column = np.nonzero(tight <= 1e-10)
        positions.append(wrap.fold(points[chunk][row] + offsets[row, column]))
        parents.append(row + start)
        tightness.append(tight[row, column])
    return np.concatenate(positions), np.concatenate(parents), np.concatenate(tightness)


def _directions(n: int, n_directions: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """(n, n_directions, dimension) unit vectors: one even set, rotated at random for each of n nodes."""
    if dimension == 2:
        angle = 2 * np.pi * (rng.random((n, 1)) + np.arange(n_directions)) / n_directions
        angle += 2 * np.pi * rng.random((n, 1))
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return fibonacci(n_directions) @ _rotations(n, rng)


def _rotations(n: int, rng: np.random.Generator) -> np.ndarray:
    """n uniformly distributed rotation matrices, from normalised Gaussian quaternions."""
    q = rng.standard_normal((n, 4))
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows).transpose(2, 0, 1)


def fibonacci(n: int) -> np.ndarray:
    """n nearly even points on the unit sphere, (n, 3): z_i = 1 - (2i+1)/n, azimuth pi (1 + sqrt 5)(i + 1/2).

    >>> float(np.abs(np.linalg.norm(fibonacci(585), axis=1) - 1).max()) < 1e-15
    True
    """
    i = np.arange(n) + 0.5
    z = 1 - 2 * i / n
    azimuth = np.pi * (1 + np.sqrt(5)) * i
    points = np.stack([np.sqrt(1 - z * z) * np.cos(azimuth), np.sqrt(1 - z * z) * np.sin(azimuth), z], axis=1)
    return points / np.linalg.norm(points, axis=1, keepdims=True)
