"""The figures of how good solvers are: error against full solves spent, and where the error comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parasol.errors import InputError
from parasol.report import INK, INKS, require_matplotlib
from parasol_lab.paper.panels import checked, ended, plain

_MARKS = "osD^vPX"  # beside the colours, for those who see no colours


def draw_efficiency(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    path: str | Path | None = None,
    *,
    floors: Mapping[str, float] | None = None,
    error: str = "mean relative error on the test set",
) -> Any:
    """Draw error against number of full solves, both logarithmic: one curve (n_solves, errors) per method.

    A method known at one point only, such as a number quoted from a paper, is a lone open mark. `floors` are dashed lines
    no curve of its kind can pass, such as the projection error. What is not positive and finite is left out.
    """
    curves = {label: _positive(label, *pair) for label, pair in series.items()}
    curves = {label: curve for label, curve in curves.items() if len(curve[0])}
    if not curves:
        raise InputError("there is nothing positive to draw. Give a mapping of labels to (n_solves, errors).")
    figure_class = require_matplotlib()
    path = checked(path)
    figure = figure_class(figsize=(4.8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log")
    for i, (label, (n_solves, errors)) in enumerate(curves.items()):
        ink, mark = INKS[i % len(INKS)], _MARKS[i % len(_MARKS)]
        style: dict[str, Any] = {"color": ink, "marker": mark, "lw": 1.8, "ms": 5.5, "label": label, "zorder": 3}
        if len(n_solves) == 1:
            style |= {"ls": "", "ms": 9, "mfc": "white", "mew": 1.8, "zorder": 4}
        axes.plot(n_solves, errors, **style)
    for label, floor in (floors or {}).items():
        if not (np.isfinite(floor) and floor > 0):
            raise InputError(f"the floor {label!r} is {floor!r}. Give a positive number.")
        axes.axhline(floor, color=INK, lw=1.0, ls=(0, (5, 3)), zorder=1, label=f"{label}: {floor:.1e}")
    axes.set(xlabel="full solves used", ylabel=error)
    axes.margins(0.06)
    _few_solves(axes)
    plain(axes)
    axes.grid(which="minor", alpha=0.1)
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=min(2, len(curves)), fontsize=9, frameon=False)
    return ended(figure, path)


def _positive(label: str, n_solves, errors) -> tuple[np.ndarray, np.ndarray]:
    """The points of a curve a logarithm can show, in order of the number of solves."""
    n_solves, errors = np.atleast_1d(np.asarray(n_solves, float)), np.atleast_1d(np.asarray(errors, float))
    if n_solves.ndim != 1 or n_solves.shape != errors.shape:
        raise InputError(f"{label!r} has {n_solves.size} numbers of solves and {errors.size} errors. Give as many.")
    known = (n_solves > 0) & (errors > 0) & np.isfinite(n_solves) & np.isfinite(errors)
    order = np.argsort(n_solves[known], kind="stable")
    return n_solves[known][order], errors[known][order]


def _few_solves(axes) -> None:
    """Numbers of solves as people write them: 10, 30, 100, not powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_xlim()
    subs = (1.0,) if high / low > 3000 else (1.0, 3.0) if high / low > 30 else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def draw_budget(budgets: Mapping[str, Mapping[str, float | None]], path: str | Path | None = None) -> Any:
    """Draw where each solver's error comes from: bars on a logarithmic axis, their numbers beside them.

    `budgets` maps solvers to parts of their error, such as discretisation, projection and network; a part that is None
    or missing has no bar. Zero and what is not finite are refused: a logarithm has no place for them.
    """
    for solver, parts in budgets.items():
        for part, value in parts.items():
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InputError(f"the part {part!r} of {solver!r} is {value!r}. Give a positive number, or None.")
    kinds = list(dict.fromkeys(part for parts in budgets.values() for part in parts))
    known = [v for parts in budgets.values() for v in parts.values() if v is not None]
    if not known:
        raise InputError("there is no error to draw. Give a mapping of solvers to parts of their error.")
    figure_class = require_matplotlib()
    path = checked(path)
    bars = [(s, part) for s, parts in budgets.items() for part in kinds if parts.get(part) is not None]
    figure = figure_class(figsize=(4.8, 1.4 + 0.24 * len(bars) + 0.2 * len(budgets)), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    low = 10.0 ** np.floor(np.log10(min(known)) - 0.3)
    place, centres, seen = 0.0, {}, set()
    for solver, parts in budgets.items():
        begin = place
        for part in kinds:
            value = parts.get(part)
            if value is None:
                continue
            ink = INKS[kinds.index(part) % len(INKS)]
            axes.barh(
                place, value - low, left=low, height=0.82, color=ink, label=None if part in seen else part, zorder=2
            )
            axes.annotate(
                f"{value:.1e}", (value, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9
            )
            seen.add(part)
            place += 1
        if place > begin:
            centres[solver] = (begin + place - 1) / 2
            place += 0.8
    axes.set_yticks(list(centres.values()), [solver.replace(", ", ",\n") for solver in centres])
    axes.set(xlim=(low, 12 * max(known)), ylim=(place - 1.1, -0.7), xlabel="relative error")
    axes.tick_params(axis="y", length=0)
    plain(axes)
    axes.grid(visible=False, axis="y")
    order = {part: i for i, part in enumerate(kinds)}
    handles, labels = axes.get_legend_handles_labels()
    pairs = sorted(zip(handles, labels, strict=True), key=lambda pair: order[pair[1]])
    place = {"loc": "lower center", "bbox_to_anchor": (0.4, 1.0), "ncols": len(pairs)}
    axes.legend(*zip(*pairs, strict=True), **place, fontsize=9, frameon=False, columnspacing=1.2)
    return ended(figure, path)
