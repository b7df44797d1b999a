"""The site's pages: code that runs, names that are all there, results of tutorials that belong to their scripts, links."""

import ast
import doctest
import hashlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
PAGES = [DOCS / "errors.md", DOCS / "reference" / "server.md", *sorted((DOCS / "howto").glob("*.md"))]
TUTORIALS = sorted(EXAMPLES.glob("*.py"))


@pytest.fixture(scope="module")
def site():
    """The modules that make the site's generated pages."""
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        import api
        import as_markdown
        import commands
        import links

        yield {"api": api, "as_markdown": as_markdown, "commands": commands, "links": links}
    finally:
        sys.path.remove(str(DOCS / "_ext"))


def run_lines(page: Path) -> None:
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf-8"), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=options, verbose=False)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


@pytest.mark.parametrize("page", [p for p in PAGES if ">>>" in p.read_text(encoding="utf-8")], ids=lambda p: p.stem)
def test_the_lines_of_a_page_print_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_lines(page)


@pytest.mark.slow
def test_the_three_doors_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        assert len(block.splitlines()) <= 12
        names: dict = {}
        exec(compile(block, "index.md", "exec"), names)
        assert names["surrogate"].facts["learn"]["met"]


# ---- names -----------------------------------------------------------------------------------------------------------
def test_every_public_name_has_an_entry_with_words(site):
    api = site["api"]
    text = "\n".join(api.pages(DOCS).values())
    stubs = {".".join(s.parent.relative_to(ROOT / "src").parts) for s in (ROOT / "src").rglob("__init__.pyi")}
    assert stubs == {"parasol", *api.PACKAGES}
    for package in sorted(stubs):
        for name in api.public_names(package):
            if package != "parasol" or name not in api.MODULES:
                assert re.search(rf"^::::\{{py:\w+\}} {re.escape(package)}\.{name}\b", text, re.MULTILINE), (
                    package,
                    name,
                )


def test_names_of_others_are_said_in_words_of_ours(site):
    text = "\n".join(site["api"].pages(DOCS).values())
    for foreign in ("PEP 604", "new empty dictionary", "Typer docs", "## Example"):
        assert foreign not in text
    assert "`str | int | float | Scattered | None`" in text
    after = text.partition("py:module} parasol.fitting.descent")[2].partition("py:class}")[0]
    assert "py:currentmodule} parasol.fitting\n" in after  # or the index says that all names after it are in there


