"""Check the links of a built site: every file and every anchor that a page leads to is there, and nothing is loaded from elsewhere.

`python docs/_ext/links.py docs/_build/html`
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

_LOADS = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}


class _Page(HTMLParser):
    """Anchors and links of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := known.get(key))}
        if tag == "a" and known.get("href"):
            self.links.add(known["href"] or "")
        if tag in _LOADS and known.get(_LOADS[tag]) and known.get("rel") != "canonical":
            self.loads.add(known[_LOADS[tag]] or "")


def read(path: Path) -> _Page:
    """The anchors and links of a file."""
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken(root: Path) -> list[str]:
    """What leads nowhere, or loads from elsewhere, one line each."""
    pages = {path.resolve(): read(path) for path in sorted(root.rglob("*.html")) if "_static" not in path.parts}
    wrong = []
    for path, page in pages.items():
        for link in sorted(page.links | page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    wrong.append(f"{path.relative_to(root.resolve())} loads {link}")
                continue
            place, anchor = urldefrag(link)
            target = (path.parent / unquote(urlsplit(place).path)).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{path.relative_to(root.resolve())} leads to {link}: no such file")
            elif (
                anchor
                and target in pages
                and target.parent.name != "pages"
                and unquote(anchor) not in pages[target].anchors
            ):
                wrong.append(f"{path.relative_to(root.resolve())} leads to {link}: no such anchor")
    return wrong


if __name__ == "__main__":
    lines = broken(Path(sys.argv[1]))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.exit(1 if lines else 0)
