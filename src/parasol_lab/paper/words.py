"""What the numbers mean, in sentences: the conclusion, the hypotheses, and what could not be reproduced."""

from __future__ import annotations

import math
from collections.abc import Iterator

from parasol.report import Facts
from parasol_lab.paper.run import Run


def conclusion(run: Run, results: Facts) -> str:
    """One paragraph that says it all."""
    stated, ours = run.stated, results["solvers"]["POD-DNN"]
    theirs = float(stated.solvers["POD-DNN"]["error"] or 0)
    times = theirs / ours["error"]
    compared = f"{times:.3g} times smaller than" if times >= 1 else f"{1 / times:.3g} times as large as"
    text = (
        f"POD-DNN errs by {ours['error']:.2g} on {ours['n_queries']} test parameters after {results['pde_solves']} full "
        f"solves; the paper reports {theirs:.2g} after {stated.pde_solves}. That is {compared} the paper's. "
        f"The basis alone leaves {results['projection_error']:.2g}, the full solver's own error is "
        f"{results['discretisation']['error']:.2g}."
    )
    if "gpu_inference_seconds" in ours:
        ratio = ours["inference_seconds"] / ours["gpu_inference_seconds"]
        text += (
            f" On the GPU all answers come {ratio:.3g} times as fast as on this CPU (the paper claims 10 to 40 times)."
        )
    bound = results.get("certificate")
    if bound and bound["kind"] == "residual":
        largest, middle = bound["largest_bound"], bound["median_bound"]
        most = f"at most {largest:.2g} on the test set" if math.isfinite(largest) else "not everywhere of use"
        text += (
            f" Every answer comes with a bound of its error: {most}, {middle:.2g} in the middle, proven for "
            f"{100 * bound['rigorous']:.4g} % of the test set; it held for {100 * bound['holds']:.4g} % of it and was between "
            f"{bound['bound_over_error_least']:.3g} and typically {bound['bound_over_error_median']:.3g} times the error."
        )
    elif bound:
        text += (
            f" With {bound['n_calibration']} more solves kept aside, a new error is at most {bound['largest_bound']:.2g} with "
            f"probability {bound['level']:.2g}; on the test set that held for {100 * bound['holds']:.0f} %."
        )
    if results["quick"]:
        text = f"This is the small version that shows that everything runs: its numbers mean little. {text}"
    return text


def theory_words(run: Run, results: Facts) -> Iterator[str]:
    """The assumptions of the theorem on this problem."""
    found = results["hypotheses"]
    if run.problem == "sine-gordon":
        step = found["step"]
        yield (
            "The theorem is about one linear system B_μ c = f_μ with B and f simple functions of μ. Here every step in time is "
            "such a system, and its matrix is affine in the damping, but the right-hand side depends on the whole past "
            "through sin u: the paper leaves the verification open, and so do we. Measured on "
            f"{step['n_modes_in_space']} modes in space, the matrix of a step (times h²) has singular values between β and α: "
            "single steps are harmless, their number (and sin u) is what the theorem says nothing about. No network here "
            "was built by it."
        )
        return
    raw, better = found["raw"], found["preconditioned"]
    counts = {"matrix": found["affine_terms_operator"], "vector": found["affine_terms_load"]}
    many = {"matrix": "matrices", "vector": "vectors"}
    terms = " and ".join(f"{n} {name if n == 1 else many[name]}" for name, n in counts.items())
    yield (
        f"A_μ and f_μ are affine in the parameters, sums of {terms}: the maps μ → B_μ and μ → f_μ are represented by networks "
        "of one layer without error, as the paper says. What decides is the spectrum: α = max σ_max(B_μ), "
        f"β = min σ_min(B_μ), γ = max ‖f_μ‖. With the rows as they are α/β = {raw['alpha_over_beta']:.3g}; multiplied with the "
        f"inverse of one matrix in the middle of the box {better['alpha_over_beta']:.3g}. The constants of the theorem grow "
        "with it, and its parts have to be as exact as ε₁, ε₂, ε₃ below say; training asks for none of this."
    )
    if run.problem == "schrodinger":
        yield (
            "f is Gaussian, so no γ bounds it for all samples, and the assumption holds with a probability only; the γ here is "
            "the largest in the test set. The matrix does not depend on the parameter at all: the map f → u is linear, and "
            "one matrix represents it exactly."
        )


