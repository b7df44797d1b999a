"""The explorer page in a real browser: the same numbers as Python, pictures that move, and no word to anybody."""

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from sympy import cos, exp

import parasol as ps
from hidden_layer import HiddenLayer
from parasol.delivery.page import contents
from parasol.delivery.page.pack import script_text
from parasol.fitting.linear import FittedLinear
from parasol.fitting.network import Network
from parasol.runtime.conformal import ConformalBound
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.quantities import Quantities
from parasol.runtime.ranges import ParameterRange

CLOSE = 1e-5


# ---- models ----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def helmholtz(reduced):
    return ps.fit(reduced, "polynomial", n_labels=300)


@pytest.fixture(scope="module")
def schrodinger():
    problem = ps.load_problem("schrodinger")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=500))
    return ps.fit(ps.reduce(model, ps.pod(ps.solve_many(model, model.sample(20)), n_modes=10)), "linear", n_labels=100)


@pytest.fixture(scope="module")
def sine_gordon():
    problem = replace(ps.load_problem("sine-gordon"), times=np.linspace(0, 1, 6))
    model = ps.discretize(problem, ps.lattice(problem.domain, 11))
    with pytest.warns(ps.ParasolWarning, match="initial state violates"):
        known, fresh = (ps.solve_many(model, ps.sample(model, n, rng=n)) for n in (12, 9))
    basis = ps.pod(known, n_modes=5)
    return ps.fit(known, "polynomial", basis=basis, model=model, calibration=fresh, level=0.9)


# ---- numbers and pictures from a tab ---------------------------------------------------------------------------------
def ask(tab, inputs, **options):
    return tab.evaluate("([x, o]) => window.parasol.answer(x, o)", [np.asarray(inputs).tolist(), options])


def picture(tab):
    """The pixels of the drawing, before and after which others can be compared."""
    return tab.evaluate("() => window.parasol.picture().toDataURL()")


def check_same(tab, surrogate, inputs, mus):
    """Coefficients, fields and bounds of the page against Python's, at several parameters."""
    answer = surrogate(mus)
    lost = np.array(tab.evaluate("() => Array.from(window.parasol.model.lift.loss.data)"))
    for i, x in enumerate(inputs):
        found = ask(tab, x)
        c = answer.coefficients[i]
        assert np.abs(np.array(found["coefficients"]) - c).max() < 1e-9 * np.abs(c).max()
        field = answer.values[i][: len(found["values"])]
        assert np.abs(np.array(found["values"]) - field).max() < CLOSE * np.abs(field).max()
        if surrogate.reduced is not None:
            # the page adds what single precision may change in its modes, and that is little
            slack = np.abs(c) @ lost
            assert slack < 1e-6 * np.linalg.norm(c)
            assert np.isclose(found["bound"]["value"] - slack, answer.bounds.values[i], rtol=CLOSE)
            assert found["bound"]["rigorous"] == answer.bounds.rigorous[i]


# ---- numbers ---------------------------------------------------------------------------------------------------------
RECIPES = {
    "polynomial": "polynomial",
    "tanh": HiddenLayer(100),
    "process": ps.fitting.GaussianProcess(nugget=1e-8),  # a smaller one has weights of 1e10, and Python's own digits go
}


@pytest.mark.parametrize("recipe", [*RECIPES, "gelu", "silu", "sparse"])
def test_the_page_computes_what_python_computes(show, reduced, helmholtz, model, recipe):
    if recipe in RECIPES:
        surrogate = ps.fit(reduced, RECIPES[recipe], n_labels=200)
    else:
        surrogate = replace(helmholtz, map=FittedLinear(some_network(recipe), 0.0, 0.0))
    mus = ps.sample(model, 5, rng=3)
    check_same(show(surrogate), surrogate, mus, mus)


def some_network(kind):
    rng = np.random.default_rng(1)
    w = [0.5 * rng.standard_normal(shape) for shape in ((6, 2), (6, 6), (8, 6))]
    b = [rng.standard_normal(n) for n in (6, 6, 8)]
    if kind == "sparse":
        from scipy.sparse import csr_array

        return Network((csr_array(w[0] * (w[0] > 0.4)), *w[1:]), tuple(b), "relu")
    return Network(tuple(w), tuple(b), kind, rng.standard_normal((8, 2)), rng.random(2), 1 + rng.random(2), b[2], b[2])


