"""A figure for a page: its panels as SVG, each by itself, in colours that follow the page from light to dark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

from parasol.report.canvas import INKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DARK_INKS = ("#6cb6f2", "#f2955f", "#5ccb91", "#c79be8", "#e2c04c", "#5fc9d8", "#ee86b4")
_GREYS = {
    "#000000": "ink",
    "#404040": "ink",
    "#262626": "ink",
    "#cccccc": "line",
    "#b0b0b0": "line",
    "#ffffff": "paper",
}
_NAMES = {**_GREYS, **{ink: f"ink-{i}" for i, ink in enumerate(INKS)}}
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_POINT = 4 / 3  # pixels
_DPI = 144  # of what is not made of lines: sharp on a telephone


@dataclass(frozen=True)
class Panel:
    """One picture of a figure: an SVG element without a name, and how many columns of the figure it takes."""

    svg: str
    width: float  # in points
    span: int = 1

    def titled(self, text: str, widest: float) -> str:
        """The element with a text for those who cannot see it; beside others as much smaller as it is narrower than the widest."""
        size = f"width: {100 * self.width / widest:.2f}%; max-width: {_POINT * self.width:.0f}px"
        return self.svg.replace("<svg", f'<svg role="img" aria-label="{escape(text)}" style="{size}"', 1)


def theme_css() -> str:
    """The colours of curves and marks in the light and in the dark, as variables."""
    light, dark = ("".join(f"--ink-{i}: {ink}; " for i, ink in enumerate(inks)) for inks in (INKS, _DARK_INKS))
    return f":root {{ {light}}}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"


def panels(figure: Figure) -> tuple[Panel, ...]:
    """The panels of a figure row by row, each with its colour bar, all on one scale; the title of the whole is left out."""
    from matplotlib import rc_context

    figure.draw_without_rendering()  # the layout is made once, for all panels together
    figure.set_layout_engine("none")
    bars = [axes for axes in figure.axes if hasattr(axes, "_colorbar")]
    shown = sorted((axes for axes in figure.axes if axes not in bars), key=_place)
    if figure.get_suptitle():
        figure.suptitle("")
    out = []
    for axes in shown:
        own = [axes, *[bar for bar in bars if bar._colorbar.mappable.axes is axes]]  # type: ignore[attr-defined]
        for other in figure.axes:
            other.set_visible(other in own)
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "parasol"}):
            out.append(Panel(*_inline(_svg(figure, own)), _columns(axes)))
    for axes in figure.axes:
        axes.set_visible(True)
    return tuple(out)


def _svg(figure: Figure, own: list[Any]) -> str:
    from matplotlib.transforms import Bbox

    box = Bbox.union([axes.get_tightbbox() for axes in own])
    inches = box.transformed(figure.dpi_scale_trans.inverted()).padded(0.04)
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    file = BytesIO()
    figure.savefig(file, format="svg", bbox_inches=inches, transparent=True, dpi=_DPI, metadata=nothing)
    return file.getvalue().decode()


def _place(axes: Any) -> tuple[int, int]:
    place = axes.get_subplotspec()
    return (0, 0) if place is None else (place.rowspan.start, place.colspan.start)


def _columns(axes: Any) -> int:
    place = axes.get_subplotspec()
    return 1 if place is None else len(place.colspan)


def _inline(text: str) -> tuple[str, float]:
    """An SVG file as an element of a page, and its width: no names but its own, no addresses, colours by variable."""
    text = text[text.index("<svg") :]
    text = re.sub(r'<metadata>.*?</metadata>|<!--.*?-->|\sxmlns(?::\w+)?="[^"]*"', "", text, flags=re.S)
    text = text.replace("xlink:href", "href")
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    own = sha256(text.encode()).hexdigest()[:8]
    text = re.sub(r'\sid="([^"]+)"', lambda match: f' id="{own}-{match[1]}"' if match[1] in used else "", text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{own}-", text)
    width, height = (float(number) for number in re.findall(r'(?:width|height)="([\d.]+)pt"', text)[:2])
    text = re.sub(r"<svg[^>]*>", f'<svg class="panel" viewBox="0 0 {width:.2f} {height:.2f}">', text, count=1)
    return _COLOUR.sub(_variable, text).strip(), width


def _variable(match: re.Match) -> str:
    name = _NAMES.get(match[0].lower())
    return match[0] if name is None else f"var(--{name}, {match[0]})"
