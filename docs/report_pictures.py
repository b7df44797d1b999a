"""Pictures of reports at three sizes, light and dark, to be looked at: `python docs/report_pictures.py DIR REPORT.html ...` (needs chromium).

Writes DIR/NAME-WIDTHxHEIGHT-SCHEME.png, each the whole page (with --window what the window shows), and says where a page is wider than its window.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SIZES = ((1280, 800), (820, 1180), (390, 844))
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
)
_TOO_WIDE = """() => [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, .formula, svg, iframe')
    && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + '.' + e.className).slice(0, 5)"""


def pictures(reports: list[Path], folder: Path, *, whole: bool = True) -> list[str]:
    """Take all pictures; returns what does not fit its window."""
    folder.mkdir(parents=True, exist_ok=True)
    complaints = []
    with sync_playwright() as run:
        browser = run.chromium.launch(executable_path=shutil.which("chromium"), args=list(_OPTIONS))
        for report in reports:
            name = report.stem if report.stem != "report" else report.resolve().parent.name
            for width, height in SIZES:
                for scheme in ("light", "dark"):
                    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                    page.goto(report.resolve().as_uri())
                    page.wait_for_timeout(300)
                    wide = page.evaluate(_TOO_WIDE)
                    if wide or page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        complaints.append(f"{name} at {width}: {', '.join(wide)}")
                    page.screenshot(path=folder / f"{name}-{width}x{height}-{scheme}.png", full_page=whole)
                    page.close()
        browser.close()
    return complaints


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, *reports = [Path(name) for name in sys.argv[1:] if name != "--window"]
    complaints = pictures(reports, folder, whole="--window" not in sys.argv)
    sys.exit("\n".join(["wider than the window:", *complaints]) if complaints else 0)
