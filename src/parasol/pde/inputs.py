"""Parameter vectors of a discretised problem: the numbers, then the nodal values of each function parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parasol.checks import as_floats, check_count, check_finite
from parasol.errors import InputError
from parasol.pde.parameters import FunctionParameter, Parameter, ParameterSpace
from parasol.space.nodes import Nodes


@dataclass(frozen=True, eq=False)
class Points:
    """Points of a model of which nobody knows whether they are on the boundary."""

    points: np.ndarray


@dataclass(frozen=True, eq=False)
class Inputs:
    """Where the parameters stand in a vector, which vectors are allowed, and how they are drawn at random."""

    space: ParameterSpace
    scalars: tuple[Parameter, ...]  # its symbols
    functions: tuple[FunctionParameter, ...]
    nodes: Nodes | Points | None  # where functions are given; None where there are none

    @cached_property
    def slices(self) -> dict[FunctionParameter, slice]:
        """Where in a parameter vector the nodal values of each function parameter stand."""
        out, start = {}, self.n_scalars
        for function in self.functions:
            out[function] = slice(start, start + len(self.points(function)))
            start = out[function].stop
        return out

    @property
    def n_scalars(self) -> int:
        """Number of parameters that are numbers."""
        return len(self.scalars)

    @property
    def n_parameters(self) -> int:
        """Length of a parameter vector."""
        return max([self.n_scalars, *[s.stop for s in self.slices.values()]])

    def points(self, function: FunctionParameter) -> np.ndarray:
        """The nodes at which a function parameter is given."""
        return self.nodes.boundary if function.on == "boundary" else self.nodes.points  # type: ignore[union-attr]

    def places(self, function: FunctionParameter | None, nodes: np.ndarray) -> np.ndarray | None:
        """Where in a parameter vector the values of a function at these nodes stand."""
        if function is None:
            return None
        first = self.nodes.n_interior if function.on == "boundary" else 0  # type: ignore[union-attr]
        return self.slices[function].start + nodes - first

    def check(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """Parameter vectors (n_samples, n_parameters) as floats; refused if of wrong length or outside the box."""
        mus = self.space.ordered(mus)
        try:
            mus = as_floats(mus)
        except (TypeError, ValueError):
            raise InputError(f"parameters must be real numbers, got {mus!r}.") from None
        if mus.ndim != 2 or mus.shape[1] != self.n_parameters:
            raise InputError(f"mus has shape {mus.shape}, expected (n_samples, {self.n_parameters}): {self._meaning}.")
        self.space.check(mus[:, : self.n_scalars], extrapolate=extrapolate)
        return check_finite(mus, "mus")

    def check_one(self, mu, *, extrapolate: bool = False) -> np.ndarray:
        """One parameter vector, given by numbers, or by names with the middle of the range for what is not named."""
        mu = self.space.ordered(
            self.vector(mu, extrapolate=extrapolate) if mu is None or isinstance(mu, Mapping) else mu
        )
        if np.shape(np.atleast_1d(mu)) != (self.n_parameters,):
            raise InputError(f"mu has shape {np.shape(mu)}, expected ({self.n_parameters},): {self._meaning}.")
        return self.check([np.atleast_1d(mu)], extrapolate=extrapolate)[0]

    @property
    def _meaning(self) -> str:
        """What the entries of a parameter vector are."""
        functions = [f"{f.name} at {s.stop - s.start} nodes" for f, s in self.slices.items()]
        return ", ".join([*self.space.names, *functions]) or "no parameters"

    def sample(self, n_samples: int, rng: int | np.random.Generator = 0) -> np.ndarray:
        """Random parameter vectors: scalars uniform on their scales, functions from their distributions."""
        n_samples = check_count(n_samples, "n_samples")
        rng = np.random.default_rng(rng)
        scalars = self.space.from_unit(rng.random((n_samples, self.n_scalars)))
        return np.hstack([scalars, *[f.distribution.sample(n_samples, self.points(f), rng) for f in self.slices]])

    def vector(
        self,
        values: Mapping[str, float] | None = None,
        rng: int | np.random.Generator = 0,
        *,
        extrapolate: bool = False,
    ) -> np.ndarray:
        """A parameter vector from named scalars (middle of the range where not named) and drawn functions."""
        mu = self.sample(1, rng)[0]
        mu[: self.n_scalars] = self.space.vector(values or {}, extrapolate=extrapolate)
        return mu
