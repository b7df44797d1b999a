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
ROOMS = ["learning", "fitting", "reduction", "pde", "space", "expressions", "runtime", "cache", "checks", "faces"]
WIDTH, LEFT, CHAR, ROW, PAD = 1080, 110, 7.0, 24, 8

WATCH = """
import json, sys
ran = set()
def watch(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_name[0] != "<" and code.co_name != "__create_fn__" and code.co_flags & 1:  # functions, not what an import executes
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


def drawing(title: str, traced: dict[str, list[str]], graph: grimp.ImportGraph) -> str:
    """Rooms from top to bottom and whom they import, a box for each module: filled where it runs, pale where only loaded."""
    ran = set(traced["ran"])
    shown = [m for m in traced["loaded"] if "." in m.removeprefix("parasol.") or m in ran]
    rooms = [r for r in ROOMS if any(room(m) == r for m in shown)]
    out, y = [], 40
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
        count = sum(m in ran for m in modules)
        out.append(f'<text x="98" y="{top + 16}" text-anchor="end" font-weight="600">{name}</text>')
        out.append(
            f'<text x="98" y="{top + 30}" text-anchor="end" font-size="10" fill="#5a6872">{count} of {len(modules)}</text>'
        )
        y += ROW
        imported = {
            room(b) for a in modules if a in ran for b in graph.find_modules_directly_imported_by(a) if b in shown
        }
        below = [r for r in rooms if r in imported and r != name]
        if below:
            out.append(f'<text x="{LEFT}" y="{y + 15}" font-size="11" fill="#5a6872">↓ {", ".join(below)}</text>')
        y += 26
    said = f"{title}: {len(ran)} modules run, {len(traced['loaded'])} loaded"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img" '
        f'aria-label="{said}" font-family="system-ui, sans-serif" font-size="12"><rect width="{WIDTH}" height="{y}" fill="#fff"/>'
        f'<text x="{LEFT}" y="24" font-size="15">{said}</text>{"".join(out)}</svg>\n'
    )


def main() -> None:
    """Both drawings."""
    graph = grimp.build_graph("parasol")
    titles = {"learn": "learn(helmholtz, tolerance=1e-2)", "answer": "surrogate(mu).values of a loaded file"}
    with tempfile.TemporaryDirectory() as folder:
        for name, title in titles.items():
            traced = trace(name, Path(folder))
            (HERE / f"trace-{name}.svg").write_text(drawing(title, traced, graph), encoding="utf-8")
            print(f"{title}: {len(traced['ran'])} modules run, {len(traced['loaded'])} loaded")


if __name__ == "__main__":
    main()
