"""Quantities of interest: what is wanted of a solution, as weights of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.expressions import as_formula, as_function, to_expression
from parasol.pde.parameters import Parameter
from parasol.pde.regions import check_regions, in_region
from parasol.runtime.quantities import Mixing
from parasol.runtime.theta import Theta
from parasol.space.by_region import derivatives_at
from parasol.space.elements import Elements
from parasol.space.geometry.axes import axis_symbols
from parasol.space.geometry.domain import Domain
from parasol.space.nodes import Nodes
from parasol.space.quadrature import surface_points, volume_weights
from parasol.space.stencils import Scheme


class Quantity(Protocol):
    """A linear functional of one unknown function, or of all of them."""

    def check(self, domain: Domain, name: str) -> None:
        """Refuse what makes no sense on this domain."""
        ...

    def weights(self, nodes: Nodes, scheme: Scheme | Elements) -> np.ndarray | dict[sympy.Expr, np.ndarray]:
        """Weights of the values at the nodes, (n_nodes,); where they depend on parameters a sum, by the factors θ(μ)."""
        ...


@dataclass(frozen=True, eq=False)
class PointValue:
    """u at a point; `of` names the unknown where there are several."""

    point: Sequence[float] | float
    of: str | None = None

    def check(self, domain: Domain, name: str) -> None:
        """Refuse a point that is not in the domain."""
        point = self._at(domain.dimension, name)
        if domain.distance(point)[0] > 1e-9 * domain.size:
            raise InputError(f"the quantity {name!r} is at {point[0].tolist()}, outside the domain. Choose inside.")

    def _at(self, dimension: int, name: str = "point") -> np.ndarray:
        return check_finite(check_shape(np.atleast_1d(self.point)[None], (1, dimension), f"point of {name!r}"), "point")

    def weights(self, nodes: Nodes, scheme: Scheme | Elements) -> np.ndarray:
        """A row of interpolation."""
        zero = (0,) * nodes.dimension
        return derivatives_at(nodes, self._at(nodes.dimension), [zero], scheme)[zero].toarray()[0]


@dataclass(frozen=True, eq=False)
class Integral:
    """∫ u over the domain, or over a named part of its boundary; `of` names the unknown where there are several."""

    part: str | None = None
    of: str | None = None

    def check(self, domain: Domain, name: str) -> None:
        """Refuse a part that the domain does not have."""
        _check_part(self.part, domain, name)

    def weights(self, nodes: Nodes, scheme: Scheme | Elements) -> np.ndarray:
        """Quadrature weights; of elements the integrals of their shape functions."""
        if self.part is None:
            return scheme.integrals if isinstance(scheme, Elements) else volume_weights(nodes, scheme)
        zero, surface = (0,) * nodes.dimension, surface_points(nodes, self.part)
        return derivatives_at(nodes, surface.points, [zero], scheme)[zero].T @ surface.weights


@dataclass(frozen=True, eq=False)
class Average(Integral):
    """The mean of u over the domain, or over a named part of its boundary: the integral of u over that of 1."""

    def weights(self, nodes: Nodes, scheme: Scheme | Elements) -> np.ndarray:
        """Quadrature weights that sum to 1."""
        weights = super().weights(nodes, scheme)
        return weights / weights.sum()


@dataclass(frozen=True, eq=False)
class Flux:
    """∫ coefficient · n·grad u over a named part of the boundary, n the outward normal; over all of it for None.

    The coefficient is a number or an expression in the coordinates and the problem's parameters, by region too. Without a
    coefficient it is the flux of the equation: ∫ n·F where the equation of the unknown has `ps.divergence(F)`, ∫ n·grad u
    where it has no divergence. Either may depend on parameters as a sum of products θ(μ) F_q(x).
    """

    part: str | None = None
    coefficient: object = None
    of: str | None = None

    def check(self, domain: Domain, name: str) -> None:
        """Refuse parts that the domain does not have, and coefficients of more than coordinates and parameters."""
        _check_part(self.part, domain, name)
        if not domain.part_names:
            raise InputError(f"the quantity {name!r} is a flux, but the domain has no boundary.")
        check_regions([self.factor], domain.region_names)
        what = f"the coefficient of the quantity {name!r}"
        if self.factor.atoms(AppliedUndef):
            raise InputError(f"{what} contains an unknown. A quantity is linear in the unknowns: leave it out there.")
        for region in domain.region_names or (None,):
            factor = in_region(self.factor, region)
            axis_symbols(factor.xreplace(dict.fromkeys(factor.atoms(Parameter), sympy.S.One)), domain.dimension, what)

    @property
    def factor(self) -> sympy.Expr:
        """The coefficient, 1 where none is given."""
        return sympy.S.One if self.coefficient is None else to_expression(self.coefficient)

    def weights(self, nodes: Nodes, scheme: Scheme | Elements) -> np.ndarray:
        """Rows of the normal derivative, summed over the part."""
        surface = surface_points(nodes, self.part)
        factor = np.empty(len(surface.points))
        for region, here in _by_region(nodes, surface.points):
            expression = in_region(self.factor, region)
            symbols = axis_symbols(expression, nodes.dimension, "the coefficient of a flux")
            factor[here] = as_function(expression, symbols)(*surface.points[here].T)
        first = [tuple(axis) for axis in np.eye(nodes.dimension, dtype=int)]
        slopes = derivatives_at(nodes, surface.points, first, scheme)
        parts = [slopes[a].T @ (factor * area) for a, area in zip(first, surface.areas.T, strict=True)]
        return np.sum(parts, axis=0)


@dataclass(frozen=True, eq=False)
class Weighted:
    """Σ w u over the nodes, with weights of one's own: (n_nodes,), or for all unknowns (n_fields * n_nodes,)."""

    values: np.ndarray | Sequence[float]
    of: str | None = None

    def check(self, domain: Domain, name: str) -> None:
        """Refuse what is not a row of numbers."""
        check_finite(check_shape(self.values, (None,), f"weights of the quantity {name!r}"), name)

    def weights(self, nodes: Nodes, scheme: Scheme | Elements) -> np.ndarray:
        """The weights as given."""
        return np.asarray(self.values, dtype=float)


