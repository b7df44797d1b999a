"""What the explorer page is made of, without a browser: meshes, trajectories in short, equations, refusals, the command."""

from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import parasol as ps
from parasol.cli import app
from parasol.delivery.page.contents import vectors
from parasol.delivery.page.equations import equation_html
from parasol.delivery.page.lifting import lift_program
from parasol.delivery.page.mesh import make_mesh
from parasol.delivery.page.pack import Pack
from parasol.fitting.linear import FittedLinear
from parasol.fitting.network import Network
from parasol.runtime.layout import Layout
from parasol.space.outline import outline_of


@pytest.fixture
def line():
    mus = np.linspace(0, 1, 60)[:, None]
    return ps.fit_snapshots(mus, mus * np.arange(1.0, 30.0), "linear")


def area(mesh):
    corners = mesh.points[mesh.cells]
    return 0.5 * np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])).sum()


def test_triangles_fill_a_concave_domain_and_no_more():
    domain = ps.load_problem("helmholtz").domain
    nodes = ps.scatter(domain, n_nodes=250)
    in_memory = Layout(points=nodes.points, n_interior=nodes.n_interior, domain=domain)
    from_file = Layout(points=nodes.points, n_interior=nodes.n_interior, outline=outline_of(domain))
    for layout in (in_memory, from_file):
        mesh = make_mesh(layout)
        assert abs(area(mesh) / domain.volume() - 1) < 0.02
        assert np.all(domain.distance(mesh.points[mesh.cells].mean(axis=1)) < 0.01)
        assert np.array_equal(np.unique(mesh.cells), np.arange(250))
        assert np.all(mesh.rim >= nodes.n_interior)


def test_periodic_domains_close_at_the_seam():
    domain = ps.Box((0.0, 0.0), (1.0, 1.0), periodic=("x", "y"))
    nodes = ps.scatter(domain, n_nodes=200)
    layout = Layout(points=nodes.points, n_interior=nodes.n_interior, domain=domain)
    mesh = make_mesh(layout)
    corners = mesh.points[mesh.cells]
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    assert np.all(low < 0)
    assert np.all(high > 1)
    assert np.array_equal(mesh.bounds, [[0, 0], [1, 1]])


def test_solids_have_a_skin_that_looks_outward():
    nodes = ps.scatter(ps.Ball((0.0, 0.0, 0.0), 1.0), n_nodes=600)
    for domain in (nodes.domain, None):
        mesh = make_mesh(Layout(points=nodes.points, n_interior=nodes.n_interior, domain=domain))
        a, b, c = (mesh.points[mesh.rim[:, k]] for k in range(3))
        across = np.cross(b - a, c - a)
        assert np.all(np.einsum("ij,ij->i", across, a + b + c) > 0)
        assert abs(0.5 * np.linalg.norm(across, axis=1).sum() / (4 * np.pi) - 1) < 0.05
        corners = mesh.points[mesh.cells]
        volume = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])).sum() / 6
        assert abs(volume / (4 * np.pi / 3) - 1) < 0.1


def test_trajectories_shrink_and_the_loss_is_known():
    x, t = np.linspace(0, 1, 200), np.linspace(0, 1, 40)
    table = np.array([[np.exp(-((x - c * s) ** 2) / 0.1) for s in t] for c in (0.2, 0.5, 0.9)]).reshape(3, -1)
    modes = np.linalg.qr(table.T)[0]
    pack = Pack()
    found = lift_program(modes, None, 40, np.ones(3), pack)
    assert found["space"]["shape"][1] < 40
    assert pack.size < 0.3 * 4 / 3 * modes.astype(np.float32).nbytes
    space, evolution, loss = (
        np.frombuffer(b64decode(pack.texts[found[k]["array"]]), dtype=d).reshape(found[k]["shape"])
        for k, d in (("space", "<f4"), ("evolution", "<f4"), ("loss", "<f8"))
    )
    gap = np.linalg.norm((space.astype(float) @ evolution).reshape(-1, 3) - modes, axis=0)
    assert np.all(gap <= loss)
    assert np.all(loss < 1e-6)


def test_equations_are_set_as_mathematics():
    def shown(text):
        return equation_html(text).partition(">")[2].removesuffix("</span>")

    assert shown("u_t = a*(b + 1)^2") == "<i>u</i><sub><i>t</i></sub> = <i>a</i>\u2009(<i>b</i> + 1)<sup>2</sup>"
    assert shown("a - (b - c) = 0").count("(") == 1
    assert "(" not in shown("-a*u_yy - k*u = -10*sqrt(x) + lambda/3")
    assert shown("a*(-b) = 1 - (-c)").count("(") == 2
    assert "1<sub>core</sub>" in shown("-div(u_x*[core], u_y) = 1")
    assert equation_html("<script> = [1]") == "<code>&lt;script&gt; = [1]</code>"


def test_what_a_page_cannot_do_is_refused(line, tmp_path):
    class Mine:
        def predict(self, x):
            return np.zeros((len(x), 1))

    with pytest.raises(ps.ParasolError, match=r"a map of kind Mine.*explored. Fit one of parasol's recipes"):
        ps.explore(replace(line, map=Mine()))
    large = Network(
        (np.ones((600, 1)), np.ones((600, 600)), np.ones((600, 600)), np.ones((600, 600)), np.ones((1, 600))),
        tuple(np.zeros(n) for n in (600, 600, 600, 600, 1)),
        "relu",
    )
    with pytest.raises(ps.ParasolError, match="too large for a page"):
        ps.explore(replace(line, map=FittedLinear(large, 0.0, 0.0)))
    with pytest.raises(ps.ParasolError, match="cannot explore a Basis"):
        ps.explore(line.basis)
    with pytest.raises(ps.ParasolError, match="samples are for function parameters"):
        ps.explore(line, samples=3)
    with pytest.raises(ps.ParasolError, match=r"Use one of: \.html"):
        ps.explore(line, tmp_path / "page.pdf")


def test_the_command(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ps.save(line, "line.parasol")
    ran = CliRunner().invoke(app, ["explore", "line.parasol", "--title", "A line"])
    assert ran.exit_code == 0, ran.output
    assert "wrote line.html (0.2 MB)" in ran.output
    assert "<h1>A line</h1>" in (tmp_path / "line.html").read_text()
    ran = CliRunner().invoke(app, ["explore", "line.parasol", "--out", "x.html", "--json", "-"])
    assert f'"bytes": {(tmp_path / "x.html").stat().st_size}' in ran.output
    for words, message in (
        (["nowhere.parasol"], "there is no file"),
        (["line.parasol", "--out", "x.txt"], "Use one of"),
    ):
        ran = CliRunner().invoke(app, ["explore", *words])
        assert ran.exit_code == 2
        assert message in ran.output


def test_pictures_are_moved_as_far_as_the_largest_component_allows():
    points = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]])
    layout = Layout(names=("p", "u_x", "u_y"), points=points, n_interior=3, vectors=(("p", 1), ("u", 2)))
    fields = np.array([9.0, 1e-3, -3e-2])[:, None] * np.ones((2, 1, 3, 3))
    assert vectors(layout, fields) == [{"name": "u", "first": 1, "n": 2, "factor": 5.0, "declared": True}]
    # two unknowns in the plane may be a vector; three are none
    pair = Layout(names=("p", "q"), points=points, n_interior=3)
    assert [(v["name"], v["declared"]) for v in vectors(pair, fields[:, :, 1:])] == [("(p, q)", False)]
    assert vectors(Layout(names=("p", "q", "r"), points=points, n_interior=3), fields) == []
