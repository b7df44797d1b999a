"""The files an answer leaves: refused before it is asked for, or written all together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from parasol.cache.disk import check_output, replacing
from parasol.checks import ParasolError
from parasol.delivery.answers import ANSWER_SUFFIXES, MANY_SUFFIXES, as_solution, check_fields, write_answer
from parasol.report import figures
from parasol.report.animations import ANIMATION_SUFFIXES, require_writer
from parasol.report.canvas import require_matplotlib
from parasol.report.plain import Facts, Stage, write_json
from parasol.runtime.answer import Answer
from parasol.runtime.surrogate import Surrogate

_PICTURES = (*figures.FIGURE_SUFFIXES, *ANIMATION_SUFFIXES)


@dataclass(frozen=True)
class AnswerOutputs:
    """Where to write an answer, in several forms, and its facts as JSON."""

    answer: tuple[Path, ...] = ()
    facts: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them, the facts last."""
        return (*self.answer, *([] if self.facts is None else [self.facts]))

    def check_fit(self, surrogate: Surrogate) -> None:
        """Refuse what this surrogate's answers cannot be written as."""
        for path in self.answer:
            suffix = path.suffix.lower()
            if suffix in (*_PICTURES, ".vtkhdf"):
                check_fields(surrogate, path)
            if suffix in ANIMATION_SUFFIXES and surrogate.layout.n_times < 2:
                raise ParasolError(f"{path.name!r} would be an animation of one moment. Write a .png instead.")


def check_answer_outputs(answer: Sequence[str], facts: str | None, *, many: bool) -> AnswerOutputs:
    """The outputs of these names, or a clear error; what is named twice is written once."""
    paths = tuple(Path(name) for name in dict.fromkeys(answer))
    for path in paths:
        if many and path.suffix.lower() in (*_PICTURES, ".vtkhdf"):
            raise ParasolError(f"{path.name!r} shows one parameter, not many. Use one of: {', '.join(MANY_SUFFIXES)}.")
        check_output(path, (*ANSWER_SUFFIXES, *_PICTURES))
        if path.suffix.lower() in _PICTURES:
            require_matplotlib()
        if path.suffix.lower() in ANIMATION_SUFFIXES:
            require_writer(path.suffix)
    outputs = AnswerOutputs(paths, None if facts is None else check_output(facts, None))
    if len({path.resolve() for path in outputs.paths}) < len(outputs.paths):
        raise ParasolError("two outputs have the same file name. Give each its own.")
    return outputs


def write_answers(
    answer: Answer, facts: Facts, to: AnswerOutputs, *, bounds: bool = False, stage: Stage = lambda text: None
) -> None:
    """Write all files of an answer or none: each beside its place first, then all into their places."""
    with ExitStack() as files:
        for path in to.answer:
            progress = stage(f"writing {path.name}")
            beside = files.enter_context(replacing(path))
            if path.suffix.lower() in _PICTURES:
                figures.draw(as_solution(answer), beside, progress=progress)
            else:
                write_answer(answer, beside, bounds=bounds)
        if to.facts is not None:  # last, so that it knows of every warning
            write_json(facts, files.enter_context(replacing(to.facts)))
