"""Formulas as MathML, which browsers draw by themselves: pages load nothing from elsewhere."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

_TAG = re.compile(r"\\tag\{([^{}]*)\}")
# spellings of TeX that docutils does not read, by others that say the same
_OTHERWISE = (
    (r"\\[td]frac(?![A-Za-z])", r"\\frac"),
    (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
    (r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{"),
    (r"\{\\rm\s+([^{}]*)\}", r"{\\mathrm{\1}}"),
    (r"\\dots(?![A-Za-z])", r"\\ldots"),
    (r"\\[lr]Vert(?![A-Za-z])", r"\\|"),
    (r"\\[lr]vert(?![A-Za-z])", r"|"),
    (r"\\([bB]ig|[bB]igg)[lr]?(?![A-Za-z])", r""),
    (r"\\(?:hfill|displaystyle|limits|nonumber)(?![A-Za-z])", r""),
)


# bars that are no taller than a letter, without space beside them
_BARS = re.compile(r'<mo(?: stretchy="false")?>(‖)</mo>|<mo stretchy="false">(\|)</mo>')
# log x and log² x, with TeX's small space between; log(x) without
_NAMED = re.compile(r"<mo>&ApplyFunction;</mo>(?!\s*<mo[^>]*>[(\[{])")
_POWER = re.compile(r"(<msup>\s*<mi>(?:log|ln|cos|sin)</mi>\s*<m[in]>[^<]*</m[in]>\s*</msup>)(?=\s*<m(?!o|space))")


def _spaced(tree: str) -> str:
    tree = _BARS.sub(lambda m: f'<mo stretchy="false" lspace="0" rspace="0">{m[1] or m[2]}</mo>', tree)
    space = '<mspace width="0.1667em"></mspace>'
    return _POWER.sub(rf"\1{space}", _NAMED.sub(space, tree))


# where a line may end in a long formula of the text: before these signs, outside of brackets
_SIGN = re.compile(r"(?=\\(?:le|ge|approx|in|subset)(?![A-Za-z])|\+|:=)|(?<!:)(?==)")
_PAIRS = ("{", "}"), ("(", ")"), ("[", "]"), ("\\left", "\\right"), ("\\lceil", "\\rceil"), ("\\lfloor", "\\rfloor")
_LONG = 32


def lines(text: str) -> list[str]:
    r"""A formula of a text, cut where its line may end if it is long; browsers break none by themselves.

    >>> lines(r"\|a + b\| \le c (d + e) + \frac{f + g}{h} + i + j")
    ['\\|a + b\\| ', '{}\\le c (d + e) ', '{}+ \\frac{f + g}{h} ', '{}+ i ', '{}+ j']
    >>> lines("a = b")
    ['a = b']
    """
    pieces = [""]
    for piece in _SIGN.split(text) if len(text) > _LONG else [text]:
        last = pieces[-1]
        whole = all(last.count(left) == last.count(right) for left, right in _PAIRS) and last.count("|") % 2 == 0
        if whole and last.strip(" {}=+"):
            pieces.append("{}" + piece)
        else:
            pieces[-1] += piece
    return pieces


def formula(text: str, *, block: bool) -> str:
    r"""LaTeX as MathML; `\tag{1}` stands beside a formula.

    >>> formula("x^2", block=False)
    '<math xmlns="http://www.w3.org/1998/Math/MathML">...<msup>...</math>'
    """
    tag = _TAG.search(text)
    text = _TAG.sub("", text)
    for spelling, other in _OTHERWISE:
        text = re.sub(spelling, other, text)
    if block and "\\\\" in text and "\\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    if not block:
        return "".join(_spaced(str(latex2mathml.tex2mathml(piece))) for piece in lines(text))
    tree = _spaced(str(latex2mathml.tex2mathml(text, as_block=True)))
    return f'<div class="formula">{tree}{f"<span>({tag[1]})</span>" if tag else ""}</div>'


def _write(translator, node, *, block: bool) -> None:
    try:
        translator.body.append(formula(node.astext(), block=block))
    except MathError as error:
        logging.getLogger(__name__).warning("formula %r: %s", node.astext(), error, location=node)
        translator.body.append(f"<code>{translator.encode(node.astext())}</code>")
    raise nodes.SkipNode


# a formula of the text with the brackets and dots that touch it
_TOUCHED = re.compile(r"([(\[“]*)(<math xmlns[^>]*>(?:(?!</math>).)*</math>)([.,;:)\]”’]+|-\w+)", re.DOTALL)


def _together(app, page, template, context, doctree) -> None:
    """No line begins with the dot behind a formula."""
    context["body"] = _TOUCHED.sub(r'<span class="number">\1\2\3</span>', context.get("body") or "")


def setup(app):
    """Make this the renderer of formulas."""
    app.connect("html-page-context", _together)
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda self, node: _write(self, node, block=False), None),
        block_renderers=(lambda self, node: _write(self, node, block=True), None),
    )
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
