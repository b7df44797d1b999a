"""A surrogate in one file, for other people and other days: saved whole, and tried out before it is believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from parasol.errors import InputError
from parasol.runtime.container import Damaged, pack, unpack
from parasol.runtime.plain import Plain
from parasol.runtime.program import program_of
from parasol.runtime.surrogate import Surrogate

FORMAT = "parasol-surrogate"
_WIDEST = 2**23  # numbers in the slopes of a layer up to which derivatives are tried out


def save(surrogate: Surrogate, path: str | Path) -> Path:
    """Write a surrogate to one file, which appears complete or not at all; the full solver is not part of it.

    >>> from tempfile import TemporaryDirectory
    >>> from parasol.fitting.data import fit_snapshots
    >>> mus = np.linspace(0, 1, 9)[:, None]
    >>> line = fit_snapshots(mus, mus * [1.0, 2.0], "linear", level=None)
    >>> with TemporaryDirectory() as folder:
    ...     load(save(line, Path(folder) / "line.parasol"))([0.5]).values.round(9)
    array([0.5, 1. ])
    """
    if not isinstance(surrogate, Surrogate):
        raise InputError(f"cannot save a {type(surrogate).__name__}. Pass a surrogate.")
    return pack(surrogate, path, form=FORMAT, facts=surrogate.facts)


def load(path: str | Path) -> Surrogate:
    """Read a surrogate from a file; a file that is damaged, hostile, foreign or newer is refused with the reason.

    Reading needs NumPy alone. The surrogate has to answer once before it is returned.
    """
    return unpack(path, _tried_out, form=FORMAT)


def _tried_out(surrogate: Any, facts: Plain) -> Surrogate:
    """The surrogate, after one answer in the middle of the box: parts that do not fit together are found now, not in use."""
    if not isinstance(surrogate, Surrogate):
        raise Damaged(f"it holds a {type(surrogate).__name__}, not a surrogate.")
    scalars = [p.middle for p in surrogate.parameters.answered.scalars]
    n_functions = surrogate.n_parameters - len(scalars)
    if n_functions < 0 or (n_functions > 0) != bool(surrogate.parameters.functions):
        raise Damaged(f"{surrogate.n_parameters} features do not fit its parameters.")
    if surrogate.reduced is not None and surrogate.reduced.n_parameters != surrogate.n_parameters:
        raise Damaged("its reduced model has another number of parameters.")
    mu = np.array([*scalars, *[0.0] * n_functions])[None]
    with np.errstate(all="ignore"):
        c = surrogate.coefficients(mu)
        if c.shape != (1, surrogate.basis.n_modes):
            raise Damaged(f"its map gives {c.shape[-1]} coefficients for {surrogate.basis.n_modes} modes.")
        if surrogate.reduced is not None or surrogate.conformal is not None:
            surrogate.certify(mu, c)
        program = program_of(surrogate.map)
        if program is None or program.widest * surrogate.n_parameters < _WIDEST:
            surrogate.jacobian(mu)
    return replace(surrogate, facts=facts)
