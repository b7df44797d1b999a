"""What the numbers mean, in sentences: the conclusion, the hypotheses, and what could not be reproduced."""

from __future__ import annotations

import math
from collections.abc import Iterator

from parasol.report import Cell, Facts, Scattered, Table, written_alike
from parasol_lab.paper.run import Run

_TOO_WIDE = 0.25  # of the mean: a scatter that spans the claim is no claim
_OTHER_DATA = "sine-gordon"  # the problem whose solutions cannot be those of the paper
_ON_GPU = "helmholtz"  # the problem of which the paper says how much faster a GPU answers


def scattered(facts: Facts) -> Scattered:
    """An error with its scatter over seeds."""
    return Scattered(facts["error"], facts.get("scatter"))


def spoken(facts: Facts) -> str:
    """An error in a sentence: with its scatter over seeds, unless that is below the digits that are written.

    >>> spoken({"error": 0.1234, "scatter": 0.0056}), spoken({"error": 0.1234, "scatter": 1e-6})
    ('0.123 ± 0.006', '0.123')
    """
    return written_alike([facts["error"] if _negligible(facts) else scattered(facts)])[0]


def _negligible(facts: Facts) -> bool:
    """Whether the scatter is below the third digit of the error."""
    return (facts.get("scatter") or 0.0) < 5e-3 * facts["error"]


def conclusion(run: Run, results: Facts) -> str:
    """One paragraph that says it all."""
    stated, ours = run.stated, results["solvers"]["POD-DNN"]
    theirs = float(stated.solvers["POD-DNN"]["error"] or 0)
    times = theirs / ours["error"]
    compared = f"{times:.3g} times smaller than" if times >= 1 else f"{1 / times:.3g} times as large as"
    seeds = ours.get("n_seeds", 1)
    if seeds == 1:
        over = ", from one seed,"
    elif _negligible(ours):
        over = f", the mean over {seeds} seeds, which scatter by less than half a percent,"
    else:
        over = f", the mean and the standard deviation over {seeds} seeds,"
    text = (
        f"POD-DNN errs by {spoken(ours)}{over} on {ours['n_queries']} test parameters after "
        f"{results['pde_solves']} full solves; the paper reports {theirs:.2g} after {stated.pde_solves}"
    )
    if results["quick"]:
        text += ", of the problem in full size."
    elif run.problem == _OTHER_DATA:
        text += f", of other trajectories (they need {stated.n_modes} modes), so that the two do not compare."
    else:
        text += f". That is {compared} the paper's."
    text += (
        f" The basis alone leaves {results['projection_error']:.2g}, the full solver's own error is "
        f"{results['discretisation']['error']:.2g}."
    )
    if "gpu_inference_seconds" in ours:
        ratio = ours["inference_seconds"] / ours["gpu_inference_seconds"]
        claimed = " (the paper: 10 to 40 times, on other machines)" if run.problem == _ON_GPU else ""
        text += f" On the GPU all answers come {ratio:.3g} times as fast as on this CPU{claimed}."
    bound = results.get("certificate")
    if bound and bound["kind"] == "residual":
        largest, middle = bound["largest_bound"], bound["median_bound"]
        most = f"at most {largest:.2g} on the test set" if math.isfinite(largest) else "not everywhere of use"
        text += (
            f" Every answer comes with a bound of its error: {most}, {middle:.2g} in the middle, proven for "
            f"{100 * bound['rigorous']:.4g} % of the test set; it held for {100 * bound['holds']:.4g} % of it and was at least "
            f"{bound['bound_over_error_least']:.3g} times, typically {bound['bound_over_error_median']:.3g} times the error."
        )
    elif bound:
        text += (
            f" {bound['n_calibration']} of these solves were kept from training: by them a new error is at most {bound['largest_bound']:.2g} with "
            f"probability {bound['level']:.2g}; on the test set that held for {100 * bound['holds']:.0f} %."
        )
    if results["quick"]:
        text = f"This is a small version that shows that everything runs: {reduced_words(run, results)}. {text}"
    return text