@dataclass(frozen=True, eq=False)
class QuantityRows:
    """Quantities by name, as weights of the values of a solution at one time: of parts, where these are mixed at each μ."""

    names: tuple[str, ...]
    rows: np.ndarray  # (n_parts, n_fields * n_nodes)
    mixing: Mixing | None = None

    def of(self, values: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Of values (n_values,) or (n_times, n_values) of a solution at a parameter vector: (n_quantities,) or with times."""
        parts = self.rows @ values.T
        return parts if self.mixing is None else self.mixing(np.asarray(mu, dtype=float)[None])[0] @ parts


def check_quantities(quantities: Mapping[str, Quantity], domain: Domain, unknowns: Sequence[str]) -> None:
    """Refuse quantities that have no name, make no sense on the domain, or do not say of which unknown they are."""
    if not isinstance(quantities, Mapping):
        raise InputError(f"quantities must name what is wanted, like {{'mean': ps.Average()}}, got {quantities!r}.")
    for name, quantity in quantities.items():
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"a quantity is named {name!r}. Give it a name of its own.")
        if not callable(getattr(quantity, "weights", None)):
            raise InputError(
                f"the quantity {name!r} is {quantity!r}. Use ps.PointValue, ps.Average, ps.Integral, ps.Flux or ps.pde.Weighted."
            )
        of = getattr(quantity, "of", None)
        if of is None and len(unknowns) > 1 and not isinstance(quantity, Weighted):
            raise InputError(f"of which unknown is the quantity {name!r}? Say of='{unknowns[0]}', for instance.")
        if of is not None and of not in unknowns:
            raise InputError(f"the quantity {name!r} is of {of!r}. The unknowns are: {', '.join(unknowns)}.")
        quantity.check(domain, name)


def quantity_rows(
    quantities: Mapping[str, Quantity],
    nodes: Nodes,
    scheme: Scheme | Elements,
    unknowns: Sequence[str],
    scalars: Sequence[sympy.Symbol] = (),
) -> QuantityRows:
    """Quantities as rows of weights, (n_quantities, n_fields * n_nodes).

    Weights that depend on the parameters `scalars` are Σ_p θ_p(μ) times a row for each θ_p.
    """
    n, rows, thetas, owners = nodes.n_nodes, [], [], []
    for number, (name, quantity) in enumerate(quantities.items()):
        parts = quantity.weights(nodes, scheme)
        of = getattr(quantity, "of", None)
        for theta, weights in (parts if isinstance(parts, dict) else {sympy.S.One: parts}).items():
            row = np.zeros(len(unknowns) * n)
            if of is None:
                row[:] = check_shape(weights, row.shape, f"weights of the quantity {name!r}")
            else:
                field = list(unknowns).index(of)
                row[field * n : (field + 1) * n] = check_shape(weights, (n,), f"weights of the quantity {name!r}")
            rows.append(row)
            thetas.append(theta)
            owners.append(number)
    mixing = None
    if any(theta != 1 for theta in thetas):
        formulas = tuple(as_formula(as_function(theta, scalars)) for theta in thetas)
        mixing = Mixing(Theta(formulas, (), len(scalars)), np.array(owners))
    return QuantityRows(tuple(quantities), np.array(rows).reshape(len(rows), len(unknowns) * n), mixing)


def _by_region(nodes: Nodes, points: np.ndarray) -> list[tuple[str | None, np.ndarray]]:
    """The names of the regions, None for a domain without, and which of the points lie in each."""
    names = nodes.domain.region_names
    if not names:
        return [(None, np.arange(len(points)))]
    regions = nodes.domain.region_of(points)
    return [(name, np.flatnonzero(regions == i)) for i, name in enumerate(names)]


def _check_part(part: str | None, domain: Domain, name: str) -> None:
    if part is not None and part not in domain.part_names:
        raise InputError(
            f"the quantity {name!r} is over the part {part!r}, which the domain does not have. "
            f"Its parts are: {', '.join(domain.part_names) or 'none'}."
        )
