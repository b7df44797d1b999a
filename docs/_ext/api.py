"""The reference: every public name of every stub, with its signature, its docstring and where it is used."""

from __future__ import annotations

import ast
import inspect
import json
import re
import types
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from as_markdown import docstring, escaped
from commands import write_if_changed

SRC = Path(__file__).parents[2] / "src"
# names of daily use by what they are for; a public name that stands nowhere here stops the build
TOPICS = {
    "A problem": "coordinates time parameters unknown unknowns Eq Problem Settings normal gradient divergence laplacian by_region",
    "Conditions and quantities": "Dirichlet Neumann Robin NormalFlux Jump PointValue Average Integral Flux",
    "Parameters": "Choice FunctionParameter GaussianField SphereField sample",
    "Domains and nodes": "Box Disc Ball Star Polygon Curve Implicit Surface scatter lattice",
    "Full solves": "discretize AffineModel load_problem solve_many verify draw",
    "Results of other programs": "Results read_results fit_snapshots suggest",
    "Learning": "learn plan pod greedy reduce fit accuracy calibrate check",
    "Surrogates": "Surrogate save load write_answers explore serve export",
    "Errors and warnings": "errors ParasolError ParasolWarning",
}
PACKAGES = [
    "parasol.space",
    "parasol.pde",
    "parasol.reduction",
    "parasol.fitting",
    "parasol.learning",
    "parasol.runtime",
    "parasol.delivery",
    "parasol.report",
    "parasol.cache",
    "parasol.cli",
    "parasol_lab.paper",
    "parasol_lab.theorem",
]
_EXAMPLES = Path(__file__).with_name("examples.md")
# packages with pages of their own
MODULES = frozenset(["delivery", "fitting", "learning", "pde", "reduction", "report", "runtime", "space"])


@dataclass(frozen=True)
class Entry:
    """One public name: where it is listed and what it is."""

    package: str
    name: str

    @cached_property
    def value(self) -> Any:
        """What the name stands for."""
        return getattr(import_module(self.package), self.name)

    @property
    def full(self) -> str:
        """`parasol.learn`."""
        return f"{self.package}.{self.name}"


def public_names(package: str) -> list[str]:
    """The names that the stub of a package lists, in its order."""
    stub = SRC.joinpath(*package.split("."), "__init__.pyi")
    body = ast.parse(stub.read_text(encoding="utf-8")).body
    return [name.asname for line in body if isinstance(line, ast.ImportFrom) for name in line.names if name.asname]


@cache
def examples() -> dict[str, str]:
    """Examples of names whose docstrings have none, by full name; "setup" is what they go on from."""
    sections = re.split(r"^# (.+)\n", _EXAMPLES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: text.strip() for name, text in zip(sections[::2], sections[1::2], strict=True)}


def example(e: Entry) -> str:
    """The example of a name as a block of the page, if its docstring has none."""
    if ">>>" in _own_doc(e.value) or e.full not in examples():
        return ""
    return f"\n\n```pycon\n{examples()[e.full]}\n```"


def setup_of(body: str) -> str:
    """What the examples of a page go on from, if one of them is from the list."""
    if not any(text in body for name, text in examples().items() if name != "setup"):
        return ""
    words = "Examples that import nothing go on from these lines, and from one another"
    return f":::{{dropdown}} {words}\n\n```pycon\n{examples()['setup']}\n```\n:::\n\n"


