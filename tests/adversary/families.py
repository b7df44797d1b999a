"""What a family of attacks is, and what came of one."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import parasol as ps
from adversary.problems import Wrong

FAMILIES: dict[str, Family] = {}


@dataclass(frozen=True)
class Family:
    """A function of a `Draw` that returns what it measured, or raises; what counts as an honest way out."""

    name: str
    attack: Callable[[Draw], str]
    case: str  # of the issue
    refused: bool  # whether a ParasolError is an acceptable answer
    warned: bool  # whether a ParasolWarning excuses a wrong one
    n_cases: int  # seeds after which `turn` begins anew
    known: str  # why a failure is expected for now: it is shown as open and does not count


@dataclass(frozen=True)
class Draw:
    """The randomness of one attack: a generator, and cases that take turns from seed to seed."""

    seed: int
    rng: np.random.Generator

    def turn(self, cases: Sequence):
        """One of the cases, the next one for the next seed."""
        return cases[self.seed % len(cases)]

    def uniform(self, low: float, high: float, digits: int = 2) -> float:
        """A number with few digits, so that a reproduction can be read."""
        return round(float(self.rng.uniform(low, high)), digits)


@dataclass(frozen=True)
class Outcome:
    """What came of one attack: "passed", "refused", "failed", or "open" where that is known, with the numbers."""

    family: str
    seed: int
    verdict: str
    words: str
    seconds: float  # of the processor, whatever else the machine does

    @property
    def reproduction(self) -> str:
        """The command that runs it again."""
        return f"python -m adversary --family {self.family} --seed {self.seed}"


def family(case: str, *, refused: bool = False, warned: bool = False, n_cases: int = 1, known: str = ""):
    """Register an attack under its name with hyphens; `known` says why it may still fail."""

    def register(attack):
        name = attack.__name__.replace("_", "-")
        FAMILIES[name] = Family(name, attack, case, refused, warned, n_cases, known)
        return attack

    return register


def run(name: str, seed: int) -> Outcome:
    """Run one attack. Right, refused in one line, or said by a warning; all else is a failure."""
    chosen = FAMILIES[name]
    draw = Draw(seed, np.random.default_rng([seed, sum(map(ord, name))]))
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        verdict, words = _verdict(chosen, draw)
    said = [str(w.message) for w in caught if issubclass(w.category, ps.ParasolWarning)]
    if verdict == "failed" and said and chosen.warned and words.startswith("wrong"):
        verdict, words = "refused", f"{words}; but it was said: {said[0]}"
    if verdict == "failed" and chosen.known:
        verdict, words = "open", f"{words} (known: {chosen.known})"
    return Outcome(name, seed, verdict, words, time.process_time() - start)


def _verdict(chosen: Family, draw: Draw) -> tuple[str, str]:
    try:
        return "passed", chosen.attack(draw)
    except Wrong as wrong:
        return "failed", f"wrong: {wrong}"
    except ps.ParasolError as refusal:
        words = str(refusal)
        if "\n" in words.strip():
            return "failed", f"a refusal of several lines: {words!r}"
        return ("refused" if chosen.refused else "failed"), f"refused: {words}"
    except Exception as error:  # a raw error is never an answer
        where = traceback.extract_tb(error.__traceback__)[-1]
        return (
            "failed",
            f"raw {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} ({where.filename.split('/')[-1]}:{where.lineno})",
        )
