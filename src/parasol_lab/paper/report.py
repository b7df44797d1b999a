"""A report as one HTML file: paragraphs, tables and figures in sections, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

from parasol.cache import check_output, replacing
from parasol.errors import FileError, InputError

_PNG = b"\x89PNG\r\n\x1a\n"
_MINUS = "\N{MINUS SIGN}"
_SHORT = 24  # letters of a name that is not broken at its hyphens
_BLANK = ("", "-", "–", "—")
_NUMBER = re.compile(r"[<>≤≥≈~±+−-]*\s?\.?\d")  # how a cell with a number begins
_POWER = re.compile(r"(?<![\w.])([+-]?\d+(?:\.\d+)?)[eE]([+-]?\d+)(?!\w)")
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\[\]]+)\]\(([\w-][\w./-]*\.html(?:#[\w-]+)?)\)")  # to a page beside this one, never elsewhere


@dataclass(frozen=True)
class Table:
    """Texts in rows; the first column says what a row is about, rows in `emphasis` are set off.

    >>> Table(("solver", "error"), (("POD-DNN",),))
    Traceback (most recent call last):
    parasol.errors.InputError: row 0 of a table has 1 cells, its header 2. Give as many.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    emphasis: tuple[int, ...] = ()

    def __post_init__(self):
        for i, row in enumerate(self.rows):
            if len(row) != len(self.headers):
                raise InputError(
                    f"row {i} of a table has {len(row)} cells, its header {len(self.headers)}. Give as many."
                )
        for i in self.emphasis:
            if not 0 <= i < len(self.rows):
                raise InputError(f"emphasis names row {i}, but the table has {len(self.rows)} rows, counted from 0.")


@dataclass(frozen=True)
class Figure:
    """A PNG, what it shows, and the same for those who cannot see it (the caption, where `alt` is empty)."""

    path: Path
    caption: str
    alt: str = ""


@dataclass(frozen=True)
class Section:
    """A title and what stands beneath it: paragraphs (plain text, `code` in backticks), tables, figures."""

    title: str
    blocks: tuple[str | Table | Figure, ...]