def not_reproduced(run: Run, results: Facts) -> Iterator[str]:
    """Where our numbers and the paper's part, in one paragraph."""
    words = {"helmholtz": _helmholtz, "sine-gordon": _sine_gordon, "schrodinger": _schrodinger}
    yield words[run.problem](run, results)


_SETTINGS = (
    "The paper does not state the seeds, the parameters of its snapshots, the initial weights, or on which scale inputs and "
    "outputs were trained; we use a lattice, uniform samples, He's weights and one scale for all outputs."
)
_INDEPENDENCE = (
    "That the size of the network does not depend on N is true of trained networks, but not of the theorem's: its bound "
    "contains N d² (log 1/ε + log N), because it multiplies the N rows of B inside the network. It becomes true once these "
    "are compressed to as many as [A₁V, A₂V, …, f] has independent ones."
)


def _helmholtz(run: Run, results: Facts) -> str:
    greedy = results["solvers"]["LS-RRBFM"]
    text = (
        f"The paper's LS-RRBFM errs by 0.00133 with 17 greedy modes; ours, with the bare rows it describes and "
        f"{greedy['n_modes']} modes, by {greedy['error']:.2g}, where its basis allows {greedy['projection_error']:.2g}. "
    )
    if "reduced model" in results["solvers"]:
        reduced = results["solvers"]["reduced model"]
        text += f"With rows multiplied by an inverse least squares reach {reduced['error']:.2g}: the method is not what errs. "
    if not run.few:
        text += f"The number of modes at 1e-6 is {results['n_modes']} (the paper: 17). "
    text += (
        f"Its truth is coarse: the same discretisation is off by {results['discretisation']['error']:.2g} against a finer one, so "
        "errors below that compare surrogates with a solver, not with the equation. "
    )
    return text + _INDEPENDENCE + " " + _SETTINGS


def _sine_gordon(run: Run, results: Facts) -> str:
    found, theirs = results["discretisation"], results.get("their_scheme")
    text = "The paper needs d = 27 modes at ε = 0.01 and errs by 0.037. "
    if not run.few:
        text += f"Our snapshots need {results['n_modes']} at the same tolerance, which leaves {results['projection_error']:.2g}. "
    if theirs:
        text += f"With the paper's own stencils it is {theirs['n_modes']}. "
    if "error_of_the_papers_scheme" in found:
        text += (
            f"The paper's scheme (bare IMQ, one-sided at the walls) is off by {found['error_of_the_papers_scheme']:.2g} from a solution with half the spacing, ours with "
            f"as many nodes by {found['error']:.2g}, which is why ours makes the data here. "
        )
    text += "So 27 is not a number of the problem, and we do not know of which discretisation it is. "
    return text + "The paper's training times are of another machine and framework. " + _SETTINGS


def _schrodinger(run: Run, results: Facts) -> str:
    modes = ", ".join(f"{row['n_modes']} at degree {row['degree']}" for row in results["truncation"])
    text = (
        "The paper does not say at which degree the random series of f is cut; the number of modes at ε = 0.03 depends on it: "
        f"{modes} (the paper: 57). Its three networks err by 0.093 to 0.107; "
    )
    if "linear map, all modes" in results["solvers"]:
        matrix, whole = results["solvers"]["linear map"], results["solvers"]["linear map, all modes"]
        text += (
            f"the map is linear, and a matrix fitted by least squares errs by {matrix['error']:.2g} in the same basis, all of it "
            f"the basis' own, and by {whole['error']:.2g} with all modes. "
        )
    else:
        text += f"the map is linear, and a matrix fitted by least squares errs by {results['solvers']['linear map']['error']:.2g}. "
    return text + "A network without a linear path loses to a matrix here. " + _SETTINGS
