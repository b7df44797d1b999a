"""A small version of `python -m adversary`: the cases of issues 13 and 14, few seeds each, small enough for every day.

Families that take longer than that are left to `make adversary`."""

import pytest

import adversary.boundaries
import adversary.bounds
import adversary.equations
import adversary.paths
import adversary.solving
import adversary.stores
import adversary.theorem  # noqa: F401  each registers its families
from adversary.families import FAMILIES, run

SEEDS = {
    "jump-in-the-highest-coefficient": (0, 6),
    "jump-with-parameters": (0,),
    "jump-in-a-lower-coefficient": (1,),
    "kink-in-the-highest-coefficient": (1,),
    "point-load": (1,),
    "discontinuous-source": (2,),
    "switch-in-the-coordinates": (1, 3),
    "switch-in-the-unknown": (0,),
    "unknowns-in-any-order": (0,),
    "coordinates-in-any-order": (0, 1, 4),
    "time-in-coefficients": (0, 1),
    "addition-theorems": (0,),
    "bad-inputs": (0, 1, 3),
    "functions-of-numpy": (0,),
    "rough-functions-of-the-unknown": (0,),
    "divergence-form": (0,),
    "unknown-at-other-places": (0, 1),
    "corner-normals": (0,),
    "normal-in-a-value": (0,),
    "slits": (0,),
    "parts-inside-an-arc-or-edge": (0,),
    "parts-at-every-scale": (0, 1),
    "lattices": (1,),
    "newton-from-far-away": (0, 1),
    "unknowns-of-mixed-size": (1,),
    "mixed-size-in-time": (0,),
    "nonlinear-constraints-in-time": (0, 1),
    "between-stored-times": (0,),
    "initial-values-without-numbers": (0,),
    "growth-follows-the-parameter": (0,),
    "right-problems": (0, 1, 5),
    "true-reasons": (2,),
    "bounds-proven": (1,),
    "bounds-calibrated": (0, 3),
    "bounds-after-learning": (1,),
    "met-is-kept": (2,),
    "stores-of-snapshots": (0, 2),
    "paths-to-the-same-numbers": (1, 2),
    "paths-out-of-the-box": (2,),
    "paths-refuse-wrong-names": (3,),
    "paths-between-nodes": (0,),
    "paths-by-the-names-of-columns": (0,),
    "theorem-on-random-coefficients": (2,),
    "theorem-on-ranges-far-from-zero": (0, 4),
    "theorem-near-singular-operators": (4,),
    "theorem-in-odd-units": (5,),
    "theorem-on-the-catalogue": (3,),
    "theorem-refuses-what-is-no-quotient-of-polynomials": (0, 4),
}


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds])
def test_right_or_refused(name, seed):
    outcome = run(name, seed)
    assert outcome.verdict in ("passed", "refused"), f"{outcome.words}\n{outcome.reproduction}"


def test_every_part_of_the_issue_is_attacked():
    parts = {"A1", "A2", "A3", "A4", "A5", "A6", "A7", "B1a", "B1b", *[f"B{k}" for k in range(2, 9)]}
    parts |= {f"C{k}" for k in range(1, 8)}
    parts |= {f"14E {word}" for word in ("bounds", "levels", "met", "stores", "paths")}
    parts |= {"theorem"}
    assert parts <= {family.case for family in FAMILIES.values()}
