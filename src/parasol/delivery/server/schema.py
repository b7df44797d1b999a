"""The server described to programs: OpenAPI 3.1 with this surrogate's own box, sizes and names."""

from __future__ import annotations

from typing import Any

from parasol import __version__
from parasol.delivery.server.desk import SELECTORS, Desk
from parasol.delivery.server.umbridge import CONFIG, has_hessian, model_names
from parasol.delivery.server.wire import JSON, NPY, binary_kinds, plain

Schema = dict[str, Any]
MOST_IN_QUERY = 200  # entries of a list: the head of a request has a limit too
ALLOWED = {  # what a request to a route may say
    "/v1/predict": ("mus", *SELECTORS, "bounds", "quantities", "dtype", "extrapolate"),
    "/v1/gradient": ("mus", *SELECTORS, "extrapolate"),
    "/v1/bounds": ("mus", "extrapolate"),
    "/v1/quantities": ("mus", "times", "bounds", "extrapolate"),
}
_WORDS = {
    "/v1/predict": "Fields at parameters, with bounds and quantities where asked for.",
    "/v1/gradient": "Derivatives of the fields by the parameters.",
    "/v1/bounds": "Bounds of the errors of the fields.",
    "/v1/quantities": "Quantities of interest, without the fields.",
    "/v1/info": "What is served: parameters and their ranges, sizes, measured errors.",
    "/v1/nodes": "Where the values of a field belong.",
    "/health": "Whether the server answers.",
    "/metrics": "Counts for Prometheus.",
    "/openapi.json": "This description.",
    "/docs": "A page for people.",
    "/Info": "UM-Bridge: the models there are.",
    "/ModelInfo": "UM-Bridge: what a model supports.",
    "/InputSizes": "UM-Bridge: lengths of the inputs.",
    "/OutputSizes": "UM-Bridge: lengths of the outputs.",
    "/Evaluate": "UM-Bridge: outputs of one parameter vector.",
    "/Gradient": "UM-Bridge: sensᵀ times the derivative.",
    "/ApplyJacobian": "UM-Bridge: the derivative times vec.",
    "/ApplyHessian": "UM-Bridge: the second derivative with sens, times vec.",
}
_NUMBERS = {"type": "array", "items": {"type": "number"}}
_COUNT = {"type": "integer", "minimum": 0}


def questions(desk: Desk) -> dict[str, tuple[str, ...]]:
    """The routes that answer parameters, with the names each of them knows, for this surrogate."""
    absent = {"/v1/bounds"} if not desk.has_bounds else set()
    absent |= {"/v1/quantities"} if desk.surrogate.quantities is None else set()
    return {route: names for route, names in ALLOWED.items() if route not in absent}


def openapi(desk: Desk) -> Schema:
    """The description at /openapi.json: what it allows is answered, but for points outside the domain and limits of size."""
    verbs = {"ModelInfo": (), "InputSizes": (), "OutputSizes": (), "Evaluate": ("input",)}
    verbs |= {"Gradient": ("input", "outWrt", "inWrt", "sens"), "ApplyJacobian": ("input", "outWrt", "inWrt", "vec")}
    if has_hessian(desk.surrogate):
        verbs["ApplyHessian"] = ("input", "outWrt", "inWrt1", "inWrt2", "sens", "vec")
    paths = {route: {"post": _question(desk, route, names)} for route, names in questions(desk).items()}
    paths |= {f"/{verb}": {"post": _protocol(desk, verb, names)} for verb, names in verbs.items()}
    paths |= {
        "/v1/info": {"get": _get("/v1/info", {"type": "object", "required": ["parameters", "n_values"]})},
        "/health": {"get": _get("/health", _object({"status": {"const": "ok"}, "parasol": {"type": "string"}}))},
        "/metrics": {"get": _get("/metrics", {"type": "string"}, "text/plain")},
        "/openapi.json": {"get": _get("/openapi.json", {"type": "object"})},
        "/docs": {"get": _get("/docs", {"type": "string"}, "text/html")},
        "/Info": {
            "get": _get(
                "/Info",
                _object({"protocolVersion": {"const": 1.0}, "models": {"type": "array", "items": {"type": "string"}}}),
            )
        },
    }
    if desk.surrogate.layout.points is not None:
        shape = {"type": "array", "items": _NUMBERS}
        paths["/v1/nodes"] = {"get": _get("/v1/nodes", _object({"points": shape, "n_interior": _COUNT}))}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "parasol",
            "version": __version__,
            "description": "A surrogate of a parametric PDE: parameters in, fields out, with bounds of their errors.",
        },
        "paths": paths,
        "components": {"schemas": {"Error": _object({"error": {"type": "string"}}), "ProtocolError": _PROTOCOL_ERROR}},
    }