def write_report(
    path: str | Path,
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    *,
    command: str,
    facts: Mapping[str, Any],
) -> Path:
    """Write a report as one self-contained `.html` file; it appears complete or not at all.

    Figures are embedded, tables and figures numbered, sections listed at the top. It ends with the `command` that made it
    and the `facts` about versions and machine, nested as they are in JSON. All text is escaped; in paragraphs, captions
    and cells 1.6e-5 is set as a power of ten, `code` in backticks as code, an empty line in a paragraph makes two,
    and [text](page.html) links to a page beside the report.
    """
    path = check_output(path, (".html",))
    sections = list(sections)
    if not sections:
        raise InputError("the report has no sections. Give at least one.")
    tables, figures, anchors = count(1), count(1), _anchors([section.title for section in sections])
    body = []
    for anchor, section in zip(anchors, sections, strict=True):
        body.append(f'<section aria-labelledby="{anchor}">\n<h2 id="{anchor}">{_text(section.title)}</h2>')
        for block in section.blocks:
            if isinstance(block, Table):
                body.append(_table(block, next(tables)))
            elif isinstance(block, Figure):
                body.append(_figure(block, next(figures)))
            elif isinstance(block, str):
                body.extend(f"<p>{_text(part)}</p>" for part in re.split(r"\n\s*\n", block.strip()) if part)
            else:
                raise InputError(
                    f"section {section.title!r} holds a {type(block).__name__}. Use texts, Table and Figure."
                )
        body.append("</section>")
    contents = [(anchor, section.title) for anchor, section in zip(anchors, sections, strict=True)]
    contents.append((_MADE, "How this was made"))
    page = _PAGE.format(
        style=_STYLE,
        heading=escape(_bare(title)),
        title=_text(title),
        subtitle=f'<p class="subtitle">{_text(subtitle)}</p>' if subtitle else "",
        contents="\n".join(f'<li><a href="#{anchor}">{_text(text)}</a></li>' for anchor, text in contents),
        body="\n".join(body),
        made=_MADE,
        command=escape(command),
        facts="\n".join(f'<tr><th scope="row">{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in _flat(facts)),
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


# ---- text ----------------------------------------------------------------------------------------------------------
def _text(text: str) -> str:
    """Plain text as HTML: escaped, with code, powers of ten and links to pages beside this one.

    >>> _text("`a<b>` gives 1.6e-05 & more")
    '<code>a&lt;b&gt;</code> gives <data value="1.6e-05">1.6&nbsp;×&nbsp;10<sup>−5</sup></data> &amp; more'
    """
    parts = _CODE.split(text)  # texts and code in turn
    return "".join(f"<code>{escape(part)}</code>" if i % 2 else _linked(part) for i, part in enumerate(parts))


def _linked(text: str) -> str:
    parts = _LINK.split(text)  # text, label, page, text, ...
    out = [_powers(parts[0])]
    for label, page, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        out.append(f'<a href="{escape(page)}">{_powers(label)}</a>{_powers(after)}')
    return "".join(out)


def _powers(text: str) -> str:
    return _POWER.sub(_power, escape(text))


def _power(found: re.Match) -> str:
    digits, exponent = found[1].replace("-", _MINUS), str(int(found[2])).replace("-", _MINUS)
    return f'<data value="{found[0]}">{digits}&nbsp;×&nbsp;10<sup>{exponent}</sup></data>'


def _bare(text: str) -> str:
    """The text without the marks of code and links."""
    return _LINK.sub(r"\1", _CODE.sub(r"\1", text))


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


# ---- tables and figures --------------------------------------------------------------------------------------------
def _table(table: Table, number: int) -> str:
    numeric = [j > 0 and _is_numeric([row[j] for row in table.rows]) for j in range(len(table.headers))]
    head = [_cell("th", text, "number" if n else "", "col") for n, text in zip(numeric, table.headers, strict=True)]
    rows = []
    for i, row in enumerate(table.rows):
        cells = [_cell("th", text, "short" if len(text) <= _SHORT else "", "row") for text in row[:1]]
        for n, text in zip(numeric[1:], row[1:], strict=True):
            kind = "number" if _NUMBER.match(text.strip()) else "word"
            cells.append(_cell("td", text or "–", kind if n else ""))
        ours = ' class="ours"' if i in table.emphasis else ""
        rows.append(f"<tr{ours}>{''.join(cells)}</tr>")
    label = f"Table {number}"
    caption = f"<caption><b>{label}.</b> {_text(table.caption)}</caption>"
    return (
        f'<div class="table" role="region" aria-label="{label}" tabindex="0">\n<table>\n{caption}\n'
        f"<thead><tr>{''.join(head)}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>\n</table>\n</div>"
    )


def _cell(tag: str, text: str, kind: str, scope: str = "") -> str:
    given = {"scope": scope, "class": kind}
    attributes = "".join(f' {name}="{value}"' for name, value in given.items() if value)
    return f"<{tag}{attributes}>{_text(text)}</{tag}>"


def _is_numeric(cells: list[str]) -> bool:
    """Whether a column holds numbers, but for a word here and there such as "skipped".

    >>> _is_numeric(["1.6e-5", "–", "skipped", "< 0.1 s"]), _is_numeric(["Sobol", "57 × 57", "greedy"])
    (True, False)
    """
    given = [text.strip() for text in cells if text.strip() not in _BLANK]
    return bool(given) and 2 * sum(bool(_NUMBER.match(text)) for text in given) >= len(given)


def _figure(figure: Figure, number: int) -> str:
    try:
        data = Path(figure.path).read_bytes()
    except OSError as error:
        raise FileError(f"the figure {str(figure.path)!r} cannot be read: {error.strerror}.") from None
    if not data.startswith(_PNG):
        raise FileError(f"the figure {str(figure.path)!r} is not a PNG. Draw it to a file that ends in .png.")
    width, height = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))  # the header's first two numbers
    alt = escape(_bare(figure.alt or figure.caption))
    source = f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"
    return (
        f'<figure>\n<img src="{source}" alt="{alt}" width="{width}" height="{height}">\n'
        f"<figcaption><b>Figure {number}.</b> {_text(figure.caption)}</figcaption>\n</figure>"
    )


