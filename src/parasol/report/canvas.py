"""What all pictures share: scales, frames, the flat pieces that are coloured, the moments that are shown."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from parasol.cache.disk import replacing
from parasol.delivery.files import triangulate, wrapped_cells
from parasol.errors import InputError, NotInstalled, ParasolWarning
from parasol.pde.evolution import Evolution
from parasol.pde.model import Model
from parasol.pde.steady import Solution, describe
from parasol.space.by_region import derivatives_at
from parasol.space.geometry.axes import AXES
from parasol.space.geometry.domain import Domain
from parasol.space.interpolation import weights_in_cells
from parasol.space.mesh import MeshDomain
from parasol.space.nodes import Nodes

if TYPE_CHECKING:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.tri import Triangulation

INK = "0.25"
LEVEL = "0.2"  # of lines on a field, whose colours are the same in the dark
INKS = (
    "#0b5394",
    "#c4501b",
    "#1d8348",
    "#7d3c98",
    "#b7950b",
    "#117a8b",
    "#a93266",
)  # of curves and marks, in this order
# the colours of the explorer page: lightness rises evenly from end to end, or from both ends to the middle
STOPS = {
    "sequential": "#240344 #281662 #1f2c7f #04478a #03608b #007692 #0b8c98 #0fa39c #0abb98 #4fd089 #96dd83 #cce888 #f9f39b",
    "diverging": "#023973 #1d589e #497ab8 #729bd0 #9cbce4 #c8dbf3 #f5f5f5 #f2cfca #e1a9a1 #ca8379 #b05d53 #93352d #720306",
}
_DPI = 150
_SECTION = 41  # lattice points per axis of a cut through a solid


def require_matplotlib() -> type[Figure]:
    """Matplotlib's Figure class, shown by notebooks, or advice how to install it. No window system is touched."""
    try:
        from parasol.report.shown_figure import Figure
    except ImportError:
        raise NotInstalled("drawing needs matplotlib. Install it with: pip install 'parasol-pde[plot]'.") from None
    return Figure


def title(solution: Solution | Evolution) -> str:
    """What is shown: the problem, its parameters, the number of nodes, the error where it is known."""
    model, error = solution.model, solution.error
    parts = [model.problem.name or ", ".join(model.problem.names), f"N = {model.n_nodes}"]
    if model.parameters.scalars or model.parameters.functions:
        parts.insert(1, describe(model, solution.mu))
    if error is not None and np.isfinite(error):
        parts.append(f"relative error {error:.1e}")
    if isinstance(solution, Solution) and solution.time is not None:
        parts.append(f"{model.problem.time} = {solution.time:g}")
    return "   ·   ".join(parts)


def moments(times: np.ndarray, count: int) -> np.ndarray:
    """Which of the stored times to show: all, or those nearest to `count` even ones, first and last among them.

    >>> moments(np.linspace(0, 10, 101), 5)
    array([  0,  25,  50,  75, 100])
    """
    if len(times) <= count:
        return np.arange(len(times))
    wanted = np.linspace(times[0], times[-1], count)
    return np.unique(np.abs(times[None, :] - wanted[:, None]).argmin(axis=1))


def clock(solution: Evolution) -> list[str]:
    """The stored times as texts, all with as many decimals as show them exactly, or else tell them well apart."""
    return [f"{solution.model.problem.time} = {text}" for text in _decimals(solution.times)]


def _decimals(times: np.ndarray) -> list[str]:
    """Numbers that increase, with the same number of decimals.

    >>> _decimals(np.array([0.0, 2.5, 5.0])), _decimals(np.array([0, 1 / 3, 2 / 3]))
    (['0.0', '2.5', '5.0'], ['0.00', '0.33', '0.67'])
    """
    gap = float(np.diff(times).min())
    least = max(0, int(np.ceil(-np.log10(gap) - 1e-9)))
    exact = [d for d in range(least, least + 3) if np.abs(times - np.round(times, d)).max() < 1e-6 * gap]
    count = exact[0] if exact else least + 1
    return [f"{t:.{count}f}" if count <= 6 else f"{t:.3e}" for t in times.tolist()]


