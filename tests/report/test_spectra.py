import numpy as np
import pytest

from parasol.checks import ParasolError
from parasol.reduction.pod import pod
from parasol.report.spectra import draw_spectrum
from parasol.runtime.basis import Basis


def basis(n=40, decay=0.4, seed=0):
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((m, 20)))[0] for m in (100, n))
    return pod((right * decay ** np.arange(20.0)) @ left.T, tolerance=1e-4)


@pytest.fixture
def curves(monkeypatch):
    """The figures that were saved, as objects."""
    from matplotlib.figure import Figure

    saved, real = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (saved.append(self), real(self, *a, **k))[1])
    return saved


def test_both_curves_and_the_chosen_dimension_are_drawn(tmp_path, curves):
    one = basis()
    path = draw_spectrum(one, tmp_path / "spectrum.png", tolerance=1e-4)
    assert path.stat().st_size > 10_000
    left, right = curves[0].axes
    assert left.get_yscale() == right.get_yscale() == "log"
    values, dot = left.lines[0], left.lines[1]
    np.testing.assert_allclose(values.get_ydata()[:10], 0.4 ** np.arange(10.0), rtol=1e-8)
    assert dot.get_xdata()[0] == one.n_modes
    discarded, dot = right.lines[0], right.lines[1]
    np.testing.assert_allclose(discarded.get_ydata()[:10], 0.4 ** np.arange(10.0), rtol=1e-6)  # a geometric series
    assert dot.get_ydata()[0] <= 1e-4 < discarded.get_ydata()[one.n_modes - 1]
    assert right.lines[2].get_ydata()[0] == 1e-4
    words, line = (text.get_text() for text in right.get_legend().get_texts())
    assert line == "tolerance 0.0001"
    assert words == f"d = {one.n_modes}: {one.energy_discarded[one.n_modes]:.1e} left out"


def test_nothing_left_is_not_a_number():
    """As many modes as snapshots, or as their rank: what is left is rounding, and the dot is there all the same."""
    rng = np.random.default_rng(0)
    full = pod(rng.standard_normal((6, 40)), n_modes=6)
    low = pod(rng.standard_normal((12, 3)) @ rng.standard_normal((3, 40)), n_modes=3)
    left, right = draw_spectrum({"full": full, "low": low}).axes
    words = [text.get_text() for text in right.get_legend().get_texts()]
    assert words == ["d = 6: nothing left but rounding", "d = 3: nothing left but rounding"]
    for axes in (left, right):
        dots = [line for line in axes.lines if line.get_linestyle() == "None"]
        assert [line.get_xdata()[0] for line in dots] == [6, 3]
        bottom, top = axes.get_ylim()
        assert all(bottom < line.get_ydata()[0] < top for line in dots)
    for axes, line in ((right, 0), (right, 2)):
        assert np.nanmin(axes.lines[line].get_ydata()) > 1e-14


@pytest.mark.slow
def test_several_sets_of_snapshots_share_the_picture(tmp_path, curves):
    draw_spectrum({f"n = {n}": basis(n, seed=n) for n in (25, 40, 60)}, tmp_path / "s.svg")
    left, right = curves[0].axes
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["n = 25", "n = 40", "n = 60"]
    assert len(right.lines) == 6
    draw_spectrum([basis(), basis(60)], tmp_path / "s.pdf", labels=["few", "many"])
    assert [text.get_text() for text in curves[1].axes[0].get_legend().get_texts()] == ["few", "many"]


def test_without_a_path_the_figure_comes_back():
    assert len(draw_spectrum(basis()).axes) == 2


def test_more_bases_than_colours(tmp_path):
    assert draw_spectrum([basis(seed=i) for i in range(12)], tmp_path / "s.png").exists()


@pytest.mark.parametrize(
    ("bases", "options", "message"),
    [
        ({}, {}, "no basis to draw"),
        (Basis(np.eye(3)[:, :1], method="greedy"), {}, "no singular values: it was made by greedy"),
        ({"a": 3}, {}, "'a' is a int, not a basis"),
        ([basis()], {"labels": ["a", "b"]}, "2 labels were given for 1 bases"),
        ({"a": basis()}, {"labels": ["a"]}, "Leave labels out"),
        (basis(), {"tolerance": 2.0}, "not between 0 and 1"),
        (basis(), {"tolerance": "a"}, "tolerance must be a positive number, got 'a'"),
        (None, {}, "bases is a NoneType. Give a basis"),
        ("ab", {}, "bases is a str"),
        ([3], {}, "is a int, not a basis"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path, bases, options, message):
    with pytest.raises(ParasolError, match=message):
        draw_spectrum(bases, tmp_path / "s.png", **options)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ParasolError, match="png"):
        draw_spectrum(basis(), tmp_path / "s.txt")
