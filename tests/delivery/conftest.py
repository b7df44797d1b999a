"""A small Helmholtz model and a browser, which the tests of this folder share."""

import os
import shutil
from contextlib import suppress

import pytest

import parasol as ps


@pytest.fixture(scope="session")
def model():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=250))


@pytest.fixture(scope="session")
def reduced(model):
    return ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 20)), n_modes=8))


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    playwright = None
    if chromium is not None:
        with suppress(ImportError):
            from playwright import sync_api as playwright
    if playwright is None:
        missing = "the tests of the page need chromium and playwright"
        if os.environ.get("PARASOL_REQUIRE_BROWSER") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with playwright.sync_playwright() as run:
        # small machines have little shared memory, and chromium ends without a word when that is used up
        options = ["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage"]
        yield _Lasting(lambda: run.chromium.launch(executable_path=chromium, args=options))


class _Lasting:
    """A browser that is started again where it has ended: under load chromium does, once in many runs."""

    def __init__(self, launch):
        self.launch, self.found = launch, launch()

    def new_page(self, **options):
        if not self.found.is_connected():
            self.found = self.launch()
        return self.found.new_page(**options)


@pytest.fixture
def show(browser, tmp_path):
    """A function that opens the page of a surrogate; at the end nothing may have been asked for or complained about."""
    opened = []

    def open_page(surrogate, *, scheme="light", size=(1000, 700), **options):
        path = ps.delivery.write_page(surrogate, tmp_path / f"page{len(opened)}.html", **options)
        tab = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        said, asked = [], []
        # a software renderer reports how it fetches its pixels: not the page's doing
        tab.on("console", lambda message: "GL Driver Message" in message.text or said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.route("**/*", lambda route: (asked.append(route.request.url), route.continue_()))
        tab.goto(path.as_uri())
        assert tab.evaluate("() => Boolean(window.parasol)")
        opened.append((tab, path.as_uri(), said, asked))
        return tab

    yield open_page
    for tab, address, said, asked in opened:
        tab.close()
        assert said == []
        assert [url for url in asked if url != address and not url.startswith("blob:")] == []
