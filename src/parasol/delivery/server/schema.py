"""The OpenAPI 3.1 description of a server, with the box, sizes and names of its surrogate."""

from __future__ import annotations

from collections.abc import Mapping

from parasol import __version__
from parasol.delivery.server.calls import example
from parasol.delivery.server.formats import JSON, NPY
from parasol.delivery.server.service import SELECTORS, Service, n_places
from parasol.delivery.server.umbridge import COMPUTED, CONFIG, INDICES, PROTOCOL, VERBS, has_hessian, model_names
from parasol.runtime.plain import Plain

Schema = Plain  # of OpenAPI
MOST_IN_QUERY = 200  # entries of a list: the head of a request has a limit too
BINARY = ("/v1/predict", "/v1/gradient")  # routes that can answer as npy
_QUESTIONS = {  # what a request to a route may say
    "/v1/predict": ("mus", *SELECTORS, "bounds", "quantities", "dtype", "extrapolate"),
    "/v1/gradient": ("mus", *SELECTORS, "extrapolate"),
    "/v1/bounds": ("mus", "extrapolate"),
    "/v1/quantities": ("mus", "times", "bounds", "extrapolate"),
}
_ERRORS = {
    "400": "The body cannot be read, or UM-Bridge does not know the model or its input.",
    "406": "The answer cannot have that form.",
    "408": "The body took too long.",
    "413": "The request or its answer would be too large.",
    "415": "The body has an unknown form.",
    "422": "Something in the request is wrong: the parameter lies outside its range, for instance.",
}


def _array(items: Schema, low: int | None = None, high: int | None = None) -> Schema:
    limits = {"minItems": low, "maxItems": high}
    return {"type": "array", "items": items} | {name: n for name, n in limits.items() if n is not None}


def _object(required: Schema, optional: Schema | None = None) -> Schema:
    properties = required | (optional or {})
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _one_or_more(schema: Schema) -> Schema:
    """Answers to one parameter vector have no axis of samples."""
    return {"anyOf": [schema, _array(schema)]}


_NUMBER, _TEXT, _BOOLEAN = {"type": "number"}, {"type": "string"}, {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBERS, _BYTES = _array(_NUMBER), {"type": "string", "format": "binary"}
_BOUND = _one_or_more({"type": ["number", "null"]})  # null: infinite
_KIND = _one_or_more({"enum": ["proven", "probable", "calibrated", "estimated"]})
_BOUNDS = {"relative": _BOUND, "absolute": _BOUND, "rigorous": _one_or_more(_BOOLEAN), "bound_kind": _KIND}
# of the relative error itself, and of the solver's own against the equation
_ESTIMATES = {"estimate": _BOUND, "discretisation": _BOUND}
_BY_NAME = {"type": "object", "additionalProperties": {"type": ["number", "array", "null"]}}
_OF_QUANTITIES = {"quantity_bounds": _BY_NAME, "quantity_bound_kind": _KIND, "quantity_estimates": _BY_NAME}
_EXTRAPOLATED = {"extrapolated": _one_or_more(_BOOLEAN)}
_FIELDS = _object(
    {
        "values": _one_or_more(_NUMBERS),
        "unknowns": _array(_TEXT),
        "shape": _array(_COUNT, 3, 3),
        "times": {"type": ["array", "null"], "items": _NUMBER},
        **_EXTRAPOLATED,
    },
    {"bounds": _object(_BOUNDS, _ESTIMATES), "quantities": _BY_NAME, **_OF_QUANTITIES},
)
_QUANTITIES = _object({"quantities": _BY_NAME, **_EXTRAPOLATED}, _OF_QUANTITIES)
_OUTPUT = _object({"output": _NUMBERS})
_ROUTES: dict[str, tuple[str, Schema]] = {  # what they are for, and the schema of their answers
    "/v1/predict": ("Fields at parameters, with bounds and quantities where asked for.", _FIELDS),
    "/v1/gradient": (
        "Derivatives of the fields by the parameters.",
        _object({"gradient": {"type": "array"}, **_EXTRAPOLATED}),
    ),
    "/v1/bounds": (
        "Bounds and estimates of the errors of the fields.",
        _object({**_BOUNDS, **_EXTRAPOLATED}, _ESTIMATES),
    ),
    "/v1/quantities": ("Quantities of interest, without the fields.", _QUANTITIES),
    "/v1/info": (
        "What is served: parameters and their ranges, sizes, measured errors.",
        {"type": "object", "required": ["parameters", "n_values"]},
    ),
    "/v1/nodes": ("Where the values of a field belong.", _object({"points": _array(_NUMBERS), "n_interior": _COUNT})),
    "/health": ("Whether the server answers.", _object({"status": {"const": "ok"}, "parasol": _TEXT})),
    "/metrics": ("Counts for Prometheus.", _TEXT),
    "/openapi.json": ("This description.", {"type": "object"}),
    "/docs": ("All routes, for people to read and to try.", _TEXT),
    "/Info": (
        "UM-Bridge: the models there are.",
        _object({"protocolVersion": {"const": PROTOCOL}, "models": _array(_TEXT)}),
    ),
    "/ModelInfo": (
        "UM-Bridge: what a model supports.",
        _object({"support": _object(dict.fromkeys(COMPUTED, _BOOLEAN))}),
    ),
    "/InputSizes": ("UM-Bridge: lengths of the inputs.", _object({"inputSizes": _array(_COUNT)})),
    "/OutputSizes": ("UM-Bridge: lengths of the outputs.", _object({"outputSizes": _array(_COUNT)})),
    "/Evaluate": ("UM-Bridge: outputs of one parameter vector.", _object({"output": _array(_NUMBERS)})),
    "/Gradient": ("UM-Bridge: sensᵀ times the derivative.", _OUTPUT),
    "/ApplyJacobian": ("UM-Bridge: the derivative times vec.", _OUTPUT),
    "/ApplyHessian": ("UM-Bridge: the second derivative with sens, times vec.", _OUTPUT),
}
_KINDS = {"/metrics": "text/plain", "/docs": "text/html"}
_ERROR_SCHEMAS = {
    "Error": _object({"error": _TEXT}),
    "ProtocolError": _object({"error": _object({"type": _TEXT, "message": _TEXT})}),
}


def questions(service: Service) -> dict[str, tuple[str, ...]]:
    """The routes that answer parameters, with the names each of them knows, for this surrogate."""
    absent = {"/v1/bounds"} if not service.surrogate.has_bounds else set()
    absent |= {"/v1/quantities"} if not service.surrogate.quantity_names else set()
    return {route: names for route, names in _QUESTIONS.items() if route not in absent}


def openapi(service: Service) -> Schema:
    """The description at /openapi.json: the server answers whatever it allows, within limits of size and the domain."""
    surrogate = service.surrogate
    verbs = [verb for verb in VERBS if verb != "ApplyHessian" or has_hessian(surrogate)]
    constant = ["/v1/info", "/health", "/metrics", "/openapi.json", "/docs", "/Info"]
    constant += ["/v1/nodes"] if surrogate.layout.points is not None else []
    paths = {route: {"post": _question(service, route, names)} for route, names in questions(service).items()}
    paths |= {f"/{verb}": {"post": _protocol(service, verb)} for verb in verbs}
    paths |= {route: {"get": _operation(route)} for route in constant}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "parasol",
            "version": __version__,
            "description": "A surrogate of a parametric PDE: parameters in, fields out, with bounds of their errors.",
        },
        "paths": paths,
        "components": {"schemas": _ERROR_SCHEMAS},
    }


