"""Many small systems at once on a GPU: dense elimination in float64, batch after batch, checked as each full solve is.

Where a check fails, or a matrix has no inverse to working precision, nothing is returned for that parameter: the solver
itself then answers or says why it cannot.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parasol.devices import computing, gpu_device, pick_device
from parasol.errors import FormulaError, InputError, ParasolWarning
from parasol.pde.model import Model
from parasol.pde.newton import NOISE
from parasol.pde.sparse_direct import random_signs
from parasol.pde.sparse_pattern import Pattern

log = logging.getLogger(__name__)

MOST_UNKNOWNS = 4000  # beyond, sparse elimination needs less memory and is as fast
_TRIED = 1e-3  # error of a known answer above which a matrix counts as singular, as for sparse elimination
_RESIDUAL = 1e-12  # relative to the terms of each equation; after a step of refinement it is rounding
_LOST = 1e-6  # share of the solution that rounding may be, above which the solver warns
_MOST_ROWS = 128  # systems of a batch
_FEWEST = 8  # systems of a batch that is compiled, where they fit
_SHARE = 0.2  # of the device's memory that a batch may take
_UNKNOWN_MEMORY = 4e9  # of a device that does not say
_COPIES = 4  # of the matrices of a batch that are there at the same time
_STARTING = 3.0  # seconds to reach a GPU and compile for it: what solves take here has to be more
_AGAIN = 0.1  # the same where that is done


@dataclass(frozen=True, eq=False)
class Batched:
    """Solves of one linear steady model, many parameters at a time, on a device of JAX."""

    model: Model
    device: Any

    @property
    def rows(self) -> int:
        """Most systems of a batch: what fits into a share of the device's memory."""
        stats = getattr(self.device, "memory_stats", lambda: None)() or {}
        memory = _SHARE * stats.get("bytes_limit", _UNKNOWN_MEMORY)
        n_left = max(int(np.count_nonzero(~self.model.terms.pattern.stated)), 1)
        return int(np.clip(memory // (8 * _COPIES * n_left**2), 1, _MOST_ROWS))

    @property
    def name(self) -> str:
        """The kind of device in one word."""
        return str(self.device.platform)

    def solve(self, mus: np.ndarray) -> dict[bytes, np.ndarray]:
        """Unknowns (n_unknowns,) by the bytes of their parameters (n, n_parameters); those that fail a check are left out."""
        out: dict[bytes, np.ndarray] = {}
        size = min(self.rows, max(_FEWEST, 1 << (len(mus) - 1).bit_length()))  # few sizes: each is compiled
        for start in range(0, len(mus), size):
            some = mus[start : start + size]
            try:
                out |= self._batch(some, size)
            except (
                FormulaError,
                ArithmeticError,
                np.linalg.LinAlgError,
            ):  # coefficients that have no value: one by one
                continue
            except RuntimeError as error:  # what JAX raises: no memory left, a device that is gone
                why = (str(error).splitlines() or [type(error).__name__])[0][:200]
                text = f"the {self.name.upper()} failed ({why}): solved on the processor instead. Use device='cpu'."
                warnings.warn(text, ParasolWarning, stacklevel=2)
                break
        log.info("%d of %d systems solved on %s", len(out), len(mus), self.name)
        return out

    def _batch(self, mus: np.ndarray, size: int) -> dict[bytes, np.ndarray]:
        entries, loads = self._systems(mus)
        missing = ((0, size - len(mus)), (0, 0))  # one shape for all batches
        with computing("float64", self.device):
            full = len(mus) == size  # padding would copy
            systems = (one if full else np.pad(one, missing, mode="edge") for one in (entries, loads))
            function, tables = self._compiled
            values, checks = (np.asarray(array)[: len(mus)] for array in function(*systems, tables))
        good = np.all(np.isfinite(values), axis=1) & np.all(checks <= [_TRIED, _RESIDUAL, _LOST], axis=1)
        return {mu.tobytes(): u for mu, u, fine in zip(mus, values, good, strict=True) if fine}

    def _systems(self, mus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The entries (n, nnz) of A and the right-hand sides (n, n_unknowns)."""
        terms = self.model.terms
        with np.errstate(all="ignore"):  # what is not finite fails its check
            if terms.varying_operator:
                entries = np.array([terms.operator_entries(mu) for mu in mus])
            else:
                entries = terms.operator_theta(mus) @ terms.operator_data
            if terms.varying_load:
                return entries, np.array([terms.load(mu) for mu in mus])
            return entries, terms.load_theta(mus) @ terms.loads

    @cached_property
    def _compiled(self) -> Any:
        """The function of JAX, and the tables that it takes besides the systems, on the device."""
        import jax

        tables = {name: jax.numpy.asarray(table) for name, table in _tables(self.model.terms.pattern).items()}
        return jax.jit(jax.vmap(_one(self.model.terms.pattern.n_fields), in_axes=(0, 0, None))), tables


def _tables(pattern: Pattern) -> dict[str, np.ndarray]:
    """Where the entries of a matrix with this pattern go."""
    indices, indptr, stated = pattern.indices, pattern.indptr, pattern.stated
    n, counts = len(stated), np.diff(indptr)
    width, row = int(counts.max(initial=1)), np.repeat(np.arange(n), counts)
    # rows of equal length, filled up with zeros: sums in a fixed order, so that equal input gives equal bytes
    place, column = np.full((n, width), len(indices)), np.zeros((n, width), dtype=int)
    slot = np.arange(len(indices)) - indptr[:-1][row]
    place[row, slot], column[row, slot] = np.arange(len(indices)), indices
    inner = np.flatnonzero(~stated[row] & ~stated[indices])
    number = np.cumsum(~stated) - 1
    tables = {"place": place, "column": column, "inner": inner, "left": np.flatnonzero(~stated)}
    tables |= {"block_row": number[row[inner]], "block_column": number[indices[inner]]}
    tables |= {"stated": np.flatnonzero(stated), "first": indptr[:-1][stated]}
    return {name: table.astype(np.int32) for name, table in tables.items()} | {
        "signs": random_signs(2 * n).reshape(2, n)
    }


def _one(n_fields: int) -> Any:
    """The solve of one system as a function of JAX: entries (nnz,) and load (n,) to values (n,) and checks (3,).

    The checks are those of a solve by `parasol.pde.steady`: the error of a known answer, the residual relative to the
    terms of its equation, and the share of the solution that is rounding.
    """
    import jax.numpy as jnp
    from jax.scipy.linalg import lu_factor, lu_solve

    def power_of_two(largest):
        return jnp.exp2(-jnp.ceil(jnp.log2(jnp.where(largest > 0, largest, 1.0))))

    def one(entries, load, tables):
        n, left, stated, column, signs = len(load), *(tables[k] for k in ("left", "stated", "column", "signs"))
        rows = jnp.append(entries, 0.0)[tables["place"]]
        diagonal = entries[tables["first"]]

        def times(matrix, x):  # (n, width) by (k, n)
            return jnp.sum(matrix * x[:, column], axis=-1)

        block = jnp.zeros((len(left), len(left)))
        block = block.at[tables["block_row"], tables["block_column"]].add(entries[tables["inner"]])
        scale = power_of_two(jnp.max(jnp.abs(block), axis=1, initial=0.0))
        block = block * scale[:, None]
        units = power_of_two(jnp.max(jnp.abs(block), axis=0, initial=0.0))
        factors = lu_factor(block * units)

        def solve(right):  # (k, n)
            out = jnp.zeros_like(right).at[:, stated].set(right[:, stated] / diagonal)
            rest = (right - times(rows, out))[:, left] * scale
            return out.at[:, left].set(lu_solve(factors, rest.T).T * units)

        def sizes(u):  # (..., n) to (..., n_fields)
            return jnp.max(jnp.abs(u.reshape(*u.shape[:-1], n_fields, -1)), axis=-1)

        def worst(r):
            return jnp.max(jnp.where(r == 0, 0.0, jnp.abs(r) / terms))

        known = jnp.ones(n).at[left].set(units) * signs[0]
        values, again = solve(jnp.stack([load, times(rows, known[None])[0]]))
        tried = jnp.max(jnp.abs(again - known) / jnp.abs(known))
        terms = times(jnp.abs(rows), jnp.repeat(sizes(values), n // n_fields)[None])[0] + jnp.abs(load)
        residual = load - times(rows, values[None])[0]
        correction, *moved = solve(jnp.concatenate([residual[None], signs * terms]))
        better = values + correction
        refined = load - times(rows, better[None])[0]
        before, after = worst(residual), worst(refined)
        noise, size = jnp.finfo(float).eps * jnp.max(sizes(jnp.stack(moved)), axis=0), sizes(values)
        some = NOISE * noise < size
        share = jnp.max(jnp.where(some, noise / jnp.where(some, size, 1.0), 0.0))
        lost = jnp.where(jnp.any(some), share, jnp.any(noise > 0) * 1.0)
        values = jnp.where(after < before, better, values)
        return values, jnp.stack([tried, jnp.minimum(before, after), lost])

    return one


def why_not(solver: Any) -> str:
    """Why a solver's systems cannot be solved in batches; nothing where they can."""
    if not isinstance(solver, Model):
        return "the solver is not a model of parasol's"
    if solver.problem.time is not None or solver.terms.nonlinear:
        return "batches are for linear steady problems"
    if solver.n_unknowns > MOST_UNKNOWNS:
        return f"the model has {solver.n_unknowns} unknowns, batches are for {MOST_UNKNOWNS} at most"
    if solver.terms.constant_operator:
        return "one matrix serves all parameters"
    return "" if len(solver.terms.pattern.order) else "every equation states its unknown"


def batched(solver: Any, n_samples: int, device: str = "auto") -> Batched | None:
    """Batches on a GPU for `n_samples` solves: "auto" where there is one and they are worth its start, "gpu" on request."""
    if device == "cpu":
        return None
    why = why_not(solver)
    if device == "gpu":
        if why:
            raise InputError(f'device="gpu", but {why}. Use device="cpu".')
        return _kept(solver, pick_device("gpu"))
    ready = bool(_last) and _last[0].model is solver  # reached and compiled
    if why or n_samples * _seconds_here(solver.n_unknowns) < (_AGAIN if ready else _STARTING):
        return None
    gpu = gpu_device()
    return None if gpu is None else _kept(solver, gpu)


def _kept(model: Model, device: Any) -> Batched:
    """The batches of a model on a device: the last ones, which are compiled, or new ones."""
    if not (_last and _last[0].model is model and _last[0].device is device):
        _last[:] = [Batched(model, device)]
    return _last[0]


_last: list[Batched] = []


def _seconds_here(n: int) -> float:
    """About what one sparse solve of n unknowns takes on one core."""
    return 0.0095 * (n / 1000) ** 1.6