def reduced_words(run: Run, results: Facts) -> str:
    """What a quick run has less of than the same preset in full size."""
    s, sizes = run.stated, results["sizes"]
    less = {"values of a solution": (results["n_values"], s.n_values)}
    if run.few:
        spent = sizes["snapshots"]
        less["full solves"] = (spent, max(s.few, spent if run.problem == "schrodinger" else 0))
    else:
        less |= {"snapshots": (sizes["snapshots"], s.n_snapshots), "training samples": (sizes["train"], s.n_train)}
        less["validation samples"] = (sizes["validation"], s.n_validation)
    less["test samples"] = (sizes["test"], s.n_test)
    less["epochs of the paper's training"] = (run.epochs, s.epochs)
    if run.seeds < 5:
        less["seeds"] = (run.seeds, 5)
    differences = [f"{' of '.join(written_alike(pair))} {name}" for name, pair in less.items() if pair[0] < pair[1]]
    differences += _LESS_QUICKLY[run.problem]
    if run.ours:
        differences.append("a network of parasol that is smaller and trained for 15 iterations")
    if "labels" in results:
        differences.append(f"{results['labels']} answers of the reduced model for its training in place of 4096")
    return f"{', '.join(differences)}; the stencils are those of the full size, on fewer nodes"


_LESS_QUICKLY = {
    "helmholtz": [
        "64 of 512 candidates of the greedy basis",
        "20 of 100 parameters behind the constants of the bounds",
        "a reference with 1500 of 8000 nodes",
    ],
    "sine-gordon": ["steps in time of 0.1 in place of 0.05", "reduced models to 0.01 in place of 0.0001"],
    "schrodinger": ["two of four degrees at which $f$ is cut"],
}


def theory_words(run: Run, results: Facts) -> Iterator[str]:
    """The assumptions of the theorem on this problem."""
    hypotheses = results["hypotheses"]
    if run.problem == "sine-gordon":
        step = hypotheses["step"]
        yield (
            "The theorem is about one linear system $B_μ c = f_μ$ with $B$ and $f$ simple functions of $μ$. Here every step in time is "
            "such a system, and its matrix is affine in the damping, but the right-hand side depends on the whole past "
            "through $sin u$: the paper leaves the verification open, and so do we. Measured on "
            f"{step['n_modes_in_space']} modes in space, the matrix of a step (times $h^2$) has singular values between "
            f"{step['beta']:.3g} and {step['alpha']:.3g}, the theorem's $β$ (not the damping) and $α$: a single step is as well "
            "conditioned as can be; about many of them in a row, and about $sin u$, the theorem says nothing. No network "
            "here was built by it."
        )
        return
    raw, better = hypotheses["raw"], hypotheses["preconditioned"]
    counts = {"matrix": hypotheses["affine_terms_operator"], "vector": hypotheses["affine_terms_load"]}
    many = {"matrix": "matrices", "vector": "vectors"}
    terms = " and ".join(f"{n} {name if n == 1 else many[name]}" for name, n in counts.items())
    yield (
        f"$A_μ$ and $f_μ$ are affine in the parameters, sums of {terms}: the maps $μ → B_μ$ and $μ → f_μ$ are represented by networks "
        "of one layer without error, as the paper says. What decides is the spectrum: $α = max σ_{max}(B_μ)$, "
        f"$β = min σ_{{min}}(B_μ)$, $γ = max ‖f_μ‖$. With the rows as they are $α/β$ = {raw['alpha_over_beta']:.3g}; multiplied with the "
        f"inverse of one matrix in the middle of the box {better['alpha_over_beta']:.3g}. The constants of the theorem grow "
        "with it, and its parts have to be as exact as $ε_1$, $ε_2$, $ε_3$ below say; training asks for none of this."
    )
    if run.problem == "schrodinger":
        yield (
            "$f$ is Gaussian, so no $γ$ bounds it for all samples, and the assumption holds with a probability only; the $γ$ here is "
            "the largest in the test set. The matrix does not depend on the parameter at all: the map $f → u$ is linear, and "
            "one matrix represents it exactly."
        )


def not_reproduced(run: Run, results: Facts) -> Iterator[str | Table]:
    """Every number of the paper beside ours, and why they part."""
    yield _numbers(run, results)
    yield from _times(run, results)
    words = {"helmholtz": _helmholtz, "sine-gordon": _sine_gordon, "schrodinger": _schrodinger}
    yield from words[run.problem](run, results)
    yield _open(run)


