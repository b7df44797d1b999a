"""Pictures of the explorer page, of every kind of surrogate, at three sizes, light and dark.

    python docs/screenshots.py --out out/screenshots            # all pages and all pictures, some minutes
    python docs/screenshots.py --docs                           # only those that the README and the docs show (docs/images)

Needs chromium, playwright and Pillow. Surrogates are kept in the folder, so that a second run only takes the pictures.
"""

from __future__ import annotations

import argparse
import io
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import parasol as ps

HERE = Path(__file__).parent
SIZES = {"desktop": (1280, 800), "tablet": (820, 1180), "phone": (390, 844)}
SCHEMES = ("light", "dark")
# those of the docs: the surrogate, the size of the window, the scheme, and what is done before
DOCS = {
    "explorer": ("helmholtz", (1280, 800), "light", "state.lines = true"),
    "compare": (
        "helmholtz",
        (1280, 800),
        "light",
        "state.other = { inputs: [3, 1.8] }; state.line = [[-0.6, 0.3], [0.6, 0.3]]",
    ),
    "solid": ("solid", (1280, 800), "light", "state.level = 0.7"),
    "system": ("system", (1280, 800), "dark", "state.which = 2; state.arrows = true"),
    "line": ("line", (1280, 800), "light", "state.other = { inputs: [0.003] }"),
    "phone": ("plane-in-time", (390, 844), "dark", "state.lines = true"),
}


# ---- surrogates of every kind ----------------------------------------------------------------------------------------
def line() -> ps.Surrogate:
    """On a line, steady, with quantities."""
    problem = ps.load_problem("reaction-layer")
    wanted = {"mean": ps.Average(), "middle": ps.PointValue((0.5,))}
    return ps.learn(replace(problem, quantities=wanted), tolerance=1e-4)


def line_in_time() -> ps.Surrogate:
    """On a line, in time."""
    return ps.learn(ps.load_problem("burgers"), tolerance=1e-2)


def helmholtz() -> ps.Surrogate:
    """In the plane, with a proof and quantities."""
    problem = ps.load_problem("helmholtz")
    problem = replace(problem, quantities={"mean": ps.Average(), "centre": ps.PointValue((0.0, 0.0))})
    return ps.learn(problem, tolerance=1e-3, n_nodes=1036, proof=True)


def materials() -> ps.Surrogate:
    """In the plane, of two materials."""
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    (m,) = ps.parameters(m=(0.1, 10.0, "log"))
    pipe = ps.Box((0, 0), (2, 1)).regions(inclusion=ps.Disc((1, 0.5), 0.3))
    flux = ps.divergence(ps.by_region(inclusion=m, otherwise=1) * ps.gradient(u))
    sides = {"left": ps.Dirichlet(0), "right": ps.NormalFlux(-u), "*": ps.NormalFlux(0)}
    problem = ps.Problem(pipe, ps.Eq(-flux, ps.by_region(inclusion=1, otherwise=0)), sides, name="heated inclusion")
    return ps.learn(problem, tolerance=1e-3, n_nodes=900)


def plane_in_time() -> ps.Surrogate:
    """In the plane, in time."""
    problem = replace(ps.load_problem("sine-gordon"), times=np.linspace(0, 6, 25))
    model = ps.discretize(problem, ps.lattice(problem.domain, 25))
    known, fresh = (ps.solve_many(model, ps.sample(model, n, rng=n)) for n in (25, 19))
    return ps.fit(known, "polynomial", basis=ps.pod(known, n_modes=12), model=model, calibration=fresh, level=0.95)


def system() -> ps.Surrogate:
    """Two unknowns in a plate with a hole."""
    return ps.learn(ps.load_problem("elasticity"), tolerance=1e-3, n_nodes=700)


