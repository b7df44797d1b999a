"""The page of the command line, from the commands themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from as_markdown import escaped

_TOP = """# Command line

`PROBLEM` is a name of the catalogue (`parasol problems`) or `path/to/file.py[:name]`; `SURROGATE` is a file that `parasol learn` or `ps.save` wrote.
This page is made from the commands, as `parasol COMMAND --help` is.

Exit status of every command: 0 done, 1 a check failed or a file cannot be written, 2 wrong input, 3 the tolerance was not met, 130 interrupted, 143 terminated.
With `--json FILE` a command writes what it found as JSON (`-` is standard output), with `--quiet` it says nothing but errors; `parasol --debug COMMAND` shows the whole traceback of an error.
"""


_ITEM = re.compile(r"(\S.*?) {2,}(\S.*)$")


def _text(words: str) -> str:
    return escaped(re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", words))


def _plain(text: str) -> str:
    return re.sub(r"\[/?[a-z ]+\]", "", text)


def _default(option: Any) -> str:
    value = option.default
    return "" if value in (None, False, ()) or callable(value) or "Sentinel" in repr(value) else f" Default: `{value}`."


def _section(name: str, command: Any) -> str:
    words = [f"parasol {name}", *(_metavar(p) for p in command.params if _is_argument(p))]
    parts = getattr(command, "commands", {})
    lines = [
        f"## parasol {name}",
        "",
        "```sh",
        " ".join([*words, *(["|".join(parts)] if parts else []), "[OPTIONS]"]),
        "```",
        "",
    ]
    for paragraph in re.split(r"\n\s*\n", (command.help or "").strip()):
        rows = [row.strip() for row in _plain(paragraph).replace("\b", "").strip().splitlines()]
        if paragraph.strip().startswith("[dim]"):
            lines += ["```sh", *rows, "```", ""]
        elif all(row.startswith("--") for row in rows):  # what the values of options mean
            lines += [*(f"- `{row.split()[0]}` {_text(' '.join(row.split()[1:]))}" for row in rows), ""]
        elif len(rows) > 1 and all(_ITEM.match(row) for row in rows[1:]):  # a line, and names with their meanings
            items = [_ITEM.match(row) for row in rows[1:]]
            lines += [_text(rows[0]), "", *(f"- `{item[1]}`: {_text(item[2])}" for item in items if item), ""]
        elif rows[0].startswith("."):  # kinds of files, a line each
            lines += ["\\\n".join(_text(row) for row in rows), ""]
        else:
            lines += [_text(" ".join(rows)), ""]
    if rows := [_row(p) for p in command.params if p.name != "help"]:
        lines += ["| option | meaning |", "|---|---|", *rows, ""]
    return "\n".join([*lines, *(_section(f"{name} {part}", inner) for part, inner in parts.items())])


def _row(p: Any) -> str:
    label = _metavar(p) if _is_argument(p) else ", ".join([*p.opts, *p.secondary_opts])
    value = "" if _is_argument(p) or getattr(p, "is_flag", False) else f" {_metavar(p)}"
    words = _text(_plain(" ".join((p.help or "").split())))
    return f"| `{(label + value).replace('|', chr(92) + '|')}` | {words}{_default(p)} |"


def _is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


def _metavar(parameter: Any) -> str:
    if parameter.metavar:
        return parameter.metavar
    kind = getattr(parameter, "type", None) or getattr(parameter, "param_type", None)
    return parameter.name.upper() if _is_argument(parameter) or kind is None else kind.name.upper()


def page() -> str:
    """The whole page as Markdown."""
    from typer.main import get_command

    from parasol.cli import app

    group: Any = get_command(app)
    return "\n".join([_TOP, *(_section(name, group.get_command(None, name)) for name in group.list_commands(None))])


def write_if_changed(path: Path, text: str) -> None:
    """A page that is as it was keeps its date, so that Sphinx does not read it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app):
    """Write the page before Sphinx looks for pages."""
    app.connect(
        "builder-inited", lambda app: write_if_changed(Path(app.srcdir) / "reference" / "command-line.md", page())
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
