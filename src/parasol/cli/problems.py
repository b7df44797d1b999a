"""`parasol problems`: the catalogue."""

from __future__ import annotations

from parasol.cli.options import JsonFile, Quiet
from parasol.cli.terminal import check_json, tell


def problems(json_file: JsonFile = None, quiet: Quiet = False) -> None:
    """List the catalogue: equations, domains, parameters.

    [dim]parasol problems[/dim]

    What is not in it is a file that declares a ps.Problem: wherever a command wants a PROBLEM, give path/to/file.py.
    """
    from parasol.pde.catalogue import load_problem, problem_names
    from parasol.report.problems import ProblemReport

    check_json(json_file)
    reports = [ProblemReport(load_problem(name), name) for name in problem_names()]
    rows = [(report.name, "\n".join(report.lines())) for report in reports]
    data = [report.to_dict() for report in reports]
    tell(data, json_file, quiet, rows, "problem", "equation, domain and parameters")