def openapi_of_all(services: Mapping[str, Service]) -> Schema:
    """The description of several services, each below its name, and of UM-Bridge for all of their models."""
    paths: Schema = {}
    for name, service in services.items():
        for route, item in openapi(service)["paths"].items():
            paths[f"/{name}{route}"] = {
                verb: operation | {"operationId": f"{name}_{operation['operationId']}"}
                for verb, operation in item.items()
            }
    names = [f"{name}/{model}" for name, service in services.items() for model in model_names(service.surrogate)]
    first, numbers = next(iter(services)), _array(_NUMBER, 1)
    common = {route: {"get": _operation(route)} for route in ("/health", "/metrics", "/openapi.json", "/docs", "/Info")}
    for verb in VERBS:
        if verb != "ApplyHessian" or has_hessian(services[first].surrogate):
            shown = paths[f"/{first}/{verb}"]["post"]["requestBody"]["content"][JSON]["example"]
            values = shown | {"name": f"{first}/{shown['name']}"}
            common[f"/{verb}"] = {"post": _bridge(verb, names, numbers, numbers, {"type": "object"}, values)}
    about = {"title": "parasol", "version": __version__, "description": f"Surrogates: {', '.join(services)}."}
    return {"openapi": "3.1.0", "info": about, "paths": common | paths, "components": {"schemas": _ERROR_SCHEMAS}}


def guarded(schema: Schema) -> Schema:
    """The same description of a server that asks for a token everywhere but at /health."""
    schemes = {"token": {"type": "http", "scheme": "bearer"}}
    free = {
        path: {"get": item["get"] | {"security": []}}
        for path, item in schema["paths"].items()
        if path.endswith("/health")
    }
    components = schema["components"] | {"securitySchemes": schemes}
    return schema | {"paths": schema["paths"] | free, "components": components, "security": [{"token": []}]}


