"""The server described to people: the explorer with calls to copy, the routes to try, the list of several surrogates."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from parasol import __version__
from parasol.delivery.server.calls import calls_html
from parasol.delivery.server.formats import JSON
from parasol.delivery.server.service import Service
from parasol.delivery.server.umbridge import model_names
from parasol.errors import ParasolError
from parasol.runtime.descriptions import SurrogateReport, description
from parasol.runtime.plain import Plain, plain

_SHARED = ("parameters", "n_parameters", "unknowns", "n_values", "n_modes", "n_nodes", "dimension", "quantities")
_ROWS = ("problem", "domain", "parameters", "answers", "quantities", "map", "error bound")
_HERE = Path(__file__).parent


def describe(service: Service) -> Plain:
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


def explorer_page(service: Service, token: bool) -> str:
    """The explorer of the surrogate, with calls below it; where it cannot be made, the surrogate in words and why."""
    from parasol.delivery.page.explore import explore

    calls = calls_html(service, token)
    try:
        html = explore(service.surrogate).html
    except ParasolError as error:
        why = f'<p class="problem">There is no explorer of this surrogate: {escape(str(error))}</p>'
        return _page(_title(service), f"{_about(service)}{why}{calls}")
    html = html.replace("</header>", '<nav class="routes"><a href="docs">API</a></nav></header>', 1)
    body, _, end = html.rpartition("</body>")
    extra = f"<style>{_file('calls.css')}</style>{calls}<script>{_file('page.js')}</script>"
    return f"{body}{extra}</body>{end}"


def docs_page(schema: Plain, service: Service | None = None, token: bool = False) -> str:
    """Every route with what it takes and gives, to be tried; of one service also what is served, and calls to copy."""
    parts = {"Answers": "", "Server": "", "UM-Bridge": ""}
    for path, item in schema["paths"].items():
        part = "UM-Bridge" if re.search("/[A-Z][A-Za-z]*$", path) else "Answers" if "/v1/" in path else "Server"
        parts[part] += "".join(_route(verb, path, operation) for verb, operation in item.items())
    routes = "".join(f"<h2>{part}</h2>{text}" for part, text in parts.items())
    head = f"<h1>{escape(schema['info']['title'])}</h1>" if service is None else _about(service)
    below = "" if service is None else calls_html(service, token)
    title = "API" if service is None else f"API of {_title(service)}"
    links = f'<nav><a href="./">{"Surrogates" if service is None else "Explorer"}</a> <a href="openapi.json">OpenAPI</a></nav>'
    return _page(title, f"{head}{links}{below}{routes}")


def list_page(services: Mapping[str, Service]) -> str:
    """Several surrogates, each with its equation, its ranges and where to go on."""
    cards = "".join(
        f'<article class="card"><h2><a href="{name}/">{name}</a></h2>{_equations(service)}{_facts(service, name)}'
        f'<nav><a href="{name}/">Explorer</a> <a href="{name}/docs">API</a> '
        f'<a href="{name}/openapi.json">OpenAPI</a></nav></article>'
        for name, service in services.items()
    )
    first = next(iter(services))
    note = (
        f"<p>Each is asked below its name, as <code>/{first}/v1/predict</code>; UM-Bridge knows them as "
        f'<code>{first}/field</code>. <a href="docs">All routes</a>, <a href="openapi.json">OpenAPI</a>.</p>'
    )
    return _page("Surrogates", f"<h1>{len(services)} surrogates</h1>{note}{cards}")


def _page(title: str, body: str) -> str:
    style = _file("page.css") + _file("calls.css")
    parts = {"TITLE": escape(title), "STYLE": style, "BODY": body, "SCRIPT": _file("page.js")}
    return re.sub("%([A-Z]+)%", lambda match: parts[match[1]], _file("page.html"))


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _title(service: Service) -> str:
    return service.surrogate.provenance.problem or "A surrogate"


def _about(service: Service) -> str:
    return f"<h1>{escape(_title(service))}</h1>{_equations(service)}{_facts(service, _title(service))}"


def _equations(service: Service) -> str:
    from parasol.delivery.page.equations import equation_html

    equations = service.surrogate.provenance.equation
    return f'<div class="equation">{"".join(map(equation_html, equations.split("; ")))}</div>' if equations else ""


def _facts(service: Service, heading: str) -> str:
    """What is served in words, less what the heading says."""
    rows = {name: text for name, text in SurrogateReport(service.surrogate).rows().items() if text != heading}
    known = "".join(f"<dt>{name}</dt><dd>{escape(rows[name])}</dd>" for name in _ROWS if name in rows)
    return f"<dl>{known}</dl>"


def _route(verb: str, path: str, operation: Plain) -> str:
    """One route: what it takes, what it gives, and a form that asks it."""
    body = operation.get("requestBody", {}).get("content", {}).get(JSON, {})
    takes = f"<h3>Takes {JSON}</h3>{_properties(body['schema'])}" if body else ""
    example = json.dumps(body["example"], ensure_ascii=False) if body else ""
    area = f'<textarea aria-label="body" spellcheck="false">{escape(example)}</textarea>' if body else ""
    answers = operation["responses"]["200"]["content"]
    gives = "".join(f"<h3>Gives {kind}</h3>{_properties(answer['schema'])}" for kind, answer in answers.items())
    return (
        f'<details><summary><b class="verb">{verb.upper()}</b> <code>{path}</code> '
        f'<span>{escape(operation["summary"])}</span></summary><div class="inside">{takes}{gives}'
        f'<h3>Try it</h3><form class="try" data-path="{path[1:]}">{area}<button>Ask</button><output></output></form>'
        "</div></details>"
    )


def _properties(schema: Plain) -> str:
    if "properties" not in schema:
        return f"<p>{_words(schema)}</p>"
    required = schema.get("required", ())
    rows = "".join(
        f"<dt><code>{escape(name)}</code>{'' if name in required else ', optional'}</dt><dd>{_words(item)}</dd>"
        for name, item in schema["properties"].items()
        if item != {"const": False}  # what this surrogate does not have
    )
    return f"<dl>{rows}</dl>"


def _words(schema: Any) -> str:
    """A schema in words.

    >>> _words({"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 2}, "minItems": 1, "maxItems": 9})
    '1 to 9 × [number from 0 to 2]'
    """
    if not isinstance(schema, dict):
        return "nothing else"
    if "anyOf" in schema:
        return ", or ".join(map(_words, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        values = [json.dumps(value) for value in schema.get("enum", [schema.get("const")])]
        return escape(", ".join(values[:6]) + (", …" if len(values) > 6 else ""))
    kinds = schema.get("type", "anything")
    kind = " or ".join(kinds) if isinstance(kinds, list) else kinds
    if schema.get("format") == "binary":
        return "what numpy.save writes"
    if kind == "array":
        each = schema.get("prefixItems") or [schema.get("items", {})]
        inside = ", ".join(map(_words, each[:6])) + (", …" if len(each) > 6 else "")
        low, high = schema.get("minItems"), schema.get("maxItems")
        count = f"{low} to {high} × " if high is not None and low != high else ""
        return f"{count}[{inside}]"
    if kind == "object" and schema.get("properties"):
        inside = ", ".join(f"{escape(name)}: {_words(item)}" for name, item in schema["properties"].items())
        return f"{{{inside}}}"
    if "minimum" in schema and "maximum" in schema:
        return f"{kind} from {schema['minimum']:g} to {schema['maximum']:g}"
    return kind