def test_coefficients_that_the_equation_does_not_separate(show):
    x, y = ps.coordinates("x y")
    (a,) = ps.parameters(a=(0.0, 2.0))
    u = ps.unknown("u", x, y)
    problem = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u) + exp(a * x) * u, cos(a * y)), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=150))
    found = ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 8)), n_modes=4))
    assert found.operator_theta.rows
    assert found.load_theta.rows
    surrogate = ps.fit(found, "polynomial", n_labels=100)
    mus = ps.sample(model, 4, rng=3)
    check_same(show(surrogate), surrogate, mus, mus)


def test_a_guessed_constant_is_called_one(show, helmholtz, model):
    # two anchors prove the constant near them only
    known = helmholtz.reduced.certificate
    few = replace(known, **{name: getattr(known, name)[:2] for name in ("thetas", "norms", "sigmas", "centres", "own")})
    surrogate = replace(helmholtz, reduced=replace(helmholtz.reduced, certificate=few))
    mus = np.vstack([ps.sample(model, 12, rng=3), helmholtz.reduced.residuals[0].mu])  # the last is an anchor
    tab = show(surrogate)
    check_same(tab, surrogate, mus, mus)
    proven = surrogate(mus).bounds.rigorous
    assert 0 < proven.sum() < len(proven)
    for mu, truly in ((mus[proven][0], True), (mus[~proven][0], False)):
        tab.evaluate("x => window.parasol.set(x)", mu.tolist())
        assert ("proven" in tab.inner_text("#error")) == truly
        assert ("estimated" in tab.inner_text("#error")) == (not truly)


def test_function_parameters_in_space(show, schrodinger):
    tab = show(schrodinger)
    law, layout = schrodinger.parameters.functions[0].distribution, schrodinger.layout
    modes = law.modes(layout.points[layout.n_interior :])
    xis = np.random.default_rng(4).standard_normal((3, len(modes)))
    check_same(tab, schrodinger, xis, xis @ modes)
    # a choice of samples, and sliders of the first modes
    before, first = picture(tab), tab.evaluate("() => Array.from(window.parasol.state.inputs)")
    tab.select_option("#f-f", "2")
    tab.wait_for_timeout(100)
    second = tab.evaluate("() => Array.from(window.parasol.state.inputs)")
    assert first != second
    assert picture(tab) != before
    tab.evaluate(
        "() => { const s = document.getElementById('f-f-1'); s.value = '1000'; s.dispatchEvent(new Event('input')); }"
    )
    tab.wait_for_timeout(100)
    assert tab.evaluate("() => window.parasol.state.inputs[0]") == 4
    # turn, cut elsewhere, zoom: each changes the picture
    seen = {picture(tab)}
    tab.focus("#overlay")
    for key in ("ArrowLeft", "ArrowUp", "+"):
        tab.keyboard.press(key)
        seen.add(picture(tab))
    tab.select_option("#axis", "2")
    tab.wait_for_timeout(100)
    seen.add(picture(tab))
    tab.select_option("#axis", "-1")
    tab.wait_for_timeout(100)
    seen.add(picture(tab))
    assert len(seen) == 6


def test_what_is_copied_is_python_that_gives_the_same(show, schrodinger, tmp_path, monkeypatch, capsys):
    tab = show(schrodinger, file="the model.parasol")
    ps.save(schrodinger, tmp_path / "the model.parasol")
    monkeypatch.chdir(tmp_path)
    exec(tab.inner_text("#python"), {})
    low, high, bound = (float(word) for word in capsys.readouterr().out.split())
    found = ask(tab, tab.evaluate("() => Array.from(window.parasol.state.inputs)"))
    assert np.allclose([min(found["values"]), max(found["values"])], [low, high], atol=1e-6)
    assert bound == pytest.approx(found["bound"]["relative"], rel=1e-3)


