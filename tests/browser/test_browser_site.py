"""The built site (`make site`) in a browser, opened from its folder: wide and narrow, dark and light."""

from pathlib import Path

import pytest
from driving import SCREENSHOTS

from nlstm_lab import paths

SITE = paths.root() / "site"
BUILT = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
KINDS = ("index.html", "findings/timescales.html", "notebooks/12_cell_activations.html", "gallery.html", "widgets.html",
         "verdicts.html", "reference/cells.html", "reference/cli.html", "replicate.html", "search.html")  # fmt: skip
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not BUILT, reason="the site is not built: `make site`")]


def shown(page, address):
    """Open a page and see that it fits and fetched nothing from elsewhere; its console is looked at afterwards."""
    page.tab.goto(address, wait_until="load")
    assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
    assert all(url.startswith((address.rpartition("/site/")[0], "data:")) for url in page.fetched)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_from_a_folder(page, scheme):
    page.tab.emulate_media(color_scheme=scheme)
    page.tab.set_viewport_size({"width": 400 if scheme == "dark" else 1280, "height": 1000})
    for name in BUILT:
        shown(page, (SITE / name).as_uri())
        if name in KINDS:
            SCREENSHOTS.mkdir(exist_ok=True)
            page.tab.screenshot(path=SCREENSHOTS / f"site-{Path(name).stem}-{scheme}.png")


def test_a_cell_is_live_on_the_first_page(page):
    """One click: a character of the text."""
    page.tab.goto((SITE / "index.html").as_uri())
    page.tab.locator("iframe.nl-live").scroll_into_view_if_needed()
    widget = page.tab.frame_locator("iframe.nl-live")
    widget.locator(".nl-text [data-step='20']").first.click()
    widget.locator(".nl-readout h3", has_text="21 of").first.wait_for()


def test_verdicts_are_filtered_and_sorted_by_keyboard(page):
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