def _operation(route: str, errors: dict[str, str] | None = None) -> Schema:
    """Summary and responses of a route; `errors` are the names of their schemas by status."""
    summary, answer = _ROUTES[route]
    content = {_KINDS.get(route, JSON): {"schema": answer}}
    content |= {NPY: {"schema": _BYTES}} if route in BINARY else {}
    responses: Schema = {"200": {"description": "The answer.", "content": content}}
    for status, name in (errors or {}).items():
        forms: Schema = {JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        if status == "400":  # a request that is not HTTP, or has a head of 64 KiB, is refused by uvicorn
            forms["text/plain"] = {"schema": _TEXT}
        responses[status] = {"description": _ERRORS[status], "content": forms}
    name = f"umbridge{route}" if route[1:] in VERBS else route[1:]
    return {"operationId": name.replace("/", "_").replace(".", "_"), "summary": summary, "responses": responses}


def _ranges(service: Service) -> dict[str, Schema]:
    """Scalar parameters in their ranges; any numbers where the server extrapolates."""
    scalars = service.surrogate.parameters.answered.scalars
    free = {} if service.extrapolate else None
    ends = {p.name: {"minimum": p.low, "maximum": p.high} if free is None else free for p in scalars}
    return {p.name: {"enum": list(p.choices)} if p.choices else _NUMBER | ends[p.name] for p in scalars}


def _vector(service: Service) -> Schema:
    """One parameter vector: scalars, then values of functions."""
    n, scalars = service.surrogate.n_parameters, list(_ranges(service).values())
    out = _array(_NUMBER if n > len(scalars) else False, n, n)  # type: ignore[arg-type]
    return out | ({"prefixItems": scalars} if scalars else {})


def _options(service: Service) -> dict[str, Schema]:
    """Schemas of everything a request may say."""
    surrogate, limits = service.surrogate, service.limits
    layout, most = surrogate.layout, limits.points
    forms = [_vector(service)]
    if surrogate.parameters.scalars and not surrogate.parameters.functions:
        words = {
            p.name: [p.labels[int(v)] for v in p.choices] for p in surrogate.parameters.answered.scalars if p.labels
        }
        by_name = {n: {"enum": [*s["enum"], *words[n]]} if n in words else s for n, s in _ranges(service).items()}
        forms.append(_object(by_name))
    out: dict[str, Schema] = {
        "mus": {"anyOf": [*forms, *(_array(form, 1, limits.batch) for form in forms)]},
        "bounds": _BOOLEAN if surrogate.has_bounds else {"const": False},
        "quantities": _BOOLEAN if surrogate.quantity_names else {"const": False},
        "dtype": {"enum": ["float64", "float32"]},
        "extrapolate": _BOOLEAN if service.extrapolate else {"const": False},
    }
    if surrogate.readout is None:
        out["nodes"] = _array(_COUNT | {"maximum": n_places(surrogate) - 1}, 1, most)
        if layout.points is not None and (layout.scheme is not None or layout.cells is not None):
            out["points"] = _array(_array(_NUMBER, *2 * layout.points.shape[1:]), 1, most)
        if layout.times is not None:
            out["times"] = _array({"enum": layout.times.tolist()}, 1, most)
    return out


def _question(service: Service, route: str, names: tuple[str, ...]) -> Schema:
    options = {name: schema for name, schema in _options(service).items() if name in names}
    mus = {"mus": options.pop("mus")}
    body = _object(mus, options)
    if {"nodes", "points"} <= set(options):
        body["not"] = {"required": ["nodes", "points"]}
    forms: Schema = {JSON: {"schema": body, "example": {"mus": example(service)}}, NPY: {"schema": _BYTES}}
    in_query = {
        name: schema | ({"maxItems": min(MOST_IN_QUERY, schema["maxItems"])} if "maxItems" in schema else {})
        for name, schema in options.items()
    }
    return {
        **_operation(route, dict.fromkeys(_ERRORS, "Error")),
        "description": "What a body of NumPy cannot say may stand in the query, as JSON. Nothing may be said twice.",
        "parameters": [
            {"name": name, "in": "query", "required": False, "content": {JSON: {"schema": schema}}}
            for name, schema in in_query.items()
        ],
        "requestBody": {"required": True, "content": forms},
    }


def _protocol(service: Service, verb: str) -> Schema:
    n, surrogate = service.surrogate.n_parameters, service.surrogate
    config = {name: schema for name, schema in _options(service).items() if name in CONFIG}
    values = {"name": "coefficients", "input": [example(service)], **dict.fromkeys(INDICES, 0)}
    values |= {"sens": [1.0] + [0.0] * (surrogate.basis.n_modes - 1), "vec": [1.0] + [0.0] * (n - 1)}
    vec = _array(_NUMBER, n, n)
    return _bridge(verb, model_names(surrogate), _vector(service), vec, _object({}, config), values)


def _bridge(verb: str, names: list[str], vector: Schema, vec: Schema, config: Schema, values: Schema) -> Schema:
    """A verb of UM-Bridge for the models of these names; `values` has what an example says."""
    known: Schema = {name: {"const": 0} for name in INDICES} | {
        "name": {"enum": names},
        "input": _array(vector, 1, 1),
        "sens": _array(_NUMBER, 1),
        "vec": vec,
    }
    said = ("name", *VERBS[verb])
    optional = {} if verb in ("ModelInfo", "InputSizes") else {"config": config}
    body = _object({name: known[name] for name in said}, optional)
    body["additionalProperties"] = True  # other clients send other names besides
    shown = {name: values[name] for name in said}
    return {
        **_operation(f"/{verb}", {"400": "ProtocolError", **dict.fromkeys(("408", "413", "415"), "Error")}),
        "requestBody": {"required": True, "content": {JSON: {"schema": body, "example": shown}}},
    }
