"""Calibrated bounds of the parts of an answer: its quantities, its unknown functions, its values at every node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError


@dataclass(frozen=True, eq=False)
class CalibratedParts:
    """Factors of an answer's error scale s(μ), from the calibration set and at the level of the bound of the whole field.

    s is ‖û(μ)‖, times the relative error to be expected at μ where that is known. Each line holds at the level by itself,
    the third one for all values at once:

        |ℓ(u) − ℓ(û)| ≤ quantities · ‖ℓ‖ · s(μ)   at all times,
        ‖u_f − û_f‖ ≤ fields · ‖u_f‖ · s(μ) / ‖û(μ)‖,
        |u_i − û_i| ≤ profile_i · s(μ)   for all i.
    """

    quantities: np.ndarray | None = None  # (n_quantities,)
    fields: np.ndarray | None = None  # (n_unknowns,)
    profile: np.ndarray | None = None  # (n_values,), in single precision

    def __post_init__(self):
        for name in ("quantities", "fields", "profile"):
            factors = getattr(self, name)
            if factors is None:
                continue
            check_finite(check_shape(factors, (None,), f"{name} of the calibrated parts"), f"{name}")
            if np.any(factors < 0):
                raise InputError(f"a factor of the {name} in the calibrated parts is negative.")