def test_what_is_copied_at_the_end_of_a_range_stays_inside(show, helmholtz):
    high = 1.997209935789209  # to twelve digits it is more
    space = ParameterSpace((*helmholtz.parameters.scalars[:1], ParameterRange("k", 0.0, high)))
    tab = show(replace(helmholtz, parameters=space, reduced=None))
    tab.evaluate("x => window.parasol.set(x)", [4.0, high])
    assert f"surrogate([4, {high!r}])" in tab.inner_text("#python")
    tab.evaluate("x => window.parasol.set(x)", [1 / 3, 1.0])
    assert "surrogate([0.333333333333, 1])" in tab.inner_text("#python")


def test_a_cut_shows_the_field_inside(show, schrodinger):
    """On the cut, values are interpolated between points that cubics along the edges give: near Python's values there."""
    tab = show(schrodinger)
    found = tab.evaluate(
        """() => { const hit = window.parasol.pick(...window.parasol.view.onScreen([0, 0, 0]));
        return {at: hit.at, value: window.parasol.valueAt(hit), weights: hit.parts.map((part) => part[1]), inside: hit.inside,
            corners: window.parasol.view.places(hit.parts, hit.inside), xi: Array.from(window.parasol.state.inputs)}; }"""
    )
    assert found["inside"]
    assert np.abs(found["at"]).max() < 0.01  # the cut through the middle, seen from the front
    assert sum(found["weights"]) == pytest.approx(1)
    assert np.abs(np.array(found["weights"]) @ found["corners"] - found["at"]).max() < 1e-3
    law, layout = schrodinger.parameters.functions[0].distribution, schrodinger.layout
    answer = schrodinger(np.array(found["xi"]) @ law.modes(layout.points[layout.n_interior :]))
    # near Python's own values between the nodes
    assert found["value"] == pytest.approx(answer.at([found["at"]])[0], abs=0.01 * np.abs(answer.values).max())


def test_samples_of_ones_own(show, schrodinger):
    n = len(schrodinger.layout.points) - schrodinger.layout.n_interior
    own = np.random.default_rng(2).standard_normal((3, n))
    tab = show(schrodinger, samples=own)
    found = tab.evaluate(
        "() => Array.from({length: 3}, (_, i) => Array.from(window.parasol.model.functions[0].samples.data.slice(3 * i, 3 * i + 3)))"
    )
    for xi, values in zip(found, own, strict=True):
        assert np.allclose(ask(tab, xi)["mu"], values, atol=1e-12)
    with pytest.raises(ps.ParasolError, match="expected"):
        ps.explore(schrodinger, samples=own[:, 1:])


def test_a_probable_bound_ends_where_the_law_of_a_function_does(show, schrodinger):
    likely = replace(schrodinger, reduced=None, conformal=ConformalBound(level=0.9, n_calibration=40, quantile=0.02))
    law, layout = schrodinger.parameters.functions[0].distribution, schrodinger.layout
    modes = law.modes(layout.points[layout.n_interior :])
    xis = np.random.default_rng(5).standard_normal((2, len(modes))) * [[1.0], [3.0]]
    tab = show(likely)
    for xi, wanted in zip(xis, [0.02, np.inf], strict=True):
        assert likely(xi @ modes).bound == wanted
        assert ask(tab, xi)["bound"]["relative"] == pytest.approx(wanted, rel=1e-4)
    assert "for 90 of 100" in tab.inner_text("#error")
    tab.evaluate("x => window.parasol.set(x)", xis[1].tolist())
    assert "unlike those" in tab.inner_text("#error")
    # samples of one's own are looked at too
    noise = np.random.default_rng(2).standard_normal((3, modes.shape[1]))
    assert "unlike those" in show(likely, samples=noise).inner_text("#error")
    assert "for 90 of 100" in show(likely, samples=xis[:1] @ modes).inner_text("#error")


def test_times_and_a_probable_bound(show, sine_gordon):
    tab = show(sine_gordon)
    mu = [0.05, -1.0]
    fields = sine_gordon(mu).values.reshape(6, -1)
    for time in (0, 2, 5):
        found = ask(tab, mu, time=time)
        assert np.abs(np.array(found["values"]) - fields[time]).max() < CLOSE * np.abs(fields).max()
    # the page's modes are in single precision, and what that costs belongs to the bound
    assert 1e-9 < found["bound"]["relative"] - sine_gordon.conformal.quantile < 1e-5
    known = sine_gordon.certify([mu]).values[0]
    assert 1 + 1e-9 < found["bound"]["value"] / known < 1.05
    assert "for 90 of 100 new parameters" in tab.inner_text("#error")
    before = picture(tab)
    tab.focus("#time")
    tab.keyboard.press("End")
    tab.wait_for_timeout(100)
    assert tab.evaluate("() => window.parasol.state.time") == 5
    assert picture(tab) != before


