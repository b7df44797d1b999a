"""Pictures of solutions, their errors and the nodes they live on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from parasol.checks import ParasolError
from parasol.delivery.files import check_output, replacing, triangulate, wrapped_cells
from parasol.pde.problem import axis_names
from parasol.pde.steady import Solution, describe
from parasol.space.geometry.domain import Domain
from parasol.space.nodes import Nodes
from parasol.space.quality import quality

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
_SECTION = 41  # lattice points per axis of a cut through a solid
_INK = "0.25"


def draw(solution: Solution, path: str | Path) -> Path:
    """Draw a solution as `.png`, `.svg` or `.pdf`, with its absolute error beside it where the exact solution is known.

    On a line a curve, in the plane a coloured map, in space three cuts through the middle.
    """
    figure_class = require_matplotlib()
    path = check_output(path, FIGURE_SUFFIXES)
    figure = figure_class(layout="constrained")
    [_draw_curve, _draw_map, _draw_cuts][solution.model.nodes.dimension - 1](figure, solution)
    figure.suptitle(_title(solution), fontsize=11)
    return _save(figure, path)


def draw_nodes(nodes: Nodes, path: str | Path) -> Path:
    """Draw nodes coloured by nearest-neighbour distance over wanted spacing, with a histogram of it and its quality.

    Boundary nodes are marked by part. The suffix is `.png`, `.svg` or `.pdf`.
    """
    figure_class = require_matplotlib()
    path = check_output(path, FIGURE_SUFFIXES)
    figure = figure_class(figsize=(10.5, 5.2), layout="constrained")
    measured = quality(nodes)
    evenness = measured.nearest / nodes.spacing
    left, right = figure.add_gridspec(1, 2, width_ratios=(1.7, 1))
    if nodes.dimension == 3:
        from mpl_toolkits import mplot3d  # noqa: F401  registers the projection

    axes = figure.add_subplot(left, projection="3d" if nodes.dimension == 3 else None)
    [_nodes_on_line, _nodes_in_plane, _nodes_in_space][nodes.dimension - 1](figure, axes, nodes, evenness)
    if nodes.n_boundary:
        handles, labels = axes.get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower left", fontsize=8, ncols=7, frameon=False)
        for handle in legend.legend_handles:
            handle.set_sizes([24])  # type: ignore[union-attr]

    histogram = figure.add_subplot(right)
    span = max(float(np.ptp(evenness)), 0.05)  # equal distances make one bar, not a picture of rounding
    centre = float(evenness.min() + evenness.max()) / 2
    histogram.hist(evenness, bins=40, range=(centre - 0.55 * span, centre + 0.55 * span), color="#3b6ea5")
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
    return _save(figure, path)


def require_matplotlib():
    """Matplotlib's Figure class, or advice how to install it. No window system is touched."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ParasolError("drawing needs matplotlib. Install it with: pip install 'parasol-pde[plot]'.") from None
    return Figure


def _save(figure, path: Path) -> Path:
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, bbox_inches="tight", pad_inches=0.12)
    return path


def _title(solution: Solution) -> str:
    model, error = solution.model, solution.error
    parts = [model.problem.name or str(model.problem.unknown), f"N = {model.n_nodes}"]
    if model.parameters.scalars or model.parameters.functions:
        parts.insert(1, describe(model, solution.mu))
    if error is not None and np.isfinite(error):
        parts.append(f"relative error {error:.1e}")
    return "   ·   ".join(parts)


def _colours(values: np.ndarray) -> dict:
    """Colour map and limits: diverging around zero where the values lie evenly about it, else sequential."""
    low, high = float(np.min(values)), float(np.max(values))
    if low < 0 < high and min(-low, high) > 0.4 * max(-low, high):
        return {"cmap": "RdBu_r", "vmin": -max(-low, high), "vmax": max(-low, high)}
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # a constant field still needs two ends
        pad = 0.5 * abs(high) or 0.5
        low, high = low - pad, high + pad
    return {"cmap": "viridis", "vmin": low, "vmax": high}


