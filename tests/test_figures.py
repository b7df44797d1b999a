import builtins
from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.study import figures
from parasol.study.figures import draw, draw_nodes


@pytest.fixture(scope="module", params=["cooled-pipe", "reaction-layer", "schrodinger", "periodic-channel"])
def solution(request):
    problem = ps.load_problem(request.param)
    nodes = ps.scatter(problem.domain, n_nodes=40 if problem.domain.dimension == 1 else 350)
    return ps.discretize(problem, nodes, degree=3).solve()


def test_draws_solutions_and_nodes_in_every_dimension(solution, tmp_path):
    for path in (draw(solution, tmp_path / "u.png"), draw_nodes(solution.model.nodes, tmp_path / "nodes.png")):
        assert 10_000 < path.stat().st_size < 3_000_000
        image = _pixels(path)
        assert min(image.shape[:2]) > 300
        assert len(np.unique(image[::4, ::4, :3].reshape(-1, 3), axis=0)) > 20
    assert len(list(tmp_path.iterdir())) == 2


def _pixels(path):
    from matplotlib.image import imread

    return imread(path)


def test_the_hole_of_the_pipe_stays_empty(tmp_path):
    problem = ps.load_problem("cooled-pipe")
    unknown = replace(problem, exact=None)  # one panel, so that its middle is the middle of the hole
    image = _pixels(draw(ps.discretize(unknown, ps.scatter(problem.domain, n_nodes=350)).solve(), tmp_path / "u.png"))
    white = (image[..., :3] > 0.99).all(axis=2)
    # the axes' labels and the colour bar shift the centre a little; the hole is 0.4 of the radius
    rows, columns = (slice(int(0.48 * n), int(0.52 * n)) for n in white.shape)
    assert white[rows, columns].all()
    assert not white[:, white.shape[1] // 4].all()


def test_an_error_known_exactly_gets_a_second_panel(tmp_path):
    problem = ps.load_problem("boundary-layer")
    nodes = ps.scatter(problem.domain, n_nodes=300)
    one = draw(ps.discretize(replace(problem, exact=None), nodes).solve(), tmp_path / "one.png")
    two = draw(ps.discretize(problem, nodes).solve(), tmp_path / "two.png")
    assert _pixels(two).shape[1] > 1.6 * _pixels(one).shape[1]


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_suffix_decides_the_format(tmp_path, suffix, start):
    problem = ps.load_problem("reaction-layer")
    path = draw(ps.discretize(problem, ps.scatter(problem.domain, n_nodes=40)).solve(), tmp_path / f"u{suffix}")
    assert path.read_bytes().startswith(start)


def test_colours_say_where_zero_is():
    assert figures._colours(np.array([-1.0, 0.8])) == {"cmap": "RdBu_r", "vmin": -1.0, "vmax": 1.0}
    assert figures._colours(np.array([-0.1, 1.0]))["cmap"] == "viridis"
    assert figures._colours(np.array([2.0, 2.0]))["vmin"] < 2.0


def test_a_cut_through_a_solid_has_its_area():
    domain = ps.load_problem("hollow-block").domain
    for axis in range(3):
        points, triangles = figures._section(domain, axis)
        across = [a for a in range(3) if a != axis]
        corners = points[:, across][triangles]
        area = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])).sum() / 2
        assert area == pytest.approx(4 - np.pi / 4, rel=0.005)


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    nodes = ps.scatter(ps.Disc(), n_nodes=100)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ps.ParasolError, match=r"pip install 'parasol-pde\[plot\]'"):
        draw_nodes(nodes, tmp_path / "n.png")
    assert list(tmp_path.iterdir()) == []


def test_unknown_suffix_is_refused_before_drawing(tmp_path):
    with pytest.raises(ps.ParasolError, match=r"Use one of: \.png, \.svg, \.pdf"):
        draw_nodes(ps.scatter(ps.Disc(), n_nodes=100), tmp_path / "n.gif")
