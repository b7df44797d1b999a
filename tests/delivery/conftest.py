"""A small Helmholtz model and a browser, which the tests of this folder share."""

import pytest

import parasol as ps
from browsers import browser  # noqa: F401


@pytest.fixture(scope="session")
def model():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=250))


@pytest.fixture(scope="session")
def reduced(model):
    return ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 20)), n_modes=8))


@pytest.fixture
def show(browser, tmp_path):  # noqa: F811
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