def _panels(solution: Solution) -> list[tuple[str, np.ndarray, bool]]:
    """What is drawn: label, values at the nodes, whether they are an error (signed here, drawn without sign)."""
    name = str(solution.model.problem.unknown.func)
    panels = [(name, solution.values, False)]
    exact = solution.exact
    if exact is not None and np.all(np.isfinite(exact)):
        panels.append((f"|{name} − exact|", solution.values - exact, True))
    return panels


# ---- solutions -----------------------------------------------------------------------------------------------------
def _draw_curve(figure, solution: Solution) -> None:
    nodes, panels = solution.model.nodes, _panels(solution)
    x = nodes.points[:, 0]
    figure.set_size_inches(5.2 * len(panels) + 1.3, 4.2)
    segments = triangulate(nodes.points, nodes.domain, on_boundary=np.arange(nodes.n_nodes) >= nodes.n_interior)
    for axes, (label, values, is_error) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        values = np.where(values == 0, np.nan, np.abs(values)) if is_error else values  # zero has no logarithm
        style = {"color": "#a5423b" if is_error else "#1f4e79", "lw": 1.6}
        # one line per piece of the domain: a break where two nodes are not joined
        for piece in np.split(segments, 1 + np.flatnonzero(segments[1:, 0] != segments[:-1, 1])):
            joined = [*piece[:, 0], piece[-1, 1]]
            axes.plot(x[joined], values[joined], **style)
        if is_error and not np.all(np.isnan(values)):
            axes.set_yscale("log")
        elif not is_error:
            axes.plot(x, values, ".", ms=3, color=_INK, alpha=0.5)
        axes.set(xlabel=str(solution.model.problem.coordinates[0]), title=label)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)


def _draw_map(figure, solution: Solution) -> None:
    nodes, panels = solution.model.nodes, _panels(solution)
    lower, upper = nodes.domain.bounds
    points, owner, triangles = wrapped_cells(nodes)
    width, height = 5.6 * (upper - lower) / np.max(upper - lower)
    figure.set_size_inches(len(panels) * (max(width, 1.5) + 1.6), max(height, 1.2) + 1.2)
    for axes, (label, values, is_error) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        mesh, values = _smooth(points, triangles, np.abs(values)[owner] if is_error else values[owner], flat=is_error)
        colours = _colours(values) | ({"cmap": "magma", "vmin": 0.0} if is_error else {})
        shown = axes.tripcolor(mesh, values, shading="gouraud", rasterized=True, **colours)
        if not is_error and np.ptp(values) > 0:
            # an even number of levels leaves out zero, which is often the whole boundary
            levels = np.linspace(colours["vmin"], colours["vmax"], 14)[1:-1]
            axes.tricontour(mesh, values, levels=levels, colors=_INK, linewidths=0.4, alpha=0.6, linestyles="solid")
        size = float(np.clip(600 / nodes.n_nodes, 0.1, 2.0))
        axes.scatter(*nodes.points.T, s=size, c="white" if is_error else "black", alpha=0.3, linewidths=0)
        _outline(axes, nodes.domain)
        _frame(axes, [str(c) for c in solution.model.problem.coordinates], nodes.domain)
        axes.set_title(label)
        _colour_bar(figure, axes, shown)


def _smooth(points: np.ndarray, triangles: np.ndarray, values: np.ndarray, *, flat: bool):
    """A triangulation to draw and the values at its points: refined by a cubic through the nodes where that pays."""
    from matplotlib.tri import CubicTriInterpolator, Triangulation, UniformTriRefiner

    mesh = Triangulation(points[:, 0], points[:, 1], triangles)
    if flat or len(points) > 6000:
        return mesh, values
    cubic = CubicTriInterpolator(mesh, values, kind="geom")
    return UniformTriRefiner(mesh).refine_field(values, triinterpolator=cubic, subdiv=2)