# ---- what is seen and heard ------------------------------------------------------------------------------------------
def test_sliders_move_the_picture_and_stay_in_the_box(show, helmholtz):
    tab = show(helmholtz)
    before, said = picture(tab), tab.inner_text("#error")
    tab.focus("#p-a")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_timeout(100)
    a, k = tab.evaluate("() => window.parasol.state.inputs")
    assert a > np.sqrt(0.1 * 4.0) * 1.001  # one step on a logarithmic scale, from its middle
    assert k == 1.0
    assert picture(tab) != before
    tab.keyboard.press("End")
    tab.wait_for_timeout(100)
    assert tab.evaluate("() => window.parasol.state.inputs[0]") == 4.0
    assert tab.inner_text("#error") != said
    tab.fill("#p-a ~ input", "1e9")
    tab.keyboard.press("Enter")
    assert tab.evaluate("() => window.parasol.state.inputs[0]") == 4.0
    assert "1 × 10⁹ is outside 0.1 … 4" in tab.inner_text("#p-a-refused")
    assert tab.get_attribute("#p-a ~ input", "aria-invalid") == "true"
    tab.fill("#p-a ~ input", "0.5")
    tab.keyboard.press("Enter")
    assert tab.evaluate("() => window.parasol.state.inputs[0]") == 0.5
    assert tab.is_hidden("#p-a-refused")
    assert tab.get_attribute("#p-a", "aria-valuetext") == "0.5"
    tab.wait_for_timeout(700)  # what is read aloud waits until the slider rests
    assert "proven" in tab.inner_text("#spoken")


def test_the_value_under_the_cursor(show, helmholtz):
    tab = show(helmholtz)
    box = tab.locator("#overlay").bounding_box()
    left, top = tab.evaluate("() => window.parasol.view.onScreen([-0.3, 0.3])")
    tab.mouse.move(box["x"] + left, box["y"] + top)
    text = tab.inner_text("#probe").replace("\n", " ").replace("−", "-").replace(" × 10⁻", "e-")
    value, x, y = (float(found) for found in re.match(r"u = (\S+) .*x = (\S+), y = (\S+)", text).groups())
    inside = helmholtz.restricted(points=[[x, y]])(tab.evaluate("() => window.parasol.state.inputs")).values[0]
    assert abs(value - inside) < 0.003  # cubics between 250 nodes; the field reaches 0.3
    tab.mouse.move(box["x"] + 2, box["y"] + 2)
    assert tab.inner_text("#probe") == ""
    tab.focus("#overlay")
    tab.keyboard.press("ArrowUp")
    assert tab.inner_text("#probe").startswith("u = ")


def test_locked_range_contours_and_what_can_be_taken_away(show, helmholtz):
    tab = show(helmholtz)
    seen = {picture(tab)}
    for box in ("#lines", "#lock"):
        tab.check(box)
        tab.wait_for_timeout(60)
    seen.add(picture(tab))
    tab.select_option("#map", "sequential")
    tab.wait_for_timeout(60)
    seen.add(picture(tab))
    assert len(seen) == 3
    with tab.expect_download() as found:
        tab.click("#csv")
    rows = list(csv.reader(io.StringIO(found.value.path().read_text())))
    values = helmholtz(tab.evaluate("() => window.parasol.state.inputs")).values
    assert rows[0] == ["x", "y", "u", "a", "k"]
    assert found.value.suggested_filename == "helmholtz_u_a=0.6325_k=1.csv"
    assert {row[4] for row in rows[1:]} == {"1"}
    assert np.allclose(np.array(rows[1:], dtype=float)[:, :2], helmholtz.layout.points, rtol=1e-15)
    assert np.allclose(np.array(rows[1:], dtype=float)[:, 2], values, atol=1e-6)
    with tab.expect_download() as found:
        tab.click("#png")
    assert found.value.path().read_bytes().startswith(b"\x89PNG")
    assert "surrogate([0.632455532034, 1])" in tab.inner_text("#python")


