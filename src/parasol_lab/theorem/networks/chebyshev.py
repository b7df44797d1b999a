"""Chebyshev series of several variables as ReLU networks, one sawtooth square for each new term.

T_{2a} = 2 T_a² − 1 and T_{2a+1} = 2 T_a T_{a+1} − T_1 in one variable, products of those in several. A product takes one square
beside those of its factors, which many products share: AB = 2 ((A + B)/2)² − A²/2 − B²/2. What waits is kept as one number
that is not negative, so that it passes σ unchanged at one weight per layer; everything is computed as late as possible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from parasol.fitting import Network
from parasol_lab.theorem.networks.calculus import clean

Index = tuple[int, ...]
Form = dict[int, float]  # a sum of steps with factors; CONSTANT is the place of 1
CONSTANT = -1
_MOST_LEVELS = 60


@dataclass(frozen=True)
class Step:
    """One number that the network keeps: an input, a square of a form, or a form moved to where it is not negative."""

    kind: str  # "input", "square" or "sum"
    form: Mapping[int, float] = field(default_factory=dict)
    operands: tuple[Index, ...] = ()  # of a square: the terms whose mean is squared


@dataclass(frozen=True, eq=False)
class Steps:
    """How the terms of a series are computed, whatever the number of levels: steps in order, and terms as forms of them."""

    steps: tuple[Step, ...]
    terms: Mapping[Index, Mapping[int, float]]  # without what centring adds
    parts: Mapping[Index, tuple[Index, Index] | None]  # the two factors of a term; None for inputs
    squares: Mapping[tuple[Index, Index], int]  # the step that squares the mean of two terms

    @property
    def of_squares(self) -> list[int]:
        """The steps that are squares."""
        return [i for i, step in enumerate(self.steps) if step.kind == "square"]


def plan_steps(wanted: list[Index]) -> Steps:
    """The steps of all terms in `wanted`; each term that another needs is computed once."""
    n = len(wanted[0])
    parts: dict[Index, tuple[Index, Index] | None] = {}
    stack = [k for k in wanted if any(k)]
    while stack:
        k = stack.pop()
        if k not in parts:
            parts[k] = _factors(k)
            stack += [part for part in parts[k] or ()]
    used = {part for pair in parts.values() if pair for part in pair}
    steps, terms, squares = [Step("input") for _ in range(n)], {}, {}
    for j in range(n):
        terms[_unit(n, j)] = {j: 1.0, CONSTANT: -1.0}  # what is kept is x + 1

    def squared(a: Index, b: Index) -> int:
        if (a, b) not in squares:
            steps.append(Step("square", _sum((terms[a], 0.5), (terms[b], 0.5)), (a, b)))
            squares[a, b] = len(steps) - 1
        return squares[a, b]

    for k in sorted((k for k in parts if parts[k]), key=lambda k: (_rank(k, parts), k)):
        a, b = parts[k]  # type: ignore[misc]
        alone = sum(map(bool, k)) == 1
        if a == b:
            terms[k] = {squared(a, a): 2.0, CONSTANT: -1.0}
        else:
            product = {squared(a, b): 2.0, squared(a, a): -0.5, squared(b, b): -0.5}
            terms[k] = _sum((product, 2.0), (terms[tuple(int(i > 0) for i in k)], -1.0)) if alone else product
        if k in used and len(terms[k]) > 2:
            steps.append(Step("sum", terms[k], (k,)))
            terms[k] = {len(steps) - 1: 1.0, CONSTANT: 0.0}
    return Steps(tuple(steps), terms, parts, squares)


def _unit(n: int, j: int) -> Index:
    return tuple(int(i == j) for i in range(n))


def _factors(k: Index) -> tuple[Index, Index] | None:
    """The two terms whose product gives T_k, None where T_k is an input."""
    places = [j for j, degree in enumerate(k) if degree]
    if len(places) == 1:
        (j,) = places
        if k[j] == 1:
            return None
        return tuple((k[j] // 2) * i for i in _unit(len(k), j)), tuple((k[j] - k[j] // 2) * i for i in _unit(len(k), j))
    first = places[: (len(places) + 1) // 2]
    return tuple(d if j in first else 0 for j, d in enumerate(k)), tuple(
        0 if j in first else d for j, d in enumerate(k)
    )


def _rank(k: Index, parts) -> int:
    """How many products lie between the inputs and a term."""
    return 0 if parts[k] is None else 1 + max(_rank(part, parts) for part in parts[k])


def _sum(*pairs: tuple[Mapping[int, float], float]) -> Form:
    out: Form = {}
    for form, factor in pairs:
        for place, value in form.items():
            out[place] = out.get(place, 0.0) + factor * value
    return {place: value for place, value in out.items() if value or place == CONSTANT}


@dataclass(frozen=True, eq=False)
class Errors:
    """What is known of a computation with given levels."""

    terms: Mapping[Index, float]  # |computed − T_k| ≤ this
    sizes: Mapping[int, float]  # bounds z of what squares are taken of
    local: Mapping[int, float]  # a square is off by 0 … this, so by half of it from its middle


def errors_of(steps: Steps, levels: Mapping[int, int]) -> Errors:
    """Bounds of all errors, in exact arithmetic.

    A square of u with |u| ≤ z is z² f_m(|u| / z), off by 0 … z² / 4^(m + 1); half of that is taken off, so ± half remains.
    """
    terms: dict[Index, float] = {k: 0.0 for k, pair in steps.parts.items() if pair is None}
    sizes, local = {}, {}
    for (a, b), i in steps.squares.items():  # in the order of computation
        for k in (a, b):
            if k not in terms:
                terms[k] = _error(k, steps, terms, local)
        sizes[i] = 1 + (terms[a] + terms[b]) / 2
        local[i] = sizes[i] ** 2 * 4.0 ** -(levels[i] + 1)
    for k in steps.parts:
        if k not in terms:
            terms[k] = _error(k, steps, terms, local)
    return Errors(terms, sizes, local)


def _error(k: Index, steps: Steps, terms, local) -> float:
    a, b = steps.parts[k]  # type: ignore[misc]
    both = terms[a] + terms[b] + terms[a] * terms[b]
    if a == b:
        return 2 * both + local[steps.squares[a, a]]
    own = local[steps.squares[a, b]] + (local[steps.squares[a, a]] + local[steps.squares[b, b]]) / 4
    return (2 if sum(map(bool, k)) == 1 else 1) * (both + own)


def total_error(steps: Steps, errors: Errors, weights: Mapping[Index, float]) -> float:
    """A bound of ‖Σ_k c_k (computed − T_k)‖ for ‖c_k‖ = weights[k]."""
    return sum(weight * errors.terms[k] for k, weight in weights.items() if any(k))


def least_levels(steps: Steps, weights: Mapping[Index, float], allowed: float) -> dict[int, int]:
    """Levels of all squares such that the total error is at most `allowed`, few altogether."""
    influence = _influence(steps, weights)
    share = allowed / max(1, len(influence))
    factor = 4.0

    def levels_with(factor: float) -> dict[int, int]:
        wanted = {i: g / (factor * share) for i, g in influence.items()}
        return {i: min(_MOST_LEVELS, max(0, math.ceil(math.log(max(w, 1e-300), 4)) - 1)) for i, w in wanted.items()}

    def error(levels) -> float:
        return total_error(steps, errors_of(steps, levels), weights)

    while error(levels_with(factor)) > allowed:
        factor /= 1.1
    return _taken_back(levels_with(factor), influence, error, allowed)


def _taken_back(
    levels: dict[int, int], influence: Mapping[int, float], error: Callable[[dict[int, int]], float], allowed: float
) -> dict[int, int]:
    """Fewer levels, as long as the bound holds: many squares at a time, those that add least first.

    A level less adds at least `influence` · 3 / 4^(m + 1), because terms of second order are positive. So what does not fit by
    that is not tried, and a square that failed alone never fits later.
    """
    levels, tried = dict(levels), {i for i, m in levels.items() if m}
    while tried:
        slack = allowed - error(levels)
        added = {i: influence[i] * 3 * 4.0 ** -(levels[i] + 1) for i in tried if levels[i]}
        order = sorted((i for i, more in added.items() if more <= slack), key=lambda i: (added[i], i))
        count = sum(total <= slack for total in accumulate(added[i] for i in order))
        while count and error(levels | {i: levels[i] - 1 for i in order[:count]}) > allowed:
            count //= 2
        levels |= {i: levels[i] - 1 for i in order[:count]}
        tried = set(order) if count else set(order[1:])
    return levels


def _influence(steps: Steps, weights: Mapping[Index, float]) -> dict[int, float]:
    """How much an error of each square adds to the total, to first order."""
    of_terms = {k: weights.get(k, 0.0) for k in steps.parts}
    out = dict.fromkeys(steps.of_squares, 0.0)
    for k in sorted((k for k in steps.parts if steps.parts[k]), key=lambda k: -_rank(k, steps.parts)):
        a, b = steps.parts[k]  # type: ignore[misc]
        if a == b:
            out[steps.squares[a, a]] += of_terms[k]
            of_terms[a] += 4 * of_terms[k]
            continue
        own = (2 if sum(map(bool, k)) == 1 else 1) * of_terms[k]
        for pair, part in (((a, b), 1.0), ((a, a), 0.25), ((b, b), 0.25)):
            out[steps.squares[pair]] += part * own
        of_terms[a] += own
        of_terms[b] += own
    return out


def chebyshev_network(
    steps: Steps, levels: Mapping[int, int], coefficients: Mapping[Index, np.ndarray], bounds: np.ndarray
) -> Network:
    """μ ↦ Σ_k c_k T_k(x), x = μ moved from the box `bounds` (2, p) to [−1, 1]^p."""
    errors = errors_of(steps, levels)
    d, n = len(next(iter(coefficients.values()))), bounds.shape[1]
    moved = _centred(steps, errors)
    output: dict[int, np.ndarray] = {CONSTANT: np.zeros(d)}
    for k, vector in coefficients.items():
        for place, value in ({CONSTANT: 1.0} if not any(k) else moved.terms[k]).items():
            output[place] = output.get(place, 0.0) + value * vector
    times, end = _times(moved, levels, output)
    writer = _Writer(moved, levels, errors, times, bounds, [{} for _ in range(end)])
    matrix = np.zeros((d, 0))
    last = {place: writer.at(place, end) for place in output if place != CONSTANT}
    width = len(writer.layers[end - 1]) if end else n
    matrix, bias = np.zeros((d, width)), output[CONSTANT].copy()
    for place, (column, factor, shift) in last.items():
        matrix[:, column] += factor * output[place]
        bias += shift * output[place]
    return writer.network(n, matrix, bias)


def _centred(steps: Steps, errors: Errors) -> Steps:
    """The forms with half the largest error of each square taken off, and sums moved to where they are not negative."""
    floor: dict[int, float] = {}
    moved: list[Step] = []

    def centred(form: Mapping[int, float]) -> Form:
        less = sum(value * floor.get(place, 0.0) for place, value in form.items() if place != CONSTANT)
        return dict(form) | {CONSTANT: form.get(CONSTANT, 0.0) - less}

    for i, step in enumerate(steps.steps):
        moved.append(replace(step, form=centred(step.form)))
        if step.kind == "square":
            floor[i] = errors.local[i] / 2
        elif step.kind == "sum":
            floor[i] = 1 + errors.terms[step.operands[0]]  # T_k ≥ −1
            form = dict(moved[i].form)
            moved[i] = replace(step, form=form | {CONSTANT: form[CONSTANT] + floor[i]})
    return replace(steps, steps=tuple(moved), terms={k: centred(form) for k, form in steps.terms.items()})


def _times(steps: Steps, levels: Mapping[int, int], output) -> tuple[dict[int, int], int]:
    """The layer in which each step is there, as late as its uses allow, and the number of hidden layers."""
    end = 0  # layers before the output: found by going backwards from 0
    times = {place: 0 for place in output if place != CONSTANT}
    for i in reversed(range(len(steps.steps))):
        step = steps.steps[i]
        if i not in times or step.kind == "input":
            continue
        before = times[i] - (levels[i] + 2 if step.kind == "square" else 1)
        for place in step.form:
            if place != CONSTANT:
                times[place] = min(times.get(place, 0), before)
    end = -min(times.values(), default=0)
    return {i: time + end for i, time in times.items()}, end


@dataclass(eq=False)
class _Writer:
    """Writes neurons into layers: layer 1 is `layers[0]`, each a list of neurons by key."""

    steps: Steps
    levels: Mapping[int, int]
    errors: Errors
    times: Mapping[int, int]
    bounds: np.ndarray
    layers: list[dict]  # key -> (place, {place in the layer before: weight}, bias)

    def at(self, i: int, layer: int) -> tuple[int, float, float]:
        """Where step i is in a layer: value = factor · neuron + shift. Layer 0 are the inputs."""
        if self.steps.steps[i].kind == "input":
            low, high = self.bounds[:, i]
            if layer == 0:
                return i, 2 / (high - low), -2 * low / (high - low)
            born = 1
        else:
            born = self.times[i]
        return (
            self._put(layer, ("kept", i), lambda: self._born(i, layer) if layer == born else self._kept(i, layer)),
            1.0,
            0.0,
        )

    def _put(self, layer: int, key, neuron) -> int:
        rows = self.layers[layer - 1]
        if key not in rows:
            weights, bias = neuron()
            rows[key] = (len(rows), weights, bias)
        return rows[key][0]

    def _kept(self, i: int, layer: int) -> tuple[dict[int, float], float]:
        place, factor, shift = self.at(i, layer - 1)
        return {place: factor}, shift

    def _born(self, i: int, layer: int) -> tuple[dict[int, float], float]:
        step = self.steps.steps[i]
        if step.kind == "input":
            return self._kept(i, layer)
        if step.kind == "sum":
            return self._form(step.form, layer - 1)
        m, z = self.levels[i], self.errors.sizes[i]
        return {place: z * z * w for place, w in self._square(i, m, layer - 1).items()}, 0.0

    def _form(self, form: Mapping[int, float], layer: int) -> tuple[dict[int, float], float]:
        """A form as weights of a layer and a bias."""
        weights, bias = {}, form.get(CONSTANT, 0.0)
        for place, value in form.items():
            if place != CONSTANT:
                column, factor, shift = self.at(place, layer)
                weights[column] = weights.get(column, 0.0) + value * factor
                bias += value * shift
        return weights, bias

    def _square(self, i: int, m: int, layer: int) -> dict[int, float]:
        """The weights of f_m(|u| / z) in a layer: of ±u where m = 0, else of the state (g, v, q) of level m − 1."""
        if m == 0:
            return dict.fromkeys(self._ends(i, layer), 1.0)
        state = self._state(i, m - 1, layer)
        return dict(zip(state, [w * 4.0**-m for w in (2.0, 4.0, 4.0)], strict=False))

    def _ends(self, i: int, layer: int) -> tuple[int, int]:
        """σ(u / z) and σ(−u / z)."""
        form, z = self.steps.steps[i].form, self.errors.sizes[i]

        def neuron(sign: float):
            weights, bias = self._form(form, layer - 1)
            return {place: sign * w / z for place, w in weights.items()}, sign * bias / z

        first, second = (self._put(layer, ("end", i, s), lambda s=s: neuron(s)) for s in (1.0, -1.0))
        return first, second

    def _state(self, i: int, s: int, layer: int) -> tuple[int, ...]:
        """g, v and q (from level 1 on) of level s."""
        if s == 0:
            ends = self._ends(i, layer - 1)
            rows = [(dict.fromkeys(ends, 1.0), 0.0), (dict.fromkeys(ends, 1.0), -0.5)]
        else:
            g, v, *q = self._state(i, s - 1, layer - 1)
            hat = {g: 2.0, v: -4.0}
            rows = [(hat, 0.0), (hat, -0.5), ({v: 8.0, **{place: 4.0 for place in q}}, 0.0)]
        return tuple(self._put(layer, ("state", i, j), lambda row=row: row) for j, row in enumerate(rows))

    def network(self, n_inputs: int, matrix: np.ndarray, bias: np.ndarray) -> Network:
        """All layers and the output."""
        weights, biases, width = [], [], n_inputs
        for layer in self.layers:
            w, b = np.zeros((len(layer), width)), np.zeros(len(layer))
            for place, row, value in layer.values():
                b[place] = value
                for column, entry in row.items():
                    w[place, column] += entry
            weights.append(clean(w))
            biases.append(b)
            width = len(layer)
        return Network((*weights, clean(matrix)), (*biases, bias), "relu")
