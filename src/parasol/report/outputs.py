"""The files a solve leaves: refused before it begins, or written all together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from parasol.cache.disk import check_output, replacing
from parasol.checks import ParasolError
from parasol.delivery.files import FIELD_SUFFIXES, write_field
from parasol.pde.evolution import Evolution
from parasol.pde.problem import Problem
from parasol.pde.steady import Solution
from parasol.report import figures
from parasol.report.animations import ANIMATION_SUFFIXES, require_writer
from parasol.report.canvas import require_matplotlib
from parasol.report.plain import Facts, Stage, write_json


@dataclass(frozen=True)
class Outputs:
    """Where to write the solution (in several forms), a figure of its nodes, and its facts as JSON.

    >>> Outputs(solution=(Path("u.csv"),), facts=Path("./u.csv"))
    Traceback (most recent call last):
    parasol.errors.ParasolError: two outputs have the same file name. Give each its own.
    """

    solution: tuple[Path, ...] = ()
    nodes: Path | None = None
    facts: Path | None = None

    def __post_init__(self):
        for path in self.solution:
            check_output(path, (*figures.FIGURE_SUFFIXES, *ANIMATION_SUFFIXES, *FIELD_SUFFIXES))
        if self.nodes is not None:
            check_output(self.nodes, figures.FIGURE_SUFFIXES)
        if self.facts is not None:
            check_output(self.facts, None)
        if len({path.resolve() for path in self.paths}) < len(self.paths):
            raise ParasolError("two outputs have the same file name. Give each its own.")
        if self.nodes is not None or any(path.suffix.lower() not in FIELD_SUFFIXES for path in self.solution):
            require_matplotlib()
        for path in self.animations:
            require_writer(path.suffix)

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them, the facts last."""
        return *self.solution, *[path for path in (self.nodes, self.facts) if path is not None]

    @property
    def animations(self) -> tuple[Path, ...]:
        """Those of the solution that move."""
        return tuple(path for path in self.solution if path.suffix.lower() in ANIMATION_SUFFIXES)

    def check_fit(self, problem: Problem) -> None:
        """Refuse what this problem's solution cannot be written as."""
        for path in self.animations if problem.time is None else ():
            raise ParasolError(f"{path.name!r} would be an animation, but the problem is steady. Write a .png instead.")


def check_outputs(solution: Sequence[str], nodes: str | None, facts: str | None) -> Outputs:
    """The outputs of these names, or a clear error; what is named twice for the solution is written once."""
    return Outputs(
        solution=tuple(Path(name) for name in dict.fromkeys(solution)),
        nodes=None if nodes is None else Path(nodes),
        facts=None if facts is None else Path(facts),
    )


def write_outputs(
    solution: Solution | Evolution, facts: Facts, to: Outputs, *, stage: Stage = lambda text: None
) -> None:
    """Write all files or none: each beside its place first, then all into their places."""
    with ExitStack() as files:
        for path in to.solution:
            progress = stage(f"writing {path.name}")
            beside = files.enter_context(replacing(path))
            if path.suffix.lower() in FIELD_SUFFIXES:
                write_field(solution, beside)
            else:
                figures.draw(solution, beside, progress=progress)
        if to.nodes is not None:
            stage(f"writing {to.nodes.name}")
            figures.draw_nodes(solution.model.nodes, files.enter_context(replacing(to.nodes)))
        if to.facts is not None:  # last, so that it knows of every warning
            write_json(facts, files.enter_context(replacing(to.facts)))