def test_every_name_of_daily_use_appears_in_a_tutorial_or_how_to(site):
    api = site["api"]
    pages = [*PAGES, DOCS / "guide.md", *EXAMPLES.rglob("*.py")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    missing = [name for name in api.public_names("parasol") if not re.search(rf"\bps\.{name}\b", text)]
    assert missing == []


def test_every_public_name_has_an_example(site):
    api = site["api"]
    everything = {
        f"{p}.{name}": api.Entry(p, name).value for p in ("parasol", *api.PACKAGES) for name in api.public_names(p)
    }
    shown = {
        id(everything[name]) for name in api.examples() if name != "setup"
    }  # of a name in two packages one is enough
    lacking = [
        n for n, v in everything.items() if callable(v) and ">>>" not in (v.__doc__ or "") and id(v) not in shown
    ]
    assert lacking == []


@pytest.mark.slow
def test_the_examples_of_the_reference_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_lines(DOCS / "_ext" / "examples.md")


def test_a_name_without_a_topic_stops_the_build(site, monkeypatch):
    monkeypatch.setitem(site["api"].TOPICS, "Learning", "learn plan")
    with pytest.raises(RuntimeError, match=r"no topic for .*'check'"):
        site["api"].pages(DOCS)


def test_every_command_and_option_is_on_the_page(site):
    from typer.main import get_command

    from parasol.cli import app

    text, group = site["commands"].page(), get_command(app)
    commands = {name: group.get_command(None, name) for name in group.list_commands(None)}
    commands |= {f"bench {name}": command for name, command in commands["bench"].commands.items()}
    for name, command in commands.items():
        section = text.partition(f"## parasol {name}\n")[2].partition("\n## ")[0]
        assert section
        for option in command.params:
            if option.param_type_name != "argument" and option.name != "help":
                assert option.opts[0] in section, (name, option.opts)
    assert "--install-completion" not in text  # `parasol` completes all commands, none has an installer of its own


def test_every_route_of_the_server_is_on_its_page():
    import numpy as np

    import parasol as ps

    pytest.importorskip("starlette")
    line = ps.fit_snapshots(
        np.linspace(0, 1, 5)[:, None], np.outer(np.linspace(0, 1, 5), [1.0, 2.0]), "linear", level=None
    )
    text = (DOCS / "reference" / "server.md").read_text(encoding="utf-8")
    routes = [route.path for route in ps.delivery.make_app(line).routes]
    assert len(routes) > 10
    for path in routes:
        assert path == "/" or f"{path}`" in text, path


# ---- tutorials -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_results_of_a_tutorial_belong_to_its_script(path):
    """What sphinx-gallery compares: if this fails, `make docs` runs the tutorial again, and its results are to be committed."""
    kept = DOCS / "tutorials" / f"{path.name}.md5"
    text = path.read_text(encoding="utf-8")
    assert kept.read_text().strip() == hashlib.md5(text.encode()).hexdigest(), (
        f"{path.name} has changed: run make docs."
    )
    assert (DOCS / "tutorials" / path.name).read_text(encoding="utf-8") == text
    page = (DOCS / "tutorials" / f"{path.stem}.rst").read_text(encoding="utf-8")
    assert "Traceback" not in page
    assert set(re.findall(r"pages/(\w+)\.html", page)) == {path.stem}  # its explorer page
    assert (DOCS / "tutorials" / "surrogates" / f"{path.stem}.parasol").exists()
    assert "/examples/" not in page, "a warning with a path of this machine"
    assert (DOCS / "tutorials" / "images" / f"sphx_glr_{path.stem}_001.png").exists()


def test_tutorials_assert_numbers_and_are_listed(site):
    gallery = pytest.importorskip("gallery", reason="sphinx-gallery is not installed")
    assert {path.stem for path in TUTORIALS} == set(gallery.ORDER)
    for path in TUTORIALS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert sum(isinstance(node, ast.Assert) for node in ast.walk(tree)) >= 1, path


# ---- links and text --------------------------------------------------------------------------------------------------
def test_links_that_lead_nowhere_are_seen(site, tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="b.html#there">x</a><a href="#here">y</a><img src="p.png">'
    )
    (tmp_path / "b.html").write_text(
        '<a href="a.html#gone">x</a><a href="c.html">y</a><script src="https://x.org/a.js"></script>'
    )
    assert site["links"].broken(tmp_path) == [
        "a.html leads to b.html#there: no such anchor",
        "a.html leads to p.png: no such file",
        "b.html leads to a.html#gone: no such anchor",
        "b.html leads to c.html: no such file",
        "b.html loads https://x.org/a.js",
    ]


def test_docstrings_keep_their_letters(site):
    markdown = site["as_markdown"].docstring
    assert markdown("a*b*c_d of `x*y_z`") == r"a\*b\*c\_d of `x*y_z`"
    assert markdown("- one *x*\n- two") == "- one \\*x\\*\n- two"
    assert markdown("Says\n>>> 1 + 1\n2") == "Says\n\n```pycon\n>>> 1 + 1\n2\n```"


def test_long_formulas_of_a_text_can_be_broken(site):
    mathml = pytest.importorskip("mathml", reason="Sphinx is not installed")
    long = r"\|C^{-1}-G\|\le\frac{S}{\beta^2}+\lambda(a+b)\le\varepsilon"
    assert mathml.lines(long) == [r"\|C^{-1}-G\|", r"{}\le\frac{S}{\beta^2}", r"{}+\lambda(a+b)", r"{}\le\varepsilon"]
    assert mathml.formula(long, block=False).count("<math") == 4
    assert mathml.formula(long, block=True).count("<math") == 1


@pytest.mark.parametrize(
    ("tex", "part"), [(r"\frac14", "<mfrac>"), (r"x_{\rm POD}", "POD"), (r"a \tag{3}", "<span>(3)</span>")]
)
def test_formulas_are_drawn_without_a_network(site, tex, part):
    mathml = pytest.importorskip("mathml", reason="Sphinx is not installed")
    assert part in mathml.formula(tex, block=True)
