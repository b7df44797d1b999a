"""`parasol serve`: a surrogate over HTTP."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated, Any

from parasol.cli.options import JsonFile, Quiet
from parasol.cli.reading import Argument, Option
from parasol.cli.terminal import check_json, one_line_warnings, print_json, say


def serve(
    models: Annotated[
        list[str], Argument(metavar="SURROGATE", help="Files such as model.parasol.", show_default=False)
    ],
    port: Annotated[int, Option(metavar="PORT", help="Where to listen; 0 takes any free port.")] = 8000,
    host: Annotated[
        str, Option(metavar="ADDRESS", help="This machine only by default; 0.0.0.0 listens to everybody.")
    ] = "127.0.0.1",
    extrapolate: Annotated[
        bool, Option("--extrapolate", help="Let requests ask for parameters outside the box.")
    ] = False,
    cors: Annotated[
        list[str] | None, Option(metavar="ORIGIN", help="Whose pages may ask, * for all; may be repeated.")
    ] = None,
    token: Annotated[
        str | None, Option(envvar="PARASOL_TOKEN", metavar="TEXT", help="What all requests but /health must bring.")
    ] = None,
    max_body: Annotated[int, Option(min=1, metavar="MIB", help="Largest request.")] = 8,
    max_response: Annotated[int, Option(min=1, metavar="MIB", help="Largest answer.")] = 64,
    max_batch: Annotated[int, Option(min=1, metavar="N", help="Most parameters in one request.")] = 10_000,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Answer over HTTP: fields, gradients, bounds, as JSON or NumPy, and UM-Bridge for samplers. Ctrl-C ends it.

    [dim]parasol serve model.parasol --port 8000[/dim]

    [dim]parasol serve heat.parasol flow.parasol --cors 'https://example.org'[/dim]

    [dim]curl -H 'Content-Type: application/json' -d '{"mus": {"a": 0.9, "k": 1.7}, "bounds": true}' http://127.0.0.1:8000/v1/predict[/dim]
    """
    from parasol.delivery.server.app import Limits, serve
    from parasol.errors import InputError
    from parasol.report.render import write_json
    from parasol.runtime.files import load

    check_json(json_file)
    if token is None and "PARASOL_TOKEN" in os.environ:  # to be taken for none would leave the server open
        raise InputError("PARASOL_TOKEN is empty. Put a token into it, or unset it to serve everybody.")
    limits = Limits(body=max_body * 2**20, response=max_response * 2**20, batch=max_batch)
    names = _names(models) if len(models) > 1 else {}

    def announce(address: str) -> None:
        places: dict[str, Any] = {"address": address, "docs": f"{address}/docs", "openapi": f"{address}/openapi.json"}
        if names:
            places["surrogates"] = {name: f"{address}/{name}" for name in names}
        if json_file == "-":
            print_json(places)
        elif json_file is not None:
            write_json(places, json_file)
        if not quiet and json_file != "-":
            say(f"serving {', '.join(models)} at {address}, UM-Bridge at the same address")
            for name, file in names.items():
                say(f"  {address}/{name}/ is {file}")
            guard = "" if token is None else "; all but /health asks for the token"
            say(f"open {address} in a browser, {address}/docs for all routes{guard}; Ctrl-C ends it")
        sys.stdout.flush()  # whoever waits for the address may read it from a pipe

    with one_line_warnings():
        surrogates = {name: load(file) for name, file in names.items()} or load(models[0])
        options: dict[str, Any] = {"limits": limits, "extrapolate": extrapolate, "cors": cors or (), "token": token}
        try:
            serve(surrogates, host, port, **options, announce=announce)
        except KeyboardInterrupt:
            if not quiet and json_file != "-":
                say("stopped")


def _names(models: list[str]) -> dict[str, str]:
    """Files by the names they are served under: that of the file, with its folder before it where two are alike."""
    from pathlib import Path

    from parasol.errors import InputError

    paths = [Path(model).resolve() for model in models]
    stems = [path.stem for path in paths]
    names = [f"{p.parent.name}-{p.stem}" if stems.count(p.stem) > 1 else p.stem for p in paths]
    names = [re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") for name in names]
    for name, model in zip(names, models, strict=True):
        if names.count(name) > 1:
            raise InputError(
                f"two files would be served as {name!r}, {model} is one of them. Rename it, or leave it out."
            )
    return dict(zip(names, models, strict=True))
