"""Solutions in time as films."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.spatial import Delaunay

from parasol.cache.disk import check_output, replacing
from parasol.checks import Progress
from parasol.errors import FileError, NotInstalled
from parasol.pde.evolution import Evolution
from parasol.report.canvas import (
    INK,
    View,
    clock,
    colour_bar,
    colours,
    frame,
    map_size,
    moments,
    outline,
    pieces,
    require_matplotlib,
    title,
    views,
)

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

ANIMATION_SUFFIXES = (".gif", ".mp4")
_FRAMES = 101  # at most
_SECONDS = 8.0  # a film should last, if it has the frames for it

_PIXELS = 480  # along the longest side
_LINE = "#1f4e79"
_GREYS = 32  # of the 256 colours of a .gif, for lines and letters


@dataclass(frozen=True, eq=False)
class _Film:
    """How to bring one of the stored times into the picture, and the ranges of colours that occur in it."""

    show: Callable[[int], None]
    ramps: tuple[Colormap, ...]


def animate(evolution: Evolution, path: str | Path, *, progress: Progress = None) -> Path:
    """Write a solution in time as a film, `.gif` or `.mp4` (which needs the program ffmpeg), with fixed scales.

    Up to 101 of the stored times are shown, none in between. `progress` is called with the fraction done.
    """
    figure_class = require_matplotlib()
    path = check_output(path, ANIMATION_SUFFIXES)
    require_writer(path.suffix)
    from matplotlib.animation import FFMpegWriter

    figure = figure_class(layout="constrained")
    film = (_curves if evolution.model.nodes.dimension == 1 else _maps)(figure, evolution)
    about, say, chosen = title(evolution), clock(evolution), moments(evolution.times, _FRAMES)
    heading = figure.suptitle(f"{about}   ·   {say[-1]}", fontsize=11)
    figure.draw_without_rendering()
    too_wide = heading.get_window_extent().width / (0.96 * figure.bbox.width)
    heading.set_fontsize(11 / max(1.0, too_wide))
    figure.set_layout_engine("none")  # nothing may move from one frame to the next
    fps = round(float(np.clip(len(chosen) / _SECONDS, 2, 15)))
    writer = _GifWriter(fps, film.ramps) if path.suffix.lower() == ".gif" else FFMpegWriter(fps=fps)
    with replacing(path) as temporary:
        try:
            with writer.saving(figure, str(temporary), dpi=100):
                for count, i in enumerate(chosen):
                    film.show(i)
                    heading.set_text(f"{about}   ·   {say[i]}")
                    writer.grab_frame()
                    if progress is not None:
                        progress((count + 1) / len(chosen))
        except (subprocess.CalledProcessError, BrokenPipeError) as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # which ended ffmpeg too
                raise KeyboardInterrupt from None
            raise FileError(f"ffmpeg could not make {str(path)!r}. Write a .gif instead.") from None
    return path


def require_writer(suffix: str) -> None:
    """Refuse a kind of film for which a program is missing."""
    from matplotlib.animation import FFMpegWriter

    if suffix.lower() == ".mp4" and not FFMpegWriter.isAvailable():
        raise NotInstalled("an .mp4 needs the program ffmpeg, which is not found. Install it, or write a .gif.")


class _GifWriter:
    """As matplotlib's, but all frames have the same colours: where they are chosen anew for each, the scale flickers."""

    def __init__(self, fps: int, ramps: tuple[Colormap, ...]):
        from PIL import Image

        n_each = (256 - _GREYS) // len(ramps)
        greys = np.repeat(np.linspace(0, 1, _GREYS)[:, None], 3, axis=1)
        table = np.concatenate([greys, *[ramp(np.linspace(0, 1, n_each))[:, :3] for ramp in ramps]])
        self.palette = Image.new("P", (1, 1))
        self.palette.putpalette(np.rint(255 * table).astype(np.uint8).tobytes())
        self.frames: list[Image.Image] = []
        self.milliseconds = round(1000 / fps)

    @contextmanager
    def saving(self, figure, path: str, dpi: int) -> Iterator[None]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure.set_dpi(dpi)
        self.canvas = FigureCanvasAgg(figure)
        yield
        first, *rest = self.frames
        first.save(path, save_all=True, append_images=rest, duration=self.milliseconds, loop=0)

    def grab_frame(self) -> None:
        from PIL import Image

        self.canvas.draw()
        picture = Image.fromarray(np.asarray(self.canvas.buffer_rgba())[..., :3])
        self.frames.append(picture.quantize(palette=self.palette, dither=Image.Dither.NONE))


