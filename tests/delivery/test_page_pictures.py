"""What the explorer page draws: contours with their numbers, surfaces and cuts, two pictures, and what is taken away of them."""

import re
from dataclasses import replace

import numpy as np
import pytest

import parasol as ps

SIZES = ((1280, 800), (820, 1180), (390, 844))
COLOURED = """(list) => { // the share of each part of the exported picture that has a colour
    const sheet = window.parasol.picture(2), g = sheet.getContext("2d");
    const { data } = g.getImageData(0, 0, sheet.width, sheet.height);
    return list.map(([x, y, w, h]) => { let n = 0, all = 0;
        for (let i = 0; i < data.length; i += 4) {
            const u = ((i / 4) % sheet.width) / sheet.width - x, v = Math.floor(i / 4 / sheet.width) / sheet.height - y;
            if (u < 0 || u > w || v < 0 || v > h) continue;
            all += 1;
            if (Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 40) n += 1;
        }
        return n / all; }); }"""
CUT = """() => { const labels = window.parasol.labels(), { width } = window.parasol.view.size();
    return labels.filter((one) => one.left < -1 || one.right > width + 1).map((one) => one.text); }"""
WIDE = """() => [...document.querySelectorAll(".card, .card *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest("canvas")).map((one) => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def plane():
    """u = a x on a square: contours are straight, and known."""
    x = np.linspace(-1, 1, 13)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    a = np.random.default_rng(0).uniform(1, 2, 30)
    results = ps.Results({"a": a}, a[:, None] * points[:, 0], points)
    return ps.fit_snapshots(a[:, None], results.values, "linear", layout=results.layout)


@pytest.fixture(scope="module")
def strip():
    """The same on a strip, eight times as long as wide."""
    x, y = np.linspace(0, 8, 41), np.linspace(0, 1, 6)
    points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    a = np.random.default_rng(0).uniform(1, 2, 30)
    results = ps.Results({"a": a}, a[:, None] * points[:, 0], points)
    return ps.fit_snapshots(a[:, None], results.values, "linear", layout=results.layout)


@pytest.fixture(scope="module")
def block():
    x = np.linspace(0, 1, 5)
    points = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    a = np.random.default_rng(0).uniform(1, 2, 40)
    results = ps.Results({"a": a}, a[:, None] * np.sin(2 * points @ [1.0, 0.7, 0.4]), points)
    return ps.fit_snapshots(a[:, None], results.values, "polynomial", layout=results.layout)


# ---- contours --------------------------------------------------------------------------------------------------------
def test_contours_carry_the_values_they_stand_for(show, plane):
    tab = show(plane)
    plain = set(tab.evaluate("() => window.parasol.labels().map((one) => one.text + one.left)"))
    tab.click("#lines")
    tab.wait_for_timeout(100)
    found = tab.evaluate(
        """(known) => window.parasol.labels().filter((one) => !known.includes(one.text + one.left)).map((one) => {
            const hit = window.parasol.pick((one.left + one.right) / 2, (one.top + one.bottom) / 2);
            return [one.text, hit && window.parasol.valueAt(hit), [one.left, one.right].every((x) => [one.top, one.bottom].every((y) => window.parasol.pick(x, y)))]; })""",
        list(plain),
    )
    assert len(found) >= 5
    for text, value, inside in found:
        assert value == pytest.approx(float(text.replace("−", "-")), abs=0.03)
        assert inside
    assert tab.evaluate("() => [[10, 10, 40], [250, 250, 200]].map(Paint.dark)") == [True, False]
    assert 'paint-order="stroke"' in tab.evaluate("() => window.parasol.paper()")


def test_rounding_on_the_boundary_is_no_contour_but_contours_reach_it(show, plane):
    tab = show(plane)
    # one triangle with a side on the boundary, whose values there are the level but for rounding; and one that is crossed
    ask = """([values, rim]) => Contours.lines([0, 0, 0, 1, 0, 0, 0, 1, 0], [0, 1, 2], values, 0, 1, rim && Uint8Array.from(rim)).length / 4"""
    assert tab.evaluate(ask, [[1e-4, -1e-4, 0.5], [1, 1, 0]]) == 0
    assert tab.evaluate(ask, [[1e-4, -1e-4, 0.5], [0, 0, 0]]) == 1  # inside of the domain it is a line
    assert tab.evaluate(ask, [[1e-4, -0.5, 0.5], [1, 1, 0]]) == 1  # ends at the boundary
    assert tab.evaluate(ask, [[1e-2, -1e-2, 0.5], [1, 1, 0]]) == 1  # more than rounding
    # straight lines of u = 1.5 x are whole, though they run along sides of cells
    length = tab.evaluate(
        """() => { const { view, range, state } = window.parasol; state.lines = true; window.parasol.set([1.5]);
            const drawing = window.parasol.paper(), paths = [...drawing.matchAll(/d="([^"]*)" fill="none" stroke="#(?:111|fff)"/g)].map((one) => one[1]);
            return Math.max(...paths.flatMap((path) => path.split("M").slice(1)).map((line) => { const ys = line.split("L").map((p) => Number(p.split(" ")[1])); return Math.max(...ys) - Math.min(...ys); })); }"""
    )
    high = tab.evaluate(
        "() => Math.abs(window.parasol.view.onScreen([0, 1])[1] - window.parasol.view.onScreen([0, -1])[1])"
    )
    assert length == pytest.approx(high, rel=0.01)


def test_a_surface_of_one_value_leaves_out_a_boundary_that_has_it(show, block):
    tab = show(block)
    ask = """([heights, rim]) => Contours.cut([0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], [0, 1, 2, 3], heights, rim && Uint8Array.from(rim), 1).weights.length / 3"""
    assert tab.evaluate(ask, [[1e-3, -1e-3, 1e-3, 0.5], [1, 1, 1, 0]]) == 0
    assert tab.evaluate(ask, [[1e-3, -1e-3, 1e-3, 0.5], None]) == 1
    assert tab.evaluate(ask, [[1e-3, -0.5, 1e-3, 0.5], [1, 1, 1, 0]]) == 1
    assert tab.evaluate(ask, [[0.03, -0.03, 0.03, 0.5], [1, 1, 1, 0]]) == 1
    # a surface that only just cuts off a corner on the boundary is whole: its neighbours there do not have the value
    assert tab.evaluate(ask, [[-1e-3, 0.3, 0.2, 0.5], [1, 1, 1, 0]]) == 1


def test_of_the_skin_what_the_cut_leaves_is_drawn_and_no_more(show, block):
    """A triangle may be left out only where all of it lies beyond what the shader shows, the cut and a lip."""
    tab = show(block)
    for axis, fraction in ((2, 1.0), (0, 0.48), (1, 0.22), (2, 0.0)):
        found = tab.evaluate(
            "([axis, fraction]) => { const { view, state } = window.parasol; state.axis = axis; view.setSlice(axis, fraction); return view.sent(); }",
            [axis, fraction],
        )
        lowest = np.array(found["heights"])[np.array(found["corners"]).reshape(-1, 3)].min(axis=1)
        needed, allowed = (np.count_nonzero(lowest < found["limit"] + k * found["lip"]) for k in (1, 3))
        assert needed <= found["count"] <= allowed
        assert fraction < 1 or found["count"] == len(lowest)  # the lip: all of a side just above the cut is seen
        assert fraction == 1 or found["count"] < len(lowest)


# ---- two pictures ----------------------------------------------------------------------------------------------------
def test_both_of_two_pictures_are_taken_away(show, plane, strip):
    for surrogate, size, stacked in (
        (plane, (1280, 800), False),
        (plane, (390, 844), True),
        (strip, (1280, 800), True),
    ):
        tab = show(surrogate, size=size)
        tab.evaluate("() => document.getElementById('keep').click()")
        tab.evaluate("() => window.parasol.set([2])")
        tab.wait_for_timeout(150)
        assert tab.evaluate("() => document.getElementById('stage').classList.contains('stacked')") == stacked
        first, second = (tab.locator(name).bounding_box() for name in ("#first", "#second"))
        assert (second["y"] > first["y"] + 50) == stacked
        halves = [[0, 0, 1, 0.5], [0, 0.5, 1, 0.45]] if stacked else [[0, 0, 0.5, 1], [0.5, 0, 0.38, 1]]
        assert all(share > 0.05 for share in tab.evaluate(COLOURED, halves))
        moves = [
            tuple(map(float, found))
            for found in re.findall(r"translate\(([\d.]+) ([\d.]+)\)", tab.evaluate("() => window.parasol.paper()"))
        ]
        assert moves[0] == (0, 0)
        assert (moves[1][1] > 0) == stacked
        assert (moves[1][0] > 0) != stacked


def test_comparing_cuts_nothing_at_any_size(show, plane):
    tab = show(plane)
    tab.click("#keep")
    for how in ("difference", "beside"):
        tab.select_option("#how", how)
        for width, height in SIZES:
            tab.set_viewport_size({"width": width, "height": height})
            tab.wait_for_timeout(100)
            assert tab.evaluate(CUT) == []
            assert tab.evaluate(WIDE) == []
            assert tab.evaluate("() => document.documentElement.scrollWidth") <= width
    tab.select_option("#how", "difference")
    tab.wait_for_timeout(100)
    assert "difference-of-u" in tab.evaluate("() => window.parasol.fileName('png')")
    assert "difference" not in tab.evaluate("() => window.parasol.fileName('csv')")  # which holds the field itself


def test_words_of_what_is_kept_and_bands_that_are_seen(show, plane):
    tab = show(replace(plane), file="the-plate.parasol")
    assert tab.inner_text("h1") == "the-plate"
    said = tab.evaluate(
        """() => Words.listed(Words.settings({ parameters: [{ name: "metal", choices: [0, 1], words: ["steel", "brass"] }, { name: "a" }] }, [1, 0.123456], 3))"""
    )
    assert said == "metal = brass, a = 0.123"
    assert (
        tab.evaluate("() => Words.whole('with 95 % probability, 1 × 10')")
        == "with 95\u00a0% probability, 1\u00a0×\u00a010"
    )
    top = """(band) => { // the value at the upper end of the plot
        const labels = Curves.plot(document.getElementById("curve"), Parts.theme, { xs: [0, 1, 2], curves: [{ ys: [1, 1.5, 2] }], band, names: ["a", "u"], at: null, log: false });
        const [low, high] = labels.filter((one) => one.right < 60 && one.bottom < 157 && !Number.isNaN(Number(one.text))).sort((a, b) => b.top - a.top).map((one) => [Number(one.text), (one.top + one.bottom) / 2]);
        return high[0] + ((28 - high[1]) / (high[1] - low[1])) * (high[0] - low[0]); }"""
    assert tab.evaluate(top, None) == pytest.approx(2, abs=0.1)
    assert tab.evaluate(top, [0.8, 0.8, 0.8]) == pytest.approx(2.8, abs=0.2)  # all of the band
    assert tab.evaluate(top, [50, 50, 50]) == pytest.approx(3, abs=0.2)  # no further than the curve is high


def test_the_range_of_all_times_reaches_to_the_one_between_that_is_largest(show):
    times, x, a = np.linspace(0, 1, 9), np.linspace(0, 1, 6), np.random.default_rng(0).uniform(1, 2, 30)
    points = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    fields = a[:, None, None] * np.sin(np.pi * times)[:, None] * (1 + points[:, 0])
    results = ps.Results({"a": a}, fields, points, times=times)
    tab = show(ps.fit_snapshots(results.mus, results.values, "linear", layout=results.layout))
    for time in (0, 4, 8):
        tab.evaluate("t => window.parasol.set([1.5], { time: t })", time)
        assert tab.evaluate("() => window.parasol.range()") == pytest.approx([0, 3], abs=1e-5)
