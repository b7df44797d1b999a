"""The server described to people: what is served, and one page that shows how to ask for it."""

from __future__ import annotations

import html
import json
from typing import Any

from parasol import __version__
from parasol.delivery.server.formats import JSON, NPY, plain
from parasol.delivery.server.service import Service
from parasol.delivery.server.umbridge import model_names
from parasol.runtime.description import description

_SHARED = ("parameters", "n_parameters", "unknowns", "n_values", "n_modes", "n_nodes", "dimension", "quantities")


def describe(service: Service) -> dict[str, Any]:
    """What is served, as plain data: /v1/info."""
    surrogate, times = service.surrogate, service.surrogate.layout.times
    known = description(surrogate)
    # each answer says by "bound_kind" what is known of its bound
    bounds = "residual" if known["bound"]["kind"] == "certificate" else known["bound"]["kind"]
    return {
        "parasol": __version__,
        **{name: known[name] for name in _SHARED},
        "functions": [f["name"] for f in known["functions"]],
        "times": None if times is None else plain(times),
        "map": known["map"]["kind"],
        "bounds": bounds,
        "estimate": known["estimate"],
        "facts": plain(known["made"]),
        "umbridge": model_names(surrogate),
        "limits": vars(service.limits),
        "extrapolate": service.extrapolate,
    }


def page(service: Service, schema: dict[str, Any], facts: dict[str, Any]) -> str:
    """The routes, an example to paste, and what is served: one page that asks for nothing else."""
    rows = "".join(
        f"<tr><td><code>{verb.upper()} {route}</code></td><td>{html.escape(operation['summary'])}</td></tr>"
        for route, item in sorted(schema["paths"].items())
        for verb, operation in item.items()
    )
    more = ", ..." if len(service.middle) > 8 else ""
    vector = f"[{', '.join(f'{value:g}' for value in service.middle[:8])}{more}]"
    wish = ', "bounds": true' if service.surrogate.has_bounds else ""
    body = f'{{"mus": {vector}{wish}}}'
    curl = f"curl -H 'Content-Type: {JSON}' -d '{body}' http://HOST:PORT/v1/predict"
    client = f'umbridge.HTTPModel("http://HOST:PORT", "field")([{vector}])'
    return _PAGE.format(
        rows=rows,
        curl=html.escape(curl),
        client=html.escape(client),
        forms=f"{JSON}, {NPY}",
        facts=html.escape(json.dumps(facts, indent=1, ensure_ascii=False)),
    )


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>parasol server</title><style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
td {{ padding: .15rem 1rem .15rem 0; vertical-align: top }}
pre {{ overflow: auto; padding: .8rem; border: 1px solid #8886; border-radius: .4rem; max-height: 40rem }}
</style></head><body>
<h1>A surrogate of a parametric PDE</h1>
<p>Parameters in, fields out, with bounds of their errors. The exact description is at
<a href="openapi.json">openapi.json</a>.</p>
<h2>Try it</h2><pre>{curl}</pre>
<p>Answers come in the form you <code>Accept</code>: {forms}. Bodies may be NumPy files as well.</p>
<p>From a sampler that speaks UM-Bridge:</p><pre>{client}</pre>
<h2>Routes</h2><table>{rows}</table>
<h2>What is served</h2><pre>{facts}</pre>
</body></html>
"""