def _curves(figure, evolution: Evolution) -> _Film:
    from matplotlib.colors import LinearSegmentedColormap

    nodes, problem = evolution.model.nodes, evolution.model.problem
    x, joined = nodes.points[:, 0], pieces(nodes)
    figure.set_size_inches(7.0 * len(problem.names), 4.5)
    lines = []
    places = figure.subplots(1, len(problem.names), squeeze=False)[0]
    for axes, (name, values) in zip(places, evolution.fields.items(), strict=True):
        for piece in joined:
            axes.plot(x[piece], values[0, piece], color=INK, lw=0.8, alpha=0.4)  # the start stays for comparison
            lines.append((axes.plot(x[piece], values[0, piece], color=_LINE, lw=1.8)[0], values[:, piece]))
        low, high = float(values.min()), float(values.max())
        margin = 0.05 * (high - low) or 0.5
        axes.set(xlabel=str(problem.coordinates[0]), title=name, ylim=(low - margin, high + margin))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)

    def show(i: int) -> None:
        for line, values in lines:
            line.set_ydata(values[i])

    return _Film(show, (LinearSegmentedColormap.from_list("line", [_LINE, "white"]),))


def _maps(figure, evolution: Evolution) -> _Film:
    nodes, problem, shown = evolution.model.nodes, evolution.model.problem, views(evolution.model)
    n_fields = len(problem.names)
    shape = (1, n_fields) if len(shown) == 1 else (n_fields, len(shown))
    width, height = map_size(evolution.model, shown, min(4.8, 12 / shape[1]))
    figure.set_size_inches(shape[1] * (width + 1.3), shape[0] * (height + 0.8) + 0.4)
    rasters = [_Raster.of(view, nodes.domain.bounds[:, list(view.across)]) for view in shown]
    places, maps = iter(figure.subplots(*shape, squeeze=False).flat), []
    for name, values in evolution.fields.items():
        scale = colours(values)
        for view, raster in zip(shown, rasters, strict=True):
            axes = next(places)
            options = {"extent": raster.extent, "origin": "lower", "interpolation": "nearest"}
            map_ = axes.imshow(raster.picture(values[0]), **options, **scale)
            maps.append((map_, raster, values))
            if nodes.dimension == 2:
                outline(axes, nodes.domain)
            frame(axes, [str(c) for c in problem.coordinates], nodes.domain, view.across)
            axes.set_title(f"{name}{view.place}")
            colour_bar(figure, axes, map_)

    def show(i: int) -> None:
        for map_, raster, values in maps:
            map_.set_data(raster.picture(values[i]))

    return _Film(show, tuple({map_.cmap.name: map_.cmap for map_, _, _ in maps}.values()))


@dataclass(frozen=True, eq=False)
class _Raster:
    """A view as pixels, linear between the points of its mesh: found once, then one product with a matrix per frame.

    Triangles would be quicker to set up, but colours mixed along them are not those of the scale.
    """

    weights: sparse.csr_array  # (n_inside, n_nodes)
    inside: np.ndarray  # (n_rows, n_columns) bool
    extent: tuple[float, ...]

    @classmethod
    def of(cls, view: View, bounds: np.ndarray) -> _Raster:
        lower, upper = bounds
        counts = np.ceil(_PIXELS * (upper - lower) / np.max(upper - lower)).astype(int)
        ticks = [a + (b - a) * (np.arange(n) + 0.5) / n for a, b, n in zip(lower, upper, counts, strict=True)]
        x, y = np.meshgrid(*ticks)
        pixels = np.column_stack([x.ravel(), y.ravel()])
        mesh = Delaunay(np.column_stack([view.mesh.x, view.mesh.y]))
        triangles = mesh.find_simplex(pixels)
        inside = np.flatnonzero((triangles >= 0) & view.region.contains(pixels))
        triangles = triangles[inside]
        first = np.einsum("nij,nj->ni", mesh.transform[triangles, :2], pixels[inside] - mesh.transform[triangles, 2])
        shares = np.column_stack([first, 1 - first.sum(axis=1)])  # barycentric
        rows = np.repeat(np.arange(len(inside)), 3)
        linear = sparse.csr_array(
            (shares.ravel(), (rows, mesh.simplices[triangles].ravel())), shape=(len(inside), len(mesh.points))
        )
        return cls(
            sparse.csr_array(linear @ view.weights),
            np.isin(np.arange(len(pixels)), inside).reshape(x.shape),
            (lower[0], upper[0], lower[1], upper[1]),
        )

    def picture(self, values: np.ndarray) -> np.ma.MaskedArray:
        """Values at the pixels from those at the nodes."""
        out = np.zeros(self.inside.shape)
        out[self.inside] = self.weights @ values
        return np.ma.masked_array(out, mask=~self.inside)
