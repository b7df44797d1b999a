"""The error budget as a picture: what each part contributes, and every fresh parameter with its bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parasol.cache.disk import check_output, replacing
from parasol.report.budget.check import Budget
from parasol.report.canvas import INK, require_matplotlib
from parasol.report.figures import FIGURE_SUFFIXES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST = 1e-16  # what is smaller is drawn here: a logarithm has no zero


def draw_budget(budget: Budget, path: str | Path | None = None) -> Path | Figure:
    """Draw the budget: parts of the error from mean to largest on the left, sorted errors and their bounds on the right.

    The suffix is `.png`, `.svg` or `.pdf`; without a path the figure itself is returned, for a notebook.
    """
    figure_class = require_matplotlib()
    path = None if path is None else check_output(path, FIGURE_SUFFIXES)
    figure = figure_class(figsize=(10.5, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    _parts(left, budget)
    _errors(right, budget)
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("the promise holds" if budget.holds else budget.broken, fontsize=11)
    if path is None:
        return figure
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, bbox_inches="tight", pad_inches=0.12)
    return path


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
    known = [e for e in (budget.refinement, budget.kernel) if e is not None]
    if known:
        rows.insert(0, ("discretisation", np.array(known)))
    for place, (_, values) in enumerate(reversed(rows)):
        finite = np.maximum(values[np.isfinite(values)], _LEAST)
        if not len(finite):
            continue
        axes.plot([finite.min(), finite.max()], [place, place], color="C0", lw=6, alpha=0.35, solid_capstyle="round")
        axes.plot(np.mean(finite), place, "o", color="C0", mec="white", ms=8)
    axes.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)])
    axes.set(xscale="log", xlabel="relative error: least, mean, largest", ylim=(-0.6, len(rows) - 0.4))
    _promise(axes.axvline, budget)


def _errors(axes, budget: Budget) -> None:
    order = np.argsort(budget.errors)
    place = np.arange(1, len(order) + 1)
    axes.plot(place, np.maximum(budget.errors[order], _LEAST), ".", color="C0", label="error")
    if budget.estimates is not None:
        axes.plot(place, np.maximum(budget.estimates[order], _LEAST), "x", color="C2", ms=4, label="estimate")
    if budget.bounds is not None:
        axes.plot(place, np.maximum(budget.bounds[order], _LEAST), "_", color="C1", ms=8, label="bound")
    axes.set(yscale="log", xlabel="fresh parameters, by error", ylabel="relative error")
    _promise(axes.axhline, budget)
    axes.legend(fontsize=9, frameon=False)


def _promise(line, budget: Budget) -> None:
    if budget.tolerance is not None:
        line(budget.tolerance, color=INK, lw=0.9, ls=(0, (4, 3)), label="promised")