def signature(value: Any) -> str:
    """Arguments with their types, as they are written."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    kept = [
        p.replace(
            annotation=p.empty if p.annotation is p.empty else _Type(p.annotation),
            default=p.default if p.default is p.empty else _Default(p.default),
        )
        for p in signature.parameters.values()
    ]
    returns = (
        signature.return_annotation
        if not inspect.isclass(value) and signature.return_annotation is not signature.empty
        else signature.empty
    )
    return str(
        signature.replace(parameters=kept, return_annotation=returns if returns is signature.empty else _Type(returns))
    )


class _Type(str):
    """An annotation that is shown as it is written."""

    def __new__(cls, annotation: Any):
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        return super().__new__(
            cls, re.sub(r"\b(?:numpy\.typing|collections\.abc|typing|np|parasol(?:\.\w+)*)\.(?=[A-Z])", "", text)
        )

    def __repr__(self) -> str:
        return str(self)


class _Default:
    """A default value, shortened where Python shows where something lies in memory."""

    def __init__(self, value: Any):
        self.value = value

    def __repr__(self) -> str:
        text = f"{self.value.__module__}.{self.value.__name__}" if isinstance(self.value, type) else repr(self.value)
        return "..." if " at 0x" in text or "<factory>" in text or len(text) > 60 else text


def members(value: type) -> list[tuple[str, Any]]:
    """Public methods and properties of a class that have a docstring, in the order in which they are written."""
    seen: dict[str, Any] = {}
    for owner in value.__mro__:
        if owner.__module__.partition(".")[0] in ("parasol", "parasol_lab"):
            for name, member in vars(owner).items():
                seen.setdefault(name, member)
    return [(name, m) for name, m in seen.items() if not name.startswith("_") and _is_member(m) and _words(m)]


def _is_member(member: Any) -> bool:
    return isinstance(member, property | classmethod | staticmethod | cached_property) or inspect.isfunction(member)


def _words(member: Any) -> str:
    own = getattr(member, "__func__", member)
    return inspect.cleandoc(own.__doc__) if own.__doc__ else ""


def _member(name: str, member: Any) -> str:
    if isinstance(member, property | cached_property):
        return f":::{{py:property}} {name}\n\n{docstring(_words(member))}\n:::\n"
    own = getattr(member, "__func__", member)
    text = re.sub(r"^\((?:self|cls)(?:, )?", "(", signature(own))
    option = (
        "\n:classmethod:"
        if isinstance(member, classmethod)
        else "\n:staticmethod:"
        if isinstance(member, staticmethod)
        else ""
    )
    return f":::{{py:method}} {name}{text}{option}\n\n{docstring(_words(member))}\n:::\n"


def _own_doc(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    if getattr(value, "__module__", "").partition(".")[0] == "sympy":  # explained there, in sections of its own
        return f"{text.partition(chr(10))[0]} It is that of SymPy, `sympy.{value.__name__}`."
    if isinstance(value, types.UnionType | types.GenericAlias):
        return f"`{_Type(value)}`"
    if not inspect.isclass(value) and text == inspect.getdoc(type(value)):  # an object of a class of somebody else
        return f"A `{type(value).__module__.partition('.')[0]}.{type(value).__name__}`."
    return "" if inspect.isclass(value) and text.startswith(f"{value.__name__}(") else text  # a dataclass without one


def entry(e: Entry, known: dict[int, str], uses: dict[str, list[str]]) -> str:
    """The entry of one name; a name that another page explains leads there."""
    value, used = e.value, uses.get(e.full, [])
    if not inspect.ismodule(value) and callable(value) and known.setdefault(id(value), e.full) != e.full:
        return f"::::{{py:data}} {e.full}\n:no-contents-entry:\n\nThe same as {{py:obj}}`{known[id(value)]}`.\n::::\n"
    if inspect.ismodule(value):  # the names after it are still those of the package
        return f"::::{{py:module}} {e.full}\n::::\n\n`{e.full}`: {docstring(_own_doc(value))}\n\n```{{py:currentmodule}} {e.package}\n```\n"
    shown = example(e)
    where = f"\n\nUsed in {', '.join(used)}." if used else ""
    if inspect.isclass(value):
        inside = "\n".join(_member(name, m) for name, m in members(value))
        kind = "exception" if issubclass(value, BaseException) else "class"
        return f"::::{{py:{kind}}} {e.full}{signature(value)}\n\n{docstring(_own_doc(value))}{shown}{where}\n\n{inside}\n::::\n"
    if callable(value) and hasattr(value, "__name__") and not isinstance(value, types.GenericAlias):
        return f"::::{{py:function}} {e.full}{signature(value)}\n\n{docstring(_own_doc(value))}{shown}{where}\n::::\n"
    if isinstance(value, str | int | float | tuple | list | dict | frozenset):
        return f"::::{{py:data}} {e.full}\n:value: {json.dumps(repr(value))}\n{where}\n::::\n"
    return f"::::{{py:data}} {e.full}\n\n{docstring(_own_doc(value))}{shown}{where}\n::::\n"


def uses_of_names(docs: Path) -> dict[str, list[str]]:
    """The tutorials and how-to pages in which a name stands, as links."""
    pages = {f"[{_title(p)}](/howto/{p.name})": p for p in sorted((docs / "howto").glob("*.md"))}
    pages |= {f"[{_title(p)}](/errors.md)": p for p in [docs / "errors.md"]}
    pages |= {
        f"[{_script_title(p)}](/tutorials/{p.stem}.rst)": p for p in sorted((docs.parent / "examples").glob("*.py"))
    }
    uses: dict[str, list[str]] = {}
    for link, path in pages.items():
        for name in set(re.findall(r"\bps\.([A-Za-z_.]+)", path.read_text(encoding="utf-8"))):
            parts = name.rstrip(".").split(".")
            for i in range(1, len(parts) + 1):
                uses.setdefault("parasol." + ".".join(parts[:i]), []).append(link)
    return {name: links[:6] for name, links in uses.items()}


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ").strip()


def _script_title(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem
    return doc.strip().partition("\n")[0]


def pages(docs: Path) -> dict[str, str]:
    """The Markdown of every page of the reference, by its name."""
    uses, known, written = uses_of_names(docs), {}, {}
    flat = public_names("parasol")
    listed = [name for names in TOPICS.values() for name in names.split()]
    missing = set(flat) - set(listed) - MODULES
    if missing or set(listed) - set(flat):
        raise RuntimeError(
            f"docs/_ext/api.py has no topic for {sorted(missing)}, and these are gone: {sorted(set(listed) - set(flat))}"
        )
    for topic, names in TOPICS.items():
        body = "\n".join(entry(Entry("parasol", name), known, uses) for name in names.split())
        top = f"# {topic}\n\n```{{py:currentmodule}} parasol\n```\n\n`import parasol as ps`\n\n"
        written[topic.lower().replace(" ", "-")] = f"{top}{setup_of(body)}{body}"
    for package in PACKAGES:
        charter = docstring(_own_doc(import_module(package)))
        body = "\n".join(entry(Entry(package, name), known, uses) for name in public_names(package))
        written[package.replace(".", "-").replace("_", "-")] = (
            f"# {escaped(package)}\n\n```{{py:module}} {package}\n```\n\n{charter}\n\n{setup_of(body)}{body}"
        )
    return written


def _write(app) -> None:
    folder = Path(app.srcdir) / "reference" / "api"
    current = pages(Path(app.srcdir))
    for name, text in current.items():
        write_if_changed(folder / f"{name}.md", text)
    for old in set(folder.glob("*.md")) - {folder / f"{name}.md" for name in current}:
        old.unlink()


def setup(app):
    """Write the pages before Sphinx looks for them."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
