"""Full solves that come with a page, for people to see beside the answers."""

from __future__ import annotations

import numpy as np

from parasol.checks import check_count
from parasol.delivery.page.functions import PageFunction
from parasol.delivery.page.pack import Pack
from parasol.errors import InputError
from parasol.runtime.plain import Plain
from parasol.runtime.repair import solution_values
from parasol.runtime.surrogate import Surrogate

_MOST = 2_000_000  # characters of them


def full_solves(surrogate: Surrogate, functions: list[PageFunction], wanted: int, pack: Pack) -> list[Plain]:
    """Inputs of the page and the fields of full solves there: in the middle of the box, then at random parameters of it."""
    if wanted == 0:
        return []
    check_count(wanted, "solves")
    if surrogate.solver is None or surrogate.readout is not None:
        raise InputError(
            "full solves need the solver, which a file does not hold, and all nodes. Use dataclasses.replace(surrogate, "
            "solver=model), or leave solves out."
        )
    n_values = surrogate.n_values
    if 6 * n_values * wanted > _MOST:
        raise InputError(
            f"{wanted} full solves of {n_values} values take {6e-6 * n_values * wanted:.1f} MB, more than a page should. "
            f"Ask for {max(0, _MOST // (6 * n_values))} at most."
        )
    generator, box = np.random.default_rng(7), surrogate.parameters.answered
    units = np.vstack([np.full((1, len(box.scalars)), 0.5), generator.random((wanted - 1, len(box.scalars)))])
    out = []
    for number, scalars in enumerate(box.from_unit(units)):
        coordinates = [function.samples[number % len(function.samples)] for function in functions]
        parts = [xi @ function.span.modes for xi, function in zip(coordinates, functions, strict=True)]
        solved = surrogate.solver.solve(np.concatenate([scalars, *parts]))
        values = solution_values(solved, n_values)
        inputs = np.concatenate([scalars, *coordinates])
        out.append({"inputs": pack.add(inputs), "values": pack.add(values, "f4")})
    return out
