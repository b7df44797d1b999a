"""`parasol problems`: the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from parasol.cli.app import app
from parasol.cli.terminal import check_json, tell


@app.command()
def problems(
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the list as JSON; - is stdout.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")] = False,
) -> None:
    """List the catalogue: equations, domains, parameters.

    [dim]parasol problems[/dim]

    What is not in it is a file that declares a ps.Problem: wherever a command wants a PROBLEM, give path/to/file.py.
    """
    from parasol.pde.catalogue import load_problem, problem_names
    from parasol.report.facts import problem_facts, problem_lines

    check_json(json_file)
    facts = [problem_facts(name, load_problem(name)) for name in problem_names()]
    rows = [(fact["name"], "\n".join(problem_lines(fact))) for fact in facts]
    tell(facts, json_file, quiet, rows, "problem", "equation, domain and parameters")
