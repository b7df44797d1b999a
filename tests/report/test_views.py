"""What a notebook shows by itself, and files for ParaView."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial import Delaunay

import parasol as ps
from parasol.delivery.answers import write_answer
from parasol.report import canvas


@pytest.fixture(scope="module")
def plate():
    a = np.linspace(1, 2, 30)
    points = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    fields = {
        "u": np.multiply.outer(a, [[0.0, 0.0], [1.0, 0.5], [1.0, 0.5], [0.0, 0.0]]),
        "T": np.outer(a, [1.0, 2, 3, 4]),
    }
    results = ps.Results({"a": a}, fields, points, [[0, 1, 2], [0, 2, 3]])
    return results, ps.fit_snapshots(
        a[:, None], results.values, "linear", level=None, ranges={"a": (1, 2)}, layout=results.layout
    )


def test_every_noun_has_a_view(plate):
    problem = ps.load_problem("reaction-layer")
    nodes = ps.scatter(problem.domain, n_nodes=30)
    model = ps.discretize(problem, nodes)
    for thing, words in (
        (problem.domain, "dimension"),
        (nodes, "30 nodes"),
        (model, "discretised"),
        (problem.parameters, problem.parameters.names[0]),
        (plate[0], "4 × 2 values"),
        (plate[1], "surrogate"),
        (plate[1](a=1.5), "answer at a=1.5"),
    ):
        assert words in thing._repr_html_()


@pytest.mark.parametrize("suffix", [".vtu", ".vtkhdf"])
def test_paraview_finds_points_cells_and_vectors(plate, tmp_path, suffix):
    pyvista = pytest.importorskip("pyvista")
    answer = plate[1](a=1.5)
    mesh = pyvista.read(write_answer(answer, tmp_path / f"plate{suffix}"))
    assert np.allclose(mesh.points[:, :2], plate[0].points)
    assert mesh.n_cells == 2
    assert mesh.point_data["u"].shape == (4, 3)
    assert np.allclose(mesh.point_data["u"][:, :2], answer["u"])
    assert np.allclose(mesh.point_data["T"], answer["T"])
    assert float(mesh.field_data["a"][0]) == 1.5
    back = ps.read_results([tmp_path / f"plate{suffix}"], {"a": [1.5]})
    assert np.allclose(back.fields["u"][0], answer["u"])


def test_a_moment_of_many_is_refused(tmp_path):
    times, x, a = [0.0, 1.0], np.linspace(0, 1, 4)[:, None], np.linspace(1, 2, 9)
    results = ps.Results({"a": a}, np.ones((9, 2, 4)) * a[:, None, None], points=x, times=times)
    moving = ps.fit_snapshots(a[:, None], results.values, "linear", level=None, layout=results.layout)
    with pytest.raises(ps.ParasolError, match="one moment"):
        write_answer(moving([1.5]), tmp_path / "u.vtu")
    assert not (tmp_path / "u.vtu").exists()


def test_pictures_of_answers(plate, tmp_path):
    answer = plate[1](a=1.5)
    assert ps.draw(answer, tmp_path / "a.svg").read_text().startswith("<?xml")
    assert write_answer(answer, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_notebook_shows_progress_by_itself(monkeypatch):
    told = []
    kernel = type("ZMQInteractiveShell", (), {})()
    shown = SimpleNamespace(update=lambda html: told.append(html.data))
    display = SimpleNamespace(HTML=lambda text: SimpleNamespace(data=text), display=lambda html, display_id: shown)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    mus = np.random.default_rng(0).random((60, 1))
    ps.learn(data=(mus, np.exp(-mus * [1.0, 2.0])), tolerance=0.1, recipe="polynomial")
    assert any("choosing a map" in text for text in told)


def test_cuts_through_cells_of_ones_own_have_the_values_of_a_linear_field():
    lines = np.linspace(0, 1, 4)
    points = np.stack(np.meshgrid(lines, lines, 2 * lines, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = Delaunay(points + 1e-9 * np.random.default_rng(0).random(points.shape)).simplices
    cells = cells[np.abs(np.linalg.det(points[cells[:, 1:]] - points[cells[:, :1]])) > 1e-6]
    (a,), n = ps.parameters(a=(1.0, 2.0)), len(points)
    model = ps.AffineModel({a: sparse.eye_array(n).tocsr()}, {1: np.ones(n)}, points=points, cells=cells)
    for axis, view in enumerate(canvas.views(model)):
        places, _ = canvas.section(model.nodes.domain, axis)
        assert np.allclose(view.weights @ (points @ [2.0, -3.0, 0.5]), places @ [2.0, -3.0, 0.5], atol=1e-12)
        assert np.allclose(places[:, axis], [0.5, 0.5, 1.0][axis])
