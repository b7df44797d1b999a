"""What was measured, as tables: for a terminal, and as Markdown for the site."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from parasol.cache import replacing
from parasol.errors import InputError
from parasol.report import Facts

TITLES = {
    "data": "From full solves alone",
    "equations": "With the equation's matrices",
    "solve": "One full solve",
}
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
_MISSING = "–"


def mean(row: Facts, *path: str) -> float | None:
    """A figure of a row, averaged over the seeds; None where it was not measured."""
    values = []
    for run in row.get("runs", ()):
        for name in path:
            run = run.get(name) if isinstance(run, dict) else None
        if run is None:
            return None
        values.append(float(run))
    return float(np.mean(values)) if values else None


def spread(row: Facts) -> tuple[float, float] | None:
    """Least and largest error among the seeds, where there are several."""
    errors = [run["error"] for run in row.get("runs", ())]
    return (min(errors), max(errors)) if len(errors) > 1 else None


def _error(row: Facts) -> str:
    text, range_of_seeds = f"{mean(row, 'error'):.1e}", spread(row)
    if range_of_seeds is not None:
        text = f"{text} ({range_of_seeds[0]:.1e} … {range_of_seeds[1]:.1e})"
    finished, seeds = len(row["runs"]), row.get("n_seeds", 1)
    return f"{text}, {finished} of {seeds} seeds" if finished < seeds else text


def _number(*path: str, scale: float = 1.0, form: str = ".3g") -> Callable[[Facts], str]:
    def written(row: Facts) -> str:
        value = mean(row, *path)
        return _MISSING if value is None else format(scale * value, form)

    return written


def _bound(row: Facts) -> str:
    holds, ratio = mean(row, "bound", "holds"), mean(row, "bound", "median_ratio")
    if holds is None or ratio is None:
        return "none"
    return f"{row['bound_kind']}: holds at {100 * holds:.1f} %, {ratio:.2g} times the error"


_LEARNED: dict[str, Callable[[Facts], str]] = {
    "full solves": lambda row: str(row["n_solves"]),
    "error": _error,
    "modes": _number("n_modes", form=".0f"),
    "projection": _number("projection", form=".1e"),
    "fit, s": _number("fit", "cpu_seconds"),
    "2000 queries, ms": _number("batch", "cpu_seconds", scale=1e3),
    "one query, µs": _number("single", "cpu_seconds", scale=1e6),
    "bound": _bound,
    "lines": lambda row: str(row["lines"]),
}
COLUMNS: dict[str, dict[str, Callable[[Facts], str]]] = {
    "data": _LEARNED,
    "equations": _LEARNED,
    "solve": {
        "unknowns": _number("n_unknowns", form=".0f"),
        "error": _error,
        "set-up, s": _number("fit", "cpu_seconds"),
        "solve, ms": _number("single", "cpu_seconds", scale=1e3),
        "lines": lambda row: str(row["lines"]),
    },
}


def peers_rows(facts: Facts) -> list[tuple[str, str]]:
    """The figures in words, for a terminal."""
    out = []
    for kind, rows in _by_kind(facts["rows"]):
        out.append((TITLES[kind], ""))
        for row in rows:
            if "failed" in row:
                out.append((f"  {row['peer']}", row["failed"]))
                continue
            cells = [f"{name} {written(row)}" for name, written in COLUMNS[kind].items()]
            out.append((f"  {row['peer']}", "; ".join(cells)))
        out += [(f"  {what}", f"best: {who}") for what, who in leaders(rows, kind)]
    if facts.get("left_out"):
        out.append(("not measured", "; ".join(facts["left_out"])))
    return out


def markdown(facts: Facts) -> str:
    """One table for each kind, who is ahead in it, and where the settings are from."""
    blocks = [_about(facts)]
    for kind, rows in _by_kind(facts["rows"]):
        ran = [row for row in rows if "failed" not in row]
        heads = list(COLUMNS[kind])
        lines = [f"| | {' | '.join(heads)} |", "|" + "---|" * (len(heads) + 1)]
        for row in ran:
            cells = [written(row) for written in COLUMNS[kind].values()]
            lines.append(f"| {row['peer']} | {' | '.join(cells)} |")
        words = "; ".join(f"{what}: **{who}**" for what, who in leaders(ran, kind))
        failed = dict.fromkeys(f"{row['peer']} {row['failed']}" for row in rows if "failed" in row)
        blocks.append("\n\n".join([f"## {TITLES[kind]}", "\n".join(lines), f"Best here: {words}.", *failed]))
    pages = {(row["peer"], row["versions"], row["source"]): None for row in facts["rows"]}
    lines = ["## Where the settings are from", "", "| | version | project and page |", "|---|---|---|"]
    blocks.append("\n".join([*lines, *(f"| {' | '.join(page)} |" for page in pages)]))
    if facts.get("left_out"):
        blocks.insert(1, f"Not measured in this run: {'; '.join(facts['left_out'])}.")
    return "\n\n".join(blocks)


def leaders(rows: list[Facts], kind: str) -> list[tuple[str, str]]:
    """Who is best in each column of numbers, for each number of full solves."""
    figures = {"fit": ("fit", "cpu_seconds"), "one query": ("single", "cpu_seconds")}
    if kind == "solve":
        figures = {"set-up": figures["fit"], "solve": figures["one query"]}
    else:
        figures["2000 queries"] = ("batch", "cpu_seconds")
    out = []
    for n in dict.fromkeys(row["n_solves"] for row in rows):
        here = [row for row in rows if row["n_solves"] == n and "failed" not in row]
        for what, path in {"error": ("error",), **figures}.items():
            known = [(value, row["peer"]) for row in here if (value := mean(row, *path)) is not None]
            if known:
                out.append((what if n is None else f"{what}, {n} solves", min(known)[1]))
    return out


def check_page(page: Path) -> Path:
    """The page, if it has the two marks between which the tables are written; said before anything is measured."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    if not 0 <= text.find(BEGIN) < text.find(END):
        raise InputError(
            f"{str(page)!r} has no place for the tables. Put the lines {BEGIN} and {END} where they belong."
        )
    return page


def write_page(facts: Facts, page: Path) -> None:
    """Replace what stands between the two marks of a page; its other text is left as it is."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    text = f"{before}{BEGIN}\n\n{markdown(facts)}\n\n{END}{after}"
    with replacing(page) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _about(facts: Facts) -> str:
    split, machine = facts["split"], facts.get("machine", {})
    words = (
        f"{split['problem'].capitalize()} with {split['n_nodes']} nodes, {split['n_test']} test parameters, "
        f"parasol {facts['parasol']}, {machine.get('cpus', 'some')} CPU cores."
    )
    reference = facts.get("reference")
    if reference is None:
        return words
    change = max(reference["change_by_last_refinement"])
    return (
        f"{words} Solvers are compared with elements of degree 4 and {reference['n_unknowns']} unknowns, "
        f"which the last refinement changed by {change:.1e} at most."
    )


def _by_kind(rows: Iterable[Facts]) -> list[tuple[str, list[Facts]]]:
    rows = list(rows)
    return [(kind, here) for kind in COLUMNS if (here := [row for row in rows if row["kind"] == kind])]
