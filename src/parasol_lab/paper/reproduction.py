"""The paper's numerical experiments again: tables, figures, a model and a report from one call."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from parasol import Surrogate, __version__, save
from parasol.checks import check_choice, check_count
from parasol.delivery import write_page
from parasol.errors import FileError, InputError, ParasolWarning
from parasol.pde import Model
from parasol.report import Facts, machine_facts, require_matplotlib, write_json, write_report, written_alike
from parasol_lab.paper.helmholtz import run_helmholtz
from parasol_lab.paper.numbers import PRESETS, PROBLEMS
from parasol_lab.paper.pages import PAGE, preset_words, sections_of, top_of
from parasol_lab.paper.run import Outcome, Run, Stage
from parasol_lab.paper.schrodinger import run_schrodinger
from parasol_lab.paper.sine_gordon import run_sine_gordon

_EXPERIMENTS = {"helmholtz": run_helmholtz, "sine-gordon": run_sine_gordon, "schrodinger": run_schrodinger}


def reproduce(
    problem: str,
    out: str | Path,
    *,
    preset: str = "best",
    quick: bool = False,
    store: str | Path | None = None,
    seeds: int | None = None,
    command: str = "",
    progress: Stage = lambda text: None,
    **asked: Any,
) -> Facts:
    """Run one experiment and write results.json, report.html, explore.html, figures and model.parasol into a folder.

    `preset` "paper" is the paper's scheme, numbers of samples and training, read as simply as possible; "best" as many samples,
    our training, and for sine-Gordon our stencils; "few" our way with few full solves. Every training is repeated with `seeds`
    seeds (5, or 2 in a quick run; at most 3 for networks of more than 1e8 weights), and tables hold mean and scatter. Full solves,
    fitted maps and what every seed reached are kept in `store` (default: `snapshots` beside the folder): a run that was stopped
    goes on where it was. What else may be asked for are fields of `Run`: `jobs`, `device`, `seed`, `degree`, which cuts the random
    boundary values of the Schrödinger problem, and `readings`, which tries other readings of what the paper leaves open.
    """
    check_choice(problem, PROBLEMS, "problem")
    check_choice(preset, PRESETS, "preset")
    seeds = check_count((2 if quick else 5) if seeds is None else seeds, "seeds")
    out = Path(out).absolute()
    store = out.parent / "snapshots" if store is None else Path(store).absolute()
    run = Run(problem, preset, out, store, progress, quick=quick, seeds=seeds, **asked)
    check_choice(run.device, ("auto", "cpu", "gpu"), "device")
    check_count(run.degree, "degree")
    if run.readings and preset != "paper":
        raise InputError(f'readings are of the paper\'s training, and preset={preset!r} has none. Use preset="paper".')
    if run.seed < 0:
        raise InputError(f"seed={run.seed} must be a whole number from 0 on.")
    require_matplotlib()
    if out.exists() and not out.is_dir():
        raise FileError(f"cannot write into {str(out)!r}: it is there and not a folder. Choose another name.")
    (out / "figures").mkdir(parents=True, exist_ok=True)
    if run.device == "gpu":
        _ = run.has_gpu  # refused at once where there is none
    with warnings.catch_warnings():
        if quick:  # a small version has small bases and loose constants: nobody needs to be told
            said = "(error bounds are proven|tolerance=|n_modes=|the initial state violates)"
            warnings.filterwarnings("ignore", message=said, category=ParasolWarning)
        outcome = _EXPERIMENTS[problem](run)
        results = _results(run, outcome)
        facts = {key: results[key] for key in ("error", "n_modes", "projection_error", "pde_solves")}
        facts["error"] = results["solvers"]["POD-DNN"]["errors"][0]  # the one that is saved is that of the first seed
        facts |= {**outcome.surrogate.facts, **facts, "problem": problem, "preset": preset}
        surrogate = replace(outcome.surrogate, facts=facts)
        run.progress("writing the explorer page")
        page = write_page(surrogate, out / PAGE, title=run.stated.title).read_text(encoding="utf-8")
        top, sections = top_of(run, outcome), sections_of(run, outcome, results, page)
    save(surrogate, out / "model.parasol")
    words = f"{preset_words(preset)}{', a small version' if quick else ''}"
    title = f"{run.stated.title}, again"
    facts = results["machine"]
    write_report(out / "report.html", title, words, sections, top=top, command=command, facts=facts)
    write_json(results, out / "results.json")
    return results


def _results(run: Run, outcome: Outcome) -> Facts:
    """What `results.json` holds."""
    nodes, basis = outcome.model.nodes, outcome.basis
    main = outcome.solvers["POD-DNN"]
    device = main.get("device", "cpu")
    results: Facts = {
        "problem": run.problem,
        "preset": run.preset,
        "quick": run.quick,
        "seed": run.seed,
        "seeds": run.seeds,
        "parasol": __version__,
        "n_nodes": nodes.n_nodes,
        "n_interior": nodes.n_interior,
        "n_boundary": nodes.n_boundary,
        "n_values": basis.n_values,
        "n_modes": basis.n_modes,
        "projection_error": main["projection_error"],
        "error": main["error"],
        "pde_solves": outcome.pde_solves,
        "machine": {**machine_facts(), **_device_facts(run.gpu, device)},
        "solvers": outcome.solvers,
        "paper": run.stated.solvers,
        "scheme": _scheme_words(outcome.model),
        "basis": _basis_words(run),
        "recipe": _map_words(outcome.surrogate),
        **outcome.facts,
    }
    results.setdefault("sizes", _sizes(run, outcome))
    results["budget"] = _budget(results)
    return results


def _device_facts(gpu: str | None, device: str) -> Facts:
    if gpu is None:
        return {"device": device}
    from parasol.fitting import descent

    return {"device": "gpu", "gpu": gpu, "jax": descent.require_jax().__version__}


def _sizes(run: Run, outcome: Outcome) -> Facts:
    n_snapshots, n_train, n_validation, n_test = run.sizes
    if run.few:
        n_train = 0 if "labels" in outcome.facts else outcome.pde_solves
        return {"snapshots": outcome.pde_solves, "train": n_train, "validation": 0, "test": n_test}
    return {"snapshots": n_snapshots, "train": n_train, "validation": n_validation, "test": n_test}


def _basis_words(run: Run) -> str:
    return "as many modes as the solves can tell" if run.few else f"{run.stated.tolerance:g}"


def _scheme_words(model: Model) -> str:
    scheme = model.scheme
    polynomials = f"polynomials of degree {scheme.degree}" if scheme.degree >= 0 else "no polynomials"
    return f"{scheme.kernel}, {polynomials}, {scheme.stencil_size} nodes"


def _map_words(surrogate: Surrogate) -> str:
    """The map of a surrogate in a few words."""
    network = getattr(surrogate.map, "network", None)
    if network is None:
        return type(surrogate.map).__name__
    widths = network.widths[1:-1]
    hidden = f"{len(widths)} × {widths[0]}" if len(set(widths)) == 1 else " and ".join(str(width) for width in widths)
    name = {"relu": "ReLU", "silu": "SiLU"}.get(network.activation, network.activation)
    path = " and a linear path" if network.skip is not None else ""
    return f"{hidden} {name}{path}, {written_alike([network.n_weights])[0]} weights"


def _budget(results: Facts) -> Facts:
    """The parts of each solver's error: of the full solver, of the basis, of the map."""
    out = {}
    for name, facts in results["solvers"].items():
        if facts.get("error") is not None:
            out[name] = {
                "discretisation": results["discretisation"]["error"],
                "projection": facts.get("projection_error"),
                "map": facts.get("map_error", facts["error"]),
                "error": facts["error"],
            }
    return out


