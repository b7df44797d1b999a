"""`parasol serve`: a surrogate over HTTP."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from parasol.cli.options import JsonFile, Model, Quiet
from parasol.cli.terminal import check_json, one_line_warnings, print_json, say


def serve(
    model: Model,
    port: Annotated[int, typer.Option(metavar="PORT", help="Where to listen; 0 takes any free port.")] = 8000,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="This machine only by default; 0.0.0.0 listens to everybody.")
    ] = "127.0.0.1",
    extrapolate: Annotated[
        bool, typer.Option("--extrapolate", help="Let requests ask for parameters outside the box.")
    ] = False,
    max_body: Annotated[int, typer.Option(min=1, metavar="MIB", help="Largest request.")] = 8,
    max_response: Annotated[int, typer.Option(min=1, metavar="MIB", help="Largest answer.")] = 64,
    max_batch: Annotated[int, typer.Option(min=1, metavar="N", help="Most parameters in one request.")] = 10_000,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Answer over HTTP: fields, gradients, bounds, as JSON or NumPy, and UM-Bridge for samplers. Ctrl-C ends it.

    [dim]parasol serve model.parasol --port 8000[/dim]

    [dim]curl -H 'Content-Type: application/json' -d '{"mus": {"a": 0.9, "k": 1.7}, "bounds": true}' http://127.0.0.1:8000/v1/predict[/dim]
    """
    from parasol.delivery.server.app import Limits, serve
    from parasol.report.render import write_json
    from parasol.runtime.files import load

    check_json(json_file)
    limits = Limits(body=max_body * 2**20, response=max_response * 2**20, batch=max_batch)

    def announce(address: str) -> None:
        places = {"address": address, "docs": f"{address}/docs", "openapi": f"{address}/openapi.json"}
        if json_file == "-":
            print_json(places)
        elif json_file is not None:
            write_json(places, json_file)
        if not quiet and json_file != "-":
            say(f"serving {model} at {address}, UM-Bridge at the same address")
            say(f"read {address}/docs in a browser; Ctrl-C ends it")
        sys.stdout.flush()  # whoever waits for the address may read it from a pipe

    with one_line_warnings():
        surrogate = load(model)
        try:
            serve(surrogate, host, port, limits=limits, extrapolate=extrapolate, announce=announce)
        except KeyboardInterrupt:
            if not quiet and json_file != "-":
                say("stopped")
