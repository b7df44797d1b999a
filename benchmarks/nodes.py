"""Node generation side by side with treverhines-rbf, in one run: CPU seconds, evenness, ratios.

    pip install treverhines-rbf          # compiles from source
    PYTHONPATH=src python benchmarks/nodes.py --json nodes.json

The peer runs first; we are then asked for exactly as many nodes as it made. Both are measured by
`parasol.space.quality` with h = (volume / n_nodes)^(1/dimension). Without the peer only our own timings are printed.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np

from parasol.space.geometry.curves import Star
from parasol.space.geometry.primitives import Ball, Box
from parasol.space.node_quality import measure
from parasol.space.nodes import scatter

FLOWER = Star("0.8 + 0.1*(sin(6*theta) + sin(3*theta))")
SQUARE = Box((0.0, 0.0), (1.0, 1.0))
CUBE = Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
BALL = Ball((0.0, 0.0, 0.0), 1.0)


def flower_polygon():
    """The flower for the peer: 360 straight sides."""
    theta = 2 * np.pi * np.arange(360) / 360
    radius = 0.8 + 0.1 * (np.sin(6 * theta) + np.sin(3 * theta))
    index = np.arange(360)
    return radius[:, None] * np.stack([np.cos(theta), np.sin(theta)], axis=1), np.stack(
        [index, (index + 1) % 360], axis=1
    )


def row(who: str, case: str, domain, points: np.ndarray, seconds: float) -> dict:
    """One line of the table."""
    h = (domain.volume() / len(points)) ** (1 / domain.dimension)
    q = measure(points, np.full(len(points), h), domain)
    return {
        "case": case,
        "who": who,
        "n_nodes": len(points),
        "seconds": seconds,
        "separation": q.separation,
        "fill_distance": q.fill_distance,
        "ratio": q.ratio,
    }


def against_peer(case: str, domain, peer_domain, how: str, size: float) -> list[dict]:
    """Run the peer (its defaults) and then ours with as many nodes; both once, in this process."""
    from rbf.pde import nodes as peer  # type: ignore[import-not-found]

    np.random.seed(0)  # noqa: NPY002 (the peer draws from the global state)
    start = time.process_time()
    if how == "poisson":
        theirs = peer.poisson_disc_nodes(size, peer_domain)[0]
    else:
        theirs = peer.min_energy_nodes(int(size), peer_domain)[0]
    their_seconds = time.process_time() - start
    start = time.process_time()
    ours = scatter(domain, n_nodes=len(theirs), rng=0).points
    our_seconds = time.process_time() - start
    return [
        row(f"treverhines-rbf {how}", case, domain, theirs, their_seconds),
        row("parasol", case, domain, ours, our_seconds),
    ]


def main() -> None:
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--quick", action="store_true", help="fewer nodes")
    options = parser.parse_args()
    shrink = 4.0 if options.quick else 1.0
    rows: list[dict] = []
    pairs: list[dict] = []
    try:
        from rbf.pde import domain as shapes  # type: ignore[import-not-found]
    except ImportError:
        print("treverhines-rbf is not installed: only our own timings")
    else:
        flat, solid = np.sqrt(shrink), np.cbrt(shrink)
        cases = [
            ("square", SQUARE, shapes.square(), "poisson", 0.0095 * flat),
            ("square", SQUARE, shapes.square(), "energy", 8600 / shrink),
            ("flower", FLOWER, flower_polygon(), "poisson", 0.0136 * flat),
            ("flower", FLOWER, flower_polygon(), "energy", 8600 / shrink),
            ("cube", CUBE, shapes.cube(), "poisson", 0.0465 * solid),
            ("cube", CUBE, shapes.cube(), "energy", 6000 / shrink),
            ("ball", BALL, shapes.sphere(4), "poisson", 0.0755 * solid),
            ("ball", BALL, shapes.sphere(4), "energy", 6000 / shrink),
        ]
        for case in cases:
            theirs, ours = against_peer(*case)
            pairs.append({"case": case[0], "peer": theirs["who"], "speedup": theirs["seconds"] / ours["seconds"]})
            pairs[-1]["ratio_gain"] = ours["ratio"] / theirs["ratio"]
            rows += [theirs, ours]
            report([theirs, ours], pairs[-1])
    for case, domain in (("square", SQUARE), ("flower", FLOWER), ("cube", CUBE), ("ball", BALL)):
        start = time.process_time()
        nodes = scatter(domain, n_nodes=int(100_000 / shrink), rng=0)
        rows.append(row("parasol", case, domain, nodes.points, time.process_time() - start))
        report(rows[-1:])
    if options.json:
        machine = {"machine": platform.machine(), "python": platform.python_version(), "numpy": np.__version__}
        options.json.write_text(json.dumps({"machine": machine, "rows": rows, "pairs": pairs}, indent=1) + "\n")


def report(rows: list[dict], pair: dict | None = None) -> None:
    """Print lines of the table."""
    for r in rows:
        print(
            f"{r['case']:7s} {r['who']:24s} {r['n_nodes']:7d} nodes {r['seconds']:8.2f} CPU s   "
            f"separation {r['separation']:.3f} h   fill distance {r['fill_distance']:.3f} h   ratio {r['ratio']:.3f}",
            flush=True,
        )
    if pair:
        print(f"{'':8s}{pair['speedup']:.3g} times faster, ratio {pair['ratio_gain']:.2f} times the peer's", flush=True)


if __name__ == "__main__":
    main()
