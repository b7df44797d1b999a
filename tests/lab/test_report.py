import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from parasol.checks import ParasolError
from parasol_lab.paper.report import Figure, Section, Table, write_report

# a PNG of one grey pixel, 1 x 1
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGOoBwAAgQCAa9dwVgAAAABJRU5ErkJggg==")
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


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "pixel.png"
    path.write_bytes(PIXEL)
    return path


def write(tmp_path, *blocks, title="The paper again", sections=None, facts=None):
    sections = [Section("Results", blocks)] if sections is None else sections
    command = "parasol paper helmholtz --out 'a & <b>'"
    facts = {"python": "3.11.7", "machine": {"cpus": 2}} if facts is None else facts
    return Page(write_report(tmp_path / "report.html", title, "beside ours", sections, command=command, facts=facts))


def test_one_file_holds_everything(tmp_path, picture):
    table = Table(("solver", "error"), (("DNN", "2e-3"), ("POD-DNN", "1.6e-05")), "Errors.", (1,))
    page = write(tmp_path, "First.\n\nSecond.", table, Figure(picture, "A pixel.", "one grey pixel"))
    assert "http" not in page.source
    assert "<script" not in page.source
    assert [image["src"] for image in page.all("img")] == [f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"]
    assert (page.all("img")[0]["width"], page.all("img")[0]["alt"]) == ("1", "one grey pixel")
    assert not [1 for style in re.findall(r"url\(|@import", page.source)]
    assert page.all("html")[0]["lang"] == "en"
    assert "prefers-color-scheme: dark" in page.source
    assert "@media print" in page.source
    assert {"First.", "Second."} <= {data for tag, data in page.texts if tag == "p"}
    assert "Table 1." in page.text("b")
    assert "Figure 1." in page.text("b")
    assert page.text("code") == "parasol paper helmholtz --out 'a & <b>'"
    assert "3.11.7" in page.text("td")
    assert "machine, cpus" in page.text("th")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pixel.png", "report.html"]


def test_contents_lead_to_every_section(tmp_path):
    page = write(tmp_path, sections=[Section(name, ("x",)) for name in ("Errors", "Errors", "Made", "μ", "Über <b>")])
    targets = [a["href"] for a in page.all("a")]
    ids = [f"#{h['id']}" for h in page.all("h2")]
    assert targets == ids
    assert len(set(ids)) == len(ids) == 6  # how it was made is the last


def test_whatever_is_said_is_text(tmp_path, picture):
    evil = "<script>alert('x')</script>\"&amp;"
    picture = Figure(picture, evil, evil)
    sections = [Section(evil, (evil, f"`{evil}`", Table((evil, "b"), ((evil, evil),), evil), picture))]
    page = write(tmp_path, title=evil, sections=sections, facts={evil: [evil, {"a": evil}]})
    assert "script" not in [tag for tag, _ in page.tags]
    assert page.all("img")[0]["alt"] == evil
    assert page.text("title") == page.text("h1") == evil
    for tag in ("p", "code", "th", "td", "figcaption", "caption", "h2"):
        assert evil in page.text(tag), tag


def test_numbers_are_set_as_powers_and_kept_as_written(tmp_path):
    page = write(tmp_path, "About 1.6e-05, `tolerance=1e-6`, model e5, 0x1e5 and -2E+3.")
    assert [data["value"] for data in page.all("data")] == ["1.6e-05", "-2E+3"]
    assert page.text("sup") == "−53"
    assert "tolerance=1e-6" in page.text("code")
    assert "model e5, 0x1e5 and" in page.text("p")


def test_columns_of_numbers_end_together(tmp_path):
    rows = (
        ("RBF-FD", "–", "57 × 57", "Sobol"),
        ("DNN", "skipped", "3", "2 draws"),
        ("POD-DNN", "≈ 0.1 s", "4", "greedy"),
    )
    page = write(tmp_path, Table(("solver", "seconds", "d", "design"), rows, emphasis=(2,)))
    headers = [h.get("class") for h in page.all("th") if h.get("scope") == "col"]
    assert headers == [None, "number", "number", None]
    cells = [c.get("class") for c in page.all("td")][:9]
    assert cells == ["word", "number", None, "word", "number", None, "number", "number", None]
    assert [row.get("class") for row in page.all("tr")][:4] == [None, None, None, "ours"]


def test_links_lead_only_to_pages_beside_the_report(tmp_path):
    page = write(tmp_path, "[explore](explore.html), [out](//a.b/c.html), [run](javascript:x.html), [up](../up.html)")
    assert [a["href"] for a in page.all("a") if not a["href"].startswith("#")] == ["explore.html"]
    assert "[out](//a.b/c.html)" in page.text("p")


def test_a_report_that_fails_leaves_the_old_one(tmp_path):
    before = write(tmp_path, "old").source
    with pytest.raises(ParasolError, match="holds a int"):
        write(tmp_path, 3)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == before


def test_what_cannot_be_reported_is_refused(tmp_path, picture):
    (tmp_path / "words.png").write_text("words")
    with pytest.raises(ParasolError, match=r"words.png' is not a PNG"):
        write(tmp_path, Figure(tmp_path / "words.png", ""))
    with pytest.raises(ParasolError, match=r"none.png' cannot be read: No such file"):
        write(tmp_path, Figure(tmp_path / "none.png", ""))
    with pytest.raises(ParasolError, match="no sections"):
        write(tmp_path, sections=[])
    with pytest.raises(ParasolError, match="row 1 of a table has 3 cells, its header 2"):
        Table(("a", "b"), (("1", "2"), ("1", "2", "3")))
    with pytest.raises(ParasolError, match="emphasis names row 1"):
        Table(("a",), (("1",),), emphasis=(1,))
    with pytest.raises(ParasolError, match=r"suffix '.txt' is unknown"):
        write_report(tmp_path / "r.txt", "", "", [Section("a", ())], command="", facts={})
    assert not (tmp_path / "report.html").exists()
