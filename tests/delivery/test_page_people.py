"""What people do with the explorer page, in a browser: read it at any size, compare, follow curves, share it, take it away."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import LinearNDInterpolator

import parasol as ps
from parasol.runtime.quantities import Quantities

SIZES = ((1280, 800), (820, 1180), (390, 844))
OVERLAPS = """() => {
    const labels = window.parasol.labels(), { width, height } = window.parasol.view.size(), bad = [];
    labels.forEach((a, i) => {
        if (a.left < -1 || a.right > width + 1 || a.top < -1 || a.bottom > height + 1) bad.push(`${a.text} is cut`);
        labels.slice(i + 1).forEach((b) => {
            if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) bad.push(`${a.text} on ${b.text}`);
        });
    });
    return [labels.length, bad];
}"""


def steady_picture(tab):
    tab.evaluate("() => window.parasol.repaint()")
    return tab.evaluate("() => window.parasol.picture(1).toDataURL()")


@pytest.fixture(scope="module")
def helmholtz(reduced, model):
    rows = np.random.default_rng(0).standard_normal((2, 1, 8))
    quantities = Quantities(("average", "tip"), rows, np.array([[2.0], [0.5]]))
    return replace(ps.fit(reduced, "polynomial", n_labels=300), quantities=quantities, solver=model)


@pytest.fixture(scope="module")
def line():
    mus, x = np.linspace(0.5, 2, 40)[:, None], np.linspace(0, 3, 25)
    results = ps.Results({"a": mus[:, 0]}, np.sin(mus * x) - 0.3, x[:, None])
    return ps.fit_snapshots(mus, results.values, "polynomial", tolerance=1e-8, layout=results.layout)


@pytest.fixture(scope="module")
def in_time():
    times, x = np.linspace(0, 1, 5), np.linspace(0, 1, 9)
    points = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    mus = np.linspace(1, 3, 30)[:, None]
    fields = np.exp(-mus[:, :, None] * times[None, :, None]) * (1 + points.sum(axis=1))
    results = ps.Results({"rate": mus[:, 0]}, fields, points, times=times)
    return ps.fit_snapshots(mus, results.values, "polynomial", tolerance=1e-8, layout=results.layout)


# ---- layout ----------------------------------------------------------------------------------------------------------
def test_labels_never_meet_and_picture_and_sliders_are_seen_together(show, helmholtz, line):
    for surrogate in (helmholtz, line):
        tab = show(surrogate)
        for width, height in SIZES:
            tab.set_viewport_size({"width": width, "height": height})
            tab.evaluate("() => window.parasol.repaint()")
            count, bad = tab.evaluate(OVERLAPS)
            assert count > 6
            assert bad == []
            assert tab.evaluate("() => document.documentElement.scrollWidth") <= width
            for far in (0, 400):  # the picture stays, and on a desk the sliders do
                tab.evaluate("y => window.scrollTo(0, y)", far)
                tab.wait_for_timeout(50)
                stage = tab.locator("#stage").bounding_box()
                assert stage["y"] >= 0
                assert stage["y"] + stage["height"] <= height
                form = tab.locator("#sliders").bounding_box()
                assert form["y"] + 40 <= height
                assert width < 900 or form["y"] + form["height"] <= height + 1
            tab.evaluate("() => window.scrollTo(0, 0)")
    lengths = show(helmholtz).evaluate(
        "() => [...document.querySelectorAll('#sliders input[type=range]')].map((bar) => bar.offsetWidth)"
    )
    assert len(set(lengths)) == 1
    assert tab.evaluate("() => getComputedStyle(document.getElementById('overlay')).touchAction") == "pan-y"


def test_a_line_is_a_plot_and_not_a_bar_of_colours(show, line):
    tab = show(line)
    assert tab.is_hidden("#field")
    assert tab.locator("#map").count() == 0
    drawing = tab.evaluate("() => window.parasol.paper()")
    assert "<image" not in drawing
    assert ">x</text>" in drawing
    lengths = [len(re.findall("[ML]", path)) for path in re.findall(r'd="([^"]*)"', drawing)]
    assert 24 * 9 in lengths  # cubics between 25 nodes
    at = tab.evaluate("() => window.parasol.view.valueAt(window.parasol.view.nearPoint(1.437))")
    assert at == pytest.approx(np.sin(1.25 * 1.437) - 0.3, abs=2e-4)


# ---- pictures --------------------------------------------------------------------------------------------------------
def test_between_the_nodes_fields_are_smooth(show, helmholtz):
    """Cubics between the nodes follow the solution more closely than straight lines do."""
    tab, mu = show(helmholtz), [0.8, 1.5]
    tab.evaluate("x => window.parasol.set(x)", mu)
    places = np.random.default_rng(1).uniform(-0.6, 0.6, (40, 2))
    found = tab.evaluate(
        "list => list.map((p) => { const v = window.parasol.view, hit = v.nearPoint(...p); return hit && v.valueAt(hit); })",
        places.tolist(),
    )
    inside = [i for i, value in enumerate(found) if value is not None]
    assert len(inside) > 30
    answer, places = helmholtz(mu), places[inside]
    straight = LinearNDInterpolator(helmholtz.layout.points, answer.values)(places)
    errors = [np.linalg.norm(np.array(values) - answer.at(places)) for values in ([found[i] for i in inside], straight)]
    assert errors[0] < 0.5 * errors[1]


def test_colours_are_fixed_in_time(show, in_time):
    tab = show(in_time)
    ranges = set()
    for time in range(5):
        tab.evaluate("t => window.parasol.set(window.parasol.state.inputs, { time: t })", time)
        ranges.add(tuple(tab.evaluate("() => window.parasol.range()")))
    fields = in_time([2.0]).values
    assert len(ranges) == 1
    assert next(iter(ranges)) == pytest.approx((fields.min(), fields.max()), rel=1e-5)
    tab.select_option("#span", "moment")
    tab.wait_for_timeout(100)
    assert tab.evaluate("() => window.parasol.range()[1]") == pytest.approx(fields.reshape(5, -1)[-1].max(), rel=1e-5)
    tab.click("#back")
    tab.wait_for_timeout(100)
    assert tab.evaluate("() => window.parasol.state.time") == 3


def test_a_field_of_zeros_is_drawn_as_zero(show):
    a, x = np.linspace(0, 1, 30), np.linspace(0, 1, 5)
    points = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    results = ps.Results({"a": a}, a[:, None] * (1 + points[:, 0]), points)
    tab = show(ps.fit_snapshots(a[:, None], results.values, "linear", level=None, layout=results.layout))
    tab.evaluate("() => window.parasol.set([0])")
    low, high = tab.evaluate("() => window.parasol.range()")
    assert low == 0
    assert 1 < high <= 2  # of the usual size of the field, not of its rounding


# ---- understanding ---------------------------------------------------------------------------------------------------
def test_curves_comparisons_full_solves_and_a_line(show, helmholtz, model):
    tab = show(helmholtz, solves=2)
    # a quantity against a parameter, with its bound
    tab.wait_for_function("() => window.parasol.curve().xs.length === 49")
    curve = tab.evaluate("() => window.parasol.curve()")
    mus = np.column_stack([curve["xs"], np.ones(49)])
    answer = helmholtz(mus)
    assert np.allclose(curve["ys"], answer.quantities["average"], rtol=1e-9)
    assert np.all(np.array(curve["band"]) >= answer.quantity_bounds["average"] * (1 - 1e-9))
    # another answer beside this one, and their difference
    tab.click("#keep")
    tab.evaluate("() => window.parasol.set([2, 0.3])")
    assert tab.is_visible("#second")
    kept = helmholtz([np.sqrt(0.1 * 4.0), 1.0]).values
    tab.select_option("#how", "difference")
    tab.wait_for_timeout(100)
    most = np.abs(helmholtz([2.0, 0.3]).values - kept).max()
    assert tab.evaluate("() => window.parasol.range()[1]") == pytest.approx(most, rel=1e-4)
    # a full solve
    tab.select_option("#other", "solve1")
    tab.wait_for_timeout(100)
    mu = tab.evaluate("() => Array.from(window.parasol.state.inputs)")
    gap = np.abs(helmholtz(mu).values - model.solve(mu).values).max()
    assert tab.evaluate("() => window.parasol.range()[1]") == pytest.approx(gap, abs=1e-6)
    assert "They differ by at most" in tab.inner_text("#apart")
    tab.select_option("#other", "none")
    tab.wait_for_timeout(100)
    assert tab.is_hidden("#second")
    # along a line: two clicks
    tab.click("#line")
    box = tab.locator("#overlay").bounding_box()
    for place in ([-0.4, 0.0], [0.4, 0.1]):
        x, y = tab.evaluate("p => window.parasol.view.onScreen(p)", place)
        tab.mouse.click(box["x"] + x, box["y"] + y)
    tab.wait_for_timeout(100)
    assert np.allclose(tab.evaluate("() => window.parasol.state.line"), [[-0.4, 0.0], [0.4, 0.1]], atol=0.01)
    assert "From A" in tab.inner_text("#line-said")


def test_the_rounding_of_the_page_is_said(show, helmholtz):
    # an exact map: the reduced model's own coefficients, whose error is nothing but rounding
    tab = show(helmholtz)
    said = tab.evaluate("""() => [[1e-9, 8e-8], [1e-3, 1.00001e-3]].map(
        ([unrounded, relative]) => window.parasol.words.roundingWords({ unrounded, relative }))""")
    assert "in Python the bound is 1 × 10⁻⁹" in said[0]
    assert said[1] == ""
    mu = tab.evaluate("() => Array.from(window.parasol.state.inputs)")
    shown = tab.evaluate("x => window.parasol.answer(x).bound.unrounded", mu)
    assert shown == pytest.approx(helmholtz(mu).bound, rel=1e-6)


# ---- taking away -----------------------------------------------------------------------------------------------------
def test_the_link_keeps_the_state_and_refuses_what_lies_outside(show, helmholtz):
    tab = show(helmholtz)
    tab.evaluate(
        "() => { Object.assign(window.parasol.state, { lines: true, mesh: true, map: 'sequential' }); window.parasol.set([0.3, 1.7]); }"
    )
    before = steady_picture(tab)
    tab.wait_for_timeout(400)
    address = tab.evaluate("() => location.href")
    assert "a=0.3&k=1.7" in address
    tab.goto("about:blank")
    tab.goto(address)
    assert tab.evaluate("() => window.parasol.state.inputs") == [0.3, 1.7]
    assert tab.is_checked("#mesh")
    assert steady_picture(tab) == before
    assert tab.is_hidden("#problem")
    tab.goto("about:blank")
    tab.goto(address.replace("a=0.3", "a=9").replace("k=1.7", "k="))
    assert tab.evaluate("() => window.parasol.state.inputs[0]") == pytest.approx(np.sqrt(0.4))
    assert "a = 9 (from 0.1 to 4)" in tab.inner_text("#problem")


def test_pictures_for_print_and_animations(show, in_time):
    tab = show(in_time, title="Fading: away")
    with tab.expect_download() as found:
        tab.click("#png")
    head = found.value.path().read_bytes()[:24]
    assert int.from_bytes(head[16:20], "big") >= 2399
    assert found.value.suggested_filename == "fading-away_u_p1=2_t=0.png"
    drawing = tab.evaluate("() => window.parasol.paper()")
    assert drawing.startswith("<svg xmlns=")
    assert "<image" in drawing
    size, kind = tab.evaluate(
        "async () => { const film = await window.parasol.animation(); return [film.size, film.type]; }"
    )
    assert size > 1000
    assert kind == "video/webm"
    assert tab.evaluate("() => window.parasol.state.time") == 0


def test_full_solves_need_a_solver_and_room(helmholtz):
    with pytest.raises(ps.ParasolError, match="full solves need the solver"):
        ps.explore(replace(helmholtz, solver=None), solves=2)
    with pytest.raises(ps.ParasolError, match="more than a page should"):
        ps.explore(helmholtz, solves=100_000)


# ---- drawn by the page itself ----------------------------------------------------------------------------------------
COLOURS = """() => {
    const { view, range, state } = window.parasol, canvas = document.getElementById("field"), { width, height, dense } = view.size();
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, [low, high] = range(), worst = [0, 0, 0];
    const colour = Paint.colours(window.parasol.shown.mapName(false)), inside = (x, y) => [[-2, 0], [2, 0], [0, -2], [0, 2]].every(([a, b]) => view.pick(x + a, y + b));
    for (let y = 0; y < height; y += 2) for (let x = (y / 2) % 5; x < width; x += 5) {
        const hit = view.pick((x + 0.5) / dense, (y + 0.5) / dense), at = 4 * (y * canvas.width + x);
        if (!hit || !inside(x + 0.5, y + 0.5)) continue;
        worst[0] += 1;
        if (data[at + 3] !== 255) { worst[1] += 1; continue; }
        const is = colour((view.valueAt(hit) - low) / (high - low));
        worst[2] = Math.max(worst[2], ...[0, 1, 2].map((k) => Math.abs(is[k] - data[at + k])));
    }
    return worst;
}"""


def test_every_pixel_of_the_plane_has_the_colour_of_its_value(show, helmholtz, in_time):
    for surrogate in (helmholtz, in_time):
        tab = show(surrogate, size=(700, 600))
        count, holes, worst = tab.evaluate(COLOURS)
        assert count > 1000
        assert holes == 0
        assert worst <= 8  # of 255: what is read under the pointer is linear in the sixteenth of a cell


@pytest.fixture(scope="module")
def block():
    x = np.linspace(0, 1, 5)
    points = np.stack(np.meshgrid(x, 2 * x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    a = np.random.default_rng(0).uniform(1, 2, 40)
    results = ps.Results({"a": a}, a[:, None] * np.sin(2 * points @ [1.0, 0.7, 0.4]), points)
    return ps.fit_snapshots(a[:, None], results.values, "polynomial", layout=results.layout)


def test_a_cut_leaves_out_only_what_lies_beyond_it(show, block):
    tab = show(block)
    # takes a picture; returns the share of numbers in it that differ from those of an earlier one
    look = """([azimuth, axis, level, than]) => { const p = window.parasol; p.view.camera.azimuth = azimuth; p.view.camera.elevation = 0.2;
        p.view.setSlice(axis, 0.5); p.state.axis = axis; p.state.level = level; p.repaint();
        const sheet = p.picture(1), { data } = sheet.getContext("2d").getImageData(0, 0, sheet.width, sheet.height), taken = window.taken || (window.taken = []);
        taken.push(data);
        return than === null ? 0 : data.filter((x, i) => x !== taken[than][i]).length / data.length; }"""
    # from behind nothing of the cut is seen but its edge; from before the half beyond it is gone
    tab.evaluate(look, [np.pi, 0, None, None])
    assert tab.evaluate(look, [np.pi, -1, None, 0]) < 0.02
    tab.evaluate(look, [0.3, 0, None, None])
    assert tab.evaluate(look, [0.3, -1, None, 2]) > 0.02
    # where a surface is shown all of the skin is, pale; without it all is as before
    assert tab.evaluate(look, [0.3, 0, 0.5, 2]) > 0.02
    assert tab.evaluate(look, [0.3, 0, None, 2]) == 0
    for width, height in SIZES:
        tab.set_viewport_size({"width": width, "height": height})
        for azimuth in (-0.85, 0.6, 2.5):
            tab.evaluate(look, [azimuth, 0, None, None])
            count, bad = tab.evaluate(OVERLAPS)
            assert count > 6
            assert bad == []


def test_long_numbers_are_not_cut(show):
    rng = np.random.default_rng(0)
    load, young = rng.uniform(-5e3, 5e3, 40), rng.uniform(6.25e9, 2e11, 40)
    x = np.linspace(0, 1, 6)
    results = ps.Results({"load": load, "young": young}, load[:, None] / young[:, None] * (1 + x), x[:, None])
    tab = show(ps.fit_snapshots(results.mus, results.values, "linear", layout=results.layout))
    tab.evaluate("() => window.parasol.set([-1234.56, 1.23456e11])")
    assert tab.evaluate("() => [...document.querySelectorAll('#sliders input[type=number]')].map((x) => x.value)") == [
        "-1234.6",
        "1.2346e11",
    ]
    for width, height in SIZES:
        tab.set_viewport_size({"width": width, "height": height})
        cut = tab.evaluate(
            "() => [...document.querySelectorAll('#sliders input[type=number], #sliders label')].filter((x) => x.scrollWidth > x.clientWidth + 1).map((x) => x.outerHTML)"
        )
        assert cut == []
        # the last tick of a curve is whole, and there is more than one on either axis
        for xs, log in (([1000, 2000, 5000], False), ([0.01, 0.1, 10000], True)):
            labels = tab.evaluate(
                """([xs, log]) => Curves.plot(document.getElementById("curve"), Parts.theme,
                    { xs, curves: [{ ys: [-0.7e-5, -2e-5, -3.6e-5] }], band: null, names: ["load", "tip"], at: null, log })""",
                [xs, log],
            )
            wide = tab.evaluate("() => document.getElementById('curve').clientWidth")
            assert all(label["left"] >= 0 and label["right"] <= wide for label in labels)
            assert sum("e−5" in label["text"] for label in labels) > 1
