"""At a corner or an edge, part, normal and condition of a node come from one side of the boundary.

The data of every side are written out for that side, so that a condition with another side's normal is seen.
"""

import json

import numpy as np
import pytest
import sympy

import parasol as ps
from parasol.learning.rebuilding import rebuilt, record_of
from parasol.runtime.provenance import NodesRecord

x, y, z = ps.coordinates("x y z")
u, v = ps.unknowns("u v", x, y)
w = ps.unknown("w", x, y, z)
nx, ny = ps.normal(x, y)

SQUARE = ps.Box((-1, -1), (1, 1))
CUBE = ps.Box((-1, -1, -1), (1, 1, 1))
FLAT = sympy.exp(x / 2) * sympy.sin(1 + y) + x * y + 0.3
SOLID = sympy.exp(x / 2) * sympy.sin(1 + y) * sympy.cos(z / 2) + x * y + z**2 * x


def error(domain, boundary, nodes, exact, unknown):
    places = unknown.args
    problem = ps.Problem(
        domain, ps.Eq(-ps.laplacian(unknown), -ps.laplacian(exact, *places)), boundary, exact={str(unknown.func): exact}
    )
    solution = ps.discretize(problem, nodes).solve()
    return float(np.max(np.abs(solution.values - sympy.lambdify(places, exact)(*nodes.points.T))))


def slopes(exact, *places):
    """Data of Neumann conditions on the faces of a box."""
    names = [("left", "right"), ("bottom", "top"), ("back", "front")]
    return {
        name: ps.Neumann(sign * exact.diff(place))
        for pair, place in zip(names, places, strict=False)
        for name, sign in zip(pair, (-1, 1), strict=True)
    }


SLIVERS = {"left": x < -0.999, "right": x > 0.999}
PLANE = {
    "slivers": (SQUARE.named(**SLIVERS), slopes(FLAT, x, y) | {"left": ps.Dirichlet(FLAT)}),
    "value with normal": (SQUARE, slopes(FLAT, x, y) | {"right": ps.Dirichlet(nx * FLAT)}),
    "both": (
        SQUARE.named(**SLIVERS),
        slopes(FLAT, x, y) | {"left": ps.Dirichlet(-nx * FLAT), "right": ps.Robin(2, nx, 2 * FLAT + FLAT.diff(x))},
    ),
    "L": (  # the sides of the notch have the names of the sides they continue, and other normals
        SQUARE - ps.Box((0, 0), (2, 2)),
        slopes(FLAT, x, y) | {"bottom": ps.Dirichlet(ny**2 * FLAT), "left": ps.Neumann(nx * FLAT.diff(x))},
    ),
    "T": (
        SQUARE | ps.Box((-2, 0), (2, 0.5)),
        slopes(FLAT, x, y) | {"right": ps.Dirichlet(nx * FLAT)},
    ),
    "polygon": (
        ps.Polygon([(-1, -1), (1, -1), (1, 1), (-1, 1)]).named(bottom=y < -0.999, top=y > 0.999, **SLIVERS),
        slopes(FLAT, x, y) | {"top": ps.Dirichlet(ny * FLAT), "*": ps.Neumann(0)},
    ),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "T" else n for n in PLANE])
def test_plane_corners(name):
    domain, boundary = PLANE[name]
    errors = [error(domain, boundary, ps.scatter(domain, n_nodes=n), FLAT, u) for n in (400, 1600)]
    assert errors[0] < 1e-5
    assert errors[1] < errors[0] / 8


@pytest.mark.parametrize("name", ["slivers", "both"])
def test_corners_of_a_lattice(name):
    domain, boundary = PLANE[name]
    assert error(domain, boundary, ps.lattice(domain, 24), FLAT, u) < 1e-5


CUBE_PARTS = {"left": x < -0.99, "right": x > 0.99, "top": y > 0.99}
IN_SPACE = slopes(SOLID, x, y, z) | {"left": ps.Dirichlet(-ps.normal(x, y, z)[0] * SOLID)}


@pytest.mark.parametrize("domain", [CUBE, CUBE.named(**CUBE_PARTS)], ids=["faces", "slivers"])
def test_edges_and_corners_of_a_cube(domain):
    assert error(domain, IN_SPACE, ps.scatter(domain, n_nodes=700), SOLID, w) < 4e-4
    assert error(domain, IN_SPACE, ps.lattice(domain, 9), SOLID, w) < 4e-4


def _sides(nodes, names):
    """Every node is on exactly the sides of the box it lies on, and has their normals."""
    for name, axis, end in names:
        p = nodes.domain.part_names.index(name)
        outward = np.eye(nodes.dimension)[axis] * end
        assert np.array_equal(nodes.on_part[:, p], np.abs(nodes.boundary[:, axis] - end) < 1e-9)
        assert np.allclose(nodes.part_normals[nodes.on_part[:, p], p], outward, atol=1e-12)
    own = nodes.part_normals[np.arange(nodes.n_boundary), nodes.part]
    assert np.array_equal(own, nodes.normals)
    assert nodes.on_part[np.arange(nodes.n_boundary), nodes.part].all()


