"""`parasol info`: what is in a model."""

from __future__ import annotations

from parasol.cli.options import JsonFile, Quiet, SurrogateFile
from parasol.cli.terminal import check_json, tell


def info(model: SurrogateFile, json_file: JsonFile = None, quiet: Quiet = False) -> None:
    """Tell what is in SURROGATE: equation, ranges, sizes, errors, what its bounds mean, how it was made.

    [dim]parasol info model.parasol[/dim]
    """
    from parasol.runtime.descriptions import SurrogateReport
    from parasol.runtime.files import load

    check_json(json_file)
    report = SurrogateReport(load(model), model)
    tell(report.to_dict(), json_file, quiet, report.rows().items())
