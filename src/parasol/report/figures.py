"""Pictures of solutions, steady and in time, of their errors, and of the nodes they live on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parasol.cache.disk import check_output
from parasol.checks import Progress
from parasol.delivery.answers import as_solution, check_fields
from parasol.pde.evolution import Evolution
from parasol.pde.steady import Solution
from parasol.report.animations import ANIMATION_SUFFIXES, animate
from parasol.report.canvas import (
    INKS,
    LEVEL,
    View,
    clock,
    colour_bar,
    colour_map,
    colours,
    frame,
    map_size,
    moments,
    outline,
    pieces,
    require_matplotlib,
    save_figure,
    title,
    views,
)
from parasol.runtime.answer import Answer
from parasol.space.geometry.axes import AXES
from parasol.space.node_quality import quality
from parasol.space.nodes import Nodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
_SIZE = 5.6  # inches
_MOMENTS = 5  # of a solution in time
_FINE = 6000  # points from which on a picture needs no refinement


def draw(solution: Solution | Evolution | Answer, path: str | Path, *, progress: Progress = None) -> Path:
    """Draw a solution, or the answer to one parameter, as `.png`, `.svg` or `.pdf`; a solution in time also as `.gif` or `.mp4`, which move.

    On a line curves, in the plane coloured maps, in space three cuts through the middle; one column per unknown, with
    the absolute error where the exact solution is known. In time five moments that share a scale, one row per unknown, on
    a line also a map over space and time. `progress` is called with the fraction of an animation that is done.
    """
    path = Path(path)
    if isinstance(solution, Answer):
        check_fields(solution.surrogate, path)
        solution = as_solution(solution)
    in_time = isinstance(solution, Evolution)
    if in_time and path.suffix.lower() in ANIMATION_SUFFIXES:
        return animate(solution, path, progress=progress)
    require_matplotlib()
    check_output(path, (*FIGURE_SUFFIXES, *(ANIMATION_SUFFIXES if in_time else ())))
    return save_figure(plot_solution(solution), path)


def plot_answer(answer: Answer, *, size: float = _SIZE) -> Figure:
    """The matplotlib figure of an answer to one parameter, which notebooks show; `size` of a picture in inches, at most."""
    check_fields(answer.surrogate, "a figure")
    return plot_solution(as_solution(answer), size=size)


def plot_solution(solution: Solution | Evolution, *, size: float = _SIZE) -> Figure:
    """The matplotlib figure of a solution; `size` of a picture in inches, at most."""
    figure = require_matplotlib()(layout="constrained")
    if solution.model.nodes.dimension > 1:
        _draw_maps(figure, solution, size)
    elif isinstance(solution, Evolution):
        _draw_lines_in_time(figure, solution, size)
    else:
        _draw_lines(figure, solution, size)
    figure.suptitle(title(solution), fontsize=11)
    return figure


def draw_nodes(nodes: Nodes, path: str | Path | None = None) -> Path | Figure:
    """Draw nodes coloured by nearest-neighbour distance over wanted spacing, with a histogram of it and its quality.

    Boundary nodes are marked by part. The suffix is `.png`, `.svg` or `.pdf`; without a path the figure itself is returned.
    """
    figure_class = require_matplotlib()
    path = None if path is None else check_output(path, FIGURE_SUFFIXES)
    figure = figure_class(figsize=(9.4, 4.6), layout="constrained")
    measured = quality(nodes)
    evenness = measured.nearest / nodes.spacing
    left, right = figure.add_gridspec(1, 2, width_ratios=(1.25, 1))
    if nodes.dimension == 3:
        from mpl_toolkits import mplot3d  # noqa: F401  registers the projection

    axes = figure.add_subplot(left, projection="3d" if nodes.dimension == 3 else None)
    [_nodes_on_line, _nodes_in_plane, _nodes_in_space][nodes.dimension - 1](figure, axes, nodes, evenness)
    if nodes.n_boundary:
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12)}
        legend = axes.legend(**place, fontsize=9, ncols=3, frameon=False, handletextpad=0.1)
        for handle in legend.legend_handles:
            handle.set_sizes([24])  # type: ignore[union-attr]

    histogram = figure.add_subplot(right)
    span = max(float(np.ptp(evenness)), 0.05)  # equal distances make one bar, not a picture of rounding
    centre = float(evenness.min() + evenness.max()) / 2
    histogram.hist(evenness, bins=40, range=(centre - 0.55 * span, centre + 0.55 * span), color=INKS[0])
    histogram.set(xlabel="nearest neighbour / wanted spacing", ylabel="nodes")
    histogram.spines[["top", "right"]].set_visible(False)
    numbers = [
        f"separation     {measured.separation:.3f}",
        f"fill distance  {measured.fill_distance:.3f}",
        f"ratio          {measured.ratio:.3f}",
        f"mean distance  {measured.mean_distance:.3f}",
    ]
    histogram.set_title("\n".join(numbers), family="monospace", fontsize=9, loc="left")
    figure.suptitle(
        f"{nodes.n_nodes} nodes: {nodes.n_interior} inside, {nodes.n_boundary} on the boundary", fontsize=11
    )
    return figure if path is None else save_figure(figure, path)


# ---- solutions -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Panel:
    """What is shown in one place: values at the nodes; errors have a sign here and are drawn without it."""

    label: str
    values: np.ndarray  # (n_nodes,)
    is_error: bool = False


def _panels(solution: Solution) -> list[list[_Panel]]:
    """Rows of panels: the unknowns, and their errors beneath; one unknown has its error beside it."""
    shown = [_Panel(name, values) for name, values in solution.fields.items()]
    exact = solution.exact
    if exact is None or not np.all(np.isfinite(exact)):
        return [shown]
    gaps = solution.model.layout.fields(solution.values - exact)
    errors = [_Panel(f"|{name} − exact|", gap, is_error=True) for name, gap in gaps.items()]
    return [shown, errors] if len(shown) > 1 else [[*shown, *errors]]


def _draw_lines(figure, solution: Solution, size: float) -> None:
    nodes, rows = solution.model.nodes, _panels(solution)
    x, joined = nodes.points[:, 0], pieces(nodes)
    figure.set_size_inches(size * len(rows[0]) + 0.9, 0.66 * size * len(rows) + 0.5)
    grid = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for axes, panel in zip(grid.flat, chain.from_iterable(rows), strict=True):
        values = panel.values
        if panel.is_error:
            values = np.where(values == 0, np.nan, np.abs(values))  # zero has no logarithm
        for piece in joined:
            axes.plot(x[piece], values[piece], color=INKS[1] if panel.is_error else INKS[0], lw=1.6)
        if panel.is_error and not np.all(np.isnan(values)):
            axes.set_yscale("log")
        axes.set(xlabel=str(solution.model.problem.coordinates[0]), title=panel.label)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)


def _draw_lines_in_time(figure, solution: Evolution, size: float) -> None:
    nodes, problem, say = solution.model.nodes, solution.model.problem, clock(solution)
    x, joined, shown = nodes.points[:, 0], pieces(nodes), moments(solution.times, _MOMENTS)
    inks = colour_map("sequential")(np.linspace(0.25, 0.8, len(shown)))  # neither end, which light or dark paper hides
    figure.set_size_inches(2 * size + 0.8, 0.75 * size * len(problem.names))
    grid = figure.subplots(len(problem.names), 2, squeeze=False)
    for (curves, whole), (name, values) in zip(grid, solution.fields.items(), strict=True):
        scale = colours(values)
        for piece in joined:
            for i, ink in zip(shown, inks, strict=True):
                label = say[i] if piece is joined[0] else None
                curves.plot(x[piece], values[i, piece], color=ink, lw=1.6, label=label)
            map_ = whole.pcolormesh(
                x[piece], solution.times, values[:, piece], shading="gouraud", rasterized=True, **scale
            )
        curves.legend(fontsize=8, frameon=False)
        curves.grid(alpha=0.25)
        curves.spines[["top", "right"]].set_visible(False)
        curves.set(xlabel=str(problem.coordinates[0]), title=name)
        whole.set(xlabel=str(problem.coordinates[0]), ylabel=str(problem.time), title=f"{name} in space and time")
        colour_bar(figure, whole, map_)


@dataclass(frozen=True, eq=False)
class _Strip:
    """Maps side by side that share a colour scale."""

    maps: list[tuple[str, View, np.ndarray]]  # label, where, values at the nodes
    is_error: bool = False


def _strips(solution: Solution | Evolution, shown: list[View]) -> list[list[_Strip]]:
    """Rows of strips, all rows with the same number of maps."""
    if isinstance(solution, Evolution):
        say, chosen = clock(solution), moments(solution.times, _MOMENTS)
        return [
            [_Strip([(f"{name}{view.place}, {say[i]}", view, values[i]) for i in chosen])]
            for name, values in solution.fields.items()
            for view in shown
        ]
    rows = _panels(solution)
    if len(shown) > 1:
        rows = [[panel] for row in rows for panel in row]
    return [
        [_Strip([(panel.label + view.place, view, panel.values) for view in shown], panel.is_error) for panel in row]
        for row in rows
    ]


def _draw_maps(figure, solution: Solution | Evolution, size: float = _SIZE) -> None:
    shown = views(solution.model)
    rows = _strips(solution, shown)
    n_columns = sum(len(strip.maps) for strip in rows[0])
    width, height = map_size(solution.model, shown, min(size, 13 / n_columns))
    # room for the numbers of colour bars, and for titles beneath labels
    figure.get_layout_engine().set(wspace=0.05 if len(rows[0]) > 1 else 0.02, hspace=0.06)
    figure.set_size_inches(n_columns * (width + 0.4) + 1.2 * len(rows[0]), len(rows) * (height + 0.7) + 0.5)
    for row, strips in zip(figure.subplots(len(rows), n_columns, squeeze=False), rows, strict=True):
        places = iter(row)
        for strip in strips:
            _draw_strip(figure, [next(places) for _ in strip.maps], strip, solution)


def _draw_strip(figure, places: list, strip: _Strip, solution: Solution | Evolution) -> None:
    nodes, in_time = solution.model.nodes, isinstance(solution, Evolution)
    sampled = [view.weights @ values for _, view, values in strip.maps]
    if strip.is_error:
        sampled = [np.abs(values) for values in sampled]
    smooth = [_smooth(view, v, strip.is_error) for (_, view, _), v in zip(strip.maps, sampled, strict=True)]
    scale = colours(np.concatenate([values for _, values in smooth]))
    scale |= {"cmap": colour_map("sequential"), "vmin": 0.0} if strip.is_error else {}
    for axes, (label, view, _), (mesh, values) in zip(places, strip.maps, smooth, strict=True):
        map_ = axes.tripcolor(mesh, values, shading="gouraud", rasterized=True, **scale)
        if nodes.dimension == 2:
            if not strip.is_error and np.ptp(values) > 0:
                # an even number of levels leaves out zero, which is often the whole boundary
                levels = np.linspace(scale["vmin"], scale["vmax"], 14)[1:-1]
                levels = levels[(levels > values.min()) & (levels < values.max())]
                axes.tricontour(
                    mesh, values, levels=levels, colors=LEVEL, linewidths=0.4, alpha=0.6, linestyles="solid"
                )
            outline(axes, nodes.domain)
        frame(axes, [str(c) for c in solution.model.problem.coordinates], nodes.domain, view.across)
        axes.set_title(label, fontsize=12 if len(places) == 1 else 10)
        if in_time and axes is not places[0]:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
    colour_bar(figure, places[-1], map_)


def _smooth(view: View, values: np.ndarray, flat: bool):
    """A triangulation to draw and the values at its points: refined by a cubic through the nodes where that pays."""
    from matplotlib.tri import CubicTriInterpolator, UniformTriRefiner

    if flat or view.place or len(values) > _FINE:
        return view.mesh, values
    cubic = CubicTriInterpolator(view.mesh, values, kind="geom")
    return UniformTriRefiner(view.mesh).refine_field(values, triinterpolator=cubic, subdiv=2)


# ---- nodes ---------------------------------------------------------------------------------------------------------
_EVENNESS = "nearest neighbour / wanted spacing"


def _parts(nodes: Nodes) -> Iterator[tuple[np.ndarray, dict]]:
    """The nodes (m,) of each part of the boundary that has any, and how they are drawn."""
    for j, name in enumerate(nodes.domain.part_names):
        chosen = nodes.n_interior + np.flatnonzero(nodes.part == j)
        if len(chosen):
            style = {
                "marker": "os^vDP*X"[j % 8],
                "color": INKS[(j + 1) % len(INKS)],
                "label": f"{name} ({len(chosen)})",
            }
            yield chosen, style | {"linewidths": 0}


def _nodes_on_line(figure, axes, nodes: Nodes, evenness: np.ndarray) -> None:
    axes.plot(nodes.interior[:, 0], evenness[: nodes.n_interior], ".", color=INKS[0])
    for chosen, style in _parts(nodes):
        axes.scatter(nodes.points[chosen, 0], evenness[chosen], **style)
    axes.set(xlabel="x", ylabel=_EVENNESS, ylim=(0, 1.2 * evenness.max()))
    axes.spines[["top", "right"]].set_visible(False)


def _nodes_in_plane(figure, axes, nodes: Nodes, evenness: np.ndarray) -> None:
    size = float(np.clip(9000 / nodes.n_nodes, 0.5, 14))
    outline(axes, nodes.domain, lw=0.5)
    dots = axes.scatter(
        *nodes.interior.T, c=evenness[: nodes.n_interior], s=size, cmap=colour_map("sequential"), linewidths=0
    )
    for chosen, style in _parts(nodes):
        axes.scatter(*nodes.points[chosen].T, s=size, **style)
    frame(axes, AXES[:2], nodes.domain)
    colour_bar(figure, axes, dots, _EVENNESS)


def _nodes_in_space(figure, axes, nodes: Nodes, evenness: np.ndarray) -> None:
    size = float(np.clip(20000 / nodes.n_nodes, 1, 14))
    middle = nodes.domain.bounds.mean(axis=0)[1]
    behind = nodes.points[:, 1] >= middle  # the half towards the reader is taken away
    shown = np.flatnonzero(behind[: nodes.n_interior])
    dots = axes.scatter(*nodes.points[shown].T, c=evenness[shown], s=size, cmap=colour_map("sequential"), linewidths=0)
    for chosen, style in _parts(nodes):
        axes.scatter(*nodes.points[chosen[behind[chosen]]].T, s=size, alpha=0.6, **style)
    axes.set(xlabel="x", ylabel="y", zlabel="z", title=f"the half with y ≥ {middle:.3g}")
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.get_major_locator().set_params(nbins=4)
    axes.set_box_aspect(np.ptp(nodes.domain.bounds, axis=0) * (1, 0.5, 1))
    figure.colorbar(dots, ax=axes, shrink=0.7, label=_EVENNESS)
