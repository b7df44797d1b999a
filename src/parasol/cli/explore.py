"""`parasol explore`: a surrogate as one page with sliders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from parasol.cli.options import JsonFile, Quiet, SurrogateFile
from parasol.cli.progress import stages
from parasol.cli.reading import Option
from parasol.cli.terminal import check_json, check_place, one_line_warnings, tell


def explore(
    model: SurrogateFile,
    out: Annotated[
        str | None,
        Option("--out", "-o", metavar="FILE", help="The page, .html; left out, it has the name of the model."),
    ] = None,
    title: Annotated[str | None, Option(help="What stands at the top; left out, the name of the problem.")] = None,
    samples: Annotated[
        int | None, Option(min=1, metavar="N", help="For function parameters: how many drawn ones to offer.")
    ] = None,
    solves: Annotated[
        int, Option(min=0, metavar="N", help="Make N full solves and put them into the page, beside the answers.")
    ] = 0,
    problem: Annotated[
        str | None,
        Option(metavar="FILE", help="The problem of these solves, where it is not one of parasol's: file.py[:name]."),
    ] = None,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """One self-contained HTML page: sliders for the parameters, the field in colour, its error bound live.

    [dim]parasol explore model.parasol --out page.html[/dim]

    The page computes by itself. It needs no server and no network, and opens from a mail attachment.
    """
    from parasol.delivery.page.explore import write_page
    from parasol.runtime.files import load

    path = check_place(Path(model).with_suffix(".html").name if out is None else out, (".html", ".htm"))
    check_json(json_file)
    with stages(quiet) as stage, one_line_warnings():
        stage("reading the surrogate")
        surrogate = load(model)
        if solves:
            from parasol.report.budget.solver import solver_of

            stage("rebuilding the solver")
            surrogate = replace(surrogate, solver=solver_of(surrogate, problem))
        stage("preparing the page" if not solves else f"preparing the page, with {solves} full solves")
        write_page(surrogate, path, title=title, samples=samples, solves=solves, file=Path(model).name)
    facts = {"page": str(path), "bytes": path.stat().st_size}
    page = f"{path} ({1e-6 * facts['bytes']:.1f} MB): open it in a browser, or mail it"
    tell(facts, json_file, quiet, wrote=(page,))
