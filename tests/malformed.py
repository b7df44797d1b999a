"""Requests that no server should accept, drawn at random: what they are is known, so that all must be answered 4xx."""

import json
from dataclasses import dataclass, field

import numpy as np

from parasol.delivery.server.formats import write_npy

JSON, NPY = "application/json", "application/x-npy"
POSTS = ("/v1/predict", "/v1/gradient", "/v1/bounds", "/v1/quantities")
PROTOCOL = ("/Evaluate", "/Gradient", "/ApplyJacobian", "/ApplyHessian")
GOOD = {"mus": [1.0, 1.0]}
RIGHT = {"name": "field", "input": [[1.0, 1.0]], "outWrt": 0, "inWrt": 0, "inWrt1": 0, "inWrt2": 0, "vec": [1.0, 0.0]}
NOT_NUMBERS = [None, True, "1", "nan", {}, [], [[]], [[1.0, 1.0], [1.0]], [None, 1.0], [True, 1.0], ["1", "1"], 7, "",
               [[[1.0, 1.0]]], [1.0], [1.0, 1.0, 1.0], [[1.0]], {"a": 1.0}, {"a": 1.0, "k": "x"}, {"b": 1.0},
               [{"a": 1.0, "k": 1.0}, [1.0, 1.0]], {"a": 1.0, "k": [1.0]}, [10**400, 1], [1, -(10**30)]]  # fmt: skip
NOT_FLAGS = [0, 1, None, "true", [], {}, 0.5]


@dataclass(frozen=True)
class Bad:
    """A request and what is wrong with it."""

    why: str
    method: str = "POST"
    path: str = "/v1/predict"
    content: bytes = b""
    headers: dict = field(default_factory=lambda: {"content-type": JSON})


def draw(rng: np.random.Generator) -> Bad:
    """One malformed request."""
    return KINDS[int(rng.integers(len(KINDS)))](rng)


def pick(rng, choices):
    """One of them, as it is."""
    return choices[int(rng.integers(len(choices)))]


def text(content) -> bytes:
    return json.dumps(content).encode()


def noise(rng):
    return Bad("noise", path=pick(rng, POSTS + PROTOCOL), content=b"\xff" + rng.bytes(int(rng.integers(0, 300))))


def broken_text(rng):
    good = text(pick(rng, [GOOD, RIGHT]))
    place = int(rng.integers(len(good)))
    cut = pick(rng, [good[:place], good[:place] + b"\x01" + good[place:], good + b"}"])
    return Bad("broken JSON", path=pick(rng, POSTS + PROTOCOL), content=cut)


