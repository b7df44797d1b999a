import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import parasol as ps
from browsers import browser  # noqa: F401
from parasol.checks import ParasolError
from parasol.report import Embedded, Figure, Scattered, Section, Statement, Table, panels, statement, write_report
from parasol.report.canvas import STOPS, colours, require_matplotlib
from parasol.report.document import _text
from parasol.report.tables import written_alike

VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """The page as a list of (tag, attributes) and the text within each kind of tag; refuses tags that do not match."""

    def __init__(self, path: Path):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts = [], [], []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]

    def text(self, *tags):
        return "".join(data for tag, data in self.texts if not tags or tag in tags)


@pytest.fixture(scope="module")
def picture():
    """Two panels: a field with its colour bar, and a curve; names that are no names of HTML."""
    figure = require_matplotlib()(layout="constrained", figsize=(8, 3))
    left, right = figure.subplots(1, 2)
    field = left.pcolormesh(np.arange(12.0).reshape(3, 4), rasterized=True)
    figure.colorbar(field, cax=left.inset_axes([1.04, 0.0, 0.04, 1.0]))
    right.plot([1, 2], [3, 4], color="#0b5394", label="<script>&")
    right.legend()
    figure.suptitle("left out")
    return panels(figure)


def write(tmp_path, *blocks, title="The paper again", sections=None, facts=None):
    sections = [Section("Results", blocks)] if sections is None else sections
    command = "parasol paper helmholtz --out 'a & <b>'"
    facts = {"python": "3.11.7", "machine": {"cpus": 2}} if facts is None else facts
    return Page(write_report(tmp_path / "report.html", title, "beside ours", sections, command=command, facts=facts))


def test_one_file_holds_everything(tmp_path, picture):
    table = Table(("solver", "error"), (("DNN", 2e-3), ("POD-DNN", 1.6e-05)), "Errors.", (1,))
    page = write(tmp_path, "First.\n\nSecond.", table, Figure(picture, "A field.", "one field"))
    assert "http" not in page.source
    assert "<script" not in page.source
    assert not re.search(r"url\((?!#)|@import|src=|xmlns", page.source.replace('src="data:', ""))
    assert page.all("html")[0]["lang"] == "en"
    assert "@media print" in page.source
    assert {"First.", "Second."} <= {data for tag, data in page.texts if tag == "p"}
    assert "Table 1." in page.text("b")
    assert "Figure 1." in page.text("b")
    assert page.text("code", "span").endswith("parasol paper helmholtz --out 'a & <b>'")
    assert "3.11.7" in page.text("td")
    assert "machine, cpus" in page.text("th")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_figures_follow_the_page_from_light_to_dark(tmp_path, picture):
    page = write(tmp_path, Figure(picture, "A field.", "one field"), Figure(picture, "Again."))
    drawn = page.all("svg")
    assert [svg["aria-label"] for svg in drawn[:2]] == ["one field, panel 1", "one field, panel 2"]
    assert "left out" not in page.text()
    assert "<script>&" in page.text("text")
    assert "var(--ink-0, #0b5394)" in picture[1].svg
    light, dark = re.findall(r"--ink-0: (#\w+)", page.source)
    assert light == "#0b5394" != dark
    assert "fill: var(--ink)" in page.source  # letters, which are black where nothing is said
    names = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    used = set(re.findall(r'(?:url\(#|href="#)([\w-]+)', page.source))
    assert used <= set(names)
    assert len(re.findall("<image", picture[0].svg)) >= 1
    assert "<image" not in picture[1].svg  # each panel holds nothing of the other


def test_colours_are_those_of_the_page():
    scripts = "".join(path.read_text() for path in (Path(ps.__file__).parent / "delivery/page").glob("*.js"))
    for stops in STOPS.values():
        assert ", ".join(f'"{stop}"' for stop in stops.split()) in scripts
    assert colours(np.array([-1.0, 1.0]))["cmap"].name == "parasol diverging"


def test_contents_lead_to_every_section(tmp_path):
    page = write(tmp_path, sections=[Section(name, ("x",)) for name in ("Errors", "Errors", "Made", "μ", "Über <b>")])
    targets = [a["href"] for a in page.all("a")]
    ids = [f"#{h['id']}" for h in page.all("h2")]
    assert targets == ids
    assert len(set(ids)) == len(ids) == 6  # how it was made is the last