def _numbers(run: Run, results: Facts) -> Table:
    """The paper's numbers one by one: what is within twice the scatter, or within a tenth, counts as met.

    Where seeds scatter by more than a quarter of their mean, nothing is said.
    """
    rows: list[tuple[Cell, ...]] = []
    for name, stated in run.stated.solvers.items():
        theirs, facts = stated.get("error"), results["solvers"].get(name, {})
        if theirs is None:
            continue
        if facts.get("error") is None:
            rows.append((f"error of {name}", theirs, "not run", facts.get("skipped", "")))
            continue
        scatter = facts.get("scatter") or 0.0
        if results["quick"]:
            verdict = ""
        elif scatter > _TOO_WIDE * facts["error"]:
            verdict = "seeds scatter too much to say"
        elif abs(facts["error"] - theirs) <= max(2 * scatter, 0.1 * theirs):
            verdict = "met"
        else:
            ratio = facts["error"] / theirs
            verdict = f"{ratio:.{3 if ratio >= 10 else 2}g} times the paper's"
        rows.append((f"error of {name}", theirs, scattered(facts), verdict))
    caption = (
        "A small version is another problem than the paper solves: nothing is said of what is met. "
        if results["quick"]
        else "Met: within twice the scatter over seeds, or within a tenth. "
    )
    if run.problem == _OTHER_DATA:
        caption += "The paper's errors are of other trajectories than these. "
    caption += (
        "Times are of other machines, the paper's of a laptop (Intel i7-11800H, RTX 3060): none is expected to be met."
    )
    if run.problem == _ON_GPU and "gpu_inference_seconds" not in results["solvers"]["POD-DNN"]:
        caption += " That a GPU answers 10 to 40 times as fast, as the paper claims, was not measured: there was none."
    n_modes, theirs = results["n_modes"], run.stated.n_modes
    if run.few:
        caption += f" The number of modes, {theirs} in the paper, is not compared: here it was not taken from the paper's tolerance."
    else:
        met = "met" if n_modes == theirs else f"{abs(n_modes - theirs)} {'more' if n_modes > theirs else 'fewer'}"
        caption += f" The paper needs {theirs} modes, this run {n_modes}: {met}."
    return Table(("the paper's number", "the paper", "here", ""), tuple(rows), caption, alike=((1, 2),))


def _times(run: Run, results: Facts) -> Iterator[str]:
    """How many times as long as POD-DNN the other solvers take, there and here: ratios depend less on the machine."""
    stated, solvers = run.stated.solvers, results["solvers"]
    parts = []
    for key, does in (("inference_seconds", "answers"), ("fit_seconds", "is trained")):
        ours = {name: solvers[name][key] for name in stated if solvers.get(name, {}).get(key)}
        for name in (name for name in ours if name != "POD-DNN" and stated[name].get(key)):
            theirs = float(stated[name][key] or 0) / float(stated["POD-DNN"][key] or 1)
            there, here = (f"{float(f'{ratio:.3g}'):.10g}" for ratio in (theirs, ours[name] / ours["POD-DNN"]))
            parts.append(f"{name} {does} in {there} times its seconds there and in {here} times here")
    if parts:
        yield f"Beside POD-DNN: {'; '.join(parts)}."


def readings_table(run: Run, results: Facts) -> Table:
    """What each reading of the paper's training reaches; the nearest to the paper's number is set off."""
    rows: list[tuple[Cell, ...]] = []
    emphasis = []
    tried = results["readings"]
    for name in dict.fromkeys(row["solver"] for row in tried):
        theirs = run.stated.solvers.get(name, {}).get("error")
        own = [row for row in tried if row["solver"] == name]
        if theirs is not None and not results["quick"]:
            nearest = min(range(len(own)), key=lambda i: abs(math.log(own[i]["error"] / theirs)))
            emphasis.append(len(rows) + nearest)
        rows += [(name, row["reading"], scattered(row), row.get("last_error"), theirs) for row in own]
    seeds: dict[str, list[int]] = {}  # of the first reading of each network, and of the others
    for row in tried:
        seeds.setdefault(row["solver"], []).append(row["n_seeds"])
    usual, *others = dict.fromkeys((counts[0], counts[-1]) for counts in seeds.values())
    caption = f"Mean and standard deviation over {usual[0]} seeds of the first reading and {usual[1]} of the others"
    caption += "".join(
        f"; of the {name}, whose every training takes minutes, {counts[0]} and {counts[-1]}"
        for name, counts in seeds.items()
        if (counts[0], counts[-1]) in others
    )
    caption += (
        " (first weights and order of the batches), with the weights of the smallest validation error, and with the last ones. "
        "The first reading of each network is used everywhere else in this report"
    )
    caption += "." if results["quick"] else "; the one nearest to the paper's number is set off."
    headers = ("network", "reading", "error", "last weights", "paper")
    return Table(headers, tuple(rows), caption, tuple(emphasis), alike=((2, 3, 4),))