def _colour_bar(figure, axes, shown, label: str = "") -> None:
    bar = figure.colorbar(shown, cax=axes.inset_axes([1.04, 0.0, 0.04, 1.0]), label=label)
    bar.formatter.set_powerlimits((-2, 4))


def _outline(axes, domain: Domain, **style) -> None:
    for arc in domain.arcs():
        line = np.concatenate([arc.points, arc.points[:1]]) if arc.closed else arc.points
        axes.plot(*line.T, **({"color": _INK, "lw": 0.9} | style))


def _frame(axes, names, domain: Domain, across=(0, 1)) -> None:
    lower, upper = domain.bounds
    margin = np.where(domain.periods > 0, 0.0, 0.03 * float(np.max(upper - lower)))  # nothing lies beyond a seam
    limits = np.column_stack([lower - margin, upper + margin])[list(across)]
    axes.set(aspect="equal", xlim=limits[0], ylim=limits[1])
    axes.set(xlabel=names[across[0]], ylabel=names[across[1]])
    axes.spines[["top", "right"]].set_visible(False)


def _draw_cuts(figure, solution: Solution) -> None:
    domain, panels = solution.model.nodes.domain, _panels(solution)
    names = [str(c) for c in solution.model.problem.coordinates]
    middle = domain.bounds.mean(axis=0)
    cuts = [_section(domain, axis) for axis in range(3)]
    # interpolation is linear in the values: one set of stencils serves the solution and its error
    columns = np.column_stack([values for _, values, _ in panels])
    sampled = replace(solution, values=columns).at(np.concatenate([points for points, _ in cuts]))
    figure.set_size_inches(12.0, 3.9 * len(panels) + 0.5)
    starts = np.cumsum([0, *[len(points) for points, _ in cuts]])
    for row, (label, _, is_error), values in zip(
        figure.subplots(len(panels), 3, squeeze=False), panels, sampled.T, strict=True
    ):
        values = np.abs(values) if is_error else values
        colours = _colours(values) | ({"cmap": "magma", "vmin": 0.0} if is_error else {})
        for axis, axes in enumerate(row):
            across = [a for a in range(3) if a != axis]
            points, triangles = cuts[axis]
            part = values[starts[axis] : starts[axis + 1]]
            shown = axes.tripcolor(*points[:, across].T, triangles, part, shading="gouraud", rasterized=True, **colours)
            _frame(axes, names, domain, across)
            axes.set_title(f"{label} at {names[axis]} = {middle[axis]:.3g}", fontsize=10)
            if axis == 2:
                _colour_bar(figure, axes, shown)


