"""Plane linear elasticity of a plate with a hole: displacements (p, q) with a known solution."""

from sympy import cos, sin

import parasol as ps

x, y = ps.coordinates("x y")
nx, ny = ps.normal(x, y)
(ratio,) = ps.parameters(ratio=(0.5, 5.0))  # first Lamé constant over the second
p, q = ps.unknowns("p q", x, y)

_exact = {"p": sin(2 * x) * cos(y), "q": x * y + cos(x + y)}


def _stress(a, b):
    trace = ratio * (a.diff(x) + b.diff(y))
    shear = a.diff(y) + b.diff(x)
    return (trace + 2 * a.diff(x), shear), (shear, trace + 2 * b.diff(y))


def _force(a, b):
    return [-ps.divergence(row, x, y) for row in _stress(a, b)]


def _traction(a, b):
    return [nx * row[0] + ny * row[1] for row in _stress(a, b)]


problem = ps.Problem(
    name="elasticity",
    domain=ps.Box((-1.0, -1.0), (1.0, 1.0)) - ps.Disc(radius=0.4).named("hole"),
    equation=[ps.Eq(side, known) for side, known in zip(_force(p, q), _force(*_exact.values()), strict=True)],
    boundary={
        "hole": [ps.Eq(side, known) for side, known in zip(_traction(p, q), _traction(*_exact.values()), strict=True)],
        "*": [ps.Dirichlet(value) for value in _exact.values()],
    },
    exact=_exact,
)
