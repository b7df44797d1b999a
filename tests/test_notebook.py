"""What notebooks show: the equation in LaTeX, the numbers that the objects hold, nothing that could run."""

import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import parasol as ps
import served
from parasol.pde.text import equation_latex
from parasol.report.notebook import is_plain_latex, spectrum_svg
from parasol.report.render import card


class _Reader(HTMLParser):
    """The rows of the table, the other texts, the tags and the places of the dots; refuses tags that do not match."""

    def __init__(self, html):
        super().__init__()
        self.open, self.rows, self.texts, self.tags, self.dots = [], {}, [], set(), []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_startendtag(self, tag, attrs):
        self.dots.append({name: float(value) for name, value in attrs})

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] == "th":
            self.name = data
        elif self.open[-1] == "td":
            self.rows[self.name] = data
        else:
            self.texts.append(data)


@pytest.fixture(scope="module")
def surrogate():
    return served.steady()


def test_a_problem_is_its_equation_its_domain_and_its_parameters():
    shown = _Reader(ps.load_problem("cooled-pipe")._repr_html_())
    assert shown.texts == ["cooled-pipe", r"$\displaystyle - u_{xx} - u_{yy} = 0$"]
    assert shown.rows["domain"] == "Disc - Disc in [-1, 1] × [-1, 1]"
    assert shown.rows["conditions"] == "inside: Dirichlet(1); outside: Robin(biot, 1, 0)"
    assert shown.rows["parameters"] == "biot in [0.1, 10] (log)"
    assert shown.rows["kind"] == "linear, affine in the parameters"
    system = ps.load_problem("gray-scott")
    shown = _Reader(system._repr_html_())
    assert len(shown.texts) == 3
    assert shown.rows["domain"].endswith("periodic in x, y")
    assert shown.rows["in time"] == "order 1, 11 stored times from 0 to 200"
    assert system._repr_latex_().count(r" \\ ") == 1


@pytest.mark.parametrize("name", ps.pde.problem_names())
def test_every_problem_of_the_catalogue_can_be_shown(name):
    problem = ps.load_problem(name)
    shown = _Reader(problem._repr_html_())
    assert all(map(is_plain_latex, equation_latex(problem)))
    assert len(shown.texts) == 1 + len(problem.equations)


def test_a_basis_shows_its_spectrum():
    modes, values = np.eye(9)[:, :2], 10.0 ** -np.arange(6)
    shown = _Reader(ps.runtime.Basis(modes, singular_values=values, n_snapshots=6)._repr_html_())
    heights = np.array([dot["cy"] for dot in shown.dots])
    assert np.allclose(np.diff(heights), np.diff(heights).mean(), atol=0.11)  # a straight line on this scale
    assert [dot["opacity"] for dot in shown.dots] == [1, 1, 0.3, 0.3, 0.3, 0.3]
    assert "1e-5" in shown.texts
    assert shown.rows["snapshots"] == "6"
    assert shown.rows["discarded"] == "1.0e-02 of the snapshots"
    assert _Reader(ps.runtime.Basis(modes)._repr_html_()).dots == []
    assert len(_Reader(spectrum_svg(np.geomspace(1, 1e-9, 5000), 10)).dots) == 300
    assert spectrum_svg(np.array([1.0, 0.0]), 1) == ""


def test_a_surrogate_shows_equation_box_sizes_and_bounds(surrogate):
    shown = _Reader(surrogate._repr_html_())
    wanted = r"$\displaystyle - a u_{yy} - k u - u_{xx} = - 10 \sin{\left(8 x \left(y - 1\right) \right)}$"
    assert shown.texts == ["surrogate of helmholtz", wanted]
    assert shown.rows["parameters"] == "a in [0.1, 4] (log), k in [0, 2]"
    assert shown.rows["basis"] == "8 modes by svd from 20 snapshots"
    assert "constants known at" in shown.rows["error bound"]
    learned = {
        "tolerance": 1e-3,
        "measured": {"mean": 1e-4, "max": 5e-4, "n": 12},
        "learn": {"met": True, "solves": 40},
    }
    rows = _Reader(replace(surrogate, facts={**surrogate.facts, **learned})._repr_html_()).rows
    assert rows["promised"] == "relative error 0.001 against the discrete solution, met"
    assert rows["measured"] == "mean 1.0e-04, max 5.0e-04 on 12 fresh solves"
    assert rows["full solves"] == "40"
    rows = _Reader(surrogate.reduced._repr_html_()).rows
    assert rows["error bound"].endswith(f"known at {surrogate.reduced.certificate.n_anchors} parameters")


