"""The error budget as a report: what was solved, whether the promise holds, where the error comes from, the worst parameters."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from parasol.cache.disk import check_output
from parasol.delivery.page.explore import explore
from parasol.errors import ParasolError
from parasol.report.budget.check import Budget
from parasol.report.budget.figure import draw_budget, promise_words
from parasol.report.document import Block, Embedded, Figure, Section, Statement, write_report
from parasol.report.figures import plot_answer
from parasol.report.formulas import formula, statement, symbol
from parasol.report.render import machine_facts
from parasol.report.tables import Cell, Table
from parasol.report.themed import panels
from parasol.runtime.descriptions import SurrogateReport
from parasol.runtime.surrogate import Surrogate

EMBEDDED_CHARACTERS = 6_000_000  # of an explorer page: with more a report is no mail
IN_REPORTS = 3.6  # inches of a picture: on a telephone its letters are still letters
_MEANING = {
    "discretisation": "of the full solver against the equation, estimated",
    "projection": "what the modes cannot express",
    "map": "what the map from parameters to modes adds",
    "error": "of the answers against fresh full solves",
    "estimate": "of that error, which the surrogate gives with each answer",
    "bound": "of that error, which the surrogate gives with each answer",
}


def write_check(surrogate: Surrogate, budget: Budget, path: str | Path, *, title: str, command: str) -> Path:
    """Write the error budget of a surrogate as one `.html` file: equation and picture, promise, parts of the error, explorer."""
    path = check_output(path, (".html",))
    n = len(budget.errors)
    bars, each = panels(draw_budget(budget))  # type: ignore[arg-type]
    worst = Table(
        ("the worst", *map(symbol, budget.names), "error", *(("bound",) if budget.bounds is not None else ())),
        tuple(_worst(budget, place, int(i)) for place, i in enumerate(budget.worst)),
        f"The parameters of the largest of {n} errors.",
    )
    sections = [
        Section("In short", (_short(budget),)),
        Section("Where the error comes from", (Figure((bars,), "From the least to the largest; the dot is the mean.", "bars on a logarithmic axis"), _parts(budget))),
        Section("Every fresh parameter", (Figure((each,), _sentence(promise_words(budget)), "errors in order of size, with their bounds"), worst)),
        Section("The surrogate", (_surrogate(surrogate), *_explorer(surrogate, title))),
    ]  # fmt: skip
    top = [Statement(tuple(_stated(surrogate, budget))), *_picture(surrogate, budget)]
    words = f"checked against {n} full solves it has never seen"
    return write_report(path, title, words, sections, top=top, command=command, facts=machine_facts())


def _stated(surrogate: Surrogate, budget: Budget) -> list[tuple[str, str]]:
    """The problem itself, or what the surrogate still knows of it."""
    if budget.problem is not None:
        return statement(budget.problem)
    learned = surrogate.provenance
    rows = [("equation", "".join(map(formula, learned.equation.split("; "))))] if learned.equation else []
    if learned.domain:
        rows.append(("domain", escape(learned.domain)))
    return [*rows, ("parameters", escape(str(surrogate.parameters.answered)))]


def _picture(surrogate: Surrogate, budget: Budget) -> list[Block]:
    """The answer at the worst of the fresh parameters; nothing where there are no places to draw at."""
    try:
        figure = plot_answer(surrogate(budget.mus[budget.worst[0]], extrapolate=True), size=IN_REPORTS)
    except ParasolError:
        return []
    shown = panels(figure)
    at = ", ".join(
        f"{symbol(name)} = {value:.4g}" for name, value in zip(budget.names, budget.mus[budget.worst[0]], strict=False)
    )
    caption = f"The answer at the worst of the fresh parameters{f', {at}' if at else ''}."
    return [Figure(shown, caption, "the field", columns=min(len(shown), 3))]


def _short(budget: Budget) -> str:
    text = _sentence(promise_words(budget))
    text += f" Relative errors of the answers against the full solver: {np.mean(budget.errors):.1e} on the mean, {np.max(budget.errors):.1e} at most."
    if budget.discretisation is not None:
        text += f" The full solver itself is off by about {budget.discretisation:.1e} against the equation"
        text += ", which the promise includes." if budget.total else "; that comes on top."
    if budget.n_failed:
        text += f" At {budget.n_failed} of the fresh parameters the full solver found no solution: they are left out."
    return text


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _parts(budget: Budget) -> Table:
    known: dict[str, np.ndarray | None] = {
        "projection": budget.projection_errors,
        "map": budget.map_errors,
        "error": budget.errors,
        "estimate": budget.estimates,
        "bound": budget.bounds,
    }
    rows: list[tuple[Cell, ...]] = []
    if budget.discretisation is not None:
        rows.append(("discretisation", None, None, budget.discretisation, _MEANING["discretisation"]))
    for name, values in known.items():
        if values is not None:
            numbers = (float(np.mean(values)), float(np.median(values)), float(np.max(values)))
            rows.append((name, *numbers, _MEANING[name]))
    caption = (
        "Relative errors, and what they are errors of. Squares of projection and map add up to those of the error."
    )
    return Table(("", "mean", "median", "largest", ""), tuple(rows), caption, alike=((1, 2, 3),))


def _worst(budget: Budget, place: int, i: int) -> tuple[Cell, ...]:
    values = budget.mus[i][: len(budget.names)].tolist()
    bound = () if budget.bounds is None else (float(budget.bounds[i]),)
    return (f"{place + 1}", *values, float(budget.errors[i]), *bound)


def _surrogate(surrogate: Surrogate) -> Table:
    rows = SurrogateReport(surrogate).rows()
    hidden = ("equation", "latex", "made", "made with", "file")
    return Table(
        ("", ""), tuple((name, words) for name, words in rows.items() if name not in hidden), "What is checked."
    )


def _explorer(surrogate: Surrogate, title: str) -> list[Block]:
    """The page with sliders, where it is small enough to travel with the report."""
    try:
        page = explore(surrogate, title=title).html
    except ParasolError:
        return []
    return [Embedded("Move the parameters yourself", page)] if len(page) <= EMBEDDED_CHARACTERS else []
