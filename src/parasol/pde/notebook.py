"""What a notebook shows of an object: a title, formulas, a small picture, a table of words; all of it escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from parasol.pde.box import ParameterSpace

# commands that SymPy writes; others, which may come with a file from elsewhere, could make links or load what they like
_COMMANDS = (
    "frac sqrt left right cdot times pm mp le leq ge geq neq infty partial nabla operatorname mathrm text begin end cases "
    "sin cos tan cot sec csc asin acos atan arcsin arccos arctan sinh cosh tanh exp log ln min max pi ell hbar "
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon "
    "phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
_LONGEST = 2000  # characters of a formula
_WIDTH, _HEIGHT, _LEFT, _MOST = 280, 96, 40, 300


def card(title: str, rows: Mapping[str, str], *, formulas: Sequence[str] = (), picture: str = "") -> str:
    """A title, LaTeX formulas, a picture (SVG as it is), and a table of names and words.

    >>> card("heat", {"a": "1 < 2"})
    '<div><strong>heat</strong><table><tr><th style="text-align:left">a</th><td style="text-align:left">1 &lt; 2</td></tr></table></div>'
    """
    left = 'style="text-align:left"'
    lines = [f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(words)}</td></tr>" for name, words in rows.items()]
    shown = "".join(f"<p>$\\displaystyle {escape(formula, quote=False)}$</p>" for formula in formulas)
    return f"<div><strong>{escape(title)}</strong>{shown}{picture}<table>{''.join(lines)}</table></div>"


def is_plain_latex(text: str) -> bool:
    r"""Whether a formula is made of nothing but symbols, numbers and well-known commands.

    >>> is_plain_latex(r"- u_{xx} = \sin{\left(x \right)}"), is_plain_latex(r"\href{javascript:x}{u}")
    (True, False)
    """
    commands = set(re.findall(r"\\([A-Za-z]+)", text))
    return commands <= set(_COMMANDS.split()) and "$" not in text and len(text) <= _LONGEST


def range_text(name: str, low: float, high: float, scale: str) -> str:
    """A parameter and its range.

    >>> range_text("a", 0.1, 4.0, "log")
    'a in [0.1, 4] (log)'
    """
    return f"{name} in [{low:g}, {high:g}]{' (log)' if scale == 'log' else ''}"


def parameter_text(space: ParameterSpace) -> str:
    """The parameters and their ranges in one line.

    >>> from parasol.pde.box import PlainParameter
    >>> parameter_text(ParameterSpace((PlainParameter("a", 0.1, 4.0, "log"), PlainParameter("k", 0.0, 2.0))))
    'a in [0.1, 4] (log), k in [0, 2]'
    """
    words = [range_text(p.name, p.low, p.high, p.scale) for p in space.scalars]
    words += [f"{f.name}: a function on the {f.on}, {f.law}" for f in space.functions]
    return ", ".join(words) or "none"


def field_rows(fields: Mapping[str, np.ndarray]) -> dict[str, str]:
    """The range of values of each unknown function."""
    return {name: f"from {np.min(values):.6g} to {np.max(values):.6g}" for name, values in fields.items()}


def spectrum_svg(values: np.ndarray, n_kept: int) -> str:
    """Values that decay, relative to the first, on a logarithmic scale; those after the first `n_kept` are pale."""
    values = np.asarray(values, dtype=float)
    values = values[: np.count_nonzero(np.cumprod(values > 0))]
    if len(values) < 2:
        return ""
    sizes = np.maximum(np.log10(values / values[0]), -17.0)
    lowest = min(-1, math.floor(sizes.min()))
    chosen = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST)).round().astype(int))
    x = _LEFT + 6 + (_WIDTH - _LEFT - 12) * chosen / (len(values) - 1)
    y = 8 + (_HEIGHT - 16) * sizes[chosen] / lowest
    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2" opacity="{1 if i < n_kept else 0.3}"/>'
        for i, a, b in zip(chosen, x, y, strict=True)
    )
    marks = "".join(
        f'<text x="{_LEFT - 4}" y="{place}" text-anchor="end" font-size="10">{words}</text>'
        for place, words in ((12, "1"), (_HEIGHT - 4, f"1e{lowest}"))
    )
    told = f"{len(values)} singular values, from 1 down to {values[-1] / values[0]:.1e}; {n_kept} modes kept"
    return (
        f'<svg role="img" aria-label="{told}" width="{_WIDTH}" height="{_HEIGHT}" fill="currentColor" '
        f'style="display:block"><title>{told}</title>{marks}{dots}</svg>'
    )