def _object(properties: Schema, optional: Schema | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties | (optional or {}),
        "required": list(properties),
        "additionalProperties": False,
    }


_PROTOCOL_ERROR = _object({"error": _object({"type": {"type": "string"}, "message": {"type": "string"}})})


def _get(route: str, schema: Schema, kind: str = JSON) -> Schema:
    return {
        "operationId": route.strip("/").replace("/", "_").replace(".", "_"),
        "summary": _WORDS[route],
        "responses": {"200": {"description": "It is so.", "content": {kind: {"schema": schema}}}},
    }


def _refusals(name: str, **words: str) -> Schema:
    content = {JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    return {status: {"description": text, "content": content | _not_http(status)} for status, text in words.items()}


def _not_http(status: str) -> Schema:
    """What is not HTTP, or has a head of 256 KiB, is refused before it reaches us, and not in JSON."""
    return {"text/plain": {"schema": {"type": "string"}}} if status == "400" else {}


_ERRORS = _refusals(
    "Error",
    **{
        "400": "The body cannot be read.",
        "406": "The answer cannot have that form.",
        "408": "The body took too long.",
        "413": "The request or its answer would be too large.",
        "415": "The body has an unknown form.",
        "422": "Something in the request is wrong: the parameter lies outside its range, for instance.",
    },
)


def vector_schema(desk: Desk) -> Schema:
    """One parameter vector: scalars in their ranges (any number where the server extrapolates), then functions."""
    n = desk.surrogate.n_parameters
    scalars = list(_ranges(desk).values())
    out: Schema = {"type": "array", "minItems": n, "maxItems": n}
    if scalars:
        out["prefixItems"] = scalars
    return out | {"items": {"type": "number"} if n > len(scalars) else False}


def _ranges(desk: Desk) -> dict[str, Schema]:
    scalars = desk.surrogate.parameters.answered.scalars
    limits = {p.name: {} if desk.extrapolate else {"minimum": p.low, "maximum": p.high} for p in scalars}
    return {name: {"type": "number", **given} for name, given in limits.items()}


def _options(desk: Desk) -> dict[str, Schema]:
    """Schemas of all that may stand in a request, mus included."""
    layout, limits = desk.surrogate.layout, desk.limits
    n_places = desk.surrogate.n_values // (layout.n_times * len(layout.names))
    vector = vector_schema(desk)
    forms = [vector]
    if not desk.surrogate.parameters.functions and desk.surrogate.parameters.scalars:
        forms.append(_object(_ranges(desk)))
    some = {"minItems": 1, "maxItems": limits.points}
    out: dict[str, Schema] = {
        "mus": {
            "anyOf": [*forms, *({"type": "array", "items": f, "minItems": 1, "maxItems": limits.batch} for f in forms)]
        },
        "bounds": {"type": "boolean"} if desk.has_bounds else {"const": False},
        "quantities": {"const": False} if desk.surrogate.quantities is None else {"type": "boolean"},
        "dtype": {"enum": ["float64", "float32"]},
        "extrapolate": {"type": "boolean"} if desk.extrapolate else {"const": False},
    }
    if desk.surrogate.readout is None:
        out["nodes"] = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": n_places - 1}, **some}
        if layout.points is not None and layout.scheme is not None:
            d = layout.points.shape[1]
            out["points"] = {"type": "array", "items": {**_NUMBERS, "minItems": d, "maxItems": d}, **some}
        if layout.times is not None:
            out["times"] = {"type": "array", "items": {"enum": layout.times.tolist()}, **some}
    return out


def _question(desk: Desk, route: str, names: tuple[str, ...]) -> Schema:
    known = _options(desk)
    chosen = {name: known[name] for name in names if name in known}
    body = _object({"mus": chosen["mus"]}, {name: schema for name, schema in chosen.items() if name != "mus"})
    if {"nodes", "points"} <= set(chosen):
        body["not"] = {"required": ["nodes", "points"]}
    binary = binary_kinds() if route in ("/v1/predict", "/v1/gradient") else ()
    content: Schema = {JSON: {"schema": _answer(desk, route)}}
    content |= {kind: {"schema": {"type": "string", "format": "binary"}} for kind in binary}
    example = {"mus": plain(desk.middle)}
    bodies: Schema = {
        JSON: {"schema": body, "example": example},
        NPY: {"schema": {"type": "string", "format": "binary"}},
    }
    return {
        "operationId": route.strip("/").replace("/", "_"),
        "summary": _WORDS[route],
        "description": "What a body of NumPy cannot say may stand in the query, as JSON. Nothing may be said twice.",
        "parameters": [
            {"name": name, "in": "query", "required": False, "content": {JSON: {"schema": _shorter(schema)}}}
            for name, schema in chosen.items()
            if name != "mus"
        ],
        "requestBody": {"required": True, "content": bodies},
        "responses": {"200": {"description": "The answer.", "content": content}, **_ERRORS},
    }


def _shorter(schema: Schema) -> Schema:
    return schema | ({"maxItems": min(MOST_IN_QUERY, schema["maxItems"])} if "maxItems" in schema else {})


def _answer(desk: Desk, route: str) -> Schema:
    """What comes back; without the axis of samples where one vector was asked for."""
    truth, size = {"type": "boolean"}, {"type": ["number", "null"]}  # null: infinite
    many = lambda schema: {"anyOf": [schema, {"type": "array", "items": schema}]}  # noqa: E731
    bounds = {"relative": many(size), "absolute": many(size), "rigorous": many(truth)}
    named = {"type": "object", "additionalProperties": {"type": ["number", "array", "null"]}}
    readings = {"quantities": named, "quantity_bounds": named}
    if route == "/v1/gradient":
        return _object({"gradient": {"type": "array"}, "extrapolated": many(truth)})
    if route == "/v1/bounds":
        return _object({**bounds, "extrapolated": many(truth)})
    if route == "/v1/quantities":
        return _object(
            {"quantities": named, "extrapolated": many(truth)}, {"quantity_bounds": readings["quantity_bounds"]}
        )
    fields = {
        "values": {"anyOf": [_NUMBERS, {"type": "array", "items": _NUMBERS}]},
        "unknowns": {"type": "array", "items": {"type": "string"}},
        "shape": {"type": "array", "items": _COUNT, "minItems": 3, "maxItems": 3},
        "times": {"type": ["array", "null"], "items": {"type": "number"}},
        "extrapolated": many(truth),
    }
    return _object(fields, {"bounds": _object(bounds), **readings})


def _protocol(desk: Desk, verb: str, names: tuple[str, ...]) -> Schema:
    vector, index = vector_schema(desk), {"const": 0}
    known = {
        "input": {"type": "array", "items": vector, "minItems": 1, "maxItems": 1},
        **dict.fromkeys(("outWrt", "inWrt", "inWrt1", "inWrt2"), index),
        "sens": {**_NUMBERS, "minItems": 1},
        "vec": {**_NUMBERS, "minItems": desk.surrogate.n_parameters, "maxItems": desk.surrogate.n_parameters},
    }
    options = _options(desk)
    config = _object({}, {name: options[name] for name in CONFIG if name in options})
    name = {"enum": model_names(desk.surrogate)}
    body = _object(
        {"name": name, **{n: known[n] for n in names}},
        {} if verb in ("ModelInfo", "InputSizes") else {"config": config},
    )
    body["additionalProperties"] = True  # other clients say other things besides
    sizes = {"type": "array", "items": _COUNT}
    support = _object({v: {"type": "boolean"} for v in ("Evaluate", "Gradient", "ApplyJacobian", "ApplyHessian")})
    answer = {
        "ModelInfo": {"support": support},
        "InputSizes": {"inputSizes": sizes},
        "OutputSizes": {"outputSizes": sizes},
    }
    output = {"type": "array", "items": _NUMBERS} if verb == "Evaluate" else _NUMBERS
    return {
        "operationId": f"umbridge_{verb}",
        "summary": _WORDS[f"/{verb}"],
        "requestBody": {"required": True, "content": {JSON: {"schema": body}}},
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {JSON: {"schema": _object(answer.get(verb, {"output": output}))}},
            },
            **_refusals("ProtocolError", **{"400": "The model or its input is not known."}),
            **{status: _ERRORS[status] for status in ("408", "413")},
        },
    }
