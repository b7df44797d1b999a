"""Calls of a server to copy: curl, Python, NumPy and UM-Bridge, with parameters that it answers."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from parasol.delivery.server.formats import JSON, NPY
from parasol.delivery.server.service import Service

ADDRESS = "http://HOST:PORT"  # the page puts its own address here
_LONGEST = 40  # numbers of a vector that are written out


def example(service: Service) -> list[Any]:
    """A parameter vector inside the box: short numbers near the middle of every range, functions that vanish."""
    out = service.middle.tolist()
    for i, (range_, value) in enumerate(zip(service.surrogate.parameters.answered.scalars, out, strict=False)):
        short = float(f"{value:.3g}")
        if short in range_.choices if range_.choices else range_.low <= short <= range_.high:
            out[i] = short
    return [int(value) if value == int(value) and abs(value) < 1e9 else value for value in out]


def calls(service: Service, token: bool) -> dict[str, str]:
    """Programs by name that ask this server for the field at one parameter vector."""
    surrogate, vector = service.surrogate, example(service)
    scalars = surrogate.parameters.answered.scalars
    named = len(scalars) == surrogate.n_parameters
    mus: Any = vector
    if named:
        pairs = zip(scalars, vector, strict=True)
        mus = {p.name: p.labels[int(value)] if p.labels else value for p, value in pairs}
    wanted = ', "bounds": true' if surrogate.has_bounds else ""
    row = json.dumps(vector) if len(vector) <= _LONGEST else _short(vector)
    given = json.dumps(mus, ensure_ascii=False) if named else row
    secret = ', "Authorization": token' if token else ""
    key = 'token = "Bearer " + os.environ["PARASOL_TOKEN"]' if token else None
    begin = ("import os" if token else None, "from urllib.request import Request, urlopen", "")
    shown = ', answer["bounds"]["relative"]' if wanted else ""
    out = {}
    if len(vector) <= _LONGEST:
        header = ' \\\n  -H "Authorization: Bearer $PARASOL_TOKEN"' if token else ""
        body = f'{{"mus": {given}{wanted}}}'.replace("'", "'\\''")
        out["curl"] = f"curl {ADDRESS}/v1/predict{header} \\\n  -H 'Content-Type: {JSON}' \\\n  -d '{body}'"
    out["Python"] = _lines(
        "import json",
        *begin,
        f'url = "{ADDRESS}/v1/predict"',
        f'body = json.dumps({{"mus": {given}{wanted.replace("true", "True")}}})',
        key,
        f'headers = {{"Content-Type": "{JSON}"{secret}}}',
        "answer = json.load(urlopen(Request(url, body.encode(), headers)))",
        f'print(answer["values"][:3]{shown})',
    )
    out["NumPy"] = _lines(
        "import io",
        *begin,
        "import numpy as np",
        "",
        f'url = "{ADDRESS}/v1/predict"',
        f'npy = "{NPY}"',
        "body = io.BytesIO()",
        f"np.save(body, np.array([{row}] * 2))  # (n_samples, {len(vector)})",
        key,
        f'headers = {{"Content-Type": npy, "Accept": npy{secret}}}',
        "answer = urlopen(Request(url, body.getvalue(), headers))",
        f"values = np.load(io.BytesIO(answer.read()))  # (2, {surrogate.n_values})",
    )
    address = f'"{ADDRESS}"'
    if token:
        address += '.replace("//", "//token:" + os.environ["PARASOL_TOKEN"] + "@")'
    out["UM-Bridge"] = _lines(
        begin[0],
        "import umbridge",
        "",
        f"url = {address}",
        'model = umbridge.HTTPModel(url, "field")',
        f"print(model([{row}])[0][:3])",
    )
    return out


def calls_html(service: Service, token: bool) -> str:
    """The calls as part of a page."""
    boxes = "".join(
        f'<div class="call"><h3>{name}</h3><button type="button">Copy</button><pre tabindex="0"><code>{escape(text)}</code></pre></div>'
        for name, text in calls(service, token).items()
    )
    secret = " Put the server's token into <code>PARASOL_TOKEN</code> first." if token else ""
    return (
        '<section class="calls"><h2>Ask it from a program</h2><p>JSON or NumPy arrays in and out.'
        f'{secret} <a href="docs">All routes</a>, <a href="openapi.json">OpenAPI</a>.</p><div class="grid">{boxes}</div></section>'
    )


def _lines(*lines: str | None) -> str:
    return "\n".join(line for line in lines if line is not None)


def _short(vector: list[Any]) -> str:
    """Equal numbers at the end of a long vector as a product.

    >>> _short([0.5, 2, 0, 0, 0]), _short([0, 0])
    ('[0.5, 2] + [0] * 3', '[0] * 2')
    """
    n = len(vector)
    tail = next((i for i in range(n, 0, -1) if vector[i - 1] != vector[-1]), 0)
    same = f"[{vector[-1]!r}] * {n - tail}"
    return f"{vector[:tail]!r} + {same}" if tail else same
