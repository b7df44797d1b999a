"""Which peers there are: `peers.toml` names scripts, options and pages of documentation, `requirements/` pins the versions."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parasol.errors import InputError

HERE = Path(__file__).parent
OWN = "parasol"  # the environment that is already there
KINDS = ("data", "equations", "solve")


@dataclass(frozen=True)
class Peer:
    """One way of one package: what is run, and what its documentation says about it."""

    name: str
    environment: str
    script: Path
    kind: str
    source: str  # project and page that the settings are from
    options: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 1  # more where it trains from random numbers
    bound: str = "none"
    logarithm: bool = False  # given log a in place of a, as a user would who knows that it spans decades
    folder: Path = HERE / "requirements"

    @property
    def requirements(self) -> Path | None:
        """The pinned versions of its environment; None for parasol's own."""
        return None if self.environment == OWN else self.folder / f"{self.environment}.txt"

    @property
    def lines(self) -> int:
        """Lines of code in the script, without blank lines, comments and docstrings."""
        return code_lines(self.script.read_text(encoding="utf-8"))


def read_peers(path: Path | None = None) -> list[Peer]:
    """All peers of a file, by default of the one in this package; scripts and requirements are in folders beside it."""
    path = HERE / "peers.toml" if path is None else path
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["peer"]
    for entry in entries:
        entry["script"] = path.parent / "scripts" / entry["script"]
        entry["folder"] = path.parent / "requirements"
    return [Peer(**entry) for entry in entries]


def select_peers(peers: Sequence[Peer], names: Sequence[str]) -> list[Peer]:
    """Those whose names begin so, in any case of letters; all where no names are given."""
    known = [peer.name.lower() for peer in peers]
    for name in names:
        if not any(one.startswith(name.lower()) for one in known):
            families = dict.fromkeys(peer.name.partition(",")[0] for peer in peers)
            raise InputError(f"there is no peer {name!r}. Use the beginnings of names: {', '.join(families)}.")
    beginnings = tuple(name.lower() for name in names) or ("",)
    return [peer for peer in peers if peer.name.lower().startswith(beginnings)]


def code_lines(text: str) -> int:
    """Lines of Python that are neither blank, nor comment, nor docstring.

    >>> code_lines('"What."\\n\\nimport numpy\\n\\n\\ndef f(x):\\n    # why\\n    return x\\n')
    3
    """
    words: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and body
            and ast.get_docstring(node) is not None
        ):
            words |= set(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and i not in words for i, line in lines)
