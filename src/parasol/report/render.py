"""Results for whoever reads them: JSON for programs, a table for a terminal, a card for a notebook.

A result has `to_dict()`, plain values by name, and `rows()`, words by name; here they become text.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from textwrap import wrap

import numpy as np

from parasol import __version__
from parasol.cache.disk import check_output, replacing
from parasol.runtime.plain import Plain as Facts


def as_json(data: Facts | list[Facts]) -> str:
    """Plain values as JSON text, null for what JSON has no number for.

    >>> print(as_json({"error": math.nan, "unknown": "u"}), end="")
    {
      "error": null,
      "unknown": "u"
    }
    """
    return json.dumps(_finite(data), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def write_json(data: Facts | list[Facts], path: str | Path) -> Path:
    """Write plain values as JSON; the file appears complete or not at all."""
    path = check_output(path, None)
    with replacing(path) as temporary:
        temporary.write_text(as_json(data), encoding="utf-8")
    return path


def table(rows: Iterable[tuple[str, str]], *headers: str, width: int = 110, bold: bool = False) -> str:
    """Names and words side by side, words wrapped to the width; with headers there is space between the rows.

    >>> print(table([("domain", "Disc"), ("parameters", "a in [1, 2], k in [0, 2]")], width=28))
    <BLANKLINE>
      domain       Disc
      parameters   a in [1, 2],
                   k in [0, 2]
    <BLANKLINE>
    """
    entries = [(visible(name), visible(words)) for name, words in rows]
    column = max((len(name) for name, _ in (*entries, headers[:2] or ("", ""))), default=0)
    left = max(width - column - 7, 12)
    lines = [""]
    if headers:
        lines += [f"  {headers[0]:{column}}   {headers[1]}", " " + "─" * (width - 2)]
    for i, (name, words) in enumerate(entries):
        if headers and i:
            lines.append("")
        parts = [part for line in words.split("\n") for part in wrap(line, left, break_on_hyphens=False) or [""]]
        for j, part in enumerate(parts):
            shown = f"{'' if j else name:{column}}"
            lines.append(f"  \x1b[1m{shown}\x1b[0m   {part}" if bold else f"  {shown}   {part}")
    return "\n".join([*lines, ""])


def visible(words: str) -> str:
    r"""The text without characters that would steer a terminal: names and words may come with a file from elsewhere.

    >>> visible("red\x1b[31m\n")
    'red[31m\n'
    """
    return "".join(c for c in words if c.isprintable() or c == "\n")


def card(title: str, rows: Mapping[str, str], *, formulas: Sequence[str] = (), picture: str = "") -> str:
    """A title, LaTeX formulas, a picture (SVG as it is), and a table of names and words, as HTML.

    >>> card("heat", {"a": "1 < 2"})
    '<div><strong>heat</strong><table><tr><th style="text-align:left">a</th><td style="text-align:left">1 &lt; 2</td></tr></table></div>'
    """
    left = 'style="text-align:left"'
    lines = [f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(words)}</td></tr>" for name, words in rows.items()]
    shown = "".join(f"<p>$\\displaystyle {escape(formula, quote=False)}$</p>" for formula in formulas)
    return f"<div><strong>{escape(title)}</strong>{shown}{picture}<table>{''.join(lines)}</table></div>"


def field_rows(fields: Mapping[str, np.ndarray]) -> dict[str, str]:
    """The range of values of each unknown function."""
    return {name: f"from {np.min(values):.6g} to {np.max(values):.6g}" for name, values in fields.items()}


def machine_facts() -> Facts:
    """The machine and the versions behind measured figures."""
    return {
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "parasol": __version__,
    }


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
