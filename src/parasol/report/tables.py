"""Tables of a report: numbers as numbers, and one format for all numbers of a column."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from parasol.errors import InputError

_DIGITS = 3  # significant ones
_LIKE = 100.0  # times the least: numbers up to there have as many decimals
_MOST_DECIMALS = 4  # of the digits before a power of ten
_SPACE = "\N{NARROW NO-BREAK SPACE}"  # between thousands
_MISSING = "–"


@dataclass(frozen=True)
class Scattered:
    """A number and its scatter, where it has one."""

    value: float
    scatter: float | None = None


Cell = str | int | float | Scattered | None


@dataclass(frozen=True)
class Table:
    """Texts and numbers in rows; the first column says what a row is about, rows in `emphasis` are set off.

    All numbers of a column are written in one format, and so are those of columns that `alike` names together.

    >>> Table(("solver", "error"), (("POD-DNN",),))
    Traceback (most recent call last):
    parasol.errors.InputError: row 0 of a table has 1 cells, its header 2. Give as many.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    emphasis: tuple[int, ...] = ()
    alike: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self):
        for i, row in enumerate(self.rows):
            if len(row) != len(self.headers):
                raise InputError(
                    f"row {i} of a table has {len(row)} cells, its header {len(self.headers)}. Give as many."
                )
        for i in self.emphasis:
            if not 0 <= i < len(self.rows):
                raise InputError(f"emphasis names row {i}, but the table has {len(self.rows)} rows, counted from 0.")

    @property
    def texts(self) -> list[list[str]]:
        """All cells as texts.

        >>> Table(("", "a", "b"), (("x", 0.00068, 7), ("y", 1.7e-5, None))).texts
        [['x', '6.80e-04', '7'], ['y', '1.70e-05', '–']]
        """
        columns = [[row[j] for row in self.rows] for j in range(len(self.headers))]
        for group in self._groups:
            written = iter(written_alike([cell for j in group for cell in columns[j]]))
            for j in group:
                columns[j] = [next(written) for _ in columns[j]]
        return [[str(column[i]) for column in columns] for i in range(len(self.rows))]

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers; a word among them, such as "not run", does not change that."""
        return [any(_is_number(row[j]) for row in self.rows) for j in range(len(self.headers))]

    @property
    def _groups(self) -> list[tuple[int, ...]]:
        together = {j for group in self.alike for j in group}
        return [*self.alike, *((j,) for j in range(len(self.headers)) if j not in together)]


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float | Scattered) and not isinstance(cell, bool)


def written_alike(cells: Iterable[Cell]) -> list[str]:
    """Numbers in one format, texts as they are.

    Whole numbers as they are; numbers between 0.001 and 100 000 plainly, with as many decimals where they are of like size and with three
    digits that count where not; others all as powers of ten. A scatter has as many decimals as its number.

    >>> written_alike([9336.0, 934.1, 9.76, "not run"]), written_alike([0.02, Scattered(0.1234, 0.0056)])
    (['9340', '934', '9.76', 'not run'], ['0.0200', '0.1234 ± 0.0056'])
    >>> written_alike([Scattered(7.6e-4, 3.1e-5), 0.5])
    ['(7.60 ± 0.31)e-04', '5.00e-01']
    """
    cells = list(cells)
    numbers = [cell for cell in cells if _is_number(cell)]
    if all(isinstance(number, int) for number in numbers):
        return [_text(cell, lambda value: _thousands(f"{value:.0f}")) for cell in cells]
    pairs = [_pair(number) for number in numbers]
    sizes = [abs(value) for value, _ in pairs if value and math.isfinite(value)] or [1.0]
    spread = [s for _, s in pairs if s and math.isfinite(s)]
    least, most = min(sizes), max(sizes)
    if least < 1e-3 or most >= 1e5 or (spread and most / least >= _LIKE):
        return [_text(cell, *_powers(pairs)) for cell in cells]
    if most / least >= _LIKE:
        return [_text(cell, lambda value: _thousands(_significant(value))) for cell in cells]
    decimals = max(0, _DIGITS - 1 - (most >= 10 * least) - math.floor(math.log10(least)))
    return [
        _text(cell, lambda value: f"{value:.{decimals}f}", lambda value, s: f"{value:.{decimals}f} ± {_at_least(s, decimals)}")
        for cell in cells
    ]  # fmt: skip


def _pair(number: Cell) -> tuple[float, float | None]:
    """A number and its scatter."""
    if isinstance(number, Scattered):
        return float(number.value), number.scatter
    return float(number or 0.0), None


def _text(cell: Cell, write, write_both=None) -> str:
    """A cell as text; a number by `write`, one with a scatter by `write_both`."""
    if isinstance(cell, str):
        return cell
    value, scatter = (cell.value, cell.scatter) if isinstance(cell, Scattered) else (cell, None)
    if value is None or math.isnan(value):
        return _MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return write(value) if scatter is None or write_both is None else write_both(value, scatter)


def _powers(pairs: list[tuple[float, float | None]]):
    """How numbers are written before a power of ten, all with as many decimals."""
    shares = [s / 10.0 ** _exponent(v) for v, s in pairs if s and math.isfinite(s)]
    usual = statistics.median(shares) if shares else 1.0  # one tiny scatter does not give all the others its digits
    decimals = max(_DIGITS - 1, min(-math.floor(math.log10(usual)), _MOST_DECIMALS))

    def alone(value: float) -> str:
        return f"{value:.{decimals}e}" if value else "0"

    def both(value: float, scatter: float) -> str:
        exponent = _exponent(value, decimals)
        digits = f"{value / 10.0**exponent:.{decimals}f} ± {_at_least(scatter / 10.0**exponent, decimals)}"
        return f"({digits})e{exponent:+03d}"

    return alone, both


def _exponent(value: float, decimals: int = _DIGITS - 1) -> int:
    """Of ten, as it is written: 9.999 rounds to 10."""
    return int(f"{value:.{decimals}e}".partition("e")[2])


def _at_least(scatter: float, decimals: int) -> str:
    """A scatter that is not nothing is not written as nothing."""
    text = f"{scatter:.{decimals}f}"
    return f"< {10.0**-decimals:.{decimals}f}" if scatter and not float(text) else text


def _significant(value: float) -> str:
    if not value:
        return "0"
    rounded = float(f"{value:.{_DIGITS - 1}e}")
    return f"{rounded:.{max(0, _DIGITS - 1 - _exponent(value))}f}"


def _thousands(text: str) -> str:
    """A number with a narrow space between thousands, from five digits on."""
    whole, dot, rest = text.partition(".")
    if len(whole.lstrip("-")) <= 4:
        return text
    return f"{int(whole):,}".replace(",", _SPACE) + dot + rest