def cantilever() -> ps.Surrogate:
    """Results of another program: displacements, a stress, quantities, cells of one's own."""
    n, m = 41, 11
    x, y = (part.ravel() for part in np.meshgrid(np.linspace(0, 4, n), np.linspace(-0.5, 0.5, m), indexing="ij"))
    i, j = (part.ravel() for part in np.meshgrid(np.arange(n - 1), np.arange(m - 1), indexing="ij"))
    at = i * m + j
    cells = np.concatenate([np.column_stack([at, at + m, at + m + 1]), np.column_stack([at, at + m + 1, at + 1])])
    rng = np.random.default_rng(0)
    load, young = rng.uniform(1e3, 5e3, 120), rng.uniform(5e9, 2e11, 120)
    inertia = 1 / 12
    bend = load[:, None] / (6 * young[:, None] * inertia)
    u = np.stack([bend * 3 * y * (8 * x - x**2) / 1, -bend * (x**2 * (12 - x))], axis=2)
    stress = load[:, None] * (4 - x) * y / inertia
    wanted = {
        "tip": np.r_[np.zeros(2 * n * m - 1), 1.0, np.zeros(n * m)],
        "largest stress": lambda run: run["stress"].max(),
    }
    results = ps.Results(
        {"load": load, "young": young}, {"u": u, "stress": stress}, np.column_stack([x, y]), cells, quantities=wanted
    )
    box = {"load": (1e3, 5e3), "young": (5e9, 2e11, "log")}
    return ps.learn(data=results, tolerance=1e-2, parameters=box)


def solid() -> ps.Surrogate:
    """In space, with a cavity."""
    return ps.learn(ps.load_problem("hollow-block"), tolerance=1e-3, n_nodes=1500)


def function() -> ps.Surrogate:
    """In space, its boundary values a function."""
    problem = ps.load_problem("schrodinger")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=1200))
    return ps.fit(ps.reduce(model, ps.pod(ps.solve_many(model, model.sample(90)), n_modes=81)), "linear", n_labels=300)


KINDS: dict[str, Callable[[], ps.Surrogate]] = {
    "line": line,
    "line-in-time": line_in_time,
    "helmholtz": helmholtz,
    "materials": materials,
    "plane-in-time": plane_in_time,
    "system": system,
    "cantilever": cantilever,
    "solid": solid,
    "function": function,
}


def kept(name: str, folder: Path) -> Path:
    """The file of a surrogate, learned where it is not there."""
    path = folder / f"{name}.parasol"
    if not path.exists():
        ps.save(KINDS[name](), path)
    return path


# ---- pictures --------------------------------------------------------------------------------------------------------
def shoot(browser: Any, page_file: Path, path: Path, size: tuple[int, int], scheme: str, before: str = "") -> None:
    """One picture of a page, after a program has run in it."""
    tab = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    tab.on("console", lambda message: "GL Driver Message" in message.text or print(path.name, message.text))
    tab.on("pageerror", lambda error: print(path.name, error))
    tab.goto(page_file.resolve().as_uri())
    tab.evaluate(f"() => {{ const {{ state, repaint }} = window.parasol; {before}; repaint(); }}")
    tab.wait_for_timeout(1000)  # curves are computed between repaints
    picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
    picture.save(path, **({"quality": 86, "method": 6} if path.suffix == ".webp" else {}))
    tab.close()


def main() -> None:
    """Make the pages and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/screenshots"))
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--sizes", nargs="*", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--schemes", nargs="*", choices=SCHEMES, default=SCHEMES)
    parser.add_argument("--docs", action="store_true", help="renew the pictures of the docs, and no others")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as run:
        arguments = ["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage"]
        browser = run.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        if options.docs:
            for name, (kind, size, scheme, before) in DOCS.items():
                page_file = ps.delivery.write_page(ps.load(kept(kind, options.out)), options.out / f"{kind}.html")
                shoot(browser, page_file, HERE / "images" / f"{name}.webp", size, scheme, before)
            options.only = []
        for name in options.only:
            surrogate = ps.load(kept(name, options.out))
            page_file = ps.delivery.write_page(surrogate, options.out / f"{name}.html")
            for size in options.sizes:
                for scheme in options.schemes:
                    shoot(browser, page_file, options.out / f"{name}-{size}-{scheme}.png", SIZES[size], scheme)
        browser.close()


if __name__ == "__main__":
    main()
