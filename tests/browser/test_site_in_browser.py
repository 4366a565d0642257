"""The site in a real browser, narrow and dark, wide and light: all can be read, none is clipped, the search finds."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from lab_in_browser import BROWSER_OPTIONS, chromium
from playwright.sync_api import Browser, expect, sync_playwright

SITE = Path(__file__).parents[2] / "site"
# The pages of other folders of the repository are shown as files, and that of an error has no text.
PAGES = [page for page in sorted(SITE.rglob("*.html")) if "source" not in page.parts and page.name != "404.html"]
# Of notebooks, decisions and the reference the first page of each: the others are made of the same parts.
WITH_AXE = [page for page in PAGES if page.parent == SITE or page == min(page.parent.glob("*.html"))]
# What stands beyond the right edge and cannot be scrolled to.
CLIPPED = """() => [...document.querySelectorAll('.md-content *')].filter(node => {
  const place = node.getBoundingClientRect();
  let outer = node.parentElement;
  while (outer && !['auto', 'scroll'].includes(getComputedStyle(outer).overflowX)) outer = outer.parentElement;
  return place.width && place.right > innerWidth + 1 && !outer;
}).map(node => node.outerHTML.slice(0, 200))"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.wall,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine"),
    pytest.mark.skipif(not PAGES, reason="no site/: make site"),
]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=list(BROWSER_OPTIONS))
        yield launched
        launched.close()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_no_page_is_clipped_and_axe_finds_nothing_serious(
    width: int, scheme: Any, address: str, browser: Browser
) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    found = {}
    for page in PAGES:
        tab.goto(f"{address}/{page.relative_to(SITE)}")
        violations = Axe().run(tab).response["violations"] if page in WITH_AXE else []
        serious = [
            (each["id"], each["nodes"][0]["html"]) for each in violations if each["impact"] in ("serious", "critical")
        ]
        found[str(page.relative_to(SITE))] = [*tab.evaluate(CLIPPED), *serious]
    tab.close()
    assert {name: what for name, what in found.items() if what} == {}


def test_the_search_finds_a_page_by_a_word_of_it(address: str, browser: Browser) -> None:
    tab = browser.new_page()
    tab.goto(f"{address}/index.html")
    tab.get_by_role("textbox", name="Search").fill("watchdog")
    expect(tab.locator(".md-search-result__link[href*='limits.html']").first).to_be_visible()
    tab.close()