def test_whatever_is_said_is_text(tmp_path, picture):
    evil = "<script>alert('x')</script>\"&amp;"
    sections = [
        Section(
            evil,
            (
                evil,
                f"`{evil}`",
                Table((evil, "b"), ((evil, evil),), evil),
                Figure(picture, evil, evil),
                Embedded(evil, evil),
            ),
        )
    ]
    page = write(tmp_path, title=evil, sections=sections, facts={evil: [evil, {"a": evil}]})
    assert "script" not in [tag for tag, _ in page.tags]
    assert page.all("svg")[0]["aria-label"] == f"{evil}, panel 1"
    assert page.all("iframe")[0]["srcdoc"] == evil
    assert page.all("iframe")[0]["sandbox"] == "allow-scripts allow-downloads"
    assert page.text("title") == page.text("h1") == evil
    for tag in ("p", "code", "th", "td", "figcaption", "summary", "h2"):
        assert evil in page.text(tag), tag


def test_numbers_are_set_as_powers_and_kept_as_written(tmp_path):
    page = write(tmp_path, "About 1.6e-05, `tolerance=1e-6`, model e5, 0x1e5 and -2E+3.")
    assert [data["value"] for data in page.all("data")] == ["1.6e-05", "-2E+3"]
    assert page.text("sup") == "−53"
    assert "tolerance=1e-6" in page.text("code")
    assert "model e5, 0x1e5 and" in page.text("p")


def test_columns_of_numbers_end_together(tmp_path):
    rows = (("RBF-FD", None, 3, "57 × 57"), ("DNN", "not run", 14, "2 draws"), ("POD-DNN", 0.1, None, "greedy"))
    page = write(tmp_path, Table(("solver", "seconds", "d", "design"), rows, emphasis=(2,)))
    headers = [h.get("class") for h in page.all("th") if h.get("scope") == "col"]
    assert headers == [None, "number", "number", None]
    cells = [c.get("class") for c in page.all("td")][:9]
    assert cells == ["word", "number", "text", "word", "number", "text", "number", "word", "text"]
    assert [row.get("class") for row in page.all("tr")][:4] == [None, None, None, "ours"]


def form(text):
    """The format of a written number: power of ten, decimals, thousands."""
    return re.sub(
        r"\d+",
        lambda digits: "d" * len(digits[0]) if digits.start() and text[digits.start() - 1] == "." else "d",
        text.replace("+", "-"),
    )


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        ([0.00133, 3.7e-5, None], ["1.33e-03", "3.70e-05", "–"]),
        ([Scattered(8.31e-4, 1.1e-6), 0.5], ["(8.31 ± 0.01)e-04", "5.00e-01"]),
        (
            [Scattered(0.438, 0.00134), Scattered(0.24, 0.0023), Scattered(3e-14, 1e-20)],
            ["(4.38 ± 0.01)e-01", "(2.40 ± 0.02)e-01", "(3.00 ± < 0.01)e-14"],
        ),
        ([Scattered(9.999e-4, 1e-12)], ["(9.9990 ± < 0.0001)e-04"]),
        ([Scattered(0.0929, 0.0021), 0.107], ["0.0929 ± 0.0021", "0.1070"]),
        ([900.0, 7.79, "not run"], ["900", "7.79", "not run"]),
        ([32548.4, 9.76, "not run"], ["32\u202f500", "9.76", "not run"]),
        ([8100, 20], ["8100", "20"]),
        ([328149], ["328\u202f149"]),
        ([0.0, 1e-9, float("nan"), float("inf")], ["0", "1.00e-09", "–", "∞"]),
        ([0.0, 2.0], ["0.00", "2.00"]),
    ],
)
def test_numbers_of_a_column_share_a_format(cells, written):
    assert written_alike(cells) == written


def test_random_columns_share_a_format_and_keep_their_numbers():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = 10.0 ** rng.uniform(*np.sort(rng.uniform(-16, 6, 2)), size=5)
        written = written_alike(values.tolist())
        read = [float(text.replace("\u202f", "")) for text in written]
        np.testing.assert_allclose(read, values, rtol=6e-2 if values.max() > 9 * values.min() else 6e-3)
        assert len({"e" in text for text in written}) == 1
        if "e" in written[0] or values.max() / values.min() < 99:
            assert len({form(text) for text in written}) == 1


def test_columns_named_alike_share_a_format():
    table = Table(("", "ours", "paper"), (("a", 2e-5, 0.5), ("b", None, 0.25)), alike=((1, 2),))
    assert table.texts == [["a", "2.00e-05", "5.00e-01"], ["b", "–", "2.50e-01"]]
    assert table.numeric == [False, True, True]


def test_a_scatter_is_set_as_one_number():
    assert _text("(7.60 ± 0.31)e-04").startswith('<data value="(7.60 ± 0.31)e-04">(7.60 ± 0.31)&nbsp;×&nbsp;10<sup>−4')
    assert "10<sup>−4</sup>" in _text("(9.60 ± < 0.01)e-04")


def test_mathematics_is_set_as_mathematics(tmp_path):
    page = write(tmp_path, "So $σ_{max}(B_μ) ≤ N d^2$ holds.")
    assert "So  holds." in page.text("p")
    assert [tag for tag, _ in page.tags].count("msub") == 2
    assert "_" not in page.text("mi", "mo", "mn")
    for mo in page.all("mo"):
        assert mo.get("class") is None or mo.get("stretchy") == "false"


