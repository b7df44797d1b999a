"""The files a solve or an answer leaves: refused before it begins, or written all together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from parasol.cache.disk import check_output, replacing
from parasol.delivery.answers import ANSWER_SUFFIXES, MANY_SUFFIXES, as_solution, check_fields, write_answer
from parasol.delivery.files import FIELD_SUFFIXES, GRID_SUFFIXES, write_field
from parasol.errors import InputError
from parasol.pde.problem import Problem
from parasol.report import figures
from parasol.report.animations import ANIMATION_SUFFIXES, require_writer
from parasol.report.answers import AnswerReport
from parasol.report.canvas import require_matplotlib
from parasol.report.render import write_json
from parasol.report.solutions import SolveReport
from parasol.runtime.answer import Answer
from parasol.runtime.surrogate import Surrogate

Stage = Callable[[str], Callable[[float], None] | None]  # told what begins, may return whom to tell the fraction done
_PICTURES = (*figures.FIGURE_SUFFIXES, *ANIMATION_SUFFIXES)


@dataclass(frozen=True)
class Outputs:
    """Where to write fields (in several forms), a figure of the nodes, and the report as JSON."""

    fields: tuple[Path, ...] = ()
    nodes: Path | None = None
    report: Path | None = None

    def __post_init__(self):
        for path in self.paths:
            check_output(path, None)
        if len({path.resolve() for path in self.paths}) < len(self.paths):
            raise InputError("two outputs have the same file name. Give each its own.")
        if self.nodes is not None or any(path.suffix.lower() in _PICTURES for path in self.fields):
            require_matplotlib()
        for path in self.animations:
            require_writer(path.suffix)

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them, the report last."""
        return *self.fields, *[path for path in (self.nodes, self.report) if path is not None]

    @property
    def animations(self) -> tuple[Path, ...]:
        """Those of the fields that move."""
        return tuple(path for path in self.fields if path.suffix.lower() in ANIMATION_SUFFIXES)

    def check_problem(self, problem: Problem) -> None:
        """Refuse what this problem's solution cannot be written as."""
        for path in self.animations if problem.time is None else ():
            raise InputError(f"{path.name!r} would be an animation, but the problem is steady. Write a .png instead.")
        self._check_moments(problem.time is not None)

    def _check_moments(self, many: bool) -> None:
        for path in self.fields:
            if many and path.suffix.lower() == ".vtu":
                raise InputError(f"{path.name!r} would hold one moment of many. Write .vtkhdf, which holds all.")

    def check_surrogate(self, surrogate: Surrogate) -> None:
        """Refuse what this surrogate's answers cannot be written as."""
        for path in self.fields:
            if path.suffix.lower() in (*_PICTURES, *GRID_SUFFIXES):
                check_fields(surrogate, path)
        for path in self.animations if surrogate.layout.n_times < 2 else ():
            raise InputError(f"{path.name!r} would be an animation of one moment. Write a .png instead.")
        self._check_moments(surrogate.layout.n_times > 1)


def solve_outputs(fields: Sequence[str], nodes: str | None, report: str | None) -> Outputs:
    """The outputs of these names, or a clear error; what is named twice for the solution is written once.

    >>> solve_outputs(["u.csv"], None, "./u.csv")
    Traceback (most recent call last):
    parasol.errors.InputError: two outputs have the same file name. Give each its own.
    """
    paths = [check_output(name, (*_PICTURES, *FIELD_SUFFIXES)) for name in dict.fromkeys(fields)]
    drawn = None if nodes is None else check_output(nodes, figures.FIGURE_SUFFIXES)
    return Outputs(tuple(paths), drawn, None if report is None else Path(report))


def answer_outputs(fields: Sequence[str], report: str | None, *, many: bool) -> Outputs:
    """The same for the answer to one parameter, or to many."""
    for path in map(Path, fields):
        if many and path.suffix.lower() in (*_PICTURES, *GRID_SUFFIXES):
            raise InputError(f"{path.name!r} shows one parameter, not many. Use one of: {', '.join(MANY_SUFFIXES)}.")
    paths = [check_output(name, (*ANSWER_SUFFIXES, *_PICTURES)) for name in dict.fromkeys(fields)]
    return Outputs(tuple(paths), report=None if report is None else Path(report))


def write_outputs(report: SolveReport | AnswerReport, to: Outputs, *, stage: Stage = lambda text: None) -> None:
    """Write all files or none: each beside its place first, then all into their places."""
    result = report.answer if isinstance(report, AnswerReport) else report.solution
    with ExitStack() as files:
        for path in to.fields:
            progress = stage(f"writing {path.name}")
            beside = files.enter_context(replacing(path))
            if path.suffix.lower() in _PICTURES:
                figures.draw(as_solution(result) if isinstance(result, Answer) else result, beside, progress=progress)
            elif isinstance(report, AnswerReport):
                write_answer(report.answer, beside, bounds=report.with_bounds)
            else:
                write_field(report.solution, beside)
        if to.nodes is not None and isinstance(report, SolveReport):
            stage(f"writing {to.nodes.name}")
            figures.draw_nodes(report.solution.model.nodes, files.enter_context(replacing(to.nodes)))
        if to.report is not None:  # last, so that it knows of every warning
            write_json(report.to_dict(), files.enter_context(replacing(to.report)))