@pytest.mark.parametrize("n_nodes", [300, 1000, 3000])
def test_a_sliver_in_the_plane_is_no_part(n_nodes):
    nodes = ps.scatter(SQUARE.named(**SLIVERS), n_nodes=n_nodes)
    _sides(nodes, [("left", 0, -1), ("right", 0, 1), ("bottom", 1, -1), ("top", 1, 1)])


@pytest.mark.parametrize("seed", range(3))
def test_a_sliver_on_a_triangulated_cube_is_no_part(seed):
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("igl")
    nodes = ps.scatter(ps.Surface(trimesh.creation.box((2, 2, 2))).named(**CUBE_PARTS), n_nodes=1200, rng=seed)
    _sides(nodes, [("left", 0, -1), ("right", 0, 1), ("top", 1, 1)])


@pytest.mark.parametrize("make", [lambda d: ps.lattice(d, 8), lambda d: ps.scatter(d, n_nodes=600)])
def test_a_sliver_on_a_cube_is_no_part(make):
    nodes = make(CUBE.named(**CUBE_PARTS))
    _sides(
        nodes, [("left", 0, -1), ("right", 0, 1), ("bottom", 1, -1), ("top", 1, 1), ("back", 2, -1), ("front", 2, 1)]
    )


def test_what_changes_along_an_edge_is_not_a_sliver():
    nodes = ps.lattice(CUBE.named(hot=sympy.And(y >= 1, x >= 0)), 9)
    hot = nodes.on_part[:, nodes.domain.part_names.index("hot")]
    assert np.array_equal(hot, (nodes.boundary[:, 1] == 1) & (nodes.boundary[:, 0] >= 0))


def test_a_part_thinner_than_the_spacing_has_the_node_on_it_or_is_missed_aloud():
    pinned = ps.scatter(ps.Disc().named(pin=x >= 1), n_nodes=200)
    assert pinned.boundary[pinned.on_part[:, 0]].tolist() == [[1.0, 0.0]]
    domain = SQUARE.named(slot=sympy.And(y <= -1, abs(x - 0.123) < 1e-3))
    problem = ps.Problem(domain, ps.Eq(ps.laplacian(u), 1), {"slot": ps.Dirichlet(0), "*": ps.Neumann(0)})
    with pytest.raises(ps.ParasolError, match="'slot' has no node"):
        ps.discretize(problem, ps.scatter(domain, n_nodes=400))


def test_a_model_made_again_from_its_file_has_the_same_corners():
    domain, boundary = PLANE["both"]
    problem = ps.Problem(domain, ps.Eq(-ps.laplacian(u), -ps.laplacian(FLAT, x, y)), boundary)
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=300))
    held = json.loads(json.dumps(record_of(model).to_dict()))
    again = rebuilt(problem, model.nodes.points, model.nodes.n_interior, model.scheme, NodesRecord.of(held))
    lies = model.nodes.on_part
    assert np.array_equal(again.nodes.part_normals[lies], model.nodes.part_normals[lies])
    assert np.array_equal(again.solve().values, model.solve().values)
    del held["boundary"]["corners"]  # as earlier versions wrote it: one normal for each node
    rebuilt(problem, model.nodes.points, model.nodes.n_interior, model.scheme, NodesRecord.of(held))


# ---- parts that begin in the middle ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("domain", "ends"),
    [
        (ps.Disc().named(part=x > 0.5), [(0.5, 0.75**0.5), (0.5, -(0.75**0.5))]),
        (SQUARE.named(part=sympy.And(y <= -1, x > 0.123)), [(0.123, -1.0), (1.0, -1.0)]),
        ((SQUARE - ps.Disc(radius=0.5)).named(part=sympy.And(y < 0.2, x**2 + y**2 < 0.5)), [(0.21**0.5, 0.2)]),
        (ps.Box((0, 0), (1, 1), periodic="x").named(part=sympy.And(y <= 0, x > 0.3, x < 0.7)), [(0.3, 0), (0.7, 0)]),
    ],
    ids=["arc", "edge", "hole", "periodic"],
)
@pytest.mark.parametrize("options", [{"n_nodes": 300}, {"n_nodes": 400, "n_boundary": 71}, {"spacing": 0.07}])
def test_a_node_stands_where_a_part_begins(domain, ends, options):
    nodes = ps.scatter(domain, **options)
    there = nodes.on_part.sum(axis=1) > 1
    for end in ends:
        away = np.linalg.norm(nodes.boundary - np.array(end), axis=1)
        assert away.min() < 1e-8
        assert there[np.argmin(away)]
    if "n_boundary" in options:
        assert (nodes.n_nodes, nodes.n_boundary) == (400, 71)