_INDEPENDENCE = (
    "That the size of the network does not depend on $N$ is true of trained networks, but not of the theorem's: its bound "
    "contains $N d^2 (log 1/ε + log N)$, because it multiplies the $N$ rows of $B$ inside the network. It becomes true once these "
    "are compressed to as many as $[A_1 V, A_2 V, …, f]$ has independent ones."
)
_SAMPLES = {
    "helmholtz": "a lattice of parameters for the basis, uniform random ones for training, validation and test",
    "sine-gordon": "uniform random parameters throughout",
    "schrodinger": "independent draws of $f$ throughout, its series cut at degree {degree}",
}
_FEW_SAMPLES = {
    "helmholtz": "a Sobol sequence drawn towards the edges of the box for the basis, answers of the reduced model to train the network, uniform random parameters for the test",
    "sine-gordon": "a Sobol sequence for basis and network, uniform random parameters to calibrate the bound and for the test",
    "schrodinger": "independent draws of $f$ throughout, its series cut at degree {degree}",
}
_NODES = {
    "helmholtz": "The nodes come from the advancing front that the paper names, and those next to the boundary are then moved apart by repulsion, which the front does not do.",
    "sine-gordon": "The nodes are a lattice, 57 × 57 in full size: with 101 stored times that is the paper's $N$.",
    "schrodinger": "The nodes of the ball are a Poisson-disc filling evened out by repulsion, in full size with as many nodes inside and on the sphere as in the paper, not those of the algorithm that it names.",
}


def _open(run: Run) -> str:
    """What the paper does not state, and what was used."""
    samples = (_FEW_SAMPLES if run.few else _SAMPLES)[run.problem].format(degree=run.degree)
    text = (
        "The paper does not state its seeds, the parameters of its snapshots, the first weights, the loss, which epoch's weights "
        f"are kept, nor the scales of inputs and outputs (but for the z-score in the sine-Gordon problem). Here: {samples}. "
        f"{_NODES[run.problem]}"
    )
    if not run.ours and not run.readings:
        text += " With `--readings` the choices it leaves open are tried."
    return text


def _networks(run: Run, results: Facts) -> str:
    """What the paper's networks reach and what those here do, and what can be said of the difference."""
    pairs = {
        name: (stated["error"], results["solvers"][name])
        for name, stated in run.stated.solvers.items()
        if name in ("DNN", "POD-DNN", "DeepONet") and stated.get("error") and results["solvers"][name].get("error")
    }
    numbers = "; ".join(
        f"{name}: {written_alike([theirs])[0]} there, {spoken(facts)} here" for name, (theirs, facts) in pairs.items()
    )
    if run.ours:
        return f"{numbers}. The networks here are trained as parasol does, so that these differences are of the training as well."
    text = f"{numbers}. These are the paper's networks and numbers of epochs{' (fewer in a small version)' if run.quick else ''}; "
    text += "first weights, scales, loss and the epoch kept are not stated. "
    if results["quick"]:
        return text.rstrip()
    if not results.get("readings"):
        return text + "Which of them makes the difference cannot be said."
    ranges = []
    for name, (theirs, _) in pairs.items():
        errors = sorted(row["error"] for row in results["readings"] if row["solver"] == name)
        if errors:
            inside = (
                "on both sides of the paper's number"
                if errors[0] <= theirs <= errors[-1]
                else "all on one side of the paper's number"
            )
            ranges.append(f"{name} from {written_alike(errors[:1])[0]} to {written_alike(errors[-1:])[0]}, {inside}")
    return text + f"The readings of them that were tried spread: {'; '.join(ranges)}."


