"""A report as one HTML file: a problem stated, paragraphs, tables and figures in sections, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

from parasol.cache.disk import check_output, replacing
from parasol.errors import InputError
from parasol.report.formulas import inline_math
from parasol.report.style import STYLE
from parasol.report.tables import Table
from parasol.report.themed import Panel

_MINUS = "\N{MINUS SIGN}"
_NUMBER = re.compile(r"[<(−-]*\s?\d")  # how a cell with a number begins
_POWER = re.compile(r"(?<![\w.])([+-]?\d+(?:\.\d+)?|\([\d.]+ ± (?:&lt; )?[\d.]+\))[eE]([+-]?\d+)(?!\w)")
_MATH = re.compile(r"\$([^$]+)\$")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Figure:
    """The panels of a figure, what it shows, and the same for those who cannot see it (the caption, where `alt` is empty)."""

    panels: tuple[Panel, ...]
    caption: str
    alt: str = ""
    columns: int = 2  # side by side, where there is room


@dataclass(frozen=True)
class Statement:
    """A problem in mathematics: names and HTML, as `formulas.statement` gives them."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Embedded:
    """A whole page inside the report, shown when its title is opened; it computes by itself and reaches nothing outside."""

    title: str
    html: str


Block = str | Table | Figure | Statement | Embedded


@dataclass(frozen=True)
class Section:
    """A title and what stands beneath it: paragraphs (plain text, `code` in backticks, $formulas$), tables, figures."""

    title: str
    blocks: tuple[Block, ...]


