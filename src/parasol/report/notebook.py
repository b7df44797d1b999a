"""What a notebook shows of what answers: cards with formulas that are known to be harmless, and a small picture."""

from __future__ import annotations

import math
import re
from functools import singledispatch

import numpy as np

from parasol.report.answers import AnswerReport
from parasol.report.render import card, field_rows
from parasol.runtime.answer import Answer
from parasol.runtime.basis import Basis
from parasol.runtime.descriptions import SurrogateReport
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.reduced import ReducedModel
from parasol.runtime.surrogate import Surrogate

# commands that SymPy writes; others, which may come with a file from elsewhere, could make links or load what they like
_COMMANDS = (
    "frac sqrt left right cdot times pm mp le leq ge geq neq infty partial nabla operatorname mathrm text begin end cases "
    "sin cos tan cot sec csc asin acos atan arcsin arccos arctan sinh cosh tanh exp log ln min max pi ell hbar "
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon "
    "phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
_LONGEST = 2000  # characters of a formula
_WIDTH, _HEIGHT, _LEFT, _MOST = 280, 96, 40, 300


def is_plain_latex(text: str) -> bool:
    r"""Whether a formula is made of nothing but symbols, numbers and well-known commands.

    >>> is_plain_latex(r"- u_{xx} = \sin{\left(x \right)}"), is_plain_latex(r"\href{javascript:x}{u}")
    (True, False)
    """
    commands = set(re.findall(r"\\([A-Za-z]+)", text))
    return commands <= set(_COMMANDS.split()) and "$" not in text and len(text) <= _LONGEST


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
    label = f"{len(values)} singular values, from 1 down to {values[-1] / values[0]:.1e}; {n_kept} modes kept"
    return (
        f'<svg role="img" aria-label="{label}" width="{_WIDTH}" height="{_HEIGHT}" fill="currentColor" '
        f'style="display:block"><title>{label}</title>{marks}{dots}</svg>'
    )


@singledispatch
def html(value) -> str:
    """What a notebook shows of a basis, a reduced model, a surrogate or an answer."""
    raise TypeError(f"a {type(value).__name__} has no view for notebooks.")


@html.register
def _(basis: Basis) -> str:
    rows = {"values": str(basis.n_values), "inner product": "plain" if basis.weights is None else "weighted"}
    if basis.n_snapshots:
        rows["snapshots"] = str(basis.n_snapshots)
    if len(basis.singular_values) >= basis.n_modes:
        rows["discarded"] = f"{basis.energy_discarded[basis.n_modes]:.1e} of the snapshots"
    if basis.held_out_error is not None:
        rows["projection error"] = f"{basis.held_out_error:.1e} on snapshots not used"
    picture = spectrum_svg(basis.singular_values, basis.n_modes)
    return card(f"{basis.n_modes} modes by {basis.method}", rows, picture=picture)


@html.register
def _(reduced: ReducedModel) -> str:
    n_rows = reduced.residuals[0].triangle.shape[0]
    rows = {
        "parameters": str(reduced.parameters),
        "least squares": f"{n_rows} rows, {reduced.operator_theta.n_terms} + {reduced.load_theta.n_terms} terms, "
        f"{len(reduced.residuals)} preconditioners",
    }
    if reduced.certificate is not None:
        rows["error bound"] = f"from the residual; constants known at {reduced.certificate.n_anchors} parameters"
    if reduced.duals is not None:
        rows["error estimate"] = f"by {len(reduced.duals.blocks)} random duals at {len(reduced.duals.mus)} parameters"
    if reduced.interpolation_error:
        rows["interpolation error"] = f"{reduced.interpolation_error:.1e} of the coefficients of the equation"
    return card(f"reduced model of {reduced.n_modes} modes", rows)


@html.register
def _(surrogate: Surrogate) -> str:
    """A surrogate for a notebook: the equations in LaTeX where they are known, then the table."""
    rows = SurrogateReport(surrogate).rows()
    formulas = [text for text in (surrogate.provenance.latex or "").split(r" \\ ") if text]
    if not all(map(is_plain_latex, formulas)):
        formulas = []
    if formulas:
        rows.pop("equation", None)
    return card(f"surrogate of {rows.pop('problem', 'data')}", rows, formulas=formulas)


@html.register
def _(space: ParameterSpace) -> str:
    rows = {p.name: str(p).removeprefix(p.name).strip() for p in space.scalars}
    rows |= {f.name: str(f).partition(": ")[2] for f in space.functions}
    return card(f"{len(rows)} parameter{'s' if len(rows) != 1 else ''}", rows)


@html.register
def _(answer: Answer) -> str:
    """An answer for a notebook; values and bounds are computed for a single parameter only."""
    report, surrogate = AnswerReport(answer), answer.surrogate
    methods = [answer.method] if isinstance(answer.method, str) else answer.method
    rows = {"values": f"{'' if answer.single else f'{len(answer.mus)} × '}{surrogate.n_values}"}
    rows |= report.outside_rows() | {"by": ", ".join(dict.fromkeys(methods))}
    if not answer.single:
        return card(f"answers to {len(answer.mus)} parameters", rows)
    at = [f"{name}={value:g}" for name, value in zip(surrogate.parameters.names, answer.mus[0], strict=False)]
    return card(f"answer at {', '.join(at) or 'a function'}", rows | field_rows(report.fields) | report.error_rows())
