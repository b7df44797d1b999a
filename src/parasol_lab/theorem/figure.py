"""The figure of the theorem: weights over accuracy and over modes, counted and bounded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parasol.cache import check_output, replacing
from parasol.errors import InputError
from parasol.report import FIGURE_SUFFIXES, INK, Facts, require_matplotlib
from parasol_lab.theorem.growth import CURVES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = {
    "bound_theorem": {"color": "C3", "ls": "--"},
    "bound_counting": {"color": "C1", "ls": "--"},
    "paper": {"color": "C1", "marker": "s", "ms": 4},
    "bound_shared": {"color": "C0", "ls": "--"},
    "shared": {"color": "C0", "marker": "o", "ms": 4},
    "bound_refined": {"color": "C4", "ls": "--"},
    "bound_chebyshev": {"color": "C2", "ls": "--"},
}


def draw_theorem(facts: Facts, path: str | Path | None = None) -> Path | Figure:
    """Draw M against log2(1/ε) and against d, with fitted exponents; a star is the network that was built.

    `facts` are those of `examine`. Without a path the figure itself is returned.
    """
    growth = facts["growth"]
    if growth is None:
        raise InputError("there is nothing to draw: growth was not counted. Examine with compare=True, where B varies.")
    figure_class = require_matplotlib()
    path = None if path is None else check_output(path, FIGURE_SUFFIXES)
    figure = figure_class(figsize=(11.5, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    digits = [-np.log2(row["accuracy"]) for row in growth["over_accuracy"]]
    modes = [row["n_modes"] for row in growth["over_modes"]]
    panels = (
        (left, digits, growth["over_accuracy"], growth["exponent_of_log"], "log2(1/ε)"),
        (right, modes, growth["over_modes"], growth["exponent_of_modes"], "modes d"),
    )
    for axes, x, rows, exponents, label in panels:
        for name, words in CURVES.items():
            if rows[0][name] is None:
                continue
            power = "" if exponents[name] is None else f"  (exponent {exponents[name]:.2f})"
            axes.plot(x, [row[name] for row in rows], lw=1.6, label=f"{words}{power}", **_STYLES[name])
        axes.set(xscale="log", yscale="log", xlabel=label)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    built = facts["network"]["n_weights"]
    star = {"marker": "*", "ms": 14, "color": "C2", "mec": "white", "ls": "none", "zorder": 5}
    left.plot(-np.log2(facts["accuracy"]), built, label="built and tested", **star)
    left.legend(fontsize=8, frameon=False, loc="upper left")
    right.plot(facts["n_modes"], built, **star)
    real = [row["real_kappa"]["n_weights"] for row in growth["over_modes"]]
    right.plot(modes, real, color="C0", lw=1, ls=":", label="shared powers with α/β of each d")
    right.legend(fontsize=8, frameon=False, loc="upper left")
    finest = facts["smallest_accuracy"]
    if finest is not None and np.isfinite(finest):
        left.axvspan(-np.log2(finest), digits[-1], color=INK, alpha=0.06, lw=0)
        left.annotate(
            "beyond float64",
            (-np.log2(finest), 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=8,
            color=INK,
        )
    low, high = left.get_ylim()
    left.set_ylim(low, high * 300)  # room for the legends
    left.set_ylabel("weights that are not zero, M")
    left.set_title(f"{facts['problem']}, d = {facts['n_modes']}", fontsize=11)
    right.set_title(f"ε = {facts['accuracy']:g}, α/β = {facts['constants']['kappa']:.3g} for all d", fontsize=11)
    right.set_xticks(modes, [str(d) for d in modes], minor=False)
    right.minorticks_off()
    if path is None:
        return figure
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, bbox_inches="tight", pad_inches=0.12)
    return path
