"""The explorer page in headless Chromium: size of the file, seconds to open it, milliseconds of a repaint.

    python benchmarks/page.py --json page.json

A repaint is one move of a slider: coefficients, field, bound, texts, and the picture drawn to its last pixel, which is
waited for. "compute" is the part without the picture. "frame" is the time between two frames of the browser while a slider
moves in each of them: what a hand feels. Without a graphics card Chromium draws in software, as it does here by default.
"deviation" is the largest difference of the page's fields and bounds from Python's, relative.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import parasol as ps

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
REPAINT = """([moves, first]) => moves.map((x) => {
    const p = window.parasol, inputs = Array.from(p.state.inputs);
    inputs[first] = x;
    const start = performance.now();
    p.answer(inputs);
    const computed = performance.now();
    p.set(inputs);
    p.finish();
    return [performance.now() - computed, computed - start];
})"""
FRAMES = """(count) => new Promise((done) => {
    const slider = document.querySelector("#sliders input[type=range]"), out = [];
    let last = performance.now();
    const step = (n) => {
        const now = performance.now();
        out.push(now - last);
        last = now;
        slider.value = String((37 * n) % 1000);
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        if (n < count) requestAnimationFrame(() => step(n + 1)); else done(out.slice(2));
    };
    requestAnimationFrame(() => step(0));
})"""


def helmholtz(n_nodes: int, n_modes: int) -> ps.Surrogate:
    """The paper's first problem: a network of features, and a certificate."""
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n_nodes))
    snapshots = ps.solve_many(model, ps.sample(model, 2 * n_modes, design="edges"))
    return ps.fit(ps.reduce(model, ps.pod(snapshots, n_modes=n_modes)), n_labels=2000)


def schrodinger(n_nodes: int) -> ps.Surrogate:
    """The third: a ball, its boundary values a function."""
    problem = ps.load_problem("schrodinger")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n_nodes))
    snapshots = ps.solve_many(model, model.sample(100))
    return ps.fit(ps.reduce(model, ps.pod(snapshots, n_modes=81)), "linear", n_labels=300)


def deviation(tab, surrogate: ps.Surrogate, mus: np.ndarray) -> tuple[float, float]:
    """Largest relative differences of fields and bounds from Python's."""
    answer = surrogate(mus)
    lost = np.abs(answer.coefficients) @ np.array(tab.evaluate("() => Array.from(window.parasol.model.lift.loss.data)"))
    fields, bounds = [], []
    for i, mu in enumerate(mus):
        page_answer = tab.evaluate("x => window.parasol.answer(x)", mu.tolist())
        fields.append(np.abs(np.array(page_answer["values"]) - answer.values[i]).max() / np.abs(answer.values[i]).max())
        bounds.append(abs((page_answer["bound"]["value"] - lost[i]) / answer.bounds.values[i] - 1))
    return float(max(fields)), float(max(bounds))


def measure(browser, surrogate: ps.Surrogate, path: Path, size: tuple[int, int], n_moves: int) -> dict:
    """One page in one window."""
    start = time.perf_counter()
    ps.delivery.write_page(surrogate, path)
    written = time.perf_counter() - start
    tab = browser.new_page(viewport={"width": size[0], "height": size[1]})
    start = time.perf_counter()
    tab.goto(path.as_uri())
    opened = time.perf_counter() - start
    scalars = surrogate.parameters.scalars
    low, high = (scalars[0].low, scalars[0].high) if scalars else (-2.0, 2.0)
    moves = (low + (high - low) * np.random.default_rng(0).random(n_moves)).tolist()
    tab.evaluate(REPAINT, [moves[:5], 0])  # warm
    times = np.array(tab.evaluate(REPAINT, [moves, 0]))
    frames = np.array(tab.evaluate(FRAMES, n_moves))
    facts = {
        "megabytes": path.stat().st_size / 1e6,
        "write_seconds": written,
        "open_seconds": opened,
        "repaint_ms": {"median": float(np.median(times[:, 0])), "p90": float(np.quantile(times[:, 0], 0.9))},
        "compute_ms": float(np.median(times[:, 1])),
        "frame_ms": {"median": float(np.median(frames)), "p90": float(np.quantile(frames, 0.9))},
    }
    if scalars:
        facts["field_deviation"], facts["bound_deviation"] = deviation(tab, surrogate, ps.sample(surrogate, 20, rng=3))
    tab.close()
    return facts


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--moves", type=int, default=200, help="how often the slider moves")
    parser.add_argument("--quick", action="store_true", help="small models, few moves")
    options = parser.parse_args()
    n_moves = 20 if options.quick else options.moves
    models = {"helmholtz": helmholtz(250, 10) if options.quick else helmholtz(1036, 30)}
    if not options.quick:
        models["helmholtz, 40 modes"] = helmholtz(1036, 40)
        models["schrodinger"] = schrodinger(2276)
    rows = []
    print(
        f"{'model':22}{'window':10}{'MB':>6}{'open s':>8}{'repaint ms':>12}{'p90':>7}{'compute':>9}{'frame ms':>10}{'deviation':>11}"
    )
    with sync_playwright() as run, tempfile.TemporaryDirectory() as folder:
        arguments = ["--no-sandbox", "--enable-unsafe-swiftshader"]
        browser = run.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for name, surrogate in models.items():
            for window, size in SIZES.items():
                facts = measure(browser, surrogate, Path(folder) / "page.html", size, n_moves)
                rows.append({"model": name, "window": window, "load": os.getloadavg()[0], **facts})
                repaint, more = facts["repaint_ms"], facts.get("field_deviation")
                print(
                    f"{name:22}{window:10}{facts['megabytes']:6.2f}{facts['open_seconds']:8.2f}{repaint['median']:12.1f}"
                    f"{repaint['p90']:7.1f}{facts['compute_ms']:9.2f}{facts['frame_ms']['median']:10.1f}"
                    + ("" if more is None else f"{more:11.1e}")
                )
        browser.close()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
