"""Chromium for the tests of pages and reports; skipped where it is not installed, unless PARASOL_REQUIRE_BROWSER=1."""

import os
import shutil
from contextlib import suppress

import pytest


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    playwright = None
    if chromium is not None:
        with suppress(ImportError):
            from playwright import sync_api as playwright
    if playwright is None:
        missing = "the tests of the page need chromium and playwright"
        if os.environ.get("PARASOL_REQUIRE_BROWSER") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with playwright.sync_playwright() as run:
        # small machines have little shared memory, and chromium ends without a word when that is used up
        options = ["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage"]
        yield _Lasting(lambda: run.chromium.launch(executable_path=chromium, args=options))


class _Lasting:
    """A browser that is started again where it has ended: under load chromium does, once in many runs."""

    def __init__(self, launch):
        self.launch, self.found = launch, launch()

    def new_page(self, **options):
        if not self.found.is_connected():
            self.found = self.launch()
        return self.found.new_page(**options)
