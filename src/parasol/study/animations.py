"""Solutions in time as films."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parasol.checks import ParasolError
from parasol.delivery.files import check_output, replacing
from parasol.pde.evolution import Evolution
from parasol.study.canvas import (
    INK,
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

_LINE = "#1f4e79"
_GREYS = 32  # of the 256 colours of a .gif, for lines and letters


@dataclass(frozen=True, eq=False)
class _Film:
    """How to bring one of the stored times into the picture, and the ranges of colours that occur in it."""

    show: Callable[[int], None]
    ramps: tuple[Colormap, ...]


def animate(evolution: Evolution, path: str | Path, *, progress: Callable[[float], None] | None = None) -> Path:
    """Write a solution in time as a film, `.gif` or `.mp4` (which needs the program ffmpeg), with fixed scales.

    Up to 101 of the stored times are shown, none in between. `progress` is called with the fraction done.
    """
    figure_class = require_matplotlib()
    path = check_output(path, ANIMATION_SUFFIXES)
    require_writer(path.suffix)
    figure = figure_class(layout="constrained")
    film = (_curves if evolution.model.nodes.dimension == 1 else _maps)(figure, evolution)
    about, say, chosen = title(evolution), clock(evolution), moments(evolution.times, _FRAMES)
    heading = figure.suptitle(f"{about}   ·   {say[-1]}", fontsize=11)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # nothing may move from one frame to the next
    writer = _writer(path.suffix, round(float(np.clip(len(chosen) / _SECONDS, 2, 15))), film.ramps)
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
            raise ParasolError(f"ffmpeg could not make {str(path)!r}. Write a .gif instead.") from None
    return path


def require_writer(suffix: str) -> None:
    """Refuse a kind of film for which a program is missing."""
    from matplotlib.animation import FFMpegWriter

    if suffix.lower() == ".mp4" and not FFMpegWriter.isAvailable():
        raise ParasolError("an .mp4 needs the program ffmpeg, which is not found. Install it, or write a .gif.")


def _writer(suffix: str, fps: int, ramps: tuple[Colormap, ...]):
    from matplotlib.animation import FFMpegWriter, PillowWriter
    from PIL import Image

    if suffix.lower() == ".mp4":
        return FFMpegWriter(fps=fps)
    n_each = (256 - _GREYS) // len(ramps)
    greys = np.repeat(np.linspace(0, 1, _GREYS)[:, None], 3, axis=1)
    table = np.concatenate([greys, *[ramp(np.linspace(0, 1, n_each))[:, :3] for ramp in ramps]])
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.rint(255 * table).astype(np.uint8).tobytes())

    class OnePalette(PillowWriter):
        """All frames in the same colours; left alone, Pillow chooses them anew for each, and the scale flickers."""

        def grab_frame(self, **options):
            super().grab_frame(**options)
            self._frames[-1] = self._frames[-1].convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE)

    return OnePalette(fps=fps)


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
    places, maps = iter(figure.subplots(*shape, squeeze=False).flat), []
    for name, values in evolution.fields.items():
        scale = colours(values)
        for view in shown:
            axes = next(places)
            map_ = axes.tripcolor(view.mesh, view.weights @ values[0], shading="gouraud", **scale)
            maps.append((map_, view, values))
            if nodes.dimension == 2:
                outline(axes, nodes.domain)
            frame(axes, [str(c) for c in problem.coordinates], nodes.domain, view.across)
            axes.set_title(f"{name}{view.place}")
            colour_bar(figure, axes, map_)

    def show(i: int) -> None:
        for map_, view, values in maps:
            map_.set_array(view.weights @ values[i])

    return _Film(show, tuple({map_.cmap.name: map_.cmap for map_, _, _ in maps}.values()))
