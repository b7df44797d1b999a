"""`parasol export`: the whole map as a model for other programs."""

from __future__ import annotations

from typing import Annotated, Literal

from parasol.cli.options import JsonFile, Quiet, SurrogateFile
from parasol.cli.progress import stages
from parasol.cli.reading import Option
from parasol.cli.terminal import check_json, check_place, one_line_warnings, tell


def export(
    model: SurrogateFile,
    to: Annotated[
        str, Option("--to", "--out", "-o", metavar="FILE", help="Where the ONNX model goes, like model.onnx.")
    ],
    dtype: Annotated[
        Literal["float64", "float32"], Option(help="Type of mu and u; float32 halves the file.")
    ] = "float64",
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Write the whole map from parameters to fields as an ONNX model, compared with Python before it is kept.

    [dim]parasol export model.parasol --to model.onnx[/dim]

    Input mu (n, parameters), output u (n, values); names, ranges, nodes and times are in the metadata.
    It answers outside the ranges too, and knows no error bounds: those need parasol.
    """
    from parasol.delivery.onnx_export import EXPORT_SUFFIXES
    from parasol.delivery.onnx_export import export as export_onnx
    from parasol.runtime.files import load

    check_place(to, EXPORT_SUFFIXES)
    check_json(json_file)
    with stages(quiet) as stage, one_line_warnings():
        stage("reading the surrogate")
        surrogate = load(model)
        stage("writing and comparing")
        written = export_onnx(surrogate, to, dtype=dtype)
    tell(written.to_dict(), json_file, quiet, written.rows().items(), wrote=(to,))
