"""The figures of solutions: solvers beside the full solution, moments in time, cuts, functions on the sphere.

Each is returned, or written to a `.png`, `.svg` or `.pdf` where a path is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import RBFInterpolator

from parasol.cache import check_output
from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.pde import Evolution, Solution
from parasol.report import (
    FIGURE_SUFFIXES,
    INK,
    INKS,
    LEVEL,
    View,
    clock,
    colour_bar,
    colour_map,
    colours,
    frame,
    map_size,
    outline,
    require_matplotlib,
    save_figure,
    title,
    views,
)
from parasol.space import Nodes

_FINE = 3000  # points from which on a map needs no refinement
_NEIGHBOURS = 60  # nodes of a sphere that a point of a picture of it gets its value from
_UNLIKE = 10.0  # times the least of several errors: beyond, their common scale is logarithmic
_DECADES = 2.5  # of such a scale beneath the least of the errors


# ---- solutions and errors ------------------------------------------------------------------------------------------
def draw_solvers(
    reference: Solution,
    predictions: Mapping[str, np.ndarray],
    path: str | Path | None = None,
    *,
    name: str = "RBF-FD",
    reference_error: np.ndarray | None = None,
) -> Any:
    """Draw what several solvers say in the plane, a row each: solution and absolute error |prediction − reference|.

    The first row is the full solution, called `name`, beside its nodes, or beside its own error (n_nodes,) where that is
    given. `predictions` are (n_nodes,) by the names of their solvers. Solutions share a scale, and so do errors: it is
    logarithmic where they differ much.
    """
    full, rows, figure, path = _begin(reference, predictions, path, dimension=2)
    nodes, unknown, shown = reference.model.nodes, reference.model.problem.names[0], views(reference.model)
    width, height = map_size(reference.model, shown, 3.3)
    figure.set_size_inches(2 * (width + 1.3), (1 + len(rows)) * (height + 0.5) + 0.4)
    figure.get_layout_engine().set(wspace=0.07, hspace=0.03)
    grid = figure.subplots(1 + len(rows), 2)
    scale = colours(full)
    gaps = {label: values - full for label, values in rows.items()}
    if reference_error is not None:
        gaps[name] = check_finite(check_shape(reference_error, full.shape, "reference_error"), "reference_error")
    ends = _error_scale(list(gaps.values()))
    _strip(figure, grid[0, :1], reference, shown, full, f"{name}: {unknown}", scale)
    if reference_error is None:
        _nodes(grid[0, 1], nodes)
    else:
        _strip(figure, grid[0, 1:], reference, shown, gaps[name], f"{name}: error {_size(gaps[name], full):.1e}", ends, is_error=True)  # fmt: skip
    for places, (label, values) in zip(grid[1:], rows.items(), strict=True):
        _strip(figure, places[:1], reference, shown, values, f"{label}: {unknown}", scale)
        text = f"{label}: error {_size(gaps[label], full):.1e}"
        _strip(figure, places[1:], reference, shown, gaps[label], text, ends, is_error=True)
    figure.suptitle(title(reference), fontsize=11)
    return ended(figure, path)


def draw_cuts(
    reference: Solution, predictions: Mapping[str, np.ndarray], path: str | Path | None = None, *, name: str = "RBF-FD"
) -> Any:
    """Draw what several solvers say in space on three cuts through the middle, two rows each: solution, absolute error.

    The first row is the full solution, called `name`. `predictions` are (n_nodes,) by the names of their solvers; more
    than two of them show their errors only, for their solutions look the same.
    """
    full, rows, figure, path = _begin(reference, predictions, path, dimension=3)
    unknown, shown = reference.model.problem.names[0], views(reference.model)
    width, height = map_size(reference.model, shown, 2.6)
    each = 2 if len(rows) <= 2 else 1
    figure.set_size_inches(3 * (width + 0.6) + 0.9, (1 + each * len(rows)) * (height + 0.6) + 0.6)
    figure.get_layout_engine().set(wspace=0.02, hspace=0.03)
    grid = figure.subplots(1 + each * len(rows), 3)
    scale = colours(np.concatenate([view.weights @ full for view in shown]))
    _strip(figure, grid[0], reference, shown, full, f"{name}: {unknown}", scale)
    sampled = [view.weights @ (values - full) for values in rows.values() for view in shown]
    ends = _error_scale(sampled if len(rows) > 1 else [np.concatenate(sampled)])
    for i, (label, values) in enumerate(rows.items()):
        if each == 2:
            _strip(figure, grid[1 + 2 * i], reference, shown, values, f"{label}: {unknown}", scale)
        _strip(figure, grid[each * (i + 1)], reference, shown, values - full, f"{label}: |error|", ends, is_error=True)
    errors = [f"{label} {_size(values - full, full):.1e}" for label, values in rows.items()]
    figure.suptitle(f"{title(reference)}\nrelative errors: {', '.join(errors)}", fontsize=11)
    return ended(figure, path)


def draw_in_time(
    reference: Evolution,
    prediction: np.ndarray,
    path: str | Path | None = None,
    *,
    times: Sequence[float] = (2.5, 5.0, 7.5, 10.0),
    name: str = "full solution",
    label: str = "POD-DNN",
) -> Any:
    """Draw a solution in time in the plane, a row per moment: full solution, prediction, absolute error.

    The first row is the initial state, the relative error ‖prediction − full‖₂ / ‖full‖₂ at every stored time, and the
    absolute error of the initial state.
    `prediction` has the shape of `reference.values`, (n_times, n_nodes), or is flat like `reference.flat`. Solutions
    share a scale, and so do errors: how they grow is what there is to see.
    """
    full, rows, figure, path = _begin(reference, {label: prediction}, path, dimension=2)
    predicted, model, say = rows[label], reference.model, clock(reference)
    chosen = [_stored(reference.times, t) for t in times]
    if not chosen:
        raise InputError("there is no time to draw. Give some, such as times=(2.5, 5, 7.5, 10).")
    shown = views(model)
    width, height = map_size(model, shown, 2.7)
    figure.set_size_inches(3 * (width + 0.85), (1 + len(chosen)) * (height + 0.25) + 0.6)
    figure.get_layout_engine().set(wspace=0.06, hspace=0.02)
    places = figure.add_gridspec(1 + len(chosen), 3)
    grid = np.array([[figure.add_subplot(places[i, j]) for j in range(3)] for i in range(1, 1 + len(chosen))])
    scale = colours(full[[0, *chosen]])
    first, between, last = (figure.add_subplot(places[0, j]) for j in range(3))
    _strip(figure, [first], reference, shown, full[0], f"initial state, {say[0]}", scale)
    _error_in_time(between, reference, predicted - full, full, chosen)
    ends = _error_scale([predicted[chosen] - full[chosen]])
    for axes, i in zip([last, *grid[:, 2]], [0, *chosen], strict=True):
        gap = predicted[i] - full[i]
        most = f", at most {np.abs(gap).max():.1e}" if np.any(gap) else ": none"
        _strip(figure, [axes], reference, shown, gap, f"|error|, {say[i]}{most}", ends, is_error=True)
    for (left, middle, _), i in zip(grid, chosen, strict=True):
        _strip(figure, [left], reference, shown, full[i], f"{name}, {say[i]}", scale)
        _strip(figure, [middle], reference, shown, predicted[i], f"{label}, {say[i]}", scale)
    for axes in [first, last, *grid[:-1].flat]:
        axes.set_xlabel("")
    for axes in [last, *grid[:, 1:].flat]:
        axes.set_ylabel("")
    figure.suptitle(title(reference), fontsize=11)
    return ended(figure, path)


def _error_in_time(axes, reference: Evolution, gap: np.ndarray, full: np.ndarray, chosen: list[int]):
    sizes = np.linalg.norm(full, axis=1)
    errors = np.linalg.norm(gap, axis=1) / np.where(sizes > 0, sizes, 1.0)
    errors = np.where(errors > 0, errors, np.nan)  # zero has no logarithm
    axes.plot(reference.times, errors, color=INKS[1], lw=1.6)
    axes.plot(reference.times[chosen], errors[chosen], "o", color=INKS[1], ms=5)
    if not np.all(np.isnan(errors)):
        axes.set_yscale("log")
    axes.set(xlabel=str(reference.model.problem.time))
    axes.set_title(f"relative error, in all {_size(gap, full):.1e}", fontsize=10)
    plain(axes)


def _begin(
    reference: Solution | Evolution, predictions: Mapping[str, np.ndarray], path: str | Path | None, *, dimension: int
) -> tuple[np.ndarray, dict[str, np.ndarray], Any, Path | None]:
    """The full solution, the predictions in its shape, an empty figure and the path; or a clear error."""
    model = reference.model
    if model.nodes.dimension != dimension:
        raise InputError(
            f"the nodes have {model.nodes.dimension} coordinates, this figure is for {dimension}. "
            f"Use draw_solvers or draw_in_time in the plane, draw_cuts in space."
        )
    if len(model.problem.names) > 1:
        names = ", ".join(model.problem.names)
        raise InputError(f"the problem has several unknowns: {names}. These figures show one; use draw for all.")
    full = np.asarray(reference.values, dtype=float)
    rows = {}
    for label, values in predictions.items():
        values = np.asarray(values, dtype=float)
        if values.size == full.size and full.ndim == 2:  # flat in time
            values = values.reshape(full.shape)
        rows[label] = check_finite(check_shape(values, full.shape, f"prediction of {label}"), f"prediction of {label}")
    if not rows:
        raise InputError("there is no prediction to draw. Give a mapping of solvers to values at the nodes.")
    figure_class = require_matplotlib()
    return full, rows, figure_class(layout="constrained"), checked(path)


def _strip(
    figure, places, reference, shown: list[View], values, text: str, scale: dict, *, is_error: bool = False
) -> None:
    """Values at the nodes on each of the views, with one colour bar; errors are shown without their sign."""
    sampled = [view.weights @ values for view in shown]
    if is_error:  # a logarithm shows what is too small for it as its least
        sampled = [np.maximum(np.abs(one), scale["norm"].vmin) for one in sampled]
    nodes, names = reference.model.nodes, [str(c) for c in reference.model.problem.coordinates]
    for axes, view, one in zip(places, shown, sampled, strict=True):
        mesh, fine = (view.mesh, one) if is_error or view.place or len(one) > _FINE else _refined(view.mesh, one)
        coloured = axes.tripcolor(mesh, fine, shading="gouraud", rasterized=True, **scale)
        if not is_error and np.ptp(fine) > 0 and not view.place:
            levels = np.linspace(scale["vmin"], scale["vmax"], 14)[1:-1]  # an even number leaves out zero
            levels = levels[(levels > fine.min()) & (levels < fine.max())]
            lines = axes.tricontour(
                mesh, fine, levels=levels, colors=LEVEL, linewidths=0.4, alpha=0.6, linestyles="solid"
            )
            lines.set_rasterized(True)
        if not view.place:
            outline(axes, nodes.domain)
        frame(axes, names, nodes.domain, view.across)
        axes.set_title(text + view.place, fontsize=10)
    colour_bar(figure, places[-1], coloured)


def _refined(mesh, values: np.ndarray):
    from matplotlib.tri import CubicTriInterpolator, UniformTriRefiner

    cubic = CubicTriInterpolator(mesh, values, kind="geom")
    return UniformTriRefiner(mesh).refine_field(values, triinterpolator=cubic, subdiv=2)


def _nodes(axes, nodes: Nodes) -> None:
    size = float(np.clip(6000 / nodes.n_nodes, 0.5, 9))
    outline(axes, nodes.domain, lw=0.5)
    axes.scatter(*nodes.interior.T, s=size, c=INKS[0], linewidths=0)
    axes.scatter(*nodes.boundary.T, s=size, c=INKS[1], linewidths=0)
    frame(axes, "xy", nodes.domain)
    axes.set_title(f"{nodes.n_nodes} nodes: {nodes.n_interior} inside, {nodes.n_boundary} on the boundary", fontsize=10)


def _error_scale(errors: Sequence[np.ndarray]) -> dict:
    """One scale for all errors of a figure: from zero, or logarithmic where the largest of one are far above another's."""
    from matplotlib.colors import LogNorm, Normalize

    largest = [float(np.abs(one).max()) for one in errors]
    most = max(largest) or 1.0
    least = min((size for size in largest if size > 0), default=most)
    if most <= _UNLIKE * least:
        return {"cmap": colour_map("sequential"), "norm": Normalize(0.0, most)}
    return {"cmap": colour_map("sequential"), "norm": LogNorm(least / 10**_DECADES, most)}


