"""`explore`: a surrogate as a page with sliders, on disk or in a notebook."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from numpy.typing import ArrayLike

from parasol.cache.disk import check_output, replacing
from parasol.delivery.page.about import about
from parasol.delivery.page.contents import contents
from parasol.delivery.page.equations import equation_html
from parasol.delivery.page.pack import Pack, script_text
from parasol.errors import InputError
from parasol.runtime.surrogate import Surrogate

_MOST = 40_000_000  # characters: more is no page
_HERE = Path(__file__).parent
_SCRIPTS = (
    *("numbers.js", "reduced.js", "words.js"),
    *("geometry.js", "smooth.js", "contours.js", "paint.js", "raster.js", "pen.js", "axes.js", "line.js", "view.js"),
    *("parts.js", "shown.js", "findings.js", "curves.js", "controls.js", "take.js", "link.js", "page.js"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Page:
    """A page as text; a notebook shows it, `path` is where it was written."""

    html: str = field(repr=False)
    path: Path | None = None

    def __repr__(self) -> str:
        where = "not written to a file" if self.path is None else f"in {str(self.path)!r}"
        return f"<Page of {1e-6 * len(self.html):.1f} MB, {where}>"

    def _repr_html_(self) -> str:
        return (
            '<iframe sandbox="allow-scripts allow-downloads" style="width:100%;height:820px;border:0" '
            f'title="explorer" srcdoc="{escape(self.html)}"></iframe>'
        )


def explore(
    surrogate: Surrogate,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    samples: int | ArrayLike | None = None,
    solves: int = 0,
    file: str | Path | None = None,
) -> Page:
    """A page with sliders that computes fields and their error bounds by itself: a notebook shows it, `path` keeps it.

    `samples` is for function parameters: how many drawn ones to offer, or the values (n_samples, n_points) of some.
    `solves` full solves are made and put into the page, to be seen beside the answers; the surrogate needs its solver then.
    `file` is where the surrogate is kept, for the Python that the page offers to copy.
    """
    path = None if path is None else check_output(path, (".html", ".htm"))
    html = _page(surrogate, title, samples, solves, file)
    if path is not None:
        with replacing(path) as temporary:
            temporary.write_text(html, encoding="utf-8")
    return Page(html, path)


def write_page(
    surrogate: Surrogate,
    path: str | Path,
    *,
    title: str | None = None,
    samples: int | ArrayLike | None = None,
    solves: int = 0,
    file: str | Path | None = None,
) -> Path:
    """Write the explorer page of a surrogate as one self-contained `.html` file, which appears complete or not at all."""
    explore(surrogate, path, title=title, samples=samples, solves=solves, file=file)
    return Path(path)


def _page(
    surrogate: Surrogate, title: str | None, samples: int | ArrayLike | None, solves: int, file: str | Path | None
) -> str:
    if not isinstance(surrogate, Surrogate):
        raise InputError(f"cannot explore a {type(surrogate).__name__}. Pass a surrogate.")
    known = about(surrogate)
    title = str(title or known["name"] or (Path(file).stem if file is not None else "Explorer"))
    pack = Pack()
    name = re.sub(r"[^\w.]+", "-", known["name"]).strip("-") or "surrogate"
    kept = {"file": f"{name}.parasol" if file is None else str(file), "saved": file is not None}
    model = contents(surrogate, samples, solves, pack) | {"about": known, "title": title, **kept}
    parts = {
        "TITLE": escape(title),
        "EQUATION": "".join(map(equation_html, known["equations"])),
        "STYLE": _template("page.css"),
        "MODEL": script_text({"model": model, "arrays": pack.texts}),
        "SCRIPT": "\n".join(map(_template, _SCRIPTS)),
    }
    # in one go, so that no text is taken for the name of another
    html = re.sub("%([A-Z]+)%", lambda match: parts[match[1]], _template("page.html"))
    if len(html) > _MOST:
        fewer = "nodes" if surrogate.layout.times is None else "times"
        raise InputError(
            f"the page would have {1e-6 * len(html):.0f} MB. Choose fewer {fewer}: surrogate.restricted({fewer}=...)."
        )
    return html


def _template(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
