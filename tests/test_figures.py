import builtins
import sys
from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.report import animations, canvas, figures
from parasol.report.figures import draw, draw_nodes


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


def test_nodes_are_no_dust_on_the_field():
    flower = ps.load_problem("helmholtz")
    figure = figures.plot_solution(ps.discretize(flower, ps.scatter(flower.domain, n_nodes=150)).solve())
    kinds = [type(artist).__name__ for artist in figure.axes[0].collections]
    assert "PathCollection" not in kinds  # what scatter makes
    assert "TriMesh" in kinds


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
    even = canvas.colours(np.array([-1.0, 0.8]))
    assert even == {"cmap": canvas.colour_map("diverging"), "vmin": -1.0, "vmax": 1.0}
    assert canvas.colours(np.array([-0.1, 1.0]))["cmap"] == canvas.colour_map("sequential")
    assert canvas.colours(np.array([2.0, 2.0]))["vmin"] < 2.0


def test_a_cut_through_a_solid_has_its_area():
    domain = ps.load_problem("hollow-block").domain
    for axis in range(3):
        points, triangles = canvas.section(domain, axis)
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
    monkeypatch.delitem(sys.modules, "parasol.report.shown_figure", raising=False)
    with pytest.raises(ps.ParasolError, match=r"pip install 'parasol-pde\[plot\]'"):
        draw_nodes(nodes, tmp_path / "n.png")
    assert list(tmp_path.iterdir()) == []


def test_unknown_suffix_is_refused_before_drawing(tmp_path):
    with pytest.raises(ps.ParasolError, match=r"Use one of: \.png, \.svg, \.pdf"):
        draw_nodes(ps.scatter(ps.Disc(), n_nodes=100), tmp_path / "n.gif")


# ---- several unknowns, and time ------------------------------------------------------------------------------------
def _solved(name, n_nodes=200, **options):
    problem = ps.load_problem(name)
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n_nodes), degree=3).solve(**options)


@pytest.fixture(scope="module")
def systems():
    """Two unknowns in time, in the plane."""
    return _solved("gray-scott", times=np.linspace(0, 20, 9))


def _figure(solution):
    figure = canvas.require_matplotlib()(layout="constrained")
    figures._draw_maps(figure, solution)
    return figure


def test_several_unknowns_get_columns_and_their_errors_a_row():
    axes = _figure(_solved("elasticity")).axes
    places = [(a.get_subplotspec().rowspan.start, a.get_subplotspec().colspan.start) for a in axes]
    assert dict(zip([a.get_title() for a in axes], places, strict=True)) == {
        "p": (0, 0),
        "q": (0, 1),
        "|p − exact|": (1, 0),
        "|q − exact|": (1, 1),
    }


def test_moments_share_one_scale_and_unknowns_have_their_own_row(systems):
    axes = np.reshape(_figure(systems).axes, (2, 5))
    for name, row in zip("uv", axes, strict=True):
        assert [a.get_title() for a in row] == [f"{name}, t = {t}" for t in ("0.0", "5.0", "10.0", "15.0", "20.0")]
        scales = {a.collections[0].get_clim() for a in row}
        values = systems.fields[name][::2]
        assert len(scales) == 1
        assert scales.pop() == pytest.approx(
            (values.min(), values.max()), abs=0.05
        )  # a cubic between nodes goes beyond them


@pytest.mark.parametrize("name", ["burgers", "heat"])
def test_draws_evolutions_on_a_line_and_in_the_plane(name, tmp_path):
    evolution = _solved(name, n_nodes=40 if name == "burgers" else 200)
    image = _pixels(draw(evolution, tmp_path / "u.png"))
    assert image.shape[1] > (2 if name == "burgers" else 3.5) * image.shape[0]  # two pictures, or five moments
    assert len(np.unique(image[::4, ::4, :3].reshape(-1, 3), axis=0)) > 20


def test_moments_are_first_last_and_even_between():
    assert canvas.moments(np.linspace(0, 1, 9), 5).tolist() == [0, 2, 4, 6, 8]
    assert canvas.moments(np.array([0.0, 1.0, 5.0]), 5).tolist() == [0, 1, 2]
    assert canvas.moments(np.geomspace(1, 1000, 50), 5)[[0, -1]].tolist() == [0, 49]


def test_a_film_shows_every_stored_time_in_place(systems, tmp_path):
    from PIL import Image

    told = []
    with Image.open(draw(systems, tmp_path / "u.gif", progress=told.append)) as film:
        assert film.n_frames == 9
        frames = []
        for i in range(9):
            film.seek(i)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
    assert told == pytest.approx(np.arange(1, 10) / 9)
    changed = np.abs(frames[0] - frames[-1]).max(axis=2) > 40
    height, width = changed.shape
    assert changed[height // 4 :].any()  # the fields
    assert changed[: height // 12].any()  # the time in the title
    right = changed[height // 8 :, int(0.94 * width) :]
    assert not right.any()  # the scale stands still


def test_a_film_of_curves(tmp_path):
    from PIL import Image

    with Image.open(draw(_solved("burgers", n_nodes=40), tmp_path / "u.gif")) as film:
        assert film.n_frames == 11


def test_pixels_of_a_film_are_linear_between_nodes_and_leave_holes_out():
    problem = ps.load_problem("cooled-pipe")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))
    (view,) = canvas.views(model)
    raster = animations._Raster.of(view, problem.domain.bounds)
    x, y = model.nodes.points.T
    picture = raster.picture(3 + 2 * x - y)
    n = len(picture)
    at = (np.arange(n) + 0.5) / n * 2 - 1
    gap = picture - (3 + 2 * at[None, :] - at[:, None])
    assert np.abs(gap).max() < 1e-12
    assert picture.mask[n // 2, n // 2]
    assert 1 - picture.mask.mean() == pytest.approx(problem.domain.volume() / 4, rel=0.02)


def test_steady_solutions_do_not_move(tmp_path):
    with pytest.raises(ps.ParasolError, match=r"'\.gif' is unknown"):
        draw(_solved("reaction-layer", n_nodes=40), tmp_path / "u.gif")


def test_mp4_without_ffmpeg_advises_a_gif(systems, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ps.ParasolError, match=r"needs the program ffmpeg.*write a \.gif"):
        draw(systems, tmp_path / "u.mp4")
    assert list(tmp_path.iterdir()) == []


def test_a_broken_ffmpeg_leaves_nothing(systems, tmp_path, monkeypatch):
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(ps.ParasolError, match="ffmpeg could not make"):
        draw(systems, tmp_path / "u.mp4")
    assert list(tmp_path.iterdir()) == [program]