def test_quantities_with_their_bounds(show, helmholtz):
    rows = np.random.default_rng(0).standard_normal((2, 1, 8))
    surrogate = replace(helmholtz, quantities=Quantities(("average", "tip"), rows, np.array([[2.0], [0.5]])))
    tab = show(surrogate)
    answer = surrogate([0.5, 1.5])
    found = ask(tab, [0.5, 1.5])
    for q, row, norm in zip(found["quantities"], rows, (2.0, 0.5), strict=True):
        assert q["value"] == pytest.approx(row[0] @ answer.coefficients[0], rel=1e-9)
        assert q["bound"] == pytest.approx(norm * found["bound"]["value"])
    assert "average" in tab.inner_text("#quantities")


def test_several_fields_with_a_hole(show):
    problem = ps.load_problem("elasticity")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200))
    known = ps.solve_many(model, ps.sample(model, 8))
    surrogate = ps.fit(known, "polynomial", basis=ps.pod(known, n_modes=3), model=model)
    tab = show(surrogate)
    p, q = surrogate([2.0]).values.reshape(2, -1)
    for which, field in enumerate((p, q)):
        assert np.abs(np.array(ask(tab, [2.0], which=which)["values"]) - field).max() < CLOSE * np.abs(field).max()
    before = picture(tab)
    tab.select_option("#which", "1")
    tab.wait_for_timeout(100)
    assert picture(tab) != before
    assert "no bound" in tab.inner_text("#error")
    box = tab.locator("#overlay").bounding_box()
    x, y = tab.evaluate("() => window.parasol.view.onScreen([0, 0])")
    tab.mouse.move(box["x"] + x, box["y"] + y)
    assert tab.is_hidden("#probe")  # the middle of the hole
    x, y = tab.evaluate("() => window.parasol.view.onScreen([0.7, 0.7])")
    tab.mouse.move(box["x"] + x, box["y"] + y)
    assert tab.inner_text("#probe").startswith("q = ")


def test_data_without_nodes_is_a_curve(show):
    mus = np.linspace(0, 1, 40)[:, None]
    surrogate = ps.fit_snapshots(mus, np.sin(mus + np.linspace(0, 6, 50)), "polynomial", tolerance=1e-8)
    tab = show(surrogate)
    found = ask(tab, [0.4])
    assert np.allclose(found["values"], np.sin(0.4 + np.linspace(0, 6, 50)), atol=1e-5)
    before = picture(tab)
    tab.evaluate("() => window.parasol.set([0.9])")
    assert picture(tab) != before


def test_a_notebook_shows_the_same(browser, helmholtz):
    tab = browser.new_page()
    tab.set_content(ps.explore(helmholtz)._repr_html_())
    frame = tab.frames[1]
    frame.wait_for_load_state()
    found = frame.evaluate("() => window.parasol.answer([0.5, 1.5])")
    assert np.allclose(found["values"], helmholtz([0.5, 1.5]).values, atol=1e-6)
    tab.close()


def test_a_phone_in_the_dark(show, helmholtz):
    tab = show(helmholtz, scheme="dark", size=(375, 700))
    assert tab.evaluate("() => document.documentElement.scrollWidth") <= 375
    assert tab.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
    names = tab.evaluate(
        "() => [...document.querySelectorAll('input,select,button')].filter(x => !x.labels?.length && !x.textContent && !x.ariaLabel).length"
    )
    assert names == 0  # everything that can be moved has a name to be read aloud


# ---- without a browser -----------------------------------------------------------------------------------------------


def test_a_certificate_that_is_too_large_is_left_out_and_said_so(helmholtz, monkeypatch):
    monkeypatch.setattr(contents, "_LARGEST", 100_000)
    html = ps.explore(helmholtz).html
    assert '"kind":"none"' in html
    assert "Left out to keep this page small: certificate" in html


def test_a_page_for_helmholtz_is_small_and_whole(helmholtz, tmp_path):
    path = ps.delivery.write_page(helmholtz, tmp_path / "page.html", title="<b>a & b</b> %SCRIPT%")
    text = path.read_text()
    assert path.stat().st_size < 1_000_000
    assert "<h1>&lt;b&gt;a &amp; b&lt;/b&gt; %SCRIPT%</h1>" in text
    assert 'role="math"' in text
    assert not re.findall(r"(?:src|href)=\"(?!data:)[^\"]*\"|https?://|@import|url\(", text)
    page = ps.explore(helmholtz)
    assert page.path is None
    assert page._repr_html_().startswith("<iframe sandbox")
    assert page.html.count("</script>") == 2
    assert script_text("</script>") == '"\\u003c/script\\u003e"'


