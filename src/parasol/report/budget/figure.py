"""The error budget as a picture: what each part contributes, and every fresh parameter with its bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parasol.cache.disk import check_output
from parasol.report.budget.check import Budget
from parasol.report.canvas import INK, INKS, require_matplotlib, save_figure
from parasol.report.figures import FIGURE_SUFFIXES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST = 1e-16  # what is smaller is drawn here: a logarithm has no zero


def draw_budget(budget: Budget, path: str | Path | None = None) -> Path | Figure:
    """Draw the budget: parts of the error from least to largest on the left, sorted errors and their bounds on the right.

    Errors above the promise are marked, and the title counts them. The suffix is `.png`, `.svg` or `.pdf`; without a path
    the figure itself is returned, for a notebook.
    """
    figure_class = require_matplotlib()
    path = None if path is None else check_output(path, FIGURE_SUFFIXES)
    figure = figure_class(figsize=(9.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _parts(left, budget)
    _errors(right, budget)
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(promise_words(budget), fontsize=11)
    return figure if path is None else save_figure(figure, path)


def promise_words(budget: Budget) -> str:
    """The verdict as a sentence of its own."""
    alone = not budget.verdict.startswith(("holds", "does not hold"))
    return budget.verdict if alone else f"the promise {budget.verdict}"


def _parts(axes, budget: Budget) -> None:
    rows: list[tuple[str, np.ndarray]] = [
        ("projection", budget.projection_errors),
        ("map", budget.map_errors),
        ("error", budget.errors),
    ]
    if budget.estimates is not None:
        rows.append(("estimate", budget.estimates))
    if budget.bounds is not None:
        rows.append(("bound", budget.bounds))
    known = [e for e in (budget.refinement, budget.kernel, budget.residual) if e is not None]
    if known:
        rows.insert(0, ("discretisation", np.array(known)))
    for place, (_, values) in enumerate(reversed(rows)):
        finite = np.maximum(values[np.isfinite(values)], _LEAST)
        if not len(finite):
            continue
        axes.plot([finite.min(), finite.max()], [place, place], color=INKS[0], lw=6, alpha=0.35, solid_capstyle="round")
        axes.plot(np.mean(finite), place, "o", color=INKS[0], mec="white", ms=8)
    axes.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)])
    axes.set(xscale="log", xlabel="relative error: least, mean, largest", ylim=(-0.6, len(rows) - 0.4))
    _promise(axes.axvline, budget)


def _errors(axes, budget: Budget) -> None:
    order = np.argsort(budget.errors)
    place = np.arange(1, len(order) + 1)
    errors = budget.errors[order]
    axes.plot(place, np.maximum(errors, _LEAST), ".", ms=7, color=INKS[0], label="error")
    if budget.estimates is not None:
        axes.plot(place, np.maximum(budget.estimates[order], _LEAST), "x", color=INKS[2], ms=4, label="estimate")
    if budget.bounds is not None:
        shown = np.where(np.isfinite(budget.bounds[order]), budget.bounds[order], np.nan)
        axes.plot(place, np.maximum(shown, _LEAST), "_", color=INKS[3], ms=8, label="bound")
    n_above = budget.n_above  # the largest ones, for they are sorted
    if n_above:
        label = f"{n_above} above the promise"
        axes.plot(place[-n_above:], np.maximum(errors[-n_above:], _LEAST), "o", ms=9, mfc="none", mec=INKS[1], mew=1.6, label=label)  # fmt: skip
    axes.set(yscale="log", xlabel="fresh parameters, by error", ylabel="relative error")
    axes.xaxis.get_major_locator().set_params(integer=True)
    _promise(axes.axhline, budget)
    axes.legend(fontsize=9, frameon=False)


def _promise(line, budget: Budget) -> None:
    """The promised tolerance; where it includes the discretisation, what that leaves for the surrogate."""
    if budget.tolerance is None:
        return
    left = budget.tolerance - (budget.discretisation or 0.0 if budget.total else 0.0)
    if left > 0:
        label = "promised" if not budget.total else "promised, less the discretisation"
        line(left, color=INK, lw=0.9, ls=(0, (4, 3)), label=label)
