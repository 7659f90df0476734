"""The built site (`make site`) in a browser: from a folder and from a server, wide and narrow, dark and light."""

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from driving import SCREENSHOTS, Page

from nlstm_lab import paths

SITE = paths.root() / "site"
BUILT = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
KINDS = ("index.html", "findings/timescales.html", "notebooks/12_cell_activations.html", "gallery.html", "widgets.html",
         "verdicts.html", "reference/cells.html", "reference/cli.html", "replicate.html", "search.html")  # fmt: skip
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not BUILT, reason="the site is not built: `make site`")]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The site as `python -m http.server` would serve it."""
    handler = functools.partial(Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


def shown(page: Page, address: str) -> None:
    """Open a page and see that it fits and fetched nothing from elsewhere; its console is looked at afterwards."""
    page.tab.goto(address, wait_until="load")
    assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
    assert all(url.startswith((address.rpartition("/site/")[0], "data:", "http://127.0.0.1")) for url in page.fetched)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_from_a_folder(page: Page, scheme: str) -> None:
    page.tab.emulate_media(color_scheme=scheme)
    page.tab.set_viewport_size({"width": 400 if scheme == "dark" else 1280, "height": 1000})
    for name in BUILT:
        shown(page, (SITE / name).as_uri())
        if name in KINDS:
            SCREENSHOTS.mkdir(exist_ok=True)
            page.tab.screenshot(path=SCREENSHOTS / f"site-{Path(name).stem}-{scheme}.png")


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_page_opens_from_a_server(page: Page, server: str, name: str) -> None:
    shown(page, f"{server}/{name}")


def test_a_cell_is_live_on_the_first_page(page: Page) -> None:
    """One click: a character of the text."""
    page.tab.goto((SITE / "index.html").as_uri())
    page.tab.locator("iframe.nl-live").scroll_into_view_if_needed()
    widget = page.tab.frame_locator("iframe.nl-live")
    widget.locator(".nl-text [data-step='20']").first.click()
    widget.locator(".nl-readout h3", has_text="21 of").first.wait_for()


def test_a_frame_is_as_high_as_its_widget(page: Page) -> None:
    page.tab.goto((SITE / "widgets.html").as_uri())
    page.tab.locator("iframe[title^=AutocompleteDemo]").scroll_into_view_if_needed()
    main = page.tab.frame_locator("iframe[title^=AutocompleteDemo]").locator("main")
    main.locator(".nl-notes").wait_for()
    page.until(
        "height => document.querySelector('iframe[title^=AutocompleteDemo]').clientHeight === height",
        arg=main.evaluate("main => main.offsetHeight"),
    )


def test_the_evidence_of_a_finding_is_two_clicks_away(page: Page) -> None:
    page.tab.goto((SITE / "index.html").as_uri())
    page.tab.get_by_role("link", name="Evidence").first.click()
    page.tab.get_by_role("link", name="93_inner_memory_death").first.click()
    page.tab.locator("h1").wait_for()
    assert page.tab.url.endswith("notebooks/93_inner_memory_death.html")


def test_verdicts_are_filtered_and_sorted_by_keyboard(page: Page) -> None:
    page.tab.goto((SITE / "verdicts.html").as_uri())
    rows = page.tab.locator(".nl-sortable tbody tr:visible")
    before = rows.count()
    page.tab.get_by_label("Find").fill("Table 2")
    assert 0 < rows.count() < before
    page.tab.get_by_label("Find").fill("")
    page.tab.get_by_label("Verdict").select_option("fails")
    assert all("fails" in text for text in rows.all_inner_texts())
    page.tab.get_by_label("Verdict").select_option("")
    head = page.tab.get_by_role("button", name="verdict").first
    head.focus()
    page.tab.keyboard.press("Enter")
    last = page.tab.locator(".nl-sortable table").first.locator("tbody tr td:last-child").all_inner_texts()
    assert [text for text in last if text] == sorted((text for text in last if text), key=str.casefold)


def test_the_search_finds_a_finding(page: Page) -> None:
    page.tab.goto(f"{(SITE / 'search.html').as_uri()}?q=latched")
    page.tab.locator("#search-results li a").first.wait_for()


def test_the_first_page_is_small_without_its_widget(page: Page, server: str) -> None:
    sizes: dict[str, int] = {}
    page.tab.on("response", lambda answer: sizes.setdefault(answer.url, int(answer.headers.get("content-length", 0))))
    page.tab.goto(f"{server}/index.html", wait_until="load")
    assert sum(size for url, size in sizes.items() if "/widgets/" not in url) < 1_000_000