def _size(gap: np.ndarray, full: np.ndarray) -> float:
    """‖gap‖₂ / ‖full‖₂."""
    return float(np.linalg.norm(gap) / (np.linalg.norm(full) or 1.0))


def _stored(times: np.ndarray, t: float) -> int:
    nearest = int(np.abs(times - t).argmin())
    if abs(times[nearest] - t) > 1e-9 * max(1.0, abs(t)):
        raise InputError(f"t={t:g} is not a stored time. The nearest is {times[nearest]:g}.")
    return nearest


# ---- functions on the sphere ---------------------------------------------------------------------------------------
def draw_on_sphere(nodes: Nodes, samples: np.ndarray, path: str | Path | None = None, *, name: str = "f") -> Any:
    """Draw the nodes of a ball and samples of a function on its boundary, (n_samples, n_boundary), as globes.

    All are seen from y < 0, a little from above; of the nodes the half behind the cut y = 0 is shown, the rim of the cut
    dashed. Between the boundary nodes the function is a cubic spline through the nearest.
    """
    samples = check_finite(check_shape(samples, (None, nodes.n_boundary), "samples"), "samples")
    if nodes.dimension != 3 or not nodes.n_boundary:
        raise InputError(f"{nodes!r} are not the nodes of a ball. Give nodes in space with a boundary.")
    middle, radius = nodes.domain.bounds.mean(axis=0), float(np.ptp(nodes.domain.bounds[:, 0])) / 2
    directions = (nodes.boundary - middle) / radius
    if np.abs(np.linalg.norm(directions, axis=1) - 1).max() > 1e-6:
        raise InputError("the boundary nodes do not lie on a sphere. Use draw for functions on other boundaries.")
    figure_class = require_matplotlib()
    path = checked(path)
    figure = figure_class(figsize=(3.1 * (1 + len(samples)) + 0.7, 3.6), layout="constrained")
    first, *places = figure.subplots(1, 1 + len(samples))
    screen = _screen(np.array([-0.35, -0.85, 0.40]))
    toward = screen[2]
    _half_ball(first, nodes, (nodes.points - middle) / radius, screen)
    disc, mesh = _disc()
    seen = np.column_stack([disc, np.sqrt(np.maximum(0, 1 - np.sum(disc**2, axis=1)))]) @ screen
    neighbours = min(_NEIGHBOURS, nodes.n_boundary)
    values = RBFInterpolator(directions, samples.T, neighbors=neighbours, kernel="cubic", degree=1)(seen).T
    scale = colours(values)
    front = directions @ toward > 0.02
    for i, (axes, shown) in enumerate(zip(places, values, strict=True)):
        coloured = axes.tripcolor(mesh, shown, shading="gouraud", rasterized=True, **scale)
        axes.scatter(*(directions[front] @ screen[:2].T).T, s=2, c="black", alpha=0.35, linewidths=0)
        for line in _graticule():
            flat, depth = line @ screen[:2].T, line @ toward
            axes.plot(*np.where(depth[:, None] > 0, flat, np.nan).T, color=INK, lw=0.4, alpha=0.5)
        _limb(axes)
        axes.set_title(f"{name}, sample {i + 1}", fontsize=10)
    colour_bar(figure, axes, coloured)
    return ended(figure, path)


