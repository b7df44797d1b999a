"""Values that differ from region to region of a domain: indicators of regions, and expressions inside one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy

from parasol.errors import InputError
from parasol.expressions import to_expression

OTHERWISE = "otherwise"  # the region of what is in none of the named ones


class Region(sympy.Symbol):
    """The indicator of a region, 1 inside it and 0 elsewhere.

    `beside` are the names that were given values together with it. "otherwise" is the indicator of all regions but those.

    >>> 2 * Region("layer") + 1
    2*[layer] + 1
    """

    beside: tuple[str, ...]

    def __new__(cls, name: str, beside: Sequence[str] = ()):
        """Declare the indicator of a region by its name."""
        self = sympy.Symbol.__xnew__(cls, name, real=True)
        self.beside = tuple(beside)
        return self

    def __getnewargs_ex__(self):
        return (self.name, self.beside), {}

    def __getstate__(self):
        return None

    def _hashable_content(self):
        return (*super()._hashable_content(), self.beside)

    def _sympystr(self, printer) -> str:
        return f"[{self.name}]"

    def _latex(self, printer) -> str:
        return r"1_{{\mathrm{{{}}}}}".format(self.name.replace("_", r"\_").replace("&", r"\&"))

    def covers(self, name: str) -> bool:
        """Whether it is 1 in the region of this name."""
        return name == self.name or (self.name == OTHERWISE and bool(self.beside) and name not in self.beside)


def by_region(**values: sympy.Expr | complex) -> sympy.Expr:
    """A value for each region of the domain, by name; `otherwise=` is the value in all regions that are not named.

    Values are numbers or expressions. A coefficient of a flux that differs by region belongs under a divergence, since
    that says that the flux is continuous at the interfaces: `ps.divergence(k*ps.gradient(u))`.

    >>> by_region(inclusion=5, otherwise=1)
    5*[inclusion] + [otherwise]
    """
    if not values:
        raise InputError("by_region got no values. Write ps.by_region(inclusion=5, otherwise=1).")
    given = {name: to_expression(value) for name, value in values.items()}
    if any(value.has(Region) for value in given.values()):
        raise InputError("a value of by_region is itself by region. Give all values in one by_region.")
    if set(given) == {OTHERWISE}:
        return given[OTHERWISE]
    named = tuple(sorted(name for name in given if name != OTHERWISE))
    # where all regions are to be named, each indicator remembers which were: the problem asks whether one is missing
    beside = {name: named if name == OTHERWISE or OTHERWISE not in given else () for name in given}
    return sympy.Add(*[value * Region(name, beside[name]) for name, value in given.items()])


def in_region(expression: sympy.Basic, name: str | None) -> sympy.Basic:
    """The expression inside the region of this name, where every indicator is 1 or 0; as it is for None.

    >>> in_region(by_region(inclusion=5, otherwise=1), "inclusion")
    5
    """
    if name is None:
        return expression
    return expression.xreplace({r: sympy.Integer(r.covers(name)) for r in expression.atoms(Region)})


def check_regions(expressions: Iterable[sympy.Basic], region_names: Sequence[str]) -> None:
    """Refuse regions that the domain does not have, and regions of the domain that are left without a value."""
    known = ", ".join(region_names) or "none"
    for region in sorted(set().union(*[e.atoms(Region) for e in expressions]), key=str):
        named = [n for n in (region.name, *region.beside) if n != OTHERWISE]
        strange = [name for name in named if name not in region_names]
        if strange or not region_names:
            raise InputError(
                f"by_region names the region {(strange or [region.name])[0]!r}, which the domain does not have. Its "
                f"regions are: {known}. Declare it with domain.regions({(strange or [region.name])[0]}=...)."
            )
        missing = [n for n in region_names if n not in region.beside] if region.beside else []
        if missing and region.name != OTHERWISE:
            raise InputError(
                f"by_region gives a value for {', '.join(region.beside)}, none for the region {missing[0]!r}. "
                "Name it too, or add otherwise=..., which covers all regions that are not named."
            )
