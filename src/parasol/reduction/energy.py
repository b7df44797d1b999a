"""Proofs for symmetric problems with positive terms: the least ratio of their factors, and no constant per parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from parasol.errors import InputError
from parasol.pde.model import Model
from parasol.pde.sparse_direct import positive_definite, symmetric
from parasol.reduction.affine import affine_form
from parasol.reduction.certificate import ROUNDING, Cover, lanczos_margin, operator_norm
from parasol.reduction.products import MatrixRoot, Root, root_of
from parasol.reduction.reduced import Preparation, candidates_for
from parasol.reduction.residuals import ResidualBuilder
from parasol.runtime.min_theta import MinTheta
from parasol.runtime.products import MatrixProduct, Weights

_MOST = 4  # references
# of the ratios of factors: where it is less at all candidates, no reference is added; beside the product itself, which needs
# no constant, only where much is to be gained
_SPREAD, _WIDE = 3.0, 12.0
_ALIKE = 100.0  # at most so many times may two norms differ, for a bound in one to say something of the other
_SYMMETRIC = 1e-12  # relative
_SHIFT = 1e-12  # of the diagonal, that makes a semidefinite matrix definite beyond rounding


@dataclass(frozen=True, eq=False)
class EnergyPreparation(Preparation):
    """What reduced models share whose residuals are measured in the norms of inverse reference matrices."""

    roots: tuple[MatrixRoot, ...] = ()  # of the reference matrices
    embeddings: tuple[
        float, ...
    ] = ()  # C_k with ||u|| ≤ C_k ||u||_{A_k}: residuals times C_k have the unit of a solution

    def builders(self, modes: np.ndarray) -> list[ResidualBuilder]:
        """One builder per reference, with the modes (n_unknowns, n_modes) added."""
        out = []
        for mu, root, embedding in zip(self.covered.preconditioners, self.roots, self.embeddings, strict=True):
            builder = ResidualBuilder(self.form, mu, root, None, root, unit=embedding)
            builder.add(*modes.T)
            out.append(builder)
        return out


def energy_preparation(model: Model, weights: Weights | None) -> EnergyPreparation | None:
    """References and constants of bounds by the least theta; None for models that are not of this kind.

    That is: terms of the model's own, each symmetric and positive semidefinite on the unknowns that no row states, whose
    stated values are zero, with positive factors; and an inner product whose norm is like that of the energy.
    """
    terms, stated = model.terms, model.terms.pattern.stated
    varying = terms.varying_operator or terms.varying_load
    if varying or not len(terms.operator_data) or terms.constant_operator or np.any(terms.loads[:, stated]):
        return None
    free = np.flatnonzero(~stated)
    blocks = [a[free][:, free].tocsr() for a in terms.operators]
    for block in blocks:
        block.eliminate_zeros()
    if not len(free) or not all(symmetric(block, _SYMMETRIC) for block in blocks):
        return None
    form, root, candidates = affine_form(model), root_of(model, weights), candidates_for(model)
    thetas = form.operator_theta(candidates)
    counted = np.array([block.nnz > 0 for block in blocks])  # a term that states values only has no energy
    positive = np.all(thetas[:, counted] > 0, axis=1)
    if not np.any(positive) or not all(_semidefinite(block) for block in blocks):
        return None
    own = _combination(blocks, weights, free)
    chosen = _references(thetas[positive][:, counted], None if own is None else own[counted])
    rows = np.zeros((len(chosen), len(blocks)))
    rows[:, counted] = chosen
    fixed = sparse.diags_array(stated.astype(float)).tocsr()
    roots, embeddings, kept = [], [], []
    for theta in rows:
        whole = _on_all(sum(t * block for t, block in zip(theta, blocks, strict=True)), free, len(stated)) + fixed
        try:
            energy_root = MatrixRoot(_product(whole), model.terms.pattern.points)
        except InputError:  # the sum is singular: without its constraints for instance
            return None
        same = own is not None and np.array_equal(theta, rows[0])
        larger, smaller = (1.0, 1.0) if same else _equivalence(root, energy_root, ~stated)
        if larger * smaller <= _ALIKE:
            roots.append(energy_root)
            embeddings.append(larger)
            kept.append(theta)
    if not roots:
        return None
    certificate = MinTheta(np.array(kept), np.ones(len(kept)))  # the constants C_k are in the residuals
    middle = candidates[len(candidates) // 2]
    proven = float(np.mean(certificate.constants(thetas).rigorous))
    covered = Cover(certificate, (middle,) * len(roots), tuple(range(len(roots))), proven)  # type: ignore[arg-type]
    return EnergyPreparation(model, form, weights, root, None, candidates, covered, tuple(roots), tuple(embeddings))


def _references(thetas: np.ndarray, first: np.ndarray | None) -> np.ndarray:
    """Few rows of θ (n, Q) such that every row is near to one of them, up to a common factor."""
    logs, enough = np.log(thetas), _SPREAD if first is None else _WIDE
    if first is None:
        middle = np.median(logs, axis=0)
        first = thetas[np.argmin(np.ptp(logs - middle, axis=1))]
    chosen = [np.asarray(first)]
    while len(chosen) < _MOST:
        spread = np.min([np.ptp(logs - np.log(one), axis=1) for one in chosen], axis=0)
        if np.max(spread) <= np.log(enough):
            break
        chosen.append(thetas[np.argmax(spread)])
    return np.array(chosen)


def _combination(blocks: list[sparse.csr_array], weights: Weights | None, free: np.ndarray) -> np.ndarray | None:
    """Positive factors c with X = Σ c_q A_q on the free unknowns, where the inner product X is such a sum; else None."""
    if not isinstance(weights, MatrixProduct):
        return None
    unit = sparse.diags_array(1 / np.sqrt(weights.matrix.diagonal()[free]))  # unknowns may have units of their own
    x, *parts = (unit @ part @ unit for part in (weights.matrix[free][:, free], *blocks))
    probe = np.random.default_rng(0).standard_normal((len(free), 3))
    columns, wanted = np.stack([(part @ probe).ravel() for part in parts], axis=1), (x @ probe).ravel()
    factors = np.linalg.lstsq(columns, wanted)[0]
    gap = x - sum(c * block for c, block in zip(factors, parts, strict=True))
    close = abs(gap).max() <= _SYMMETRIC * abs(x).max()
    return factors if close and np.all(factors[[block.nnz > 0 for block in blocks]] > 0) else None


def _equivalence(root: Root, energy_root: MatrixRoot, free: np.ndarray) -> tuple[float, float]:
    """Upper bounds of ||u|| / ||u||_A and of ||u||_A / ||u|| over the free unknowns, by Lanczos' method with its margin."""
    mask = free.astype(float)

    def norm(apply: Callable[[np.ndarray], np.ndarray], transposed: Callable[[np.ndarray], np.ndarray]) -> float:
        start = mask * np.random.default_rng(0).standard_normal(len(mask))
        value, exact = operator_norm(apply, transposed, start)
        return (1.0 + ROUNDING if exact else lanczos_margin(int(mask.sum()))) * value

    larger = norm(
        lambda x: root.into(energy_root.back(mask * x)),
        lambda y: mask * energy_root.back_transposed(root.into_transposed(y)),
    )
    smaller = norm(
        lambda x: energy_root.into(root.back(mask * x)),
        lambda y: mask * root.back_transposed(energy_root.into_transposed(y)),
    )
    return larger, smaller


def _semidefinite(block: sparse.csr_array) -> bool:
    """Whether all pivots of the matrix, shifted by rounding, are positive."""
    used = np.flatnonzero(np.diff(block.indptr))
    if not len(used):
        return True
    part = block[used][:, used]
    if np.any(part.diagonal() < 0):
        return False
    return positive_definite(part + sparse.diags_array(_SHIFT * abs(part).sum(axis=1)))


def _on_all(block: sparse.csr_array, free: np.ndarray, n: int) -> sparse.csr_array:
    put = sparse.csr_array((np.ones(len(free)), (free, np.arange(len(free)))), shape=(n, len(free)))
    return (put @ block @ put.T).tocsr()


def _product(matrix: sparse.csr_array) -> MatrixProduct:
    symmetric_part = sparse.csr_array((matrix + matrix.T) / 2)  # symmetric to the last bit
    symmetric_part.eliminate_zeros()
    return MatrixProduct.of(symmetric_part)
