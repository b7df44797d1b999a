"""Mathematics in a report, as MathML: formulas in sentences, and a problem stated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from unicodedata import lookup

import sympy

from parasol.delivery.page.equations import equation_html
from parasol.pde.problem import Dirichlet, Neumann, Problem, Robin
from parasol.pde.text import domain_text, equation_texts
from parasol.report.solutions import span_words
from parasol.space.geometry.curves import Star
from parasol.space.geometry.domain import Domain, Wrapper
from parasol.space.geometry.primitives import Ball, Box

_LONGEST = 600  # characters of a formula that is set; what is longer nobody reads
_TOKEN = re.compile(r"\s+|[A-Za-zα-ωΑ-Ωϱϑ]|\d+(?:\.\d+)?|.", re.S)
_THIN = '<mspace width="0.18em"></mspace>'
_FUNCTIONS = ("max", "min", "log", "sin", "cos", "tanh", "sech", "atan", "exp", "std")
_WORD = re.compile(rf"\b(?:{'|'.join(_FUNCTIONS)})\b")


# ---- in sentences ---------------------------------------------------------------------------------------------------
def inline_math(text: str) -> str:
    """A short formula such as "σ_max(B_μ)" or "N d^2" as an element of a sentence; braces hold what belongs together.

    >>> inline_math("B_μ")
    '<math><msub><mi class="v">B</mi><mi class="v">μ</mi></msub></math>'
    >>> inline_math("d^{2}")
    '<math><msup><mi class="v">d</mi><mn>2</mn></msup></math>'
    """
    tokens = [token for part in _split_words(text) for token in part if not token.isspace()]
    return _slanted(f"<math>{''.join(_items(tokens))}</math>")


def symbol(name: str) -> str:
    """The name of a parameter as a formula in a sentence where it is short, as it is where it is a word.

    >>> symbol("beta"), symbol("mu_1"), symbol("speed")
    ('$β$', '$μ_{1}$', 'speed')
    """
    base, _, below = name.partition("_")
    greek = {"LAMBDA": "LAMDA"}.get(base.upper(), base.upper())
    with suppress(KeyError):
        base = lookup(f"GREEK SMALL LETTER {greek}") if base.islower() else base
    if len(base) > 1 or not base.isalpha() or not (below.isalnum() or not below):
        return name
    return f"${base}_{{{below}}}$" if below else f"${base}$"


def _slanted(math: str) -> str:
    """Single letters are variables, set in italics by the page; words such as sin are not."""
    return re.sub(r"<mi>(\w)</mi>", r'<mi class="v">\1</mi>', math)


def _split_words(text: str):
    at = 0
    for word in _WORD.finditer(text.replace("_", " ")):
        yield _TOKEN.findall(text[at : word.start()])
        yield [word[0]]
        at = word.end()
    yield _TOKEN.findall(text[at:])


def _items(tokens: list[str]) -> list[str]:
    """The elements of a row of tokens; what follows _ and ^ is set lower and higher."""
    out: list[str] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token in "_^" and out and i + 1 < len(tokens):
            script, i = _group(tokens, i + 1)
            kind = "sub" if token == "_" else "sup"
            before = out.pop()
            if token == "^" and before.startswith("<msub>"):
                out.append(f"<msubsup>{before[6:-7]}{script}</msubsup>")
            else:
                out.append(f"<m{kind}>{before}{script}</m{kind}>")
            continue
        item, i = _group(tokens, i)
        out.append(item)
    return out


def _group(tokens: list[str], i: int) -> tuple[str, int]:
    """The element that begins at a token, and where the next one does."""
    token = tokens[i]
    if token == "{":
        depth, end = 1, i + 1
        while end < len(tokens) and depth:
            depth += {"{": 1, "}": -1}.get(tokens[end], 0)
            end += 1
        inside = _items(tokens[i + 1 : end - (depth == 0)])
        return (inside[0] if len(inside) == 1 else f"<mrow>{''.join(inside)}</mrow>"), end
    if token[0].isdigit():
        return f"<mn>{token}</mn>", i + 1
    if token[0].isalpha():
        alone = len(token) > 1 and i + 1 < len(tokens) and (tokens[i + 1][0].isalnum() or tokens[i + 1] == "‖")
        return f"<mi>{escape(token)}</mi>{_THIN if alone else ''}", i + 1  # max σ, log N: a little apart
    if token in "()[]‖|/":
        return f'<mo class="fence" stretchy="false">{token}</mo>', i + 1
    kind = ' class="comma"' if token in ",;" else ""
    return f"<mo{kind}>{escape(token.replace('-', '−'))}</mo>", i + 1


# ---- a problem stated -----------------------------------------------------------------------------------------------
def statement(problem: Problem) -> list[tuple[str, str]]:
    """Equations, domain, conditions, initial state and parameters, as names and HTML.

    >>> from parasol.pde.catalogue import load_problem
    >>> [name for name, _ in statement(load_problem("sine-gordon"))]
    ['equation', 'domain', 'condition', 'initial state', 'parameters']
    """
    texts = equation_texts(problem)
    rows = [("equation" if len(texts) == 1 else "equations", "".join(map(formula, texts)))]
    rows.append(("domain", _domain(problem)))
    if problem.boundary is not None:
        rows.append(("condition", _conditions(problem, problem.boundary, "on the boundary")))
    for name, states in problem.initial_states.items() if problem.time is not None else ():
        written = [f"{name}{'_t' * i} = {_power(state)}" for i, state in enumerate(states)]
        label = "initial state" if len(problem.names) == 1 else f"initial state of {name}"
        rows.append((label, "".join(map(formula, written))))
    space = problem.parameters
    words = [_range(p) for p in space.scalars]
    words += [f"{equation_html(f.name)}, a function on the {escape(f.on)}, drawn from {escape(str(f.distribution))}" for f in space.functions]  # fmt: skip
    if words:
        rows.append(("parameters" if len(words) > 1 or space.scalars else "parameter", ", ".join(words)))
    return rows


def formula(text: str) -> str:
    """An equation on a line of its own, in a box that scrolls where it is wider than the page."""
    if len(text) > _LONGEST:
        return f'<div class="formula"><code>{escape(text)}</code></div>'
    return f'<div class="formula">{equation_html(text)}</div>'


def _power(expression) -> str:
    return str(expression).replace("**", "^")


def _minus(text: str) -> str:
    return re.sub(r"-(?=\d)", "−", escape(text))


def _range(p) -> str:
    words = str(p).removeprefix(p.name).strip()
    return f"{equation_html(p.name)} {_minus(words)}"


def _domain(problem: Problem) -> str:
    domain: Domain = problem.domain
    while isinstance(domain, Wrapper):
        domain = domain.base
    box = " × ".join(f"[{low:.3g}, {high:.3g}]" for low, high in domain.bounds.T)
    seams = [str(v) for v, period in zip(problem.coordinates, problem.domain.periods, strict=True) if period]
    periodic = f", periodic in {' and '.join(seams)}" if seams else ""
    if isinstance(domain, Star) and not callable(domain.radius):
        where = f"inside the curve {formula(f'r = {_power(domain.radius)}')} in polar coordinates"
    elif isinstance(domain, Ball):
        kind = ("the interval", "the disc", "the ball")[domain.dimension - 1]
        where = f"{kind} of radius {float(domain.radius):g} about ({', '.join(f'{c:g}' for c in domain.bounds.mean(axis=0))})"
    elif isinstance(domain, Box):
        where = _minus(box)
    else:
        where = f"{escape(domain_text(problem.domain))} in {_minus(box)}"
    times = "" if problem.times is None else f"; in time {escape(span_words(problem.times))}"
    return where + periodic + times


def _conditions(problem: Problem, conditions, place: str) -> str:
    """Conditions as they were declared: one, one for each unknown, or by part."""
    if isinstance(conditions, Mapping):
        parts = [(part, "elsewhere on the boundary" if part == "*" else f"on {part}") for part in conditions]
        return "".join(_conditions(problem, conditions[part], where) for part, where in parts)
    if isinstance(conditions, Sequence):
        each = zip(problem.names, conditions, strict=True)
        return "".join(_condition(problem, name, condition, place) for name, condition in each)
    if not isinstance(conditions, Dirichlet | Neumann | Robin):  # an equation names its unknowns itself
        return _condition(problem, "", conditions, place)
    return "".join(_condition(problem, name, conditions, place) for name in problem.names)


def _condition(problem: Problem, name: str, condition, place: str) -> str:
    if isinstance(condition, Dirichlet):
        text = f"{name} = {_power(condition.value)}"
    elif isinstance(condition, Neumann):
        text, place = f"{name}_n = {_power(condition.value)}", f"{place}, along the normal"
    elif isinstance(condition, Robin):
        left = condition.alpha * sympy.Symbol(name) + condition.beta * sympy.Symbol(f"{name}_n")
        text, place = f"{_power(left)} = {_power(condition.value)}", f"{place}, n along the normal"
    else:
        sides = (condition.lhs, condition.rhs) if isinstance(condition, sympy.Equality) else (condition, sympy.S.Zero)
        text = " = ".join(_power(_short(problem, side)) for side in sides)
    return f'<div class="condition">{formula(text)} {escape(place)}</div>'


def _short(problem: Problem, side) -> sympy.Basic:
    """A side of a condition with u_x for a derivative."""
    short: dict[sympy.Basic, sympy.Basic] = {u: sympy.Symbol(str(u.func)) for u in problem.unknowns}
    for slope in side.atoms(sympy.Derivative):
        axes = "".join(str(v) * int(n) for v, n in slope.variable_count)
        short[slope] = sympy.Symbol(f"{slope.expr.func}_{axes}")
    return side.xreplace(short)
