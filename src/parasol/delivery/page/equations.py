"""Equations as text, set with plain HTML.

Browsers set MathML well only where they find a font for mathematics: elsewhere brackets grow and nothing is lowered.
"""

from __future__ import annotations

import ast
import re
from html import escape

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "omega": "ω", "phi": "φ", "psi": "ψ", "rho": "ρ", "sigma": "σ", "tau": "τ", "theta": "θ", "xi": "ξ", "pi": "π",
}  # fmt: skip
_TIGHT = {ast.Add: 10, ast.Sub: 10, ast.Mult: 20, ast.Div: 20, ast.Pow: 40}
_FRACTION = (
    '<span style="display:inline-block;vertical-align:middle;text-align:center;line-height:1.15;margin:0 0.1em">'
    '<span style="display:block;border-bottom:1px solid;padding:0 0.2em">{}</span>'
    '<span style="display:block;padding:0 0.2em">{}</span></span>'
)
_ROOT = '√<span style="border-top:1px solid;padding:0 0.1em">{}</span>'


def equation_html(text: str) -> str:
    """An equation such as "-a*u_yy - k*u = sin(x)" set as mathematics; as it stands where it is not arithmetic.

    >>> equation_html("u_xx = 1")
    '<span role="math" aria-label="u_xx = 1"><i>u</i><sub><i>xx</i></sub> = 1</span>'
    """
    try:
        sides = [
            _set(ast.parse(_names(side).strip().replace("^", "**"), mode="eval").body, 0) for side in text.split("=")
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"<code>{escape(text)}</code>"
    return f'<span role="math" aria-label="{escape(text)}">{" = ".join(sides)}</span>'


def _names(text: str) -> str:
    """Words that Python keeps for itself are names here, lambda above all."""
    return re.sub(r"\blambda\b", "lambda_", text)


def _set(node: ast.AST, outer: int) -> str:
    """A part of an equation; in brackets where it binds less than what is around it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return f"{node.value:g}"
    if isinstance(node, ast.Name):
        return _name(node.id)
    if isinstance(node, ast.List) and len(node.elts) == 1 and isinstance(node.elts[0], ast.Name):
        return f"1<sub>{_word(node.elts[0].id)}</sub>"  # one in a region, zero elsewhere
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        # at the head of a sum or a product a minus needs no brackets
        return _brackets(f"−{_set(node.operand, 20)}", outer not in (0, 10, 20))
    if isinstance(node, ast.BinOp) and type(node.op) in _TIGHT:
        tight = _TIGHT[type(node.op)]
        if isinstance(node.op, ast.Div):
            return _FRACTION.format(_set(node.left, 0), _set(node.right, 0))
        if isinstance(node.op, ast.Pow):
            return f"{_set(node.left, 50)}<sup>{_set(node.right, 0)}</sup>"
        left, right = _set(node.left, tight), _set(node.right, tight + (not isinstance(node.op, ast.Add)))
        sign = {ast.Add: " + ", ast.Sub: " − ", ast.Mult: _times(node)}[type(node.op)]
        return _brackets(left + sign + right, tight < outer)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        inside = ", ".join(_set(argument, 0) for argument in node.args)
        if node.func.id == "sqrt":
            return _ROOT.format(inside)
        if node.func.id == "exp":
            return f"<i>e</i><sup>{inside}</sup>"
        return f"{_name(node.func.id)}({inside})"
    raise ValueError


def _times(node: ast.BinOp) -> str:
    """A thin space between factors, a dot where two numbers would run together."""
    return " · " if isinstance(node.right, ast.Constant) else "\u2009"


def _brackets(inside: str, wanted: bool) -> str:
    return f"({inside})" if wanted else inside


def _name(name: str) -> str:
    """A name, with what follows an underscore set lower: u_xx is a derivative."""
    base, _, below = name.rstrip("_").partition("_")
    return _word(base) + (f"<sub>{_word(below)}</sub>" if below else "")


def _word(word: str) -> str:
    """Slanted where it is a symbol, upright where it is a word."""
    word = _GREEK.get(word, word)
    return f"<i>{word}</i>" if len(word) <= 2 else word
