from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.checks import ParasolError
from parasol_lab.paper import curves, panels


@pytest.fixture(scope="module")
def flower():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300), degree=3).solve({"a": 0.927, "k": 1.697})


@pytest.fixture(scope="module")
def ball():
    problem = ps.load_problem("schrodinger")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300, n_boundary=150), degree=2)


@pytest.fixture(scope="module")
def soliton():
    problem = ps.load_problem("sine-gordon")
    model = ps.discretize(problem, ps.lattice(problem.domain, 15), degree=3)
    return model.solve({"beta": 0.097, "rho": -0.432}, times=np.linspace(0, 5, 11), step=0.1)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved, as objects."""
    from matplotlib.figure import Figure

    saved, real = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (saved.append(self), real(self, *a, **k))[1])
    return saved


@pytest.fixture
def sketched(monkeypatch):
    """The figures that would have been saved; only their names are."""
    from matplotlib.figure import Figure

    saved = []
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **k: (saved.append(self), path.touch()))
    return saved


def check_picture(path):
    from matplotlib.image import imread

    assert path.read_bytes().startswith(b"\x89PNG")
    assert 5_000 < path.stat().st_size < 3_000_000
    image = imread(path)
    assert min(image.shape[:2]) > 250
    assert len(np.unique(image[::4, ::4, :3].reshape(-1, 3), axis=0)) > 20
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def titles(figure):
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


@pytest.mark.slow
def test_solvers_beside_the_full_solution(flower, tmp_path, drawn):
    shift = np.zeros_like(flower.values)
    shift[0] = 1e-3
    check_picture(
        panels.draw_solvers(flower, {"DNN": flower.values + shift, "POD-DNN": 1.01 * flower.values}, tmp_path / "u.png")
    )
    said = titles(drawn[0])
    nodes = flower.model.nodes
    assert said[:2] == ["RBF-FD: u", f"300 nodes: {nodes.n_interior} inside, {nodes.n_boundary} on the boundary"]
    assert said[3] == f"DNN: error {1e-3 / np.linalg.norm(flower.values):.1e}"
    assert said[5] == "POD-DNN: error 1.0e-02"
    maps = [axes.collections[0] for axes in drawn[0].axes if axes.get_title()]
    assert maps[0].get_clim() == maps[2].get_clim() == maps[4].get_clim()
    largest = 0.01 * np.abs(flower.values).max()
    assert maps[3].get_clim() == maps[5].get_clim() == pytest.approx((0, largest))  # errors share a scale


def test_errors_far_apart_share_a_logarithmic_scale(flower, tmp_path, sketched):
    u = flower.values
    panels.draw_solvers(flower, {"DNN": 1.1 * u, "POD-DNN": (1 + 1e-6) * u, "exact": u}, tmp_path / "u.png")
    maps = [axes.collections[0] for axes in sketched[0].axes if "error" in axes.get_title()]
    assert len({shown.get_clim() for shown in maps}) == 1
    assert type(maps[0].norm).__name__ == "LogNorm"
    low, high = maps[0].get_clim()
    assert high == pytest.approx(0.1 * np.abs(u).max())
    assert low < 1e-6 * np.abs(u).max()
    assert all(np.min(shown.get_array()) >= low for shown in maps)


def test_the_full_solution_may_have_an_error_too(flower, tmp_path, sketched):
    panels.draw_solvers(flower, {"DNN": flower.values}, tmp_path / "u.png", reference_error=-0.1 * flower.values)
    assert titles(sketched[0])[1] == "RBF-FD: error 1.0e-01"


@pytest.mark.slow
def test_moments_share_their_scales(soliton, tmp_path, drawn):
    growing = soliton.values * (1 + 1e-3 * soliton.times[:, None])
    check_picture(panels.draw_in_time(soliton, growing.reshape(-1), tmp_path / "t.png", times=(2.5, 5)))
    (shape,) = {axes.get_aspect() for axes in drawn[0].axes if axes.collections and axes.get_title()}
    assert shape == 1
    said = titles(drawn[0])
    assert {"initial state, t = 0.0", "full solution, t = 2.5", "POD-DNN, t = 5.0"} <= set(said)
    (curve,) = [axes for axes in drawn[0].axes if axes.get_title().startswith("relative error")]
    np.testing.assert_allclose(curve.lines[0].get_ydata()[1:], 1e-3 * soliton.times[1:], rtol=1e-9)
    errors = [axes.collections[0].get_clim() for axes in drawn[0].axes if axes.get_title().startswith("|error|")]
    assert len(errors) == 3  # that of the initial state too
    assert errors[0] == errors[1] == errors[2] == pytest.approx((0, 5e-3 * np.abs(soliton.values[-1]).max()))


def test_a_prediction_without_error_is_drawn(soliton, tmp_path, sketched):
    panels.draw_in_time(soliton, soliton.values, tmp_path / "t.png", times=(5,))
    assert "|error|, t = 5.0: none" in titles(sketched[0])


@pytest.mark.slow
def test_cuts_through_the_ball(ball, tmp_path, drawn):
    solution = ball.solve(ball.sample(1)[0])
    check_picture(panels.draw_cuts(solution, {"POD-DNN": 1.1 * solution.values}, tmp_path / "c.png"))
    said = titles(drawn[0])
    assert [text for text in said if text.startswith("RBF-FD")] == [f"RBF-FD: u at {c} = 0" for c in "xyz"]
    assert len(said) == 9
    full, _, error = (drawn[0].axes[i].collections[0].get_array() for i in (0, 3, 6))
    np.testing.assert_allclose(error, 0.1 * np.abs(full), atol=1e-12)


def test_many_solvers_show_their_errors_only(ball, tmp_path, sketched):
    solution = ball.solve(ball.sample(1)[0])
    panels.draw_cuts(solution, {name: 1.1 * solution.values for name in "abc"}, tmp_path / "c.png")
    assert len(titles(sketched[0])) == 12


def test_globes_show_the_function_where_it_is(ball, tmp_path, drawn):
    nodes = ball.nodes
    samples = np.stack([nodes.boundary @ axis for axis in np.eye(3)])
    check_picture(panels.draw_on_sphere(nodes, samples, tmp_path / "f.png"))
    assert titles(drawn[0])[1:] == ["f, sample 1", "f, sample 2", "f, sample 3"]
    # seen from x < 0, y < 0, z > 0: in the middle of the globe x and y are negative, z is positive
    middles = [axes.collections[0].get_array()[0] for axes in drawn[0].axes[1:4]]
    np.testing.assert_allclose(middles, np.array([-0.35, -0.85, 0.40]) / np.linalg.norm([0.35, 0.85, 0.40]), atol=1e-6)


def test_error_against_full_solves(tmp_path, drawn):
    series = {"b": ([100, 10, 1000], [1e-3, 1e-2, 0.0]), "quoted": ([8100], [1e-3]), "unknown": ([5], [np.nan])}
    check_picture(curves.draw_efficiency(series, tmp_path / "e.png", floors={"projection": 1e-5}))
    (axes,) = drawn[0].axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    curve, quoted, floor = axes.lines
    assert curve.get_xdata().tolist() == [10, 100]  # in order, and zero has no logarithm
    assert curve.get_ydata().tolist() == [1e-2, 1e-3]
    assert quoted.get_linestyle() == "None"
    assert floor.get_ydata()[0] == 1e-5
    assert floor.is_dashed()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["b", "quoted", "projection: 1.0e-05"]


def test_the_budget_has_a_bar_for_each_known_part(tmp_path, drawn):
    budgets = {
        "RBF-FD": {"discretisation": 3e-4},
        "DNN": {"network": 2e-3, "projection": None},
        "POD-DNN": {"discretisation": 3e-4, "projection": 1.6e-5, "network": 4e-5},
    }
    check_picture(curves.draw_budget(budgets, tmp_path / "b.png"))
    (axes,) = drawn[0].axes
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(ends, [3e-4, 2e-3, 3e-4, 4e-5, 1.6e-5])
    assert [label.get_text() for label in axes.get_yticklabels()] == list(budgets)
    assert [text.get_text() for text in axes.texts][-1] == "1.6e-05"
    assert len(axes.get_legend().get_texts()) == 3


def test_what_cannot_be_drawn_is_refused(flower, ball, soliton, tmp_path):
    def refuses(message, draw, *given, file="a.png", **options):
        with pytest.raises(ParasolError, match=message):
            draw(*given, tmp_path / file, **options)

    u = flower.values
    solid = replace(flower, model=ball, values=np.zeros(ball.n_nodes))
    refuses("this figure is for 3", panels.draw_cuts, flower, {"a": u})
    refuses("this figure is for 2", panels.draw_solvers, solid, {"a": solid.values})
    refuses("no prediction", panels.draw_solvers, flower, {})
    refuses("prediction of a", panels.draw_solvers, flower, {"a": u[:-1]})
    refuses("prediction of a", panels.draw_solvers, flower, {"a": np.nan * u})
    refuses("suffix '.txt'", panels.draw_solvers, flower, {"a": u}, file="a.txt")
    refuses(
        "t=2.6 is not a stored time. The nearest is 2.5", panels.draw_in_time, soliton, soliton.values, times=(2.6,)
    )
    refuses("no time to draw", panels.draw_in_time, soliton, soliton.values, times=())
    refuses("samples", panels.draw_on_sphere, ball.nodes, np.zeros((3, 7)))
    refuses(
        "not the nodes of a ball",
        panels.draw_on_sphere,
        flower.model.nodes,
        np.zeros((3, flower.model.nodes.n_boundary)),
    )
    refuses("nothing positive to draw", curves.draw_efficiency, {"a": ([10], [0.0])})
    refuses("2 numbers of solves and 1 errors", curves.draw_efficiency, {"a": ([10, 20], [1.0])})
    refuses("floor 'p' is 0", curves.draw_efficiency, {"a": ([10], [1.0])}, floors={"p": 0.0})
    refuses("part 'network' of 'a' is 0.0", curves.draw_budget, {"a": {"network": 0.0}})
    refuses("no error to draw", curves.draw_budget, {"a": {"network": None}})
    assert list(tmp_path.iterdir()) == []