def test_answers_are_short(surrogate):
    one, many = surrogate([0.9, 1.7]), surrogate([[0.9, 1.7], [3.0, 0.2], [5.0, 0.2]], extrapolate=True)
    shown = _Reader(one._repr_html_())
    assert shown.texts == ["answer at a=0.9, k=1.7"]
    assert shown.rows["u"] == f"from {one.values.min():.6g} to {one.values.max():.6g}"
    assert shown.rows["relative error"] == f"at most {one.bound:.1e} against its solver, proven"
    off = f"off by at most {one.quantity_bounds['mean']:.1e}"
    assert shown.rows["mean"] == f"{one.quantities['mean']:.6g}, {off}"
    shown = _Reader(many._repr_html_())
    assert shown.rows == {"values": "3 × 250", "outside the box": "1 of 3: nothing is promised there", "by": "map"}
    assert "values" not in vars(many)  # nothing was computed for it


def test_solutions_are_short():
    problem = ps.load_problem("burgers")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=40, rng=0))
    film = model.solve([0.1], times=np.array([0.0, 0.25]))
    shown = _Reader(film._repr_html_())
    assert shown.texts == ["burgers at nu=0.1"]
    assert shown.rows["u"] == f"from {film.values.min():.6g} to {film.values.max():.6g}"
    assert shown.rows["time"].startswith("2 stored times from 0 to 0.25, ")
    shown = _Reader(film.at(0.25)._repr_html_())
    assert shown.texts == ["burgers at nu=0.1, t=0.25"]
    assert "against the exact solution" in shown.rows["relative error"]
    assert "relative residual" not in shown.rows  # a moment of an evolution has none of its own


def test_nothing_from_a_file_becomes_a_tag_or_a_link(surrogate):
    bad = "<script>alert(1)</script>"
    facts = {
        "problem": bad,
        "equation": bad,
        "latex": r"\href{javascript:alert(1)}{u}",
        "domain": bad,
        "tolerance": bad,
    }
    facts |= {"measured": {"mean": bad, "max": None, "n": bad}, "learn": {"met": [], "discretisation_error": bad}}
    html = replace(surrogate, facts=facts)._repr_html_()
    shown = _Reader(html)
    assert shown.tags == {"div", "strong", "table", "tr", "th", "td"}
    assert shown.texts == [f"surrogate of {bad}"]
    assert shown.rows["equation"] == bad
    assert "href" not in html
    assert "&lt;b&gt;" in card("<b>", {})
    assert not is_plain_latex("u$<b>")


def test_a_loaded_surrogate_is_shown_with_numpy_alone(surrogate, tmp_path):
    ps.save(surrogate, tmp_path / "m.parasol")
    code = (
        "import sys, parasol\n"
        "s = parasol.load(sys.argv[1])\n"
        "html = s._repr_html_() + s([0.9, 1.7])._repr_html_() + s.basis._repr_html_() + s.reduced._repr_html_()\n"
        "assert not {'sympy', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "sys.stdout.write(str(len(html)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m.parasol"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 2000


def test_a_figure_is_a_picture_without_pyplot(surrogate):
    code = (
        "import sys, matplotlib.image, io, parasol as ps\n"
        "figure = ps.report.draw_nodes(ps.scatter(ps.Disc(), n_nodes=60))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "height, width, _ = matplotlib.image.imread(io.BytesIO(figure._repr_png_())).shape\n"
        "assert 300 < height < width < 1200, (height, width)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert surrogate(a=1.0, k=1.0).plot()._repr_png_()[:4] == b"\x89PNG"
