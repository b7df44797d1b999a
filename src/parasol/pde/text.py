"""A problem in words: its equations as text and in LaTeX, what its domain is made of."""

from __future__ import annotations

import sympy

from parasol.pde.matrices import MatrixProblem
from parasol.pde.problem import Problem
from parasol.pde.regions import Region
from parasol.space.geometry.combine import Combination
from parasol.space.geometry.domain import Domain, Wrapper


def problem_words(problem: Problem | MatrixProblem) -> dict[str, str]:
    """What people should still know of a problem when only a surrogate is left: name, equations, domain.

    >>> from parasol.pde.catalogue import load_problem
    >>> problem_words(load_problem("cooled-pipe"))["domain"]
    'Disc - Disc in [-1, 1] × [-1, 1]'
    """
    if not isinstance(problem, Problem):
        return problem.words
    sides = zip(*problem.domain.bounds.tolist(), strict=True)
    box = " × ".join(f"[{low:.3g}, {high:.3g}]" for low, high in sides)
    words = {
        "problem": problem.name,
        "equation": "; ".join(equation_texts(problem)),
        "latex": r" \\ ".join(equation_latex(problem)),
        "domain": f"{domain_text(problem.domain)} in {box}",
    }
    return {key: text for key, text in words.items() if text}


def equation_texts(problem: Problem) -> list[str]:
    """The equations in short, u_xx for the second derivative along x.

    >>> from parasol.pde.catalogue import load_problem
    >>> equation_texts(load_problem("helmholtz"))
    ['-a*u_yy - k*u - u_xx = -10*sin(8*x*(y - 1))']
    """
    sides = [_short(problem, equation, "{}_{}") for equation in problem.equations]
    return [" = ".join(str(side) for side in pair).replace("**", "^") for pair in sides]


def equation_latex(problem: Problem) -> list[str]:
    r"""The equations in LaTeX.

    >>> from parasol.pde.catalogue import load_problem
    >>> equation_latex(load_problem("cooled-pipe"))
    ['- u_{xx} - u_{yy} = 0']
    """
    sides = [_short(problem, equation, "{}_{{{}}}") for equation in problem.equations]
    return [" = ".join(sympy.latex(side) for side in pair) for pair in sides]


def _short(problem: Problem, equation, derivative: str) -> list[sympy.Basic]:
    """Both sides, with symbols for the unknowns and their derivatives."""
    short: dict[sympy.Basic, sympy.Basic] = {u: sympy.Symbol(str(u.func)) for u in problem.unknowns}
    sides = (equation.lhs, equation.rhs) if isinstance(equation, sympy.Equality) else (equation, sympy.S.Zero)
    # a flux that differs by region is readable under its divergence only
    sides = [side if side.has(Region) else side.doit() for side in sides]
    for atom in set().union(*[side.atoms(sympy.Derivative) for side in sides]):
        axes = "".join(str(v) * int(n) for v, n in atom.variable_count)
        short[atom] = sympy.Symbol(derivative.format(atom.expr.func, axes))
    return [side.xreplace(short) for side in sides]


def domain_text(domain: Domain) -> str:
    """Which domains it is made of.

    >>> from parasol.space.geometry.primitives import Box, Disc
    >>> domain_text(Box((-1, -1), (1, 1)) - Disc(radius=0.5).named("hole"))
    'Box - Disc'
    """
    if isinstance(domain, Wrapper):
        return domain_text(domain.base)
    if isinstance(domain, Combination):
        sign = {"union": "|", "intersection": "&", "difference": "-"}[domain.kind]
        return f"{domain_text(domain.a)} {sign} {domain_text(domain.b)}"
    name = type(domain).__name__
    return "Disc" if name == "Ball" and domain.dimension == 2 else name
