"""The hypotheses of the paper's theorem, measured: α, β, γ over the parameter box, and what they ask of a network."""

from __future__ import annotations

import numpy as np

from parasol.pde import Model
from parasol.reduction import affine_form, modes_on_unknowns
from parasol.report import Facts
from parasol.runtime import Basis

_ACCURACY = 1e-2  # ε at which the accuracies of the theorem's parts are quoted


def hypotheses(model: Model, basis: Basis, mus: np.ndarray) -> Facts:
    """α = max σ_max(B_μ), β = min σ_min(B_μ), γ = max ||f_μ|| over parameters (n, p) of a steady linear model.

    B_μ = A_μ V with the rows as they are, and multiplied with A(μ̄)⁻¹ for one μ̄ in the middle, f_μ likewise.
    """
    form = affine_form(model)
    modes = modes_on_unknowns(model, basis)
    middle = mus[len(mus) // 2].copy()
    n_scalars = len(model.parameters.scalars)
    middle[:n_scalars] = model.parameters.vector({})
    theta, phi = form.operator_theta(mus), form.load_theta(mus)
    columns = np.hstack([a @ modes for a in form.operators])
    factors = model.factors(middle)
    raw = _constants(columns, form.loads.T, theta, phi)
    preconditioned = _constants(
        factors.solve(np.asfortranarray(columns)), factors.solve(np.asfortranarray(form.loads.T)), theta, phi
    )
    return {
        "n_parameters_tried": len(mus),
        "affine_terms_operator": len(form.operators),
        "affine_terms_load": len(form.loads),
        "raw": raw,
        "preconditioned": preconditioned,
    }


def _constants(columns: np.ndarray, loads: np.ndarray, theta: np.ndarray, phi: np.ndarray) -> Facts:
    """Singular values in the few rows of a QR factorisation: nothing is squared, so small ones are right."""
    triangle = np.linalg.qr(columns, mode="r")
    blocks = np.stack(np.split(triangle, theta.shape[1], axis=1))  # (Q, n_rows, d)
    values = np.linalg.svd(np.einsum("nq,qrd->nrd", theta, blocks, optimize=True), compute_uv=False)
    gamma = float(np.max(np.linalg.norm(phi @ loads.T, axis=1)))
    return constants(float(np.max(values[:, 0])), float(np.min(values[:, -1])), gamma)


def constants(alpha: float, beta: float, gamma: float) -> Facts:
    """α, β, γ, their ratio, and ε₁, ε₂, ε₃ of the theorem at ε = 1e-2: how exact B and f have to be represented."""
    eps = _ACCURACY
    first = min(eps * beta**2 / (12 * gamma), beta * eps**0.5 / 4, alpha / 4, (alpha * gamma) ** 0.5 / 2)
    second = min(eps * beta**2 / (12 * alpha), beta * eps**0.5 / 4, gamma / 4, (alpha * gamma) ** 0.5 / 2)
    third = min(
        eps * beta**4 / (144 * alpha**2 * gamma),
        beta**2 * (6 * alpha * gamma * eps) ** 0.5 / (24 * alpha * gamma),
        beta**2 / (12 * alpha),
        beta / 3,
    )
    return {
        "alpha": alpha,
        "beta": beta,
        "gamma": gamma,
        "alpha_over_beta": alpha / beta,
        "accuracy": eps,
        "epsilon_1": first,
        "epsilon_2": second,
        "epsilon_3": third,
    }
