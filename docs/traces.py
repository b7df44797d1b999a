"""Draw what happens: which modules `learn` and an answer load and run, from the import graph. python docs/traces.py

Writes trace-learn.svg and trace-answer.svg beside this file and prints the numbers of modules.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import grimp

HERE = Path(__file__).parent
ROOMS = "learning fitting reduction pde space expressions runtime cache checks faces".split()
WIDTH, LEFT, CHAR, ROW, PAD = 1080, 130, 6.6, 24, 8

WATCH = """
import json, sys
ran = set()
def watch(frame, event, argument):
    if event == "call":
        ran.add(frame.f_globals.get("__name__", ""))
import parasol as ps
{before}
sys.setprofile(watch)
{traced}
sys.setprofile(None)
mine = lambda names: sorted(name for name in names if name.startswith("parasol."))
json.dump({{"loaded": mine(sys.modules), "ran": mine(ran)}}, open(sys.argv[1], "w"))
"""
PROBLEM = "problem = ps.load_problem('helmholtz')"
TRACES = {
    "learn": (PROBLEM, "surrogate = ps.learn(problem, tolerance=1e-2, n_nodes=400)"),
    "answer": ("surrogate = ps.load(sys.argv[2]); surrogate([0.9, 1.7])", "surrogate([0.9, 1.7]).values"),
}


def trace(name: str, folder: Path) -> dict[str, list[str]]:
    """Modules loaded and run, measured in a process of its own."""
    before, traced = TRACES[name]
    code = WATCH.format(before=before, traced=traced)
    if name == "learn":
        code += f"\nps.save(surrogate, {str(folder / 'model.parasol')!r})\n"
    subprocess.run([sys.executable, "-c", code, folder / "trace.json", folder / "model.parasol"], check=True)
    return json.loads((folder / "trace.json").read_text())


def room(module: str) -> str:
    """The room a module stands in."""
    return module.split(".")[1]


def drawing(title: str, found: dict[str, list[str]], graph: grimp.ImportGraph) -> str:
    """Rooms from top to bottom, a box for each module: filled where it runs, pale where it is only loaded."""
    ran = set(found["ran"])
    shown = [m for m in found["loaded"] if "." in m.removeprefix("parasol.") or m in ran]
    rooms = [r for r in ROOMS if any(room(m) == r for m in shown)]
    out, places, y = [], {}, 40
    for name in rooms:
        modules = sorted((m for m in shown if room(m) == name), key=lambda m: (m not in ran, m))
        x, top = LEFT, y
        for module in modules:
            text = module.split(".", 2)[-1]
            width = CHAR * len(text) + 2 * PAD
            if x + width > WIDTH - PAD:
                x, y = LEFT, y + ROW + 4
            fill = "#2a6f97" if module in ran else "#e8edf0"
            ink = "#fff" if module in ran else "#5a6872"
            out.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{ROW}" rx="4" fill="{fill}"/>')
            out.append(f'<text x="{x + PAD:.0f}" y="{y + 16}" fill="{ink}">{text}</text>')
            x += width + 6
        places[name] = (top, y + ROW)
        count = sum(m in ran for m in modules)
        out.append(f'<text x="118" y="{top + 16}" text-anchor="end" font-weight="600">{name}</text>')
        out.append(f'<text x="118" y="{top + 30}" text-anchor="end" font-size="10" fill="#5a6872">{count} of {len(modules)}</text>')
        y += ROW + 22
    uses = {(room(a), room(b)) for a in ran for b in graph.find_modules_directly_imported_by(a) if b in ran}
    for i, upper in enumerate(rooms):
        for j, lower in enumerate(rooms):
            if j > i and (upper, lower) in uses:
                x = 24 - 4 * (j - i)
                start, end = (places[upper][0] + places[upper][1]) / 2, (places[lower][0] + places[lower][1]) / 2
                out.append(
                    f'<path d="M {x + 14} {start:.0f} C {x - 4} {start:.0f} {x - 4} {end:.0f} {x + 14} {end:.0f}" '
                    'fill="none" stroke="#9fb3bf" marker-end="url(#tip)"/>'
                )
    said = f"{title}: {len(ran)} modules run, {len(found['loaded'])} loaded"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 0 {WIDTH + 16} {y}" role="img" aria-label="{said}" '
        'font-family="system-ui, sans-serif" font-size="12"><defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" '
        'markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0 L6 3 L0 6 z" fill="#9fb3bf"/></marker></defs>'
        f'<rect x="-16" width="{WIDTH + 16}" height="{y}" fill="#fff"/><text x="{LEFT}" y="24" font-size="15">{said}</text>'
        + "".join(out)
        + "</svg>\n"
    )


def main() -> None:
    """Both drawings."""
    graph = grimp.build_graph("parasol")
    titles = {"learn": "learn(helmholtz, tolerance=1e-2)", "answer": "surrogate(mu).values of a loaded file"}
    with tempfile.TemporaryDirectory() as folder:
        for name, title in titles.items():
            found = trace(name, Path(folder))
            (HERE / f"trace-{name}.svg").write_text(drawing(title, found, graph), encoding="utf-8")
            print(f"{title}: {len(found['ran'])} modules run, {len(found['loaded'])} loaded")


if __name__ == "__main__":
    main()
