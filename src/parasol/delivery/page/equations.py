"""Equations as text, set as MathML: what a browser shows without help from elsewhere."""

from __future__ import annotations

import ast
import re
from html import escape

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "omega": "ω", "phi": "φ", "psi": "ψ", "rho": "ρ", "sigma": "σ", "tau": "τ", "theta": "θ", "xi": "ξ", "pi": "π",
}  # fmt: skip
_TIGHT = {ast.Add: 10, ast.Sub: 10, ast.Mult: 20, ast.Div: 20, ast.Pow: 40}


def equation_html(text: str) -> str:
    """An equation such as "-a*u_yy - k*u = sin(x)" as a math element; as it stands where it is not arithmetic.

    >>> equation_html("u_xx = 1")
    '<math display="block"><msub><mi>u</mi><mrow><mi>x</mi><mi>x</mi></mrow></msub><mo>=</mo><mn>1</mn></math>'
    """
    try:
        sides = [
            _set(ast.parse(_names(side).strip().replace("^", "**"), mode="eval").body, 0) for side in text.split("=")
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"<code>{escape(text)}</code>"
    return f'<math display="block">{"<mo>=</mo>".join(sides)}</math>'


def _names(text: str) -> str:
    """Words that Python keeps for itself are names here, lambda above all."""
    return re.sub(r"\blambda\b", "lambda_", text)


def _set(node: ast.AST, outer: int) -> str:
    """A part of an equation; in brackets where it binds less than what is around it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return f"<mn>{node.value:g}</mn>"
    if isinstance(node, ast.Name):
        return _name(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        # at the head of a sum or a product a minus needs no brackets
        return _brackets(f"<mo>−</mo>{_set(node.operand, 20)}", outer not in (0, 10, 20))
    if isinstance(node, ast.BinOp) and type(node.op) in _TIGHT:
        tight = _TIGHT[type(node.op)]
        if isinstance(node.op, ast.Div):
            return f"<mfrac><mrow>{_set(node.left, 0)}</mrow><mrow>{_set(node.right, 0)}</mrow></mfrac>"
        if isinstance(node.op, ast.Pow):
            return f"<msup><mrow>{_set(node.left, 50)}</mrow><mrow>{_set(node.right, 0)}</mrow></msup>"
        left, right = _set(node.left, tight), _set(node.right, tight + (not isinstance(node.op, ast.Add)))
        sign = {ast.Add: "<mo>+</mo>", ast.Sub: "<mo>−</mo>", ast.Mult: _times(node)}[type(node.op)]
        return _brackets(left + sign + right, tight < outer)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        inside = "<mo>,</mo>".join(_set(argument, 0) for argument in node.args)
        if node.func.id == "sqrt":
            return f"<msqrt>{inside}</msqrt>"
        if node.func.id == "exp":
            return f"<msup><mi>e</mi><mrow>{inside}</mrow></msup>"
        return f"<mrow>{_name(node.func.id)}<mo>(</mo>{inside}<mo>)</mo></mrow>"
    raise ValueError


def _times(node: ast.BinOp) -> str:
    """A thin space between factors, a dot where two numbers would run together."""
    return "<mo>·</mo>" if isinstance(node.right, ast.Constant) else '<mspace width="0.15em"></mspace>'


def _brackets(inside: str, wanted: bool) -> str:
    return f"<mrow><mo>(</mo>{inside}<mo>)</mo></mrow>" if wanted else inside


def _name(name: str) -> str:
    """A name, with what follows an underscore set lower: u_xx is a derivative."""
    base, _, below = name.rstrip("_").partition("_")
    if not below:
        return f"<mi>{_GREEK.get(base, base)}</mi>"
    letters = "".join(f"<mi>{letter}</mi>" for letter in below) if len(below) <= 4 else f"<mtext>{below}</mtext>"
    return f"<msub><mi>{_GREEK.get(base, base)}</mi><mrow>{letters}</mrow></msub>"
