"""Domains divided into regions, and nodes on the interfaces."""

import pickle

import numpy as np
import pytest
import sympy
from scipy.spatial import KDTree

import parasol as ps
from parasol.cache.content import content_hash
from parasol.space.node_quality import quality

X, Y = ps.coordinates("x y")
SQUARE = ps.Box((0, 0), (1, 1))
BLOCK = SQUARE.regions(
    sw=ps.Box((0, 0), (0.5, 0.5)),
    se=ps.Box((0.5, 0), (1, 0.5)),
    nw=ps.Box((0, 0.5), (0.5, 1)),
    ne=ps.Box((0.5, 0.5), (1, 1)),
)


def rows_at(nodes, point):
    """The rows of the node at a point: sides, normals."""
    (node,) = np.flatnonzero(np.linalg.norm(nodes.points - point, axis=1) < 1e-9)
    here = nodes.interfaces.node == node
    rows = zip(nodes.interfaces.sides[here].tolist(), nodes.interfaces.normals[here].round(7).tolist(), strict=True)
    return node, sorted((tuple(sides), tuple(normals)) for sides, normals in rows)


def check(nodes, n=None):
    """What holds of all nodes of a domain with regions."""
    table, touches, regions = nodes.interfaces, nodes.touches, nodes.domain.divided
    assert n is None or nodes.n_nodes == n
    assert touches.shape == (nodes.n_nodes, len(nodes.domain.region_names))
    assert touches.any(axis=1).all()
    on = np.zeros_like(touches)
    on[table.node[:, None], table.sides] = True
    several = touches.sum(axis=1) > 1
    assert np.array_equal(several, on.any(axis=1))
    assert np.array_equal(on[several], touches[several])
    assert (table.sides[:, 0] < table.sides[:, 1]).all()
    assert (np.diff(table.node) >= 0).all()
    assert np.abs(np.linalg.norm(table.normals, axis=1) - 1).max() < 1e-12
    # a small step either way leads into the two regions, wherever the node is not one of several rows
    once = table.node[np.bincount(table.node, minlength=nodes.n_nodes)[table.node] == 1]
    rows = np.isin(table.node, once)
    for side, sign in ((0, -1), (1, 1)):
        beside = nodes.points[table.node[rows]] + sign * 1e-6 * table.normals[rows]
        inside = nodes.domain.contains(beside)
        assert np.array_equal(nodes.domain.region_of(beside)[inside], table.sides[rows][inside, side])
    # other nodes keep their distance from the interfaces
    inner = np.flatnonzero(~several[: nodes.n_interior])
    if nodes.dimension == 2:
        walls = regions.walls()
        gap = np.linalg.norm(nodes.points[inner, None] - walls[None, :: 1 + len(walls) // 4000], axis=2).min(axis=1)
        assert (gap > 0.4 * nodes.spacing[inner]).all()
    return nodes


def test_regions_are_found_in_order_and_what_is_left_is_otherwise():
    domain = ps.Box((-1, -1), (1, 1)).regions(core=ps.Disc(radius=0.3), disc=ps.Disc(radius=0.6), right=X > 0)
    assert domain.region_names == ("core", "disc", "right", "otherwise")
    assert domain.region_of([[0, 0], [0.4, 0], [0.9, 0], [-0.9, 0]]).tolist() == [0, 1, 2, 3]
    assert SQUARE.region_names == ()
    assert SQUARE.region_of([[0.5, 0.5]]).tolist() == [0]
    assert BLOCK.region_names == ("sw", "se", "nw", "ne")  # nothing is left
    named = domain.named(inlet=X < -0.999)
    assert named.region_names == domain.region_names
    assert named.part_names[0] == "inlet"
    assert domain.part_names == ("left", "right", "bottom", "top")
    assert domain.volume() == 4.0
    both = ps.Disc().regions(ring=(X**2 + Y**2 > 0.25) & (X > 0))
    assert both.region_of([[0.4, 0], [0.6, 0], [-0.6, 0]]).tolist() == [1, 0, 1]
    several = SQUARE.regions(ends=(X < 0.25) | (X > 0.75))
    assert several.region_of([[0.1, 0.5], [0.5, 0.5], [0.9, 0.5]]).tolist() == [0, 1, 0]
    again = pickle.loads(pickle.dumps(domain))
    assert content_hash(again) == content_hash(domain)
    assert content_hash(ps.Box((-1, -1), (1, 1)).regions(core=ps.Disc(radius=0.4))) != content_hash(
        ps.Box((-1, -1), (1, 1)).regions(core=ps.Disc(radius=0.5))
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SQUARE.regions(), "at least one"),
        (lambda: SQUARE.regions(otherwise=ps.Disc()), "in no other region"),
        (lambda: SQUARE.regions(a=ps.Disc((5, 5), 1)), "nothing of the domain is in region 'a'"),
        (lambda: SQUARE.regions(a=X < 2, b=X > 0.5), "'b'"),
        (lambda: SQUARE.regions(a=X < -2), "holds nowhere|nothing of"),
        (lambda: SQUARE.regions(a=ps.Ball((0, 0, 0), 1)), "dimension 3"),
        (lambda: SQUARE.regions(a=3), "is a int"),
        (lambda: SQUARE.regions(a=lambda p: p[:, 0] < 0.5), "does not say where it ends"),
        (lambda: SQUARE.regions(a=ps.parameters(m=(0.2, 0.4))[0] > X), "depends on m"),
        (lambda: SQUARE.regions(a=ps.Eq(X, 0.5)), "no inequality"),
        (lambda: BLOCK.regions(a=X < 0.3), "already"),
        (lambda: BLOCK - ps.Disc((0.5, 0.5), 0.1), "Combine first"),
        (lambda: ps.Box((0, 0), (1, 1), periodic="x").regions(a=X < 0.5), "periodic face"),
        (lambda: ps.lattice(BLOCK, (10, 10)), "between the nodes of the lattice"),
        (lambda: ps.lattice(SQUARE.regions(a=ps.Disc((0.5, 0.5), 0.25)), (9, 9)), "between the nodes"),
        (lambda: ps.scatter(SQUARE.regions(a=ps.Disc((0.5, 0.5), 0.5)), n_nodes=200), "without ending there"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(make, words):
    with pytest.raises(ps.ParasolError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "nodes", [ps.lattice(BLOCK, (9, 9)), ps.scatter(BLOCK, n_nodes=500, rng=3)], ids=["lattice", "scatter"]
)
def test_thermal_block_has_a_cross_point_and_ends_at_the_boundary(nodes):
    check(nodes)
    node, rows = rows_at(nodes, (0.5, 0.5))
    right, up = (1.0, 0.0), (0.0, 1.0)
    assert rows == [((0, 1), right), ((0, 2), up), ((1, 3), up), ((2, 3), right)]
    assert node < nodes.n_interior
    assert nodes.touches[node].all()
    ends = [rows_at(nodes, end) for end in ((0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5))]
    assert [rows for _, rows in ends] == [[((0, 1), right)], [((1, 3), up)], [((2, 3), right)], [((0, 2), up)]]
    assert all(node >= nodes.n_interior for node, _ in ends)
    assert nodes.touches.sum() == nodes.n_nodes + (nodes.touches.sum(axis=1) == 2).sum() + 3


def test_scattered_nodes_lie_exactly_on_curved_interfaces_and_are_even():
    domain = ps.Box((-1, -1), (1, 1)).regions(core=X**2 + Y**2 < 0.16, ring=ps.Disc(radius=0.7))
    for options in ({"rng": 0}, {"rng": 1, "n_boundary": 80}, {"method": "front"}, {"method": "hexagonal"}):
        nodes = check(ps.scatter(domain, n_nodes=800, **options), 800)
        on = nodes.interfaces.node
        radius = np.linalg.norm(nodes.points[on], axis=1)
        wanted = np.where(nodes.interfaces.sides[:, 0] == 0, 0.4, 0.7)
        assert np.abs(radius - wanted).max() < 1e-14
        assert np.abs(nodes.interfaces.normals - nodes.points[on] / radius[:, None]).max() < 1e-12
        measured = quality(nodes)
        assert measured.separation > 0.5
        assert measured.fill_distance < 1.2
    nodes = ps.scatter(domain, spacing=0.06)
    assert check(nodes).interfaces.node.size == round(2 * np.pi * 0.4 / 0.06) + round(2 * np.pi * 0.7 / 0.06)


def test_kinks_and_t_junctions():
    triangle = ps.Polygon([(-0.5, -0.4), (0.5, -0.4), (0.0, -0.4 + np.sqrt(0.75))])  # sharp corners
    sharp = check(ps.scatter(ps.Disc().regions(inner=triangle), n_nodes=400))
    assert [len(rows_at(sharp, corner)[1]) for corner in triangle.vertices] == [2, 2, 2]
    kinked = check(ps.scatter(ps.Box((-1, -1), (1, 1)).regions(inner=ps.Box((-0.5, -0.5), (0.5, 0.5))), n_nodes=400))
    assert rows_at(kinked, (0.5, 0.5))[1] == [((0, 1), (0.0, 1.0)), ((0, 1), (1.0, 0.0))]
    tee = SQUARE.regions(left=X < 0.4, upper=Y > 0.3)
    for nodes in (check(ps.scatter(tee, n_nodes=400)), check(ps.lattice(tee, (11, 11)))):
        assert rows_at(nodes, (0.4, 0.3))[1] == [((0, 1), (1.0, 0.0)), ((0, 2), (1.0, 0.0)), ((1, 2), (0.0, -1.0))]
    # a disc that a curve and a half plane cut, in a domain with a hole; both ends of each on the boundary are nodes of it
    domain = (ps.Disc() - ps.Disc((0.3, 0.0), 0.2)).regions(low=ps.Disc((0, -1), 0.6), right=X > 0.3)
    nodes = check(ps.scatter(domain, n_nodes=900, rng=2), 900)
    ends = nodes.interfaces.node[nodes.interfaces.node >= nodes.n_interior]
    root = np.sqrt(1 - 0.09)
    places = [(0.3, 0.2), (0.3, -0.2), (0.3, root)]
    assert all(np.linalg.norm(nodes.points[ends] - place, axis=1).min() < 1e-12 for place in places)
    assert len(ends) == 5
    assert quality(nodes).separation > 0.3


def test_lines_and_boxes_in_space():
    rod = ps.Box(0.0, 1.0).regions(left="x < 0.3", middle=ps.Box(0.2, 0.7))
    nodes = check(ps.scatter(rod, n_nodes=30), 30)
    assert nodes.points[nodes.interfaces.node].ravel().tolist() == [0.3, 0.7]
    assert nodes.interfaces.sides.tolist() == [[0, 1], [1, 2]]
    assert nodes.interfaces.normals.ravel().tolist() == [1, 1]
    assert check(ps.lattice(rod, (11,))).interfaces.node.size == 2
    cube = ps.Box((0, 0, 0), (1, 1, 1)).regions(low="z < 0.5", corner=ps.Box((0, 0, 0.5), (0.5, 0.5, 1)))
    nodes = check(ps.lattice(cube, (5, 5, 5)))
    _, rows = rows_at(nodes, (0.5, 0.5, 0.5))
    assert rows == [((0, 1), (0, 0, 1)), ((0, 2), (0, 0, 1)), ((1, 2), (0, 1, 0)), ((1, 2), (1, 0, 0))]
    assert [sides for sides, _ in rows_at(nodes, (0.25, 0.5, 0.5))[1]] == [(0, 1), (0, 2), (1, 2)]


CUBE = ps.Box((0, 0, 0), (1, 1, 1))


@pytest.mark.slow
def test_surfaces_in_space():
    shells = ps.Ball((0, 0, 0), 1.0).regions(core=ps.Ball((0, 0, 0), 0.4), shell=ps.Ball((0, 0, 0), 0.7))
    nodes = check(ps.scatter(shells, n_nodes=2000), 2000)
    on = nodes.interfaces.node
    radius = np.linalg.norm(nodes.points[on], axis=1)
    assert np.abs(radius - np.where(nodes.interfaces.sides[:, 0] == 0, 0.4, 0.7)).max() < 1e-14
    assert np.abs(nodes.interfaces.normals - nodes.points[on] / radius[:, None]).max() < 1e-12
    assert quality(nodes).separation > 0.7
    layers = check(ps.scatter(CUBE.regions(low="z < 0.3", middle="z < 0.6"), n_nodes=2000, rng=4), 2000)
    heights = layers.points[layers.interfaces.node][:, 2]
    assert np.minimum(np.abs(heights - 0.3), np.abs(heights - 0.6)).max() < 1e-14
    for height in (0.3, 0.6):  # the rim lies on the boundary, corners included
        rim = layers.boundary[np.abs(layers.boundary[:, 2] - height) < 1e-12]
        corners = [(0, 0, height), (1, 0, height), (0, 1, height), (1, 1, height)]
        assert all(np.linalg.norm(rim - corner, axis=1).min() < 1e-12 for corner in corners)
        around = rim[rim[:, 0] == 0][:, 1]
        assert np.diff(np.sort(around)).max() < 1.6 * layers.spacing.mean()
    assert quality(layers).separation > 0.5
    cubes = check(ps.scatter(CUBE.regions(inner=ps.Box((0.3, 0.3, 0.3), (0.7, 0.7, 0.7))), n_nodes=1500), 1500)
    assert len(rows_at(cubes, (0.7, 0.7, 0.7))[1]) == 3  # a corner of the cube
    cap = check(ps.scatter(CUBE.regions(cap=ps.Ball((0.5, 0.5, 1.0), 0.4)), n_nodes=1500), 1500)
    rim = cap.boundary[np.abs(np.linalg.norm(cap.boundary - (0.5, 0.5, 1.0), axis=1) - 0.4) < 1e-9]
    assert abs(len(rim) * cap.spacing.mean() / (0.8 * np.pi) - 1) < 0.35
    with pytest.raises(ps.ParasolError, match="'a', 'b', 'otherwise' meet along a line"):
        ps.scatter(CUBE.regions(a="x < 0.5", b="y < 0.5"), n_nodes=1000)
    with pytest.raises(ps.ParasolError, match="nearer to the boundary"):
        ps.scatter(CUBE.regions(a=ps.Ball((0.5, 0.5, 0.7), 0.3)), n_nodes=1000)


@pytest.mark.parametrize("condition", [pytest.param("x + y + z < 1", marks=pytest.mark.slow), "x + z < 1"])
def test_an_interface_through_corners_and_edges_of_a_box_has_each_node_once(condition):
    """There were three nodes in each corner on the first plane, and nodes 1e-5 apart on the edges in the second."""
    nodes = ps.scatter(CUBE.regions(low=condition), n_nodes=300)
    apart = KDTree(nodes.points).query(nodes.points, 2)[0][:, 1]
    assert np.min(apart / nodes.spacing) > 0.6
    x, y, z = nodes.points.T
    on = np.abs(x + z + y * ("y" in condition) - 1) < 1e-9
    assert np.array_equal(np.flatnonzero(on), np.unique(nodes.interfaces.node))
    assert np.count_nonzero(on[nodes.n_interior :]) > 12


def test_a_surface_of_triangles_can_be_a_region():
    pytest.importorskip("igl")
    corners = [(0.3, 0.3, 0.3), (0.8, 0.3, 0.3), (0.3, 0.8, 0.3), (0.3, 0.3, 0.8)]
    solid = ps.Surface((corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]))
    nodes = check(ps.scatter(CUBE.regions(solid=solid), n_nodes=1500), 1500)
    assert np.abs(solid.distance(nodes.points[nodes.interfaces.node])).max() < 1e-12
    assert nodes.touches[:, 0].sum() > 30


def test_circles_that_other_interfaces_cut_and_conditions_within_conditions():
    """The arcs of a circle that begins elsewhere than where it is cut; either, and not both, of two conditions."""
    domain = ps.Box((-1, -1), (1, 1)).regions(core=ps.Disc((0.1, 0.05), 0.5), right="x > 0")
    arcs = [arc for arc, _ in domain.lines]
    lengths = sorted(np.linalg.norm(np.diff(arc.line, axis=0), axis=1).sum() for arc in arcs)
    cut = np.arccos(-0.1 / 0.5)  # half the angle of the larger part
    up = np.sqrt(0.5**2 - 0.1**2)
    assert np.allclose(lengths, [1.05 - up - 0.1, 1.05 - up, np.pi - cut, cut], atol=1e-5)
    x, y = ps.coordinates("x y")
    middle = sympy.And(sympy.Not(sympy.And(x > -0.5, y > -0.5)), x < 0.9, sympy.Or(y < 0.2, y > 0.6))
    places = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    u, v = places.T
    inside = ~((u > -0.5) & (v > -0.5)) & (u < 0.9) & ((v < 0.2) | (v > 0.6))
    divided = ps.Box((-1, -1), (1, 1)).regions(some=middle)
    assert np.array_equal(divided.region_of(places) == 0, inside)
    rim = places / np.max(np.abs(places), axis=1, keepdims=True)
    for condition in (middle, sympy.Xor(x < 0.3, y < 0.4), sympy.Not(sympy.And(x < 0.3, y < 0.4))):
        named = ps.Box((-1, -1), (1, 1)).named(some=condition)
        holds = [bool(condition.subs({x: a, y: b})) for a, b in rim]
        assert np.array_equal(named.parts(rim)[:, named.part_names.index("some")], holds)


def test_periodic_boxes():
    layers = ps.Box((0, 0), (1, 1), periodic="x").regions(low=Y < 0.5)
    nodes = check(ps.scatter(layers, n_nodes=300), 300)
    assert (nodes.points[nodes.interfaces.node][:, 1] == 0.5).all()
    assert quality(nodes).separation > 0.5
    check(ps.lattice(layers, (8, 9)))
    inside = ps.Box((0, 0), (1, 1), periodic="xy").regions(inclusion=ps.Disc((0.5, 0.5), 0.3))
    check(ps.scatter(inside, n_nodes=300), 300)


def test_nodes_know_their_interfaces_from_their_places_alone():
    domain = BLOCK.named(bottom="y <= 0")
    nodes = ps.scatter(domain, n_nodes=300)
    again = ps.space.Nodes(
        domain, nodes.points, nodes.n_interior, nodes.normals, nodes.part, nodes.on_part, nodes.spacing
    )
    assert np.array_equal(again.touches, nodes.touches)
    assert content_hash(again.interfaces) == content_hash(nodes.interfaces)
    assert ps.scatter(SQUARE, n_nodes=100).touches is None