# ---- the page ------------------------------------------------------------------------------------------------------
_MADE = "made"
_STYLE = """
:root { color-scheme: light dark; --paper: #fdfcf9; --ink: #23262b; --soft: #62676f; --line: #d9d6cd; --link: #0b5394;
  --ours: #eaf1f8; --code: #f1efe8; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #e3e2dd; --soft: #9da2ab; --line: #3a3e46;
  --link: #8fbcec; --ours: #1f2b39; --code: #23262c; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.6;
  font: 1.0625rem/1.6 "Iowan Old Style", "Palatino Linotype", Palatino, "Book Antiqua", "Source Serif 4", Georgia, serif; }
main, header, footer { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3.5rem; }
h1, h2, nav, table, figcaption, .subtitle, footer { font-family: system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: clamp(1.7rem, 5vw, 2.5rem); line-height: 1.15; letter-spacing: -0.02em; margin: 0 0 .5rem;
  text-wrap: balance; }
h2 { font-size: 1.4rem; line-height: 1.25; letter-spacing: -0.01em; margin: 3.2rem 0 .8rem; text-wrap: balance; }
h1, h2 { font-weight: 650; }
.subtitle { font-size: 1.1rem; color: var(--soft); margin: 0; max-width: 44rem; }
p { max-width: 42rem; margin: 0 0 1rem; hyphens: auto; overflow-wrap: break-word; }
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: .15em; }
a:focus-visible, .table:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
nav { margin: 2rem 0 0; padding: 1rem 0; border-block: 1px solid var(--line); font-size: .95rem; }
nav ol { margin: 0; padding-left: 1.4rem; columns: 18rem 2; column-gap: 2.5rem; }
nav li { break-inside: avoid; padding: .1rem 0; }
nav li::marker { color: var(--soft); font-variant-numeric: tabular-nums; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
code, pre { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .88em; background: var(--code); border-radius: 4px; }
code { padding: .1em .3em; overflow-wrap: anywhere; }
pre { padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
pre code { padding: 0; background: none; font-size: 1em; }
.table { overflow-x: auto; margin: 1.6rem 0 2rem; }
table { border-collapse: collapse; min-width: min(100%, 26rem); font-size: .92rem; line-height: 1.4;
  font-variant-numeric: tabular-nums lining-nums; border-bottom: 1.5px solid var(--ink); }
caption { text-align: left; padding-bottom: .6rem; max-width: 46rem; }
caption, figcaption { color: var(--soft); font-size: .92rem; line-height: 1.45; }
caption b, figcaption b { color: var(--ink); font-weight: 600; }
th, td { padding: .45rem .9rem; text-align: left; vertical-align: baseline; border-top: 1px solid var(--line); }
th { font-weight: 500; }
tr > :first-child { padding-left: .5rem; }
tr > :last-child { padding-right: .5rem; }
thead th { border-top: 1.5px solid var(--ink); border-bottom: 1px solid var(--ink); font-weight: 600;
  vertical-align: bottom; }
tbody tr:first-child > * { border-top: 0; }
.number, .word { text-align: right; }
td.number, .short { white-space: nowrap; }
.word { color: var(--soft); }
.ours > * { background: var(--ours); font-weight: 600; }
sup { font-size: .72em; line-height: 0; }
figure { margin: 1.8rem 0 2.2rem; }
img { display: block; max-width: 100%; height: auto; margin: 0 auto; background: #fff; border-radius: 6px; }
figcaption { max-width: 46rem; margin-top: .7rem; }
@media (prefers-color-scheme: dark) { img { filter: brightness(.92); } }
.facts th { color: var(--soft); }
.facts td { overflow-wrap: anywhere; }
footer { padding-block: 2rem 3rem; color: var(--soft); font-size: .9rem; }
@media (max-width: 36rem) { body { font-size: 1rem; } header { padding-top: 2rem; } th, td { padding-inline: .55rem; }
  h2 { margin-top: 2.4rem; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --link: #000;
  --ours: #eee; --code: #f4f4f4; } body { font-size: 10pt; } main, header, footer { max-width: none; padding: 0; }
  figure, tr, pre { break-inside: avoid; } h2, caption { break-after: avoid; } img { filter: none; max-height: 23cm;
  width: auto; } .table { overflow: visible; } p { orphans: 3; widows: 3; } }
"""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{heading}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{subtitle}
<nav aria-label="Contents">
<ol>
{contents}
</ol>
</nav>
</header>
<main>
{body}
<section aria-labelledby="{made}">
<h2 id="{made}">How this was made</h2>
<p>This command writes this report again:</p>
<pre><code>{command}</code></pre>
<div class="table" role="region" aria-label="Versions and machine" tabindex="0">
<table class="facts">
<caption>Versions, machine and settings</caption>
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