def _section(domain: Domain, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) of the cut through the middle across an axis, and triangles between them (m, 3).

    A lattice inside, and where a lattice line leaves the domain, the point where it does: so edges and holes are sharp.
    """
    lower, upper = domain.bounds
    across = [a for a in range(3) if a != axis]
    ticks = [np.linspace(lower[a], upper[a], _SECTION) for a in across]
    grid = np.empty((_SECTION, _SECTION, 3))
    grid[..., axis] = (lower[axis] + upper[axis]) / 2
    grid[..., across[0]], grid[..., across[1]] = np.meshgrid(*ticks, indexing="ij")
    inside = domain.contains(grid.reshape(-1, 3)).reshape(grid.shape[:2])
    good, bad = [], []
    for a, b in ((np.s_[:-1], np.s_[1:]), (np.s_[:, :-1], np.s_[:, 1:])):
        for one, other in ((a, b), (b, a)):
            leaves = inside[one] & ~inside[other]
            good.append(grid[one][leaves])
            bad.append(grid[other][leaves])
    rim = _last_inside(domain, np.concatenate(good), np.concatenate(bad))
    points = np.concatenate([grid[inside], rim])
    if len(points) < 3:
        raise ParasolError(
            f"the middle cut across axis {axis_names(3)[axis]} misses the domain. Write .vtkhdf and use ParaView."
        )
    flat = _Cut(domain, axis, float(grid[0, 0, axis]))
    return points, triangulate(points[:, across], flat, on_boundary=np.arange(len(points)) >= len(points) - len(rim))  # type: ignore[arg-type]


class _Cut:
    """A plane cut of a solid, as far as `triangulate` asks a domain."""

    def __init__(self, solid: Domain, axis: int, height: float):
        self.solid, self.axis, self.height = solid, axis, height

    def _lift(self, points: np.ndarray) -> np.ndarray:
        return np.insert(points, self.axis, self.height, axis=1)

    def contains(self, points: np.ndarray) -> np.ndarray:
        return self.solid.contains(self._lift(points))

    def distance(self, points: np.ndarray) -> np.ndarray:
        return self.solid.distance(self._lift(points))


def _last_inside(domain: Domain, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """The boundary points between inside and outside points, by bisection: (n, 3)."""
    for _ in range(30 if len(inside) else 0):
        middle = (inside + outside) / 2
        is_in = domain.contains(middle)[:, None]
        inside, outside = np.where(is_in, middle, inside), np.where(is_in, outside, middle)
    return inside


# ---- nodes ---------------------------------------------------------------------------------------------------------
_EVENNESS = "nearest neighbour / wanted spacing"


def _parts(nodes: Nodes) -> Iterator[tuple[np.ndarray, dict]]:
    """The nodes (m,) of each part of the boundary that has any, and how they are drawn."""
    for j, name in enumerate(nodes.domain.part_names):
        chosen = nodes.n_interior + np.flatnonzero(nodes.part == j)
        if len(chosen):
            style = {"marker": "os^vDP*X"[j % 8], "color": f"C{(j + 1) % 10}", "label": f"{name} ({len(chosen)})"}
            yield chosen, style | {"linewidths": 0}


def _nodes_on_line(figure, axes, nodes: Nodes, evenness: np.ndarray) -> None:
    axes.plot(nodes.interior[:, 0], evenness[: nodes.n_interior], ".", color="#3b6ea5")
    for chosen, style in _parts(nodes):
        axes.scatter(nodes.points[chosen, 0], evenness[chosen], **style)
    axes.set(xlabel="x", ylabel=_EVENNESS, ylim=(0, 1.2 * evenness.max()))
    axes.spines[["top", "right"]].set_visible(False)


def _nodes_in_plane(figure, axes, nodes: Nodes, evenness: np.ndarray) -> None:
    size = float(np.clip(9000 / nodes.n_nodes, 0.5, 14))
    _outline(axes, nodes.domain, lw=0.5)
    dots = axes.scatter(*nodes.interior.T, c=evenness[: nodes.n_interior], s=size, cmap="viridis", linewidths=0)
    for chosen, style in _parts(nodes):
        axes.scatter(*nodes.points[chosen].T, s=size, **style)
    _frame(axes, axis_names(2), nodes.domain)
    _colour_bar(figure, axes, dots, _EVENNESS)


def _nodes_in_space(figure, axes, nodes: Nodes, evenness: np.ndarray) -> None:
    size = float(np.clip(20000 / nodes.n_nodes, 1, 14))
    middle = nodes.domain.bounds.mean(axis=0)[1]
    behind = nodes.points[:, 1] >= middle  # the half towards the reader is taken away
    shown = np.flatnonzero(behind[: nodes.n_interior])
    dots = axes.scatter(*nodes.points[shown].T, c=evenness[shown], s=size, cmap="viridis", linewidths=0)
    for chosen, style in _parts(nodes):
        axes.scatter(*nodes.points[chosen[behind[chosen]]].T, s=size, alpha=0.6, **style)
    axes.set(xlabel="x", ylabel="y", zlabel="z", title=f"the half with y ≥ {middle:.3g}")
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.get_major_locator().set_params(nbins=4)
    axes.set_box_aspect(np.ptp(nodes.domain.bounds, axis=0) * (1, 0.5, 1))
    figure.colorbar(dots, ax=axes, shrink=0.7, label=_EVENNESS)
