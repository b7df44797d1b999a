"""Makes docs/explorer.png, the picture of the explorer in the README: `python docs/picture.py` (needs chromium)."""

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import parasol as ps

with TemporaryDirectory() as folder, sync_playwright() as playwright:
    page_file = ps.delivery.write_page(
        ps.learn(ps.load_problem("helmholtz"), tolerance=1e-2), Path(folder) / "explorer.html"
    )
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1100, "height": 720})
    page.goto(page_file.as_uri())
    page.wait_for_timeout(1500)
    page.screenshot(path=Path(__file__).with_name("explorer.png"))
    browser.close()