def test_a_surrogate_of_results_with_quantities_of_any_kind(show):
    """Own cells, two fields of different units, a maximum with a map of its own: values and calibrated bounds as in Python."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 2, 150), rng.uniform(0, 1, 150)
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]])
    x, y = points.T
    fields = {
        "u": 1e-4 * a[:, None] * np.exp(-np.outer(b, x)),
        "stress": 3e8 * (1 + a[:, None] * x - np.outer(b, y**2)),
    }
    wanted = {"largest": lambda run: run["stress"].max(), "sum of u": np.r_[np.ones(5), np.zeros(5)]}
    cells = [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]
    results = ps.Results({"a": a, "b": b}, fields, points, cells, quantities=wanted)
    surrogate = ps.learn(data=results, tolerance=1e-2, recipe="gaussian process")
    tab = show(surrogate)
    found = ask(tab, [1.2, 0.4], which=1)
    answer = surrogate(a=1.2, b=0.4)
    assert found["values"] == pytest.approx(answer["stress"].tolist(), rel=1e-5)
    assert [q["name"] for q in found["quantities"]] == ["sum of u", "largest"]
    for q in found["quantities"]:
        assert q["value"] == pytest.approx(answer.quantities[q["name"]], rel=1e-9)
        assert q["bound"] == pytest.approx(answer.quantity_bounds[q["name"]], rel=1e-6)
        assert q["bound"] < 0.01 * abs(q["value"])
    assert "largest" in tab.inner_text("#quantities")


def test_a_parameter_with_choices_is_chosen_from_a_list(show):
    rng = np.random.default_rng(0)
    a, material = rng.uniform(1, 2, 120), rng.choice(["steel", "brass", "wood"], 120)
    size = np.array([{"steel": 1.0, "brass": 2.0, "wood": 5.0}[m] for m in material])
    results = ps.Results({"a": a, "material": material}, (a * size)[:, None] * np.linspace(0, 1, 7))
    box = {"a": (1, 2), "material": ps.Choice("steel", "brass", "wood")}
    surrogate = ps.learn(data=results, tolerance=0.1, parameters=box, recipe="gaussian process")
    tab = show(surrogate)
    tab.select_option("#p-material", label="wood")
    shown = tab.evaluate("() => window.parasol.state.inputs")
    assert shown[1] == 2.0
    found = ask(tab, shown)
    assert found["values"] == pytest.approx(surrogate(shown).values.tolist(), rel=1e-5, abs=1e-6)


def test_the_plane_is_moved_by_a_vector(show):
    a = np.linspace(1, 2, 30)
    points = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    fields = {"u": np.multiply.outer(a, 1e-3 * np.array([[0.0, 0.0], [1.0, 0.5], [1.0, 0.5], [0.0, 0.0]]))}
    results = ps.Results({"a": a}, fields, points, [[0, 1, 2], [0, 2, 3]])
    surrogate = ps.fit_snapshots(a[:, None], results.values, "linear", level=None, layout=results.layout)
    tab = show(surrogate)
    known = {"name": "u", "first": 0, "n": 2, "factor": 100, "declared": True}
    assert tab.evaluate("() => window.parasol.model.vectors") == [known]
    assert tab.input_value("#which") == "2"  # the size of the vector, with arrows
    assert tab.evaluate("() => window.parasol.view.arrows()") > 20
    before = picture(tab)
    tab.check("#deformed")
    tab.evaluate("() => window.parasol.repaint()")
    assert picture(tab) != before
    # the corner at (2, 1) stands at (2, 1) + 100 u
    seen = tab.evaluate("() => window.parasol.view.seen({ at: [2, 1], parts: [[2, 1]] })")
    assert seen == pytest.approx([2 + 0.15, 1 + 0.075], rel=1e-5)
    tab.uncheck("#deformed")
    tab.evaluate("() => window.parasol.repaint()")
    assert picture(tab) == before