def _helmholtz(run: Run, results: Facts) -> Iterator[str]:
    greedy = results["solvers"]["LS-RRBFM"]
    text = (
        f"LS-RRBFM: 0.00133 there with 17 greedy modes, {greedy['error']:.2g} here with {greedy['n_modes']} and the bare rows that the paper "
        f"describes, where its basis allows {greedy['projection_error']:.2g}."
    )
    if "reduced model" in results["solvers"]:
        reduced = results["solvers"]["reduced model"]
        text += (
            f" In the basis of POD, with rows multiplied by an inverse, least squares reach {reduced['error']:.2g} where the basis allows "
            f"{reduced['projection_error']:.2g}."
        )
    yield f"{text} The paper states neither the candidates nor the error indicator of its greedy basis, so that what makes the difference cannot be said."
    yield _networks(run, results)
    yield (
        f"The truth is coarse: this discretisation is off by {results['discretisation']['error']:.2g} against a finer one, so "
        "errors below that compare surrogates with a solver, not with the equation."
    )
    yield _INDEPENDENCE


def _sine_gordon(run: Run, results: Facts) -> Iterator[str]:
    discretisation = results["discretisation"]
    text = "The paper needs $d = 27$ modes at $ε = 0.01$ and errs by 0.037. "
    if run.few:
        text += "Here $d$ was not taken from that tolerance."
    else:
        text += f"These snapshots need {results['n_modes']} at the same tolerance, which leaves {results['projection_error']:.2g}"
        text += (
            ": these are other trajectories than the paper's, so that its errors are not to be expected here, whatever the training."
            if 2 * results["n_modes"] < run.stated.n_modes and not run.quick
            else "."
        )
    yield text
    if "coefficients" in results:
        least, most = results["coefficients"]
        yield (
            f"The paper finds coefficients from $O(1)$ to $O(10^4)$ over its 27 dimensions. Here the largest of each dimension are between {least:.2g} and "
            f"{most:.2g}; a trajectory that stays between 0 and 2π has a norm of at most {2 * math.pi * results['n_values'] ** 0.5:.2g}, "
            "and so has each coefficient."
        )
    if "schemes" in discretisation:
        errors = "; ".join(f"{name} {error:.2g}" for name, error in discretisation["schemes"].items())
        yield (
            f"On the paper's lattice the full solvers are off, against half the spacing and half the step, by: {errors} (mean over "
            f"{discretisation['n_parameters']} parameters). IMQ without polynomials reproduces no constants, and the solution has plateaus at 0 "
            "and 2π; ghost nodes do not mend that, one constant does."
        )
    yield (
        f"Here the stencils are its own: the truth that networks are judged against is off by {discretisation['error']:.2g}. "
        if not run.ours
        else "The data here come from the default stencils of parasol, not the paper's: `--preset paper` has those. "
    ) + "The trajectories of the paper followed a method (Su, 2019) whose steps in time it does not state."
    yield _networks(run, results)
    yield (
        "Tensor decompositions of the snapshots as an array in $x$, $y$, $t$ and $μ$ (HOSVD, tensor trains), which the paper names and does "
        "not use, would compress the modes themselves, 328 149 numbers each in full size, and so the file; the error of POD-DNN comes from the "
        "basis in $μ$ and from the map, which they leave as they are."
    )


def _schrodinger(run: Run, results: Facts) -> Iterator[str]:
    modes = ", ".join(f"{row['n_modes']} at degree {row['degree']}" for row in results["truncation"])
    yield (
        "The paper does not say at which degree the random series of $f$ is cut; the number of modes at $ε = 0.03$ depends on it: "
        f"{modes} (the paper: 57)."
    )
    yield _networks(run, results)
    if "linear map, all modes" in results["solvers"]:
        matrix, whole = results["solvers"]["linear map"], results["solvers"]["linear map, all modes"]
        text = (
            f"The map is linear, as the paper says of the equation, and a matrix fitted by least squares errs by {matrix['error']:.2g} in the same "
            f"basis, which alone leaves {matrix['projection_error']:.2g}, and by {whole['error']:.2g} with {whole['n_modes']} modes. "
        )
    else:
        text = f"The map is linear, and a matrix fitted by least squares errs by {results['solvers']['linear map']['error']:.2g}. "
    yield text + (
        "A matrix is exact once it has seen as many samples as $f$ has terms; a network without a linear path has to learn what is linear. The Fourier neural "
        "operator, which the paper names beside DeepONet, works with Fourier modes on lattices; on a sphere its kind would be spherical harmonics, in which this "
        "map is diagonal: a linear one of them would be exact but for the discretisation."
    )