def test_values_that_jump_in_the_middle_of_an_arc():
    # harmonic with u = 1 for |angle| < 1 and 0 elsewhere on the circle: the angle at which the arc is seen
    disc = ps.Disc().named(hot=x > sympy.cos(1.0))
    problem = ps.Problem(disc, ps.Eq(ps.laplacian(u), 0), {"hot": ps.Dirichlet(1), "*": ps.Dirichlet(0)})
    points = np.array([[0.0, 0.0], [-0.5, 0.2], [0.3, -0.3]])
    a, b = np.exp(1j), np.exp(-1j)
    place = points[:, 0] + 1j * points[:, 1]
    exact = (np.angle((a - place) / (b - place)) - 1) / np.pi
    solutions = [ps.discretize(problem, ps.scatter(disc, n_nodes=n)).solve() for n in (400, 1600)]
    errors = [np.max(np.abs(solution.at(points) - exact)) for solution in solutions]
    assert errors[0] < 0.02  # 0.07 with either of the two values at the ends
    assert errors[1] < 0.012
    # where parts overlap, the one named first counts
    both = ps.Disc().named(hot=x > sympy.cos(1.0), cold=y < 5)
    problem = ps.Problem(both, problem.equation, {"hot": ps.Dirichlet(1), "*": ps.Dirichlet(0)})
    assert np.allclose(
        ps.discretize(problem, ps.scatter(both, n_nodes=400)).solve().at(points), solutions[0].at(points)
    )


# ---- systems ----------------------------------------------------------------------------------------------------------
U, V = sympy.sin(x + 1) * sympy.exp(y / 2) + 0.3, sympy.cos(x * y) + 0.2 * x


def _stress(u, v):
    twist = u.diff(y) + v.diff(x)
    return 3 * u.diff(x) + v.diff(y), twist, 3 * v.diff(y) + u.diff(x)  # xx, xy, yy with both constants 1


def _forces(u, v):
    xx, xy, yy = _stress(u, v)
    return xx.diff(x) + xy.diff(y), xy.diff(x) + yy.diff(y)


_T, _S = _stress(u, v), _stress(U, V)
_PULL = (nx * _T[0] + ny * _T[1], nx * _T[1] + ny * _T[2])
_DATA = {"left": (-_S[0], -_S[1]), "right": (_S[0], _S[1]), "bottom": (-_S[1], -_S[2]), "top": (_S[1], _S[2])}
PULLED = {name: [ps.Eq(_PULL[0], a), ps.Eq(_PULL[1], b)] for name, (a, b) in _DATA.items()}
CLAMPED = [ps.Dirichlet(U), ps.Dirichlet(V)]
OUT = {"left": -U, "right": U, "bottom": -V, "top": V}  # n·u on each side


def slips(name):
    """n·u is given, and the traction along the side, which is the same -n_y t_x + n_x t_y up to sign on all sides."""
    a, b = _DATA[name]
    along = {"left": -b, "right": b, "bottom": a, "top": -a}[name]
    return [ps.Eq(nx * u + ny * v, OUT[name]), ps.Eq(-ny * _PULL[0] + nx * _PULL[1], along)]


@pytest.mark.parametrize(
    ("domain", "given"),
    [
        (SQUARE.named(**SLIVERS), {"left": CLAMPED}),
        (SQUARE, {"left": CLAMPED, "right": slips("right")}),
        (SQUARE, {"left": CLAMPED, "bottom": slips("bottom"), "top": slips("top")[::-1]}),
        (SQUARE.named(**SLIVERS), {"right": slips("right"), "top": slips("top")}),
        (SQUARE.named(foot=sympy.And(y <= -1, x < 0.1)), {"foot": CLAMPED, "bottom": slips("bottom")}),
        (SQUARE, {"left": [ps.Dirichlet(-nx * U), PULLED["left"][1]], "top": [PULLED["top"][0], ps.Dirichlet(ny * V)]}),
    ],
    ids=["pulled", "slip", "slip beside clamp", "two slips", "slip goes on", "rollers"],
)
def test_elastic_corners(domain, given):
    forces, loads = _forces(u, v), _forces(U, V)
    problem = ps.Problem(domain, [ps.Eq(f, g) for f, g in zip(forces, loads, strict=True)], PULLED | given)
    errors = []
    for n in (400, 1600):
        nodes = ps.scatter(domain, n_nodes=n)
        values = np.ravel(ps.discretize(problem, nodes).solve().values)
        exact = np.concatenate([sympy.lambdify((x, y), e)(*nodes.points.T) for e in (U, V)])
        errors.append(float(np.max(np.abs(values - exact))))
    assert errors[0] < 5e-4
    assert errors[1] < errors[0] / 8