def not_finite(rng):
    word = pick(rng, [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1" * 5000, b"0x1", b"01", b"+1", b".5"])
    return Bad("not finite", path=pick(rng, POSTS), content=b'{"mus": [' + word + b", 1.0]}")


def deep(rng):
    n = int(rng.integers(1000, 200_000))
    shape = pick(rng, [b"[" * n, b"[" * n + b"]" * n, b'{"a":' * n, b'{"mus":' + b"[" * n + b"]" * n + b"}"])
    return Bad("deep", path=pick(rng, POSTS + PROTOCOL), content=shape)


def nested(rng):
    """As deep as can just be read, where nothing deep belongs."""
    n = int(rng.integers(3, 1100))
    name = pick(rng, ["mus", "nodes", "points", "times", "dtype", "bounds", "config", "input", "name", "x"])
    inner = pick(rng, [b"[" * n + b"]" * n, b'{"a":' * n + b"1" + b"}" * n])
    path = pick(rng, ["/v1/predict", "/v1/gradient", "/Evaluate"])
    good = b'"mus": [1, 1], ' if name != "mus" else b""
    return Bad("nested", path=path, content=b"{" + good + b'"' + name.encode() + b'": ' + inner + b"}")


def no_object(rng):
    return Bad("no object", path=pick(rng, POSTS + PROTOCOL), content=text(pick(rng, [[], 1, "x", None, True, [GOOD]])))


def wrong_mus(rng):
    return Bad("mus", path=pick(rng, POSTS), content=text({"mus": pick(rng, NOT_NUMBERS)}))


def outside(rng):
    low, high = np.array([0.1, 0.0]), np.array([4.0, 2.0])
    mu = low + (high - low) * rng.random(2)
    j = int(rng.integers(2))
    beyond = 10.0 ** rng.integers(-8, 300)  # values that miss an end by rounding, 1e-9 of the range, are inside
    mu[j] = pick(rng, [low[j] - beyond, high[j] + beyond])
    return Bad("outside", path=pick(rng, POSTS), content=text({"mus": [[1.0, 1.0], mu.tolist()]}))


def wrong_name(rng):
    name = pick(rng, ["mu", "Mus", "", "\ud800", "__class__", "x" * 3000, "tolerance", "nodes "])
    return Bad("unknown name", path=pick(rng, POSTS), content=text({**GOOD, name: pick(rng, [1, None, [], {}])}))


def wrong_option(rng):
    options = {
        "nodes": [[-1], [10**9], [0.5], [10**300], [], [[0]], 0, "0", None, [True], {"0": 0}],
        "points": [[[9.0, 9.0]], [[1e300, 0.0]], [[0.0]], [0.0, 0.0], [], [[]], "x", [["0", "0"]], [[0.0, 0.0, 0.0]]],
        "times": [[0.0], [], "x", 1.0],
        "dtype": ["float16", "object", "", None, 8, ["float64"], {}],
        "bounds": NOT_FLAGS,
        "quantities": NOT_FLAGS,
        "extrapolate": [*NOT_FLAGS, True],
    }
    name = pick(rng, list(options))
    return Bad(f"option {name}", content=text({**GOOD, name: pick(rng, options[name])}))


def wrong_query(rng):
    name, value = pick(rng, [("nodes", "[-1]"), ("nodes", "x"), ("dtype", "int8"), ("mus", "[1,1]"), ("a", "1"),
                             ("nodes", "[0]&nodes=[1]"), ("points", "[[9,9]]"), ("extrapolate", "true"), ("", ""),
                             ("nodes", "%ff%fe"), ("bounds", "1"), ("nodes", "[" * 2000)])  # fmt: skip
    return Bad("query", path=f"/v1/predict?{name}={value}", content=text(GOOD))


def wrong_npy(rng):
    good = write_npy(np.ones((3, 2)))
    place = int(rng.integers(8, 64))
    shapes = [b"(10**9, 2)", b"(-3, 2)     ", b"(999999999, 999999999)", b"(0, 2)"]
    bad = [
        good[: int(rng.integers(len(good) - 1))],
        good + b"0",
        good.replace(b"(3, 2)", pick(rng, shapes)),
        good.replace(b"<f8", pick(rng, [b"|O8", b"<U8", b">f8", b"<c8", b"<m8"])),
        good.replace(b"'descr'", b"'d\"scr'"),
        b"\x93NUMPY" + rng.bytes(200),
        good[:place] + b"\x00((" + good[place:],
        write_npy(np.full((2, 2), np.nan)),
        write_npy(np.full((2, 2), np.inf)),
        write_npy(np.ones((2, 3))),
        write_npy(np.ones((2, 2, 2))),
        write_npy(np.ones(())),
        write_npy(np.full((2, 2), 50.0)),
        write_npy(np.ones((10_001, 2))),
    ]
    return Bad("npy", path=pick(rng, POSTS), content=pick(rng, bad), headers={"content-type": NPY})


def wrong_form(rng):
    form = pick(rng, ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x", "application/xml"])
    return Bad("form", path=pick(rng, POSTS), content=text(GOOD), headers={"content-type": form})


def wrong_accept(rng):
    headers = {"content-type": JSON, "accept": pick(rng, ["text/html", "image/png", "application/json;q=0", "x/y;q=z"])}
    return Bad("accept", path=pick(rng, POSTS), content=text(GOOD), headers=headers)


def wrong_method(rng):
    if rng.random() < 0.5:
        return Bad("method", pick(rng, ["GET", "PUT", "DELETE", "PATCH", "HEAD"]), pick(rng, POSTS + PROTOCOL))
    return Bad("method", pick(rng, ["POST", "PUT", "DELETE"]), pick(rng, ["/health", "/metrics", "/Info", "/v1/info"]))


def wrong_path(rng):
    paths = ["/v1/predict/", "/v2/predict", "/v1", "/%00", "/../etc/passwd", "/Evaluate/x", "/v1/%2e%2e/info", "/nodes"]
    return Bad("path", pick(rng, ["GET", "POST"]), pick(rng, paths), content=text(GOOD))


def too_many(rng):
    if rng.random() < 0.8:
        return Bad("batch", path=pick(rng, POSTS), content=text({"mus": [[1, 1]] * 10_001}))
    return Bad("long", path=pick(rng, POSTS + PROTOCOL), content=b" " * (9 * 2**20))


def wrong_protocol(rng):
    choices = {
        "name": [None, "", "fields", 1, [], {}, "x" * 3000],
        "input": [None, [], [[]], [[1.0]], [[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0], [["1", "1"]], [[99.0, 1.0]], "x", {}],
        "outWrt": [1, -1, "0", 0.5, None, [0], True],
        "inWrt": [1, -1, "0", None, 10**30],
        "config": [1, [], "x", {"point": []}, {"points": [[9, 9]]}, {"nodes": [-1]}, {"extrapolate": True}, None],
    }
    name = pick(rng, list(choices))
    content = {**RIGHT, "sens": [1.0] * 250, name: pick(rng, choices[name])}
    return Bad(f"protocol {name}", path=pick(rng, PROTOCOL), content=text(content))


def wrong_direction(rng):
    bad = pick(rng, [[], [1.0], None, "x", ["1"] * 250, [1e999] * 250, [True, True], [[1.0, 0.0]], 1.0])
    if rng.random() < 0.5:
        return Bad("sens", path="/Gradient", content=text({**RIGHT, "sens": bad}).replace(b"Infinity", b"1e999"))
    return Bad("vec", path="/ApplyJacobian", content=text({**RIGHT, "vec": bad}).replace(b"Infinity", b"1e999"))


KINDS = (noise, broken_text, not_finite, deep, nested, no_object, wrong_mus, outside, wrong_name, wrong_option, wrong_query,
         wrong_npy, wrong_form, wrong_accept, wrong_method, wrong_path, too_many, wrong_protocol, wrong_direction)  # fmt: skip
