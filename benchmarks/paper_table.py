"""The tables of docs/paper.md from the results that benchmarks/paper.py left.

python benchmarks/paper_table.py docs/results
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from parasol_lab.paper.numbers import STATED

NAMES = {"helmholtz": "Helmholtz", "sine-gordon": "sine-Gordon", "schrodinger": "Schrödinger"}
ROWS = {  # solver: how the table names it
    "POD-DNN": "POD-DNN, d = {n_modes}",
    "POD-DNN, more modes": "POD-DNN, {n_modes} modes",
    "DNN": "DNN without POD",
    "DeepONet": "DeepONet",
    "LS-RRBFM": "LS-RRBFM, greedy, d = {n_modes}",
    "linear map": "a linear map, since the equation is linear: d = {n_modes}",
    "linear map, all modes": "a linear map, all {n_modes} modes",
}


def main() -> None:
    """Print both tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="has paper-PROBLEM-PRESET.json")
    folder = parser.parse_args().folder
    runs = {
        problem: {
            preset: json.loads((folder / f"paper-{problem}-{preset}.json").read_text()) for preset in ("paper", "best")
        }
        for problem in NAMES
    }
    print("\n".join(solvers_table(runs)))
    print("\n| | reading | error | the paper reports |\n|---|---|---|---|")
    for problem, presets in runs.items():
        for row in presets["paper"].get("readings", []):
            theirs = STATED[problem].solvers[row["solver"]]["error"]
            print(
                f"| {NAMES[problem]}, {row['solver']} | {row['reading']} | {scattered(row)} | {number(theirs)}{nearest(row, presets['paper']['readings'], theirs)} |"
            )


def solvers_table(runs: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    """Every solver: the paper's error, its recipe's here, ours, and what the basis leaves."""
    lines = ["| | the paper reports | its recipe here | parasol | floor (projection) |", "|---|---|---|---|---|"]
    for problem, presets in runs.items():
        for solver, words in ROWS.items():
            here = {preset: results["solvers"].get(solver, {}) for preset, results in presets.items()}
            known = [facts for facts in here.values() if facts.get("error") is not None]
            if not known:
                continue
            stated = STATED[problem]
            modes = list(dict.fromkeys(facts.get("n_modes") for facts in known))
            name = words.format(n_modes=" and ".join(map(str, modes)))
            if solver == "POD-DNN":
                name = f"**{NAMES[problem]}**: {name}"
                name += "" if modes == [stated.n_modes] else f" (the paper: {stated.n_modes})"
            floors = dict.fromkeys(number(facts["projection_error"]) for facts in known if "projection_error" in facts)
            cells = [
                name,
                number(stated.solvers.get(solver, {}).get("error")),
                *(scattered(here[preset]) for preset in ("paper", "best")),
                "; ".join(floors),
            ]
            lines.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return lines


def nearest(row: dict[str, Any], rows: list[dict[str, Any]], theirs: float | None) -> str:
    """Whether this reading comes nearest to the paper's number, in its logarithm the same as in the ratio."""
    if theirs is None:
        return ""
    ratios = [max(r["error"] / theirs, theirs / r["error"]) for r in rows if r["solver"] == row["solver"]]
    return " (nearest)" if max(row["error"] / theirs, theirs / row["error"]) == min(ratios) else ""


def scattered(facts: dict[str, Any]) -> str:
    """Mean and standard deviation over seeds, which is left out below half a percent."""
    if facts.get("error") is None:
        return ""
    mean, scatter = facts["error"], facts.get("scatter") or 0.0
    if scatter < 0.005 * mean:
        return number(mean)
    return f"{number(mean)} ± {plain(f'{scatter:.1g}' if mean >= 0.01 else f'{scatter:.0e}')}"


def number(value: float | None) -> str:
    """Two digits, or three where they are not small."""
    return "" if value is None else plain(f"{value:.3g}" if value >= 0.01 else f"{value:.1e}")


def plain(text: str) -> str:
    """An exponent without a leading zero."""
    return text.replace("e-0", "e-")


if __name__ == "__main__":
    main()