@pytest.mark.parametrize("name", ps.pde.problem_names())
def test_every_problem_of_the_catalogue_is_stated(tmp_path, name):
    rows = statement(ps.load_problem(name))
    page = write(tmp_path, Statement(tuple(rows)))
    assert 'role="math"' in page.source
    assert next(data for tag, data in page.texts if tag == "dt").startswith("equation")
    shown = "".join(data for tag, data in page.texts if tag in ("i", "sub", "sup", "span", "dd", "div"))
    assert not re.search(r"\*|Derivative|_", shown)


def test_a_report_that_fails_leaves_the_old_one(tmp_path):
    before = write(tmp_path, "old").source
    with pytest.raises(ParasolError, match="holds a int"):
        write(tmp_path, 3)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == before


def test_what_cannot_be_reported_is_refused(tmp_path):
    with pytest.raises(ParasolError, match="no sections"):
        write(tmp_path, sections=[])
    with pytest.raises(ParasolError, match="row 1 of a table has 3 cells, its header 2"):
        Table(("a", "b"), (("1", "2"), ("1", "2", "3")))
    with pytest.raises(ParasolError, match="emphasis names row 1"):
        Table(("a",), (("1",),), emphasis=(1,))
    with pytest.raises(ParasolError, match=r"suffix '.txt' is unknown"):
        write_report(tmp_path / "r.txt", "", "", [Section("a", ())], command="", facts={})
    assert not (tmp_path / "report.html").exists()


def test_a_number_that_rounds_to_ten_has_the_next_power():
    assert written_alike([Scattered(9.9996e-4, 3e-6), 2e-4]) == ["(1.000 ± 0.003)e-03", "2.000e-04"]


# ---- on a telephone --------------------------------------------------------------------------------------------------
CUT = """() => [...document.querySelectorAll('.scroll, .formula')].filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.textContent.slice(0, 60))"""
TOUCHING = """() => { const bad = [], boxes = [...document.querySelectorAll('table.described td.number, table.described th')].map((cell) => {
        const range = document.createRange(); range.selectNodeContents(cell); return [cell.textContent, range.getBoundingClientRect()]; }).filter(([text]) => text);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => { if (p.left < q.right && q.left < p.right && p.top < q.bottom - 2 && q.top < p.bottom - 2) bad.push(`${a} on ${b}`); }));
    return bad; }"""


def test_on_a_telephone_nothing_is_cut_and_no_number_lies_on_another(browser, tmp_path):  # noqa: F811
    """Formulas are broken, words at the end of rows of numbers stand below them, a wide panel keeps letters that can be read."""
    rows = tuple((name, 2.95e-11, 1.68e-11, 7.68e-11, "of that error, which the surrogate gives with each answer") for name in ("discretisation", "bound"))  # fmt: skip
    described = Table(("", "mean", "median", "largest", ""), rows, "Errors.")
    settings = Table(("", "this run", "the paper"), (("nodes", "IMQ with a stencil of 25 nodes", "IMQ with polynomials of degree two"),))  # fmt: skip
    figure = require_matplotlib()(layout="constrained", figsize=(14, 6))
    grid = figure.add_gridspec(2, 3)
    for place in (grid[0, 0], grid[0, 1:], grid[1, 0]):
        figure.add_subplot(place).plot([1, 2], [3, 4])
    page = write(
        tmp_path,
        Statement(tuple(statement(ps.load_problem("elasticity")))),
        described,
        settings,
        Figure(panels(figure), "Three.", columns=3),
    )
    assert page.text("code", "span").endswith("'a & <b>'")
    for width in (390, 1280):
        tab = browser.new_page(viewport={"width": width, "height": 844})
        tab.goto((tmp_path / "report.html").as_uri())
        assert tab.evaluate(CUT) == []
        assert tab.evaluate(TOUCHING) == []
        if width == 390:  # on one that is still narrower tables scroll, and numbers keep their distance
            tab.set_viewport_size({"width": 300, "height": 700})
            assert tab.evaluate(TOUCHING) == []
            tab.set_viewport_size({"width": 390, "height": 844})
        assert tab.evaluate("() => document.documentElement.scrollWidth") <= width
        words = tab.locator("table.described tbody tr").first.locator("td.words").bounding_box()
        number = tab.locator("table.described tbody tr").first.locator("td.number").first.bounding_box()
        assert (words["y"] > number["y"] + 5) == (width == 390)
        letters = tab.evaluate(
            "() => Math.min(...[...document.querySelectorAll('.wide text')].map((text) => text.getBoundingClientRect().height))"
        )
        assert letters > 8
        tab.close()
