"""Docstrings and help texts as Markdown: what they say is kept letter by letter, code stays code."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"([\\*_<>|\[\]$#~])")


def escaped(text: str) -> str:
    """Text whose letters mean nothing to Markdown, but for `code`.

    >>> escaped("a*b*c of `x*y`")
    'a\\\\*b\\\\*c of `x*y`'
    """
    pieces = re.split(r"(``?[^`]+``?)", text)
    return "".join(piece if i % 2 else _SPECIAL.sub(r"\\\1", piece) for i, piece in enumerate(pieces))


def docstring(text: str) -> str:
    """A docstring as Markdown: paragraphs, lists, indented formulas and examples.

    >>> print(docstring("Adds.\\n\\n>>> 1 + 1\\n2\\n"))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        start = next((i for i, line in enumerate(lines) if line.lstrip().startswith(">>>")), None)
        if start is not None:
            if start:
                blocks.append(escaped("\n".join(lines[:start])))
            blocks.append("```pycon\n" + "\n".join(line.strip("\n") for line in lines[start:]) + "\n```")
        elif all(line.startswith("    ") for line in lines):
            blocks.append("```text\n" + "\n".join(line[4:] for line in lines) + "\n```")
        else:
            blocks.append("\n".join(_line(line) for line in lines))
    return "\n\n".join(blocks)


def _line(line: str) -> str:
    """One line of a paragraph; the mark of a list stays one."""
    mark = re.match(r"\s*(?:[-*] |\d+\. )", line)
    head = mark[0] if mark else ""
    return head + escaped(line[len(head) :])
