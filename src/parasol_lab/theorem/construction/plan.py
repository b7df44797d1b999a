"""The network by inverses: μ ↦ c(μ) = (BᵀB)⁻¹ Bᵀf out of products of matrices, counted before it is built."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from parasol.checks import check_choice
from parasol.errors import InputError
from parasol.fitting import Network
from parasol.pde import Model
from parasol.runtime import Basis
from parasol_lab.theorem.construction.chain import Chain, error_chain
from parasol_lab.theorem.construction.network import Builder, Counter, assemble, assemble_linear, normal_equations
from parasol_lab.theorem.construction.stability import Stability, stability
from parasol_lab.theorem.construction.system import System, reduced_system
from parasol_lab.theorem.networks.inverse import POWERS
from parasol_lab.theorem.networks.products import MAX_LEVELS, rounded_up
from parasol_lab.theorem.networks.refined_bound import refinements_needed
from parasol_lab.theorem.networks.sizes import Size

_FINEST = 1e-13  # below it nothing is built: float64 ends
_COUNTED = 1e-200  # below it no network is counted to compare it with others: numbers vanish
_MOST_REFINEMENTS = 60
_PATIENCE = 6  # how many more refinements are tried that save nothing
_SPARE = 300 * 2**20  # bytes that evaluation and Python itself take beside the network


@dataclass(frozen=True)
class Design:
    """Which of the possible networks: how powers of Â = I − λ BᵀB are made, and what is done to make it small.

    The paper's: each power its own network ("paper"), all entries, λ = 1 / (α² + β²), the paper's ε-chain. Ours: powers
    "shared", only one triangle of symmetric matrices, λ twice as large, an ε-chain that looks where errors act, products of
    coordinates instead of matrices, and a coarse inverse followed by refinements of the vector, as many as save weights.
    """

    powers: str = "shared"
    symmetric: bool = True
    relaxation: float = 2.0
    chain: str = "sharp"
    direct: bool = True  # BᵀB and Bᵀf from products of coordinates
    refinements: int | None = None  # of the vector; None: as many as make the network smallest

    def __post_init__(self):
        check_choice(self.powers, POWERS, "powers")
        if self.refinements and not self.refinable:
            raise InputError("refinements need symmetric=True and chain='sharp'. Use those, or refinements=0.")

    @property
    def refinable(self) -> bool:
        """Whether a coarse inverse may be followed by refinements of the vector."""
        return self.symmetric and self.chain == "sharp"

    @classmethod
    def named(cls, powers: str) -> Design:
        """Ours for "shared", the paper's for "paper"."""
        check_choice(powers, POWERS, "powers")
        return cls() if powers == "shared" else cls("paper", False, 1.0, "paper", False, 0)


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A network before it is built: what it has to be exact to, and how large it will be, counted exactly."""

    system: System
    stability: Stability
    accuracy: float  # relative to the largest ||c||
    design: Design
    normalise: bool = True  # divide B by its norm

    def __repr__(self) -> str:
        return f"<Plan {self.size.depth} layers, {self.size.n_weights} weights, accuracy {self.accuracy:g}>"

    @cached_property
    def _units(self) -> tuple[float, float]:
        """What B and f are divided by, so that an error of y by ε is one of c by ε times the largest ||c||."""
        if self.system.constant or not self.stability.size:
            return 1.0, 1.0
        unit = self.stability.size / float(np.linalg.norm(self.system.back, 2))
        return (self.stability.alpha, self.stability.alpha * unit) if self.normalise else (1.0, unit)

    @cached_property
    def scaled(self) -> System:
        """The system that the network solves."""
        return self.system.about_zero.scaled(*self._units)

    @cached_property
    def constants(self) -> Stability:
        """α, β, γ of that system."""
        return self.stability.scaled(*self._units)

    @cached_property
    def chain(self) -> Chain | None:
        """Accuracies of the parts; None where one affine layer says it all."""
        if self.system.constant:
            return None
        fixed = self.design.refinements if self.design.refinable and self.accuracy >= _COUNTED else 0
        return self._smallest[0] if fixed is None else self.chain_with(fixed)

    @cached_property
    def size(self) -> Size:
        """L, M and levels of the network, also of one that cannot be built."""
        if self.chain is None:
            return self._linear(Counter())
        return self._smallest[1] if "_smallest" in vars(self) else self.count(self.chain)

    def chain_with(self, refinements: int) -> Chain:
        """Accuracies of the parts with so many refinements of the vector."""
        return error_chain(
            self.constants,
            self.accuracy,
            kind=self.design.chain,
            relaxation=self.design.relaxation,
            exact_operator=self.system.exact_operator,
            exact_load=self.system.exact_load,
            refinements=refinements,
        )

    @property
    def ratio(self) -> float:
        """Y / ε of Proposition D: a bound of ‖λ C⁻¹ h‖ over the accuracy."""
        return self.constants.gamma / self.constants.beta / self.accuracy + 3 / 8

    @cached_property
    def _smallest(self) -> tuple[Chain, Size]:
        """The chain with as many refinements as make the network smallest, and its size.

        Those that halve the error, which Proposition D bounds, are among the ones that are tried.
        """
        sure = refinements_needed(self.ratio)
        best, worse = None, 0
        for refinements in range(_MOST_REFINEMENTS + 1):
            if worse == _PATIENCE and refinements != sure:
                continue
            chain = self.chain_with(refinements)
            size = self.count(chain)
            if best is None or size.n_weights < best[1].n_weights:
                best, worse = (chain, size), 0
            else:
                worse = min(
                    worse + 1, _PATIENCE
                )  # a doubling less comes with several refinements more: cost before gain
        return best  # type: ignore[return-value]

    def count(self, chain: Chain) -> Size:
        """Size of the network with a chain of this plan."""
        return self.assembled(Counter(), chain, self.normal_sizes)

    @cached_property
    def normal_sizes(self) -> tuple[Size, Size]:
        """Sizes of the normal equations, whatever the number of refinements."""
        return normal_equations(Counter(), self.scaled, self.chain_with(0), **self._forms)

    @property
    def _forms(self) -> dict[str, bool]:
        return {"symmetric": self.design.symmetric, "direct": self.design.direct}

    @property
    def representable(self) -> bool:
        """Whether float64 resolves all its products, so that what is proven in exact arithmetic holds in float64 too."""
        exact = self.chain is None and self.system.exact_load
        return exact or (self.accuracy >= _FINEST and self.size.levels <= MAX_LEVELS)

    @property
    def n_bytes(self) -> int:
        """Memory to build and evaluate it, at most."""
        return self.size.n_bytes + _SPARE

    @property
    def smallest_accuracy(self) -> float:
        """The smallest accuracy that float64 resolves, by bisection; infinite if there is none below 1/4."""
        low, high = math.log(_FINEST), math.log(0.2499)
        if not replace(self, accuracy=math.exp(high)).representable:
            return math.inf
        if replace(self, accuracy=math.exp(low)).representable:
            return _FINEST
        while high - low > 0.005:
            middle = (low + high) / 2
            low, high = (low, middle) if replace(self, accuracy=math.exp(middle)).representable else (middle, high)
        return math.exp(high)

    def build(self) -> Network:
        """The network; refused before anything is built where float64 or memory does not allow it.

        The paper's is built with more levels than float64 resolves too: its accuracies are finer than needed, so that
        rounding takes the place of an error that was far below the one asked for. That is measured, not proven.
        """
        deep = self.design.powers == "paper" and self.accuracy >= _FINEST
        if not (self.representable or deep):
            least = self.smallest_accuracy
            advice = f"Ask for accuracy >= {rounded_up(least)}" if least < 0.24 else "No accuracy below 1/4 does"
            # far below nothing can be counted either: numbers vanish
            needs = f"{self.size.levels} sawtooth levels" if self.accuracy >= _FINEST else "too many sawtooth levels"
            raise InputError(
                f"accuracy={self.accuracy:g} with alpha/beta={self.stability.kappa:.3g} needs {needs}, float64 resolves "
                f"{MAX_LEVELS}. {advice}; "
                "powers='shared', preconditioning and fewer modes need fewer levels."
            )
        there = available_memory()
        if self.n_bytes > there:
            raise InputError(
                f"the network has {self.size.n_weights} weights and needs {self.n_bytes / 2**30:.2g} GiB of memory, there are "
                f"{there / 2**30:.2g} GiB. Use fewer modes, powers='shared' or compress=True."
            )
        kit = Builder(resolved=not deep)
        if self.chain is None:
            return self._linear(kit)
        return self.assembled(kit, self.chain, normal_equations(kit, self.scaled, self.chain, **self._forms))

    def assembled(self, kit, chain: Chain, given):
        """The network or its size by a kit, from normal equations by the same kit, as exact as a chain says."""
        return assemble(kit, self.scaled, chain, self.design.powers, given, symmetric=self.design.symmetric)

    def _linear(self, kit):
        return assemble_linear(kit, self.scaled, self.accuracy * self.stability.size)


def check_accuracy(accuracy) -> float:
    """A relative accuracy in (0, 1/4), where the theorem holds.

    >>> check_accuracy(0.5)
    Traceback (most recent call last):
    parasol.errors.InputError: accuracy must lie strictly between 0 and 1/4, where the theorem holds, got 0.5. ...
    """
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float | np.floating) or not 0 < accuracy < 0.25:
        raise InputError(
            f"accuracy must lie strictly between 0 and 1/4, where the theorem holds, got {accuracy!r}. Try 1e-2."
        )
    return float(accuracy)


def plan_construction(
    model: Model,
    basis: Basis,
    *,
    accuracy: float,
    powers: str = "shared",
    compress: bool = True,
    precondition: str = "solve",
    reference=None,
) -> Plan:
    """What the network μ ↦ c(μ) by inverses of a steady linear model in a basis would be, without building it.

    c(μ) is the least-squares solution of A(μ) V c = f(μ), `accuracy` is relative to its largest norm over the box. See
    `reduced_system` for `compress`, `precondition` and `reference`, `Design` for what `powers` stands for.
    """
    accuracy, design = check_accuracy(accuracy), Design.named(powers)
    system = reduced_system(model, basis, compress=compress, precondition=precondition, reference=reference)
    return Plan(system, stability(system), accuracy, design)


def available_memory() -> float:
    """Bytes that can still be taken, as far as the machine says."""
    limits = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # without a limit it says "max"
        limits.append(float(Path("/sys/fs/cgroup/memory.max").read_text()))
    if not limits and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        limits.append(float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=math.inf)