def _screen(toward: np.ndarray) -> np.ndarray:
    """A turned frame (3, 3) for a picture: rows point right, up, and towards the reader."""
    toward = toward / np.linalg.norm(toward)
    right = np.cross([0.0, 0.0, 1.0], toward)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(toward, right), toward])


def _half_ball(axes, nodes: Nodes, places: np.ndarray, screen: np.ndarray) -> None:
    """The nodes with y ≥ 0, places in the unit ball (n_nodes, 3), the nearer the darker, and the rim of the cut."""
    seen = places @ screen.T
    size = float(np.clip(12000 / nodes.n_nodes, 1, 9))
    inside = np.arange(nodes.n_nodes) < nodes.n_interior
    for chosen, ink, label in ((~inside, INKS[1], "on the sphere"), (inside, INKS[0], "inside")):
        shown = np.flatnonzero(chosen & (places[:, 1] >= 0))
        shown = shown[np.argsort(seen[shown, 2])]
        near = np.clip(0.35 + 0.65 * (seen[shown, 2] + 1) / 1.6, 0, 1)
        text = f"{np.count_nonzero(chosen)} {label}"
        axes.scatter(seen[shown, 0], seen[shown, 1], s=size, c=ink, alpha=near, linewidths=0, label=text)
    turn = np.linspace(0, 2 * np.pi, 200)
    rim = np.column_stack([np.cos(turn), np.zeros_like(turn), np.sin(turn)]) @ screen.T
    axes.plot(rim[:, 0], rim[:, 1], color=INK, lw=0.7, ls=(0, (4, 3)))
    _limb(axes)
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.03), ncols=2, handletextpad=0.1)
    axes.set_title(f"{nodes.n_nodes} nodes, those with y ≥ 0", fontsize=10)


