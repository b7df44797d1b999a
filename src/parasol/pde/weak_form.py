"""The weak form of an equation: second derivatives integrated by parts, conditions on slopes in its boundary integrals.

An equation  −div F + rest = source  becomes  ∫ F·grad v − ∮ v n·F + ∫ v rest = ∫ v source  for all test functions v.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sympy

from parasol.errors import InputError
from parasol.pde.equation import Form, Term, normal
from parasol.pde.jumps import jumping_parts
from parasol.pde.parameters import FunctionParameter
from parasol.pde.problem import Problem
from parasol.pde.regions import in_region
from parasol.pde.separation import separated

_INSTEAD = 'Use method="stencils"'
_TRIES = 3  # random values at which an expression that vanishes is looked at
# the factor of D_axis u (or of u, for None) in one component of a flux; the unknown is None for what has no unknown
Flux = dict[tuple[int, int | None, int | None], list[Term]]  # keys: component, unknown, axis


@dataclass(frozen=True)
class WeakTerm:
    """∫ theta(mu) · coefficient(x, t) · function(x) · D_test v · D_trial ∂t^time_order u.

    `test` and `trial` are axes, None for no derivative; where `unknown` is None there is no u: a source.
    """

    theta: sympy.Expr
    coefficient: sympy.Expr
    function: FunctionParameter | None = None
    test: int | None = None
    trial: int | None = None
    unknown: int | None = None
    time_order: int = 0

    @property
    def separated(self) -> bool:
        """Whether the coefficient is free of parameters and of time, and no function parameter occurs."""
        return self.function is None and Term(self.theta, self.coefficient, None, None).separated


@dataclass(frozen=True)
class WeakForm:
    """One equation: the terms of its integral over the domain, sources among them, and its flux F."""

    terms: tuple[WeakTerm, ...]
    flux: Mapping[tuple[int, int | None, int | None], sympy.Expr]


def weak_forms(problem: Problem, region: int | None = None) -> tuple[WeakForm, ...]:
    """The weak forms of the equations of a problem inside a region, where its domain has some."""
    out = []
    fluxes, name = problem.fluxes_in(region), None if region is None else problem.region_names[region]
    for form, flux, balance in zip(problem.forms_in(region), fluxes, problem.balances, strict=True):
        if flux is not None and balance is not None and balance.factor != 1:
            # divided by what stands before its divergence, whose flux is the one that goes on through interfaces
            form = _divided(form, in_region(balance.factor, name), problem)
        out.append(weak_form(problem, form, flux))
        if flux is None and region and out[-1].flux != weak_form(problem, problem.forms_in(0)[len(out) - 1]).flux:
            raise InputError(
                f"the coefficients of second derivatives in the equation of {problem.names[len(out) - 1]} differ by region, "
                f"so what flows through interfaces is not known. Write them with ps.divergence. {_INSTEAD} otherwise."
            )
    return tuple(out)


def _divided(form: Form, factor: sympy.Expr, problem: Problem) -> Form:
    if form.jets or not factor.free_symbols <= {*problem.coordinates, *problem.parameter_symbols[0]}:
        raise InputError(
            f"elements need what stands before a divergence, {factor}, as a function of coordinates. {_INSTEAD}."
        )
    operator, source = (
        tuple(replace(term, coefficient=term.coefficient / factor) for term in terms)
        for terms in (form.operator, form.source)
    )
    return replace(form, operator=operator, source=source)


def weak_form(problem: Problem, form: Form, explicit: Form | None = None) -> WeakForm:
    """The weak form of one equation of a problem; `explicit` is its normal flux n·F, where it was written as a divergence.

    Where it was not, F_k = −Σ_l a_kl D_l u from the terms a_kl D_kl u of the equation, half of a mixed derivative's
    coefficient in each of the two. Derivatives of the coefficients go into the terms with first derivatives.

    >>> import parasol as ps
    >>> (x,) = ps.coordinates("x")
    >>> u = ps.unknown("u", x)
    >>> line = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-x * u.diff(x, 2) - u.diff(x), 1), ps.Dirichlet(0))
    >>> [(t.coefficient, t.test, t.trial) for t in weak_form(line, line.forms[0]).terms]
    [(x, 0, 0), (1, None, None)]
    """
    if form.jets:
        raise InputError(
            f"elements solve equations that are linear and whose coefficients do not depend on time; this one is not. "
            f"{_INSTEAD}."
        )
    places = problem.coordinates
    flux: Flux = _explicit(problem, explicit) if explicit is not None else {}
    second = _second(form, places)
    for (k, j, axis), terms in flux.items():
        if axis is not None:
            for term in terms:
                pair = (j, *sorted((k, axis)))
                second.setdefault(pair, []).append(Term(term.theta, term.coefficient, None, None))
    for (j, first, last), terms in second.items():  # what no divergence accounts for
        for term in _summed(terms):
            share = -term.coefficient / (1 if first == last else 2)
            for one, other in {(first, last), (last, first)}:
                flux.setdefault((one, j, other), []).append(Term(term.theta, share, None, None))
    sums: dict[tuple, sympy.Expr] = {}

    def add(theta, coefficient, function=None, test=None, trial=None, unknown=None, time_order=0):
        key = (theta, function, test, trial, unknown, time_order)
        sums[key] = sums.get(key, sympy.S.Zero) + coefficient

    for (k, j, axis), terms in flux.items():
        for term in terms:
            sign = 1 if j is not None else -1  # sources stand on the right
            add(term.theta, sign * term.coefficient, None, k, axis, j)
            add(term.theta, sign * term.coefficient.diff(places[k]), None, None, axis, j)
            if axis is None and j is not None:  # the derivative of f u is f_x u + f u_x
                add(term.theta, term.coefficient, None, None, k, j)
    for term in form.operator:
        index = term.derivative or ()
        if sum(index) < 2:
            axis = index.index(1) if sum(index) else None
            add(term.theta, term.coefficient, term.function, None, axis, term.unknown, term.time_order)
    for term in form.source:
        add(term.theta, term.coefficient, term.function)
    kept = tuple(
        WeakTerm(theta, coefficient, function, test, trial, unknown, time_order)
        for (theta, function, test, trial, unknown, time_order), coefficient in sums.items()
        if not _vanishes(coefficient)
    )
    whole = {key: sympy.Add(*[t.theta * t.coefficient for t in terms]) for key, terms in flux.items()}
    return WeakForm(kept, whole)


def _second(form: Form, places) -> dict[tuple[int, int, int], list[Term]]:
    """The terms of second order in space by unknown and the two axes."""
    out: dict[tuple[int, int, int], list[Term]] = {}
    for term in form.operator:
        index = term.derivative or ()
        if sum(index) == 2:
            if term.function is not None or jumping_parts(term.coefficient, places) or term.time_order:
                what = term.function or term.coefficient
                raise InputError(
                    f"elements need the derivative of {what}, a coefficient of a second derivative, which is not known. "
                    f"Write the equation with ps.divergence. {_INSTEAD} otherwise."
                )
            axes = [axis for axis, order in enumerate(index) for _ in range(order)]
            out.setdefault((term.unknown, axes[0], axes[1]), []).append(term)
    return out


def _explicit(problem: Problem, form: Form) -> Flux:
    """The flux of an equation that was written as a divergence, from its normal component, which is linear in the normal."""
    if form.jets:
        raise InputError(f"elements solve linear equations; a flux of this one is not linear. {_INSTEAD}.")
    out: Flux = {}
    for sign, terms in ((1, form.operator), (-1, form.source)):
        for term in terms:
            if term.function is not None:
                raise InputError(f"elements need the derivative of {term.function}, which is not known. {_INSTEAD}.")
            index = term.derivative or ()
            axis = index.index(1) if sum(index) else None
            for k, n in enumerate(normal(*problem.coordinates)):
                part = sign * sympy.expand(term.coefficient).coeff(n)
                if part != 0:
                    unknown = term.unknown if sign > 0 else None
                    out.setdefault((k, unknown, axis), []).append(Term(term.theta, part, None, None))
    return out


def _summed(terms: Iterable[Term]) -> list[Term]:
    """The terms with one for each theta, without those that vanish."""
    sums: dict[sympy.Expr, sympy.Expr] = {}
    for term in terms:
        sums[term.theta] = sums.get(term.theta, sympy.S.Zero) + term.coefficient
    return [Term(theta, c, None, None) for theta, c in sums.items() if not _vanishes(c)]


def _vanishes(expression: sympy.Expr) -> bool:
    """Whether an expression is 0: SymPy sees it, or it is at random values of its symbols, to 30 digits.

    Formulas that agree at random numbers to so many digits are the same; `sympy.simplify` can take minutes to see that.
    """
    if expression == 0 or sympy.expand(expression) == 0:
        return True
    symbols = sorted(expression.free_symbols, key=str)
    if not symbols or expression.is_number:
        return bool(sympy.Abs(expression.evalf(30)) < 1e-20)
    for k in range(_TRIES):
        values = {s: sympy.Rational(1 + (7919 * (j + 1) * (k + 1)) % 997, 1009) for j, s in enumerate(symbols)}
        terms = [term.evalf(30, subs=values) for term in sympy.Add.make_args(expression)]
        if not sympy.Abs(sympy.Add(*terms)) < 1e-20 * sympy.Add(*[sympy.Abs(term) for term in terms]):
            return False
    return True


# ---- conditions on slopes --------------------------------------------------------------------------------------------
def boundary_terms(
    problem: Problem, weak: WeakForm, equation: int, condition: Form, *, part: str, side: tuple[int, int] | None
) -> tuple[WeakTerm, ...]:
    """The integral −∮ v n·F on a part of the boundary, where b·grad u + alpha u = g holds.

    Of n·F = N·grad u + ..., what is kappa (b·grad u) is kappa (g − alpha u), with kappa = (n·N) / (n·b); what is left of
    N − kappa b must lie along the boundary, and is then known from u on the boundary itself. For several unknowns this
    must be so for the slopes of each of them. `side` is the axis and the sign of the normal where it is that everywhere.
    """
    normals = normal(*problem.coordinates)
    known = {} if side is None else {n: sympy.Integer(side[1] * (k == side[0])) for k, n in enumerate(normals)}
    slopes: dict[int, list[sympy.Expr]] = {}
    values: dict[int, sympy.Expr] = {}
    if condition.jets:
        raise InputError(
            f"elements need conditions that are linear and whose coefficients do not depend on time; the one on {part!r} "
            f"is not. {_INSTEAD}."
        )
    for term in condition.operator:
        whole = (term.theta * term.coefficient * (term.function or 1)).subs(known)
        index = term.derivative or ()
        if sum(index):
            own = slopes.setdefault(term.unknown, [sympy.S.Zero] * len(normals))
            own[index.index(1)] += whole
        else:
            values[term.unknown] = values.get(term.unknown, sympy.S.Zero) + whole
    fluxes: dict[int, list[sympy.Expr]] = {}
    others: dict[int | None, sympy.Expr] = {}
    for (k, j, axis), coefficient in weak.flux.items():
        if j is None or axis is None:
            others[j] = others.get(j, sympy.S.Zero) + normals[k].subs(known) * coefficient
        else:
            fluxes.setdefault(j, [sympy.S.Zero] * len(normals))[axis] += normals[k].subs(known) * coefficient
    factor = _factor(fluxes.get(equation), slopes.get(equation), normals, known, problem, equation, part)
    out: list[tuple[sympy.Expr, int | None, int | None]] = []  # n·F: coefficient, trial, unknown
    for j in sorted({*fluxes, *slopes}):
        zero = [sympy.S.Zero] * len(normals)
        left = [
            _reduced(n - factor * b, normals) for n, b in zip(fluxes.get(j, zero), slopes.get(j, zero), strict=True)
        ]
        across = _reduced(sum(n.subs(known) * d for n, d in zip(normals, left, strict=True)), normals)
        if not _vanishes(across):
            raise _unmatched(problem, equation, part)
        out += [(d, axis, j) for axis, d in enumerate(left) if not _vanishes(d)]
    source = sympy.Add(*[t.theta * t.coefficient * (t.function or 1) for t in condition.source]).subs(known)
    out += [(-factor * value, None, j) for j, value in values.items()]
    out += [(factor * source, None, None)]
    out += [(value, None, j) for j, value in others.items()]
    ranges = {v: (float(a), float(b)) for v, a, b in zip(problem.coordinates, *problem.domain.bounds, strict=True)}
    ranges |= dict.fromkeys(normals, (-1.0, 1.0))
    # on the left of the equation it is −∮ v n·F, on the right, where sources stand, +∮ v n·F
    return tuple(
        WeakTerm(theta, c, function, None, trial, j)
        for coefficient, trial, j in out
        if not _vanishes(coefficient)
        for theta, c, function in separated(coefficient if j is None else -coefficient, ranges)
    )


def _factor(flux, slope, normals, known, problem: Problem, equation: int, part: str) -> sympy.Expr:
    """kappa: the normal slope of an unknown in its flux over that in the condition."""
    if flux is None or slope is None:
        raise _unmatched(problem, equation, part)
    above, below = (
        _reduced(sum(n.subs(known) * c for n, c in zip(normals, some, strict=True)), normals) for some in (flux, slope)
    )
    if _vanishes(below):
        raise _unmatched(problem, equation, part)
    return above / below if below.is_number else sympy.cancel(sympy.together(above / below))


def _reduced(expression: sympy.Expr, normals) -> sympy.Expr:
    """The expression multiplied out, with powers of the last component of the normal by |n| = 1."""
    last, rest = normals[-1], 1 - sum(n**2 for n in normals[:-1])
    expression = sympy.expand(expression)
    if expression.has(last):
        expression = sympy.expand(
            expression.replace(
                lambda e: e.is_Pow and e.base == last and e.exp.is_Integer and e.exp > 1,
                lambda e: last ** (e.exp % 2) * rest ** (e.exp // 2),
            )
        )
    return expression


def _unmatched(problem: Problem, equation: int, part: str) -> InputError:
    return InputError(
        f"the condition on {part!r} for {problem.names[equation]} does not state the flux of its equation through the "
        f"boundary, so elements cannot use it. Write the equation with ps.divergence(...) and the condition as its flux. "
        f"{_INSTEAD} otherwise."
    )
