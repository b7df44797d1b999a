"""The table of settings: what a run did, beside what the paper states."""

from __future__ import annotations

import re

from parasol.report import Facts, written_alike
from parasol_lab.paper.run import Run


def settings_rows(run: Run, results: Facts) -> list[tuple[str, str, str]]:
    """This run's settings beside the paper's."""
    s, sizes, solvers = run.stated, results["sizes"], results["solvers"]
    paper_training = f"Adam at {s.learning_rate:g}, {s.epochs} epochs, batches of {s.batch_size}"
    unsaid = "not stated"
    rows = [
        ("values of a solution, $N$", written_alike([results["n_values"]])[0], written_alike([s.n_values])[0]),
        ("nodes", _GENERATORS[run.problem][0], _GENERATORS[run.problem][1]),
        (
            "stencils",
            scheme_words(results["scheme"]),
            f"{s.kernel.replace(', ε', ' with $ε$')}, no polynomials, {s.stencil_size} nodes",
        ),
        *_in_time(run, results),
        ("snapshots of the basis", str(sizes["snapshots"]), str(s.n_snapshots)),
        ("tolerance of the basis", results["basis"], f"{s.tolerance:g}"),
        ("modes, $d$", str(results["n_modes"]), str(s.n_modes)),
        ("training, validation, test samples", _samples(run, results), f"{s.n_train}, {s.n_validation}, {s.n_test}"),
        ("network of POD-DNN", results["recipe"], "2 × 500 ReLU"),
        ("its training", _training(run), paper_training),
        ("its scales and first weights", _data(run, solvers["POD-DNN"]), _stated_scales(run)),
        ("its loss", _loss(run, solvers["POD-DNN"]), unsaid),
        ("weights kept", _kept(run), unsaid),
        ("seeds", _seeds(run, solvers), unsaid),
        ("arithmetic", _arithmetic(run), unsaid),
        ("full solves in all", str(results["pde_solves"]), str(s.pde_solves)),
    ]
    for name in ("DNN", "DeepONet"):
        if solvers.get(name, {}).get("error") is not None:
            rows.insert(
                -4,
                (name, _field_words(run, name, solvers[name]), "2 × 500 ReLU, as above" if name == "DNN" else unsaid),
            )
    return rows


_GENERATORS = {
    "helmholtz": (
        "advancing front, then repulsion next to the boundary",
        "advancing front (Fornberg and Flyer, NodeLab)",
    ),
    "sine-gordon": ("lattice of the square", "lattice of 57 × 57, from $N$"),
    "schrodinger": ("Poisson-disc filling, then repulsion", "the algorithm of Shankar, Kirby and Fogelson"),
}


def _in_time(run: Run, results: Facts) -> list[tuple[str, str, str]]:
    if run.problem != "sine-gordon":
        return []
    return [
        ("walls", "ghost nodes", "not stated; its appendix recommends ghost nodes"),
        ("step in time", f"{results['step']:g}, stored every 0.1", "not stated; 101 stored times, from $N$"),
    ]


def _samples(run: Run, results: Facts) -> str:
    sizes = results["sizes"]
    if not run.few:
        return ", ".join(str(sizes[name]) for name in ("train", "validation", "test"))
    of_basis = f"{sizes['train']}, those of the basis"
    train = f"{results['labels']} answers of the reduced model" if "labels" in results else of_basis
    aside = f", but {sizes['calibration']} to calibrate the bound" if "calibration" in sizes else ""
    return f"{train}; none{aside}; {sizes['test']}"


def _training(run: Run) -> str:
    if run.ours:
        return "variable projection (L-BFGS on the hidden layers), the last layer solved"
    return f"Adam at {run.stated.learning_rate:g}, {run.epochs} epochs, batches of {run.stated.batch_size}"


def _data(run: Run, facts: Facts) -> str:
    if run.ours:
        return "inputs to [−1, 1], logarithms where declared; outputs by one scale; scaled normal weights"
    return f"{_said(facts)[0]}; weights and biases uniform in ±1/√n"


def _loss(run: Run, facts: Facts) -> str:
    return "mean squares" if run.ours else _said(facts)[1]


def _said(facts: Facts) -> tuple[str, str]:
    """The scales and the loss of the reading that was trained."""
    scales, loss = facts["reading"].split(", uniform weights, ")
    return scales.replace("data as they are", "raw $μ$, raw outputs").replace("inputs", "$μ$"), loss


def _stated_scales(run: Run) -> str:
    scales = "" if run.stated.outputs == "raw" else f"outputs by {run.stated.outputs}; first weights "
    return f"{scales}not stated"


def _kept(run: Run) -> str:
    if run.ours:
        return "of the smallest error on samples not trained on, 15 % of them where no validation set is given"
    every = max(1, run.epochs // 100)
    return f"of the smallest validation error, taken after every {'epoch' if every == 1 else f'{every} epochs'}"


def _seeds(run: Run, solvers: Facts) -> str:
    counts = {name: facts["n_seeds"] for name, facts in solvers.items() if facts.get("n_seeds")}
    if len(set(counts.values())) <= 1:
        return str(run.seeds)
    return ", ".join(f"{name}: {n}" for name, n in counts.items())


def _arithmetic(run: Run) -> str:
    if run.ours:
        return "double precision; networks without a basis in single precision"
    rounded = {"sine-gordon": "the DNN", "schrodinger": "the DeepONet"}.get(run.problem)
    return "single precision" + (f"; products of {rounded} in TF32 on a GPU" if rounded and run.has_gpu else "")


def _field_words(run: Run, name: str, facts: Facts) -> str:
    """The network without a basis, or the DeepONet, of this run."""
    size = f"2 × 500 {'SiLU' if run.ours else 'ReLU'}"
    if name == "DeepONet":
        size = f"branch and trunk of {size}, 128 terms"
    training = f"{facts.get('epochs', run.epochs)} epochs, batches of {run.stated.batch_size}"
    if run.ours:
        data = "logarithms where declared, inputs to [−1, 1], outputs by one scale; He's weights"
        return f"{size}; Adam from 1e-3 along a cosine, {training}; {data}; mean squares; the last layer solved where it is small"
    scales, loss = _said(facts)
    return f"{size}; Adam at {run.stated.learning_rate:g}, {training}; {scales}; uniform weights; {loss}"


def scheme_words(text: str) -> str:
    """A scheme as a reader would write it.

    >>> scheme_words("IMQ(epsilon=3.0), no polynomials"), scheme_words("PHS(power=9) with polynomials")
    ('IMQ with $ε$ = 3, no polynomials', 'polyharmonic splines $r^9$ with polynomials')
    """
    text = re.sub(r"PHS\(power=(\d)\)", r"polyharmonic splines $r^\1$", text)
    return re.sub(r"(\w+)\(epsilon=([\d.]+?)(?:\.0)?\)", r"\1 with $ε$ = \2", text)