def write_report(
    path: str | Path,
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    *,
    top: Sequence[Block] = (),
    command: str,
    facts: Mapping[str, Any],
) -> Path:
    """Write a report as one self-contained `.html` file; it appears complete or not at all.

    `top` stands above the list of sections. Figures are drawn in the page and follow its colours, tables and figures are numbered. It ends with the `command` that made it
    and the `facts` about versions and machine, nested as they are in JSON. All text is escaped; in paragraphs, captions
    and cells 1.6e-5 is set as a power of ten, `code` in backticks as code, $B_μ$ as mathematics; an empty line in a paragraph makes two.
    """
    path = check_output(path, (".html",))
    sections = list(sections)
    if not sections:
        raise InputError("the report has no sections. Give at least one.")
    anchors = _anchors([section.title for section in sections])
    write = _Writer()
    head = [write.block(block, title) for block in top]
    body = []
    for anchor, section in zip(anchors, sections, strict=True):
        body.append(f'<section aria-labelledby="{anchor}">\n<h2 id="{anchor}">{_text(section.title)}</h2>')
        body += [write.block(block, section.title) for block in section.blocks]
        body.append("</section>")
    contents = [(anchor, section.title) for anchor, section in zip(anchors, sections, strict=True)]
    contents.append((_MADE, "How this was made"))
    page = _PAGE.format(
        style=STYLE,
        heading=escape(_bare(title)),
        title=_text(title),
        subtitle=f'<p class="subtitle">{_text(subtitle)}</p>' if subtitle else "",
        top="\n".join(head),
        contents="\n".join(f'<li><a href="#{anchor}">{_text(text)}</a></li>' for anchor, text in contents),
        body="\n".join(body),
        made=_MADE,
        command=" ".join(f"<span>{escape(word)}</span>" for word in command.split(" ")),
        facts="\n".join(f'<tr><th scope="row">{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in _flat(facts)),
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


class _Writer:
    """Blocks as HTML, tables and figures numbered as they come."""

    def __init__(self):
        self.tables, self.figures = count(1), count(1)

    def block(self, block: Block, where: str) -> str:
        """One block as HTML."""
        if isinstance(block, Table):
            return _table(block, next(self.tables))
        if isinstance(block, Figure):
            return _figure(block, next(self.figures))
        if isinstance(block, Statement):
            return _statement(block)
        if isinstance(block, Embedded):
            return _embedded(block)
        if isinstance(block, str):
            parts = re.split(r"\n\s*\n", block.strip())
            return "\n".join(f"<p>{_text(part)}</p>" for part in parts if part)
        raise InputError(
            f"section {where!r} holds a {type(block).__name__}. Use texts, Table, Figure, Statement, Embedded."
        )


# ---- text ----------------------------------------------------------------------------------------------------------
def _text(text: str) -> str:
    """Plain text as HTML: escaped, with code, mathematics and powers of ten.

    >>> _text("`a<b>` gives 1.6e-05 & more")
    '<code>a&lt;b&gt;</code> gives <data value="1.6e-05">1.6&nbsp;×&nbsp;10<sup>−5</sup></data> &amp; more'
    """
    parts = _CODE.split(text)  # texts and code in turn
    return "".join(f"<code>{escape(part)}</code>" if i % 2 else _mathematics(part) for i, part in enumerate(parts))


def _mathematics(text: str) -> str:
    parts = _MATH.split(text)  # texts and formulas in turn
    return "".join(inline_math(part) if i % 2 else _powers(part) for i, part in enumerate(parts))


def _powers(text: str) -> str:
    return _POWER.sub(_power, escape(text))


def _power(match: re.Match) -> str:
    digits, exponent = match[1].replace("-", _MINUS), str(int(match[2])).replace("-", _MINUS)
    return f'<data value="{match[0]}">{digits}&nbsp;×&nbsp;10<sup>{exponent}</sup></data>'


def _bare(text: str) -> str:
    """The text without the marks of code and mathematics."""
    return _MATH.sub(r"\1", _CODE.sub(r"\1", text))


def _anchors(titles: list[str]) -> list[str]:
    """A name for each title to link to, all different.

    >>> _anchors(["Errors & times", "Errors, times", "μ"])
    ['errors-times', 'errors-times-2', 'section']
    """
    out: list[str] = []
    for title in titles:
        base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        names = (base if i == 1 else f"{base}-{i}" for i in count(1))
        out.append(next(name for name in names if name not in out and name != _MADE))
    return out


def _flat(facts: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Nested facts as rows of two texts.

    >>> list(_flat({"machine": {"cpus": 2, "gpu": None}, "sizes": [100, 2000]}))
    [('machine, cpus', '2'), ('machine, gpu', '–'), ('sizes', '100, 2000')]
    """
    for key, value in facts.items():
        name = f"{before}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}, ")
        else:
            yield name, ", ".join(map(_plain, value)) if isinstance(value, list | tuple) else _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# ---- tables, figures, formulas --------------------------------------------------------------------------------------
def _table(table: Table, number: int) -> str:
    numeric, texts = table.numeric, table.texts
    decimals = [max((_decimals(row[j]) for row in texts), default=0) for j in range(len(numeric))]
    head = [_cell("th", text, "number" if n and j else "", "col") for j, (n, text) in enumerate(zip(numeric, table.headers, strict=True))]  # fmt: skip
    rows = []
    for i, row in enumerate(texts):
        cells = [_cell("th", row[0], "", "row")]
        for j, text in enumerate(row[1:], start=1):
            if not numeric[j]:
                cells.append(_cell("td", text or "–", "words" if len(text) > 24 else "text"))
                continue
            kind = "number" if _NUMBER.match(text) else "word"
            cells.append(_cell("td", text, kind, pad=_padding(text, decimals[j]) if kind == "number" else ""))
        ours = ' class="ours"' if i in table.emphasis else ""
        rows.append(f"<tr{ours}>{''.join(cells)}</tr>")
    label = f"table-{number}"
    top = f"<thead><tr>{''.join(head)}</tr></thead>\n" if any(table.headers) else ""
    described = len(numeric) > 2 and all(numeric[1:-1]) and not numeric[-1] and not table.headers[-1]
    kind = f' class="described" style="--numbers: {len(numeric) - 2}"' if described else ""
    return (
        f'<div class="table">\n<p class="caption" id="{label}"><b>Table {number}.</b> {_text(table.caption)}</p>\n'
        f'<div class="scroll" role="region" aria-labelledby="{label}" tabindex="0">\n<table aria-labelledby="{label}"{kind}>\n'
        f"{top}<tbody>\n" + "\n".join(rows) + "\n</tbody>\n</table>\n</div>\n</div>"
    )


def _cell(tag: str, text: str, kind: str, scope: str = "", pad: str = "") -> str:
    given = {"scope": scope, "class": kind}
    attributes = "".join(f' {name}="{value}"' for name, value in given.items() if value)
    return f"<{tag}{attributes}>{_text(text)}{pad}</{tag}>"


def _decimals(text: str) -> int:
    """Digits after the point of a plain number, the point included."""
    match = _FRACTION.search(text)
    return 0 if match is None else len(match[0])


def _padding(text: str, decimals: int) -> str:
    """What is added, unseen, so that the points of plain numbers stand beneath each other."""
    missing = decimals - _decimals(text)
    if missing <= 0 or not _PLAIN.fullmatch(text):
        return ""
    return f'<span class="pad" aria-hidden="true">{("." + 9 * "0")[-missing:] if _decimals(text) else ("." + 9 * "0")[:missing]}</span>'


def _figure(figure: Figure, number: int) -> str:
    alt = _bare(figure.alt or figure.caption)
    drawn = []
    widest = max((panel.width / panel.span for panel in figure.panels), default=1.0)
    for i, panel in enumerate(figure.panels):
        wide = f' class="wide" style="grid-column: span {panel.span}"' if 1 < panel.span <= figure.columns else ""
        label = alt if len(figure.panels) == 1 else f"{alt}, panel {i + 1}"
        drawn.append(f"<div{wide}>{panel.titled(label, max(widest, panel.width) if panel.span > 1 else widest)}</div>")
    columns = min(figure.columns, sum(panel.span for panel in figure.panels)) or 1
    return (
        f'<figure>\n<div class="panels" style="--columns: {columns}">\n' + "\n".join(drawn) + "\n</div>\n"
        f'<figcaption class="caption"><b>Figure {number}.</b> {_text(figure.caption)}</figcaption>\n</figure>'
    )


def _statement(stated: Statement) -> str:
    rows = "\n".join(
        f'<dt>{escape(name)}</dt><dd class="{escape(name.split()[0])}">{html}</dd>' for name, html in stated.rows
    )
    return f'<dl class="statement">\n{rows}\n</dl>'


def _embedded(page: Embedded) -> str:
    return (
        f"<details>\n<summary>{_text(page.title)}</summary>\n"
        f'<iframe sandbox="allow-scripts allow-downloads" loading="lazy" title="{escape(_bare(page.title))}" '
        f'srcdoc="{escape(page.html)}"></iframe>\n</details>'
    )


# ---- the page ------------------------------------------------------------------------------------------------------
_MADE = "made"
_FRACTION = re.compile(r"\.\d+")
_PLAIN = re.compile(r"[−-]?[\d\u202f]+(?:\.\d+)?")
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{heading}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{subtitle}
</header>
<main>
{top}
<nav aria-label="Contents">
<ol>
{contents}
</ol>
</nav>
{body}
<section aria-labelledby="{made}">
<h2 id="{made}">How this was made</h2>
<p>This command writes this report again:</p>
<pre><code>{command}</code></pre>
<div class="scroll" role="region" aria-label="Versions and machine" tabindex="0">
<table class="facts">
<tbody>
{facts}
</tbody>
</table>
</div>
</section>
</main>
<footer>Written by parasol. Everything shown is in this one file.</footer>
</body>
</html>
"""
