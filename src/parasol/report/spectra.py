"""The spectrum of snapshots: how fast singular values decay, and what a basis of d modes leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parasol.cache.disk import check_output
from parasol.checks import check_positive
from parasol.errors import InputError
from parasol.report.canvas import INK, INKS, colour_map, require_matplotlib, save_figure
from parasol.report.figures import FIGURE_SUFFIXES
from parasol.runtime.basis import Basis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROUNDING = 1e-14  # curves end here: what is below comes from rounding


def draw_spectrum(
    bases: Basis | Sequence[Basis] | Mapping[str, Basis],
    path: str | Path | None = None,
    *,
    tolerance: float | None = None,
    labels: Sequence[str] | None = None,
) -> Path | Figure:
    """Draw singular values s_d/s_1 and the share left out sqrt(Σ_{i>d} s_i² / Σ s_i²) against d, a dot at each basis' d.

    Where d modes leave nothing but rounding, the dot is open and stands beneath the end of its curve.

    One curve per basis, so that several numbers of snapshots and designs can be compared: where the curves agree the
    smallest set of snapshots was enough. A mapping gives the labels, or `labels` do; `tolerance` is drawn as a line.
    The suffix is `.png`, `.svg` or `.pdf`; without a path the figure itself is returned, for a notebook.
    """
    named = _named(bases, labels)
    figure_class = require_matplotlib()
    path = None if path is None else check_output(path, FIGURE_SUFFIXES)
    if tolerance is not None and check_positive(tolerance, "tolerance") >= 1:
        raise InputError(f"tolerance={tolerance!r} is not between 0 and 1.")
    figure = figure_class(figsize=(9.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    inks = INKS if len(named) <= len(INKS) else _shades(len(named))
    ends, lows = [1], [[], []]
    for i, ((label, basis), ink) in enumerate(zip(named, inks, strict=False)):
        style = {"color": ink, "lw": 1.6, "ls": ("-", "--", "-.", ":")[i % 4], "marker": ".", "ms": 3.5, "label": label}
        s, d = basis.singular_values / basis.singular_values[0], basis.n_modes
        curve = basis.energy_discarded
        s, curve = (np.where(values > _ROUNDING, values, np.nan) for values in (s, curve))
        left.plot(np.arange(1, len(s) + 1), s, **style)
        right.plot(np.arange(len(curve)), curve, **{**style, "label": f"d = {d}: {_words(basis)}"})
        for axes, place, values in ((left, d - 1, s), (right, d, curve)):
            _dot(axes, d, values, place, ink, 9 if i % 2 == 0 else 6)
        ends.append(max(int(np.count_nonzero(np.isfinite(s))), d))
        for low, values in zip(lows, (s, curve), strict=True):
            low.append(np.nanmin(values))
    for axes, low in zip((left, right), lows, strict=True):
        if tolerance is not None and axes is right:
            _line(axes, tolerance)
            low = [*low, tolerance]
        axes.set_yscale("log")
        axes.set(xlim=(0, 1.05 * max(ends)), ylim=(min(low) / 6, 3), xlabel="number of modes, d")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_title("singular values over the first", fontsize=11)
    right.set_title("share of the snapshots left out", fontsize=11)
    for axes in (left, right):
        axes.legend(fontsize=9, frameon=False, loc="upper right")
    return figure if path is None else save_figure(figure, path)


def _dot(axes, d: int, values: np.ndarray, place: int, ink, size: float) -> None:
    """The number of modes on its curve; where nothing is left but rounding, open and at the end of the curve."""
    dot = {"marker": "o", "ms": size, "color": ink, "mec": "white", "mew": 1.2, "zorder": 5, "ls": ""}
    if place < len(values) and np.isfinite(values[place]):
        axes.plot(d, values[place], **dot)
    else:
        axes.plot(d, np.nanmin(values) / 3, **{**dot, "mfc": "white", "mec": ink, "mew": 1.6, "ms": size - 2})


def _line(axes, tolerance: float) -> None:
    axes.axhline(tolerance, color=INK, lw=0.9, ls=(0, (4, 3)))
    axes.annotate(
        f"tolerance {tolerance:g}",
        (0.99, tolerance),  # on the right the curves are far below
        xycoords=("axes fraction", "data"),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=9,
        color=INK,
    )


def _words(basis: Basis) -> str:
    """What a basis leaves of its snapshots, and of those kept from it."""
    left = basis.energy_discarded[min(basis.n_modes, len(basis.singular_values))]
    error = "" if basis.held_out_error is None else f", held out {basis.held_out_error:.1e}"
    return (f"{left:.1e} left out" if left > _ROUNDING else "nothing left but rounding") + error


def _named(bases, labels: Sequence[str] | None) -> list[tuple[str, Basis]]:
    """Labels and bases, or a clear error."""
    if isinstance(bases, Mapping):
        named = [(str(label), basis) for label, basis in bases.items()]
        if labels is not None:
            raise InputError("labels and a mapping were both given, and a mapping has labels. Leave labels out.")
    else:
        if not isinstance(bases, Basis | Sequence) or isinstance(bases, str):
            raise InputError(
                f"bases is a {type(bases).__name__}. Give a basis, several, or a mapping of labels to them."
            )
        bases = [bases] if isinstance(bases, Basis) else list(bases)
        if labels is not None and len(labels) != len(bases):
            raise InputError(f"{len(labels)} labels were given for {len(bases)} bases. Give one for each.")
        named = list(
            zip(
                labels or [f"{getattr(b, 'n_snapshots', i)} snapshots" for i, b in enumerate(bases)], bases, strict=True
            )
        )
    if not named:
        raise InputError("there is no basis to draw. Give one, or a mapping of labels to bases.")
    for label, basis in named:
        if not isinstance(basis, Basis):
            raise InputError(f"{label!r} is a {type(basis).__name__}, not a basis. Make one with pod.")
        if not len(basis.singular_values):
            raise InputError(f"{label!r} has no singular values: it was made by {basis.method}. Make a basis with pod.")
    return named


def _shades(n: int) -> list:
    return list(colour_map("sequential")(np.linspace(0, 0.9, n)))
