"""Where several interfaces meet, or one has a kink: the balance of an equation around the node, by linear elements.

Solutions behave there like r^λ with λ < 1 in general, so that slopes at the point do not exist and polynomials of high
degree see noise. What does hold is the balance over the surroundings: with φ the hat function of the node,

    ∫ F·grad φ + ∫ rest φ = ∫ q φ  over the interfaces,        where the equation is  −div F + rest = 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
from scipy.spatial import Delaunay

from parasol.errors import UnsuitableNodes
from parasol.pde.blocks import Block, Stencils
from parasol.pde.problem import Problem
from parasol.space.nodes import Nodes
from parasol.space.wrap import Wrap

_NEAR = {2: 30, 3: 80}  # nodes among which the simplices around one are looked for


@dataclass(frozen=True, eq=False)
class Fans:
    """The simplices around some nodes, each within one region, and the faces between two regions, flat in two tables."""

    node: np.ndarray  # (m,)
    region: np.ndarray  # (m,)
    corners: np.ndarray  # (m, dimension + 1) nodes; the first is the node itself
    slopes: np.ndarray  # (m, dimension + 1, dimension): gradients of the hat functions of the corners
    volume: np.ndarray  # (m,)
    face_node: np.ndarray  # (k,)
    face_sides: np.ndarray  # (k, 2) regions, the smaller first
    face_area: np.ndarray  # (k,)


def fans(nodes: Nodes, which: np.ndarray) -> Fans:
    """The simplices around the nodes `which` (n,) in the interior, from the Delaunay triangulation of their neighbours."""
    dimension, wrap = nodes.dimension, Wrap.of(nodes.domain)
    _, near = wrap.query(wrap.tree(nodes.points), nodes.points[which], min(_NEAR[dimension], nodes.n_nodes))
    simplices, faces = [], []
    for i, others in zip(which, near, strict=True):
        others = np.concatenate([[i], others[others != i]])
        places = wrap.shortest(nodes.points[others] - nodes.points[i])
        fan = Delaunay(places).simplices
        fan = np.sort(fan[np.any(fan == 0, axis=1)], axis=1)
        edges = places[fan[:, 1:]]
        volume = np.abs(np.linalg.det(edges)) / factorial(dimension)
        fan = fan[volume > 1e-9 * np.max(volume)]
        regions = nodes.domain.region_of(nodes.points[i] + places[fan].mean(axis=1))
        _check(nodes, i, others[fan], regions)
        simplices += [
            (i, region, others[corners], places[corners]) for corners, region in zip(fan, regions, strict=True)
        ]
        between: dict[tuple[int, ...], list[int]] = {}
        for corners, region in zip(fan, regions, strict=True):
            for face in combinations(corners[1:], dimension - 1):
                between.setdefault(face, []).append(int(region))
        faces += [(i, sorted(s), places[list(f)]) for f, s in between.items() if len(set(s)) == 2]
    return _table(simplices, faces, dimension)


def _check(nodes: Nodes, i: int, corners: np.ndarray, regions: np.ndarray) -> None:
    """Refuse triangles that lie in two regions: nodes too far apart along an interface, or too near to it."""
    if not np.all(nodes.touches[corners, regions[:, None]]):  # type: ignore[index]
        place = ", ".join(f"{value:.3g}" for value in nodes.points[i])
        raise UnsuitableNodes(
            f"the nodes around ({place}), where interfaces meet, do not show which region is where. Use more nodes there."
        )


def _table(simplices: list, faces: list, dimension: int) -> Fans:
    places = np.array([place for *_, place in simplices]).reshape(-1, dimension + 1, dimension)
    edges = places[:, 1:]  # the node itself is at the origin
    others = np.transpose(np.linalg.inv(edges), (0, 2, 1)) if len(edges) else np.zeros((0, dimension, dimension))
    sides = np.array([place for *_, place in faces]).reshape(-1, dimension - 1, dimension)
    square = np.linalg.det(sides @ np.transpose(sides, (0, 2, 1)))
    return Fans(
        node=np.array([i for i, *_ in simplices], dtype=int),
        region=np.array([region for _, region, *_ in simplices], dtype=int),
        corners=np.array([corners for _, _, corners, _ in simplices], dtype=int).reshape(-1, dimension + 1),
        slopes=np.concatenate([-others.sum(axis=1, keepdims=True), others], axis=1),
        volume=np.abs(np.linalg.det(edges)) / factorial(dimension),
        face_node=np.array([i for i, *_ in faces], dtype=int),
        face_sides=np.array([pair for _, pair, _ in faces], dtype=int).reshape(-1, 2),
        face_area=np.sqrt(square) / factorial(dimension - 1),
    )


def cross_point_blocks(problem: Problem, nodes: Nodes, around: Fans, j: int, n: int) -> Iterator[Block]:
    """The rows of one unknown at these nodes: coefficients are taken at the node, on the side of each simplex."""
    dimension = nodes.dimension
    axes = [tuple(axis) for axis in np.eye(dimension, dtype=int)]
    for region in np.unique(around.region):
        flux, rest = problem.fluxes_in(int(region))[j], problem.rests_in(int(region))[j]
        assert flux is not None
        assert rest is not None
        here = np.flatnonzero(around.region == region)
        for turn in _turns(around.node[here]):
            some = here[turn]
            node, slopes = around.node[some], around.slopes[some]
            own = np.zeros((len(some), dimension + 1))
            own[:, 0] = 1.0
            weights = {(0,) * dimension: own} | {axis: slopes[..., a] for a, axis in enumerate(axes)}
            stencils = Stencils(around.corners[some], weights, np.empty(0))
            toward = around.volume[some, None] * slopes[:, 0]
            yield Block(flux, j * n + node, node, toward, int(region), stencils=stencils)
        node = np.unique(around.node[here])
        share = np.bincount(around.node[here], around.volume[here], nodes.n_nodes)[node] / (dimension + 1)
        yield Block(rest, j * n + node, node, None, int(region), share)
    for pair, forms in problem.interface_sources.items():
        here = np.flatnonzero(np.all(around.face_sides == sorted(pair), axis=1))
        node = np.unique(around.face_node[here])
        share = np.bincount(around.face_node[here], around.face_area[here], nodes.n_nodes)[node] / dimension
        yield Block(forms[j], j * n + node, node, None, min(pair), share)


def _turns(node: np.ndarray) -> Iterator[np.ndarray]:
    """Parts of a list of nodes in which none occurs twice, as places in the list."""
    left = np.arange(len(node))
    while len(left):
        _, first = np.unique(node[left], return_index=True)
        yield left[first]
        left = np.delete(left, first)