@cache
def colour_map(name: str) -> LinearSegmentedColormap:
    """The colours of the explorer page by name: "sequential", "diverging"."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(f"parasol {name}", STOPS[name].split())


def colours(values: np.ndarray) -> dict:
    """Colour map and limits: diverging around zero where the values lie evenly about it, else sequential."""
    low, high = float(np.min(values)), float(np.max(values))
    if low < 0 < high and min(-low, high) > 0.4 * max(-low, high):
        return {"cmap": colour_map("diverging"), "vmin": -max(-low, high), "vmax": max(-low, high)}
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # a constant field still needs two ends
        pad = 0.5 * abs(high) or 0.5
        low, high = low - pad, high + pad
    return {"cmap": colour_map("sequential"), "vmin": low, "vmax": high}


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure; the file appears complete or not at all."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=_DPI, bbox_inches="tight", pad_inches=0.12)
    return path


def colour_bar(figure: Any, axes: Any, shown: Any, label: str = "") -> None:
    """A bar beside the axes, as high as they are."""
    bar = figure.colorbar(shown, cax=axes.inset_axes([1.04, 0.0, 0.04, 1.0]), label=label)
    if hasattr(bar.formatter, "set_powerlimits"):  # a logarithmic one writes powers by itself
        bar.formatter.set_powerlimits((-2, 4))


def outline(axes: Any, domain: Domain, **style: Any) -> None:
    """The boundary of a domain in the plane."""
    for arc in domain.arcs():
        line = np.concatenate([arc.points, arc.points[:1]]) if arc.closed else arc.points
        axes.plot(*line.T, **({"color": INK, "lw": 0.9} | style))


def frame(axes: Any, names: Sequence[str], domain: Domain, across: tuple[int, int] = (0, 1)) -> None:
    """Equal scales, names and limits for two of the axes of space."""
    lower, upper = domain.bounds
    margin = np.where(domain.periods > 0, 0.0, 0.03 * float(np.max(upper - lower)))  # nothing lies beyond a seam
    limits = np.column_stack([lower - margin, upper + margin])[list(across)]
    axes.set(aspect="equal", xlim=limits[0], ylim=limits[1])
    axes.set(xlabel=names[across[0]], ylabel=names[across[1]])
    axes.spines[["top", "right"]].set_visible(False)


def pieces(nodes: Nodes) -> list[np.ndarray]:
    """On a line: the nodes of each piece of the domain, in order; two pieces where two neighbours are not joined."""
    segments = triangulate(nodes.points, nodes.domain, on_boundary=np.arange(nodes.n_nodes) >= nodes.n_interior)
    parts = np.split(segments, 1 + np.flatnonzero(segments[1:, 0] != segments[:-1, 1]))
    return [np.append(part[:, 0], part[-1, 1]) for part in parts]


# ---- flat pieces ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class View:
    """A flat piece of a domain to be coloured: triangles, and how values at their corners come from those at the nodes."""

    mesh: Triangulation
    weights: sparse.csr_array  # (n_corners, n_nodes)
    region: Domain | Cut
    across: tuple[int, int]  # the axes of space it shows
    place: str  # where it is, empty where it is all there is


def views(model: Model) -> list[View]:
    """The whole domain in the plane; in space three cuts through the middle."""
    from matplotlib.tri import Triangulation

    nodes = model.nodes
    if nodes.dimension == 2:
        points, owner, triangles = wrapped_cells(nodes)
        chosen = sparse.csr_array((np.ones(len(owner)), (np.arange(len(owner)), owner)), (len(owner), nodes.n_nodes))
        return [View(Triangulation(points[:, 0], points[:, 1], triangles), chosen, nodes.domain, (0, 1), "")]
    cut_views = []
    if model.scheme is None and not isinstance(nodes.domain, MeshDomain):
        raise InputError("nothing is known between these nodes in space. Give the cells that join them, cells=.")
    for axis, name in enumerate(model.problem.coordinates):
        points, triangles = section(nodes.domain, axis)
        if isinstance(nodes.domain, MeshDomain):
            weights = weights_in_cells(nodes.points, nodes.domain.cells, points)
        else:
            with warnings.catch_warnings():  # stencils that see too few nodes are the solver's to tell, not a picture's
                warnings.simplefilter("ignore", ParasolWarning)
                weights = derivatives_at(nodes, points, [(0, 0, 0)], model.scheme)[0, 0, 0]
        i, j = (a for a in range(3) if a != axis)
        mesh = Triangulation(points[:, i], points[:, j], triangles)
        cut = Cut(nodes.domain, axis)
        cut_views.append(View(mesh, weights, cut, (i, j), f" at {name} = {cut.height:.3g}"))
    return cut_views


def map_size(model: Model, shown: list[View], largest: float) -> np.ndarray:
    """Width and height in inches that hold each of the views, the longest side of the domain being `largest`."""
    extent = np.ptp(model.nodes.domain.bounds, axis=0)
    sizes = np.array([extent[list(view.across)] for view in shown]).max(axis=0)
    return np.maximum(largest * sizes / extent.max(), 1.2)


def section(domain: Domain, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) of the cut through the middle across an axis, and triangles between them (m, 3).

    A lattice inside, and where a lattice line leaves the domain, the point where it does: so edges and holes are sharp.
    """
    lower, upper = domain.bounds
    across = [a for a in range(3) if a != axis]
    ticks = [np.linspace(lower[a], upper[a], _SECTION) for a in across]
    grid = np.empty((_SECTION, _SECTION, 3))
    grid[..., axis] = Cut(domain, axis).height
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
        raise InputError(f"the middle cut across axis {AXES[axis]} misses the domain. Write .vtkhdf and use ParaView.")
    cut = Cut(domain, axis)
    return points, triangulate(points[:, across], cut, on_boundary=np.arange(len(points)) >= len(points) - len(rim))  # type: ignore[arg-type]


class Cut:
    """The plane cut through the middle of a solid across an axis, as far as pictures ask a domain."""

    def __init__(self, solid: Domain, axis: int):
        self.solid, self.axis, self.height = solid, axis, float(solid.bounds[:, axis].mean())

    def _lift(self, points: np.ndarray) -> np.ndarray:
        return np.insert(points, self.axis, self.height, axis=1)

    def contains(self, points: np.ndarray) -> np.ndarray:
        """(n,) bool: which points of the plane (n, 2) lie in the solid."""
        return self.solid.contains(self._lift(points))

    def distance(self, points: np.ndarray) -> np.ndarray:
        """(n,) distance of points of the plane to the boundary of the solid, negative inside."""
        return self.solid.distance(self._lift(points))


def _last_inside(domain: Domain, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """The boundary points between inside and outside points, by bisection: (n, 3)."""
    for _ in range(30 if len(inside) else 0):
        middle = (inside + outside) / 2
        is_in = domain.contains(middle)[:, None]
        inside, outside = np.where(is_in, middle, inside), np.where(is_in, outside, middle)
    return inside