def _limb(axes) -> None:
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color=INK, lw=0.9)
    axes.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
    axes.set_axis_off()


def _disc(n_rings: int = 60):
    """Points of the unit disc (n, 2), closer together near the rim, where a globe is steep, and their triangulation."""
    from matplotlib.tri import Triangulation

    points = [np.zeros((1, 2))]
    for ring in range(1, n_rings + 1):
        angle = np.arange(6 * ring) * (2 * np.pi / (6 * ring))
        points.append(np.sin(np.pi / 2 * ring / n_rings) * np.column_stack([np.cos(angle), np.sin(angle)]))
    disc = np.concatenate(points)
    return disc, Triangulation(*disc.T)


def _graticule() -> list[np.ndarray]:
    """Meridians and parallels every 30 degrees, each (n, 3)."""
    turn, lines = np.linspace(0, 2 * np.pi, 241), []
    for angle in np.radians([-60, -30, 0, 30, 60]):
        ring = np.column_stack([np.cos(turn), np.sin(turn)]) * np.cos(angle)
        lines.append(np.column_stack([ring, np.full(len(turn), np.sin(angle))]))
    for angle in np.radians(range(0, 180, 30)):
        across = np.cos(turn)
        lines.append(np.column_stack([across * np.cos(angle), across * np.sin(angle), np.sin(turn)]))
    return lines


# ---- what figures share ----------------------------------------------------------------------------------------------
def plain(axes) -> None:
    """A pale grid, and no frame where nothing is measured."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def checked(path: str | Path | None) -> Path | None:
    """The path, if a figure can be written there."""
    return None if path is None else check_output(path, FIGURE_SUFFIXES)


def ended(figure: Any, path: Path | None) -> Any:
    """The figure, or where it was written."""
    return figure if path is None else save_figure(figure, path)
