"""`parasol check`: the error budget of a model."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from parasol.cli.options import Jobs, JsonFile, Quiet, SurrogateFile
from parasol.cli.progress import stages
from parasol.cli.reading import Option
from parasol.cli.terminal import check_json, check_place, one_line_warnings, tell


def check(
    model: SurrogateFile,
    problem: Annotated[
        str | None,
        Option(metavar="PROBLEM", help="The problem it solves, where the file alone cannot tell: file.py[:name]."),
    ] = None,
    n: Annotated[int, Option("--n", min=1, metavar="N", help="Fresh full solves to measure on.")] = 50,
    tolerance: Annotated[
        float | None, Option(metavar="T", help="Check against this instead of what was promised.")
    ] = None,
    out: Annotated[
        str | None,
        Option("--out", "-o", metavar="FILE", help="Write the budget: a report .html, or a figure .png .svg .pdf."),
    ] = None,
    jobs: Jobs = None,
    seed: Annotated[int, Option(min=0, python="rng", help="Another seed draws other fresh parameters.")] = 1,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Where the error of SURROGATE comes from, on full solves it has never seen, and whether its promise holds.

    [dim]parasol check model.parasol --out report.html[/dim]

    Discretisation (by twice as many nodes, by another kernel), projection on the modes, the map, the bound over the
    error, coverage, the worst parameters. Exit status: 0 the promised tolerance holds, 1 it does not, 2 wrong input.
    """
    check_json(json_file)
    with stages(quiet) as stage, one_line_warnings():
        stage("reading the surrogate")
        from parasol.report.budget import check as budget  # SciPy and SymPy take a while
        from parasol.report.budget.figure import draw_budget
        from parasol.report.budget.page import write_check
        from parasol.report.canvas import require_matplotlib
        from parasol.report.figures import FIGURE_SUFFIXES
        from parasol.runtime.files import load

        if out is not None:
            check_place(out, (".html", *FIGURE_SUFFIXES))
            require_matplotlib()
        surrogate = load(model)
        error_budget = budget.check(surrogate, problem, n=n, tolerance=tolerance, rng=seed, jobs=jobs, progress=stage)
        if out is not None and Path(out).suffix.lower() == ".html":
            stage("writing the report")
            words = shlex.join(["parasol", *sys.argv[1:]])
            write_check(surrogate, error_budget, out, title=f"{Path(model).name}, checked", command=words)
        elif out is not None:
            draw_budget(error_budget, out)
    tell({"model": model, **error_budget.to_dict()}, json_file, quiet, error_budget.rows().items(), wrote=(out,))
    if not error_budget.holds:
        raise SystemExit(1)