def paper_rows(results: Facts) -> list[tuple[str, str]]:
    """The solvers in words, for a table on a terminal."""
    out = [
        (
            f"{results['problem']}, preset {results['preset']}",
            f"{results['n_nodes']} nodes, {results['n_modes']} modes, {results['pde_solves']} full solves, projection error "
            f"{results['projection_error']:.2e}, the full solver's own error {results['discretisation']['error']:.1e}",
        )
    ]
    for name, facts in results["solvers"].items():
        theirs = results["paper"].get(name, {})
        paper = "" if theirs.get("error") is None else f" (the paper: {theirs['error']:.2e})"
        if "skipped" in facts:
            out.append((name, f"not run: {facts['skipped']}{paper}"))
        elif facts["error"] is None:
            out.append((name, f"{facts['inference_seconds']:.3g} s for {facts['n_queries']} queries: the truth here"))
        else:
            fitted = f", fitted in {facts['fit_seconds']:.1f} s" if facts.get("fit_seconds") is not None else ""
            seconds = f"{1e3 * facts['inference_seconds']:.3g} ms for" if facts["inference_seconds"] else "not timed on"
            seconds += f" {facts['n_queries']} queries"
            scatter = "" if facts.get("scatter") is None else f" ± {facts['scatter']:.1e}"
            out.append((name, f"error {facts['error']:.2e}{scatter}{paper}, {seconds}{fitted}"))
    bound = results.get("certificate")
    if bound:
        largest = bound["largest_bound"]
        words = f"relative error at most {largest:.1e}" if math.isfinite(largest) else "none that helps everywhere"
        out.append((f"bound, {bound['kind']}", f"{words} on the test set, {bound['median_bound']:.1e} in the middle"))
    return out
