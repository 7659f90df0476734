"""AutocompleteDemo: typed into, in JupyterLab; walked along, as a page."""

import pytest
from networks import SETUP, word_networks

from nlstm_lab.widgets import AutocompleteDemo

pytestmark = pytest.mark.browser


def words(page) -> list[str]:
    return page.tab.locator(".nl-completion").evaluate_all(
        "nodes => nodes.map((node) => node.getAttribute('aria-label'))"
    )


def test_in_jupyterlab(notebook) -> None:
    page = notebook("completion", [*SETUP, "lab.widgets.AutocompleteDemo(word_networks(), 'the study of gram')"])
    first, before = page.tour("completion"), words(page)
    heads = page.widget().locator("h3")
    assert [heads.nth(k).inner_text() for k in range(3)] == ["GRU", "LSTM", "Nested LSTM"]
    assert len(before) == 15

    # every key is answered; of a burst the last
    text = page.widget().get_by_label("Your text")
    text.focus()
    page.tab.keyboard.press("End")
    page.tab.keyboard.type("mar of la", delay=5)
    page.idle()
    assert words(page) != before
    assert page.look("completion-typed") != first

    # a word is taken by a click in the place of the one that was begun, or by keys
    word = page.tab.locator(".nl-completion-word").first.inner_text()
    page.tab.locator(".nl-completion").first.click()
    page.idle()
    assert text.input_value() == f"the study of grammar of {word} "
    page.tab.keyboard.press("Tab")
    page.tab.keyboard.press("ArrowDown")
    page.tab.keyboard.press("ArrowRight")
    assert page.tab.evaluate("document.activeElement.className") == "nl-completion"
    page.show("completion-keys")
    page.tab.keyboard.press("Escape")
    assert page.tab.evaluate("document.activeElement.tagName") == "TEXTAREA"

    # the caret decides what is read; text is text
    text.fill("<script>window.hacked=1</script> É 👩 שלום 漢字")
    page.idle()
    assert "read as “ script window" in page.widget().locator(".nl-column").first.inner_text()
    page.show("completion-hostile")
    last = words(page)
    page.tab.keyboard.press("Home")
    page.idle()
    assert words(page) != last


def test_the_page(page, tmp_path) -> None:
    widget = AutocompleteDemo(word_networks(), "the study of grammar")
    page.open_file(widget.to_html(tmp_path / "completion.html"))
    first, before = page.look("completion-page"), words(page)
    assert "Typing needs Python" in page.widget().inner_text()
    page.tab.locator(".nl-text [data-step='5']").click()
    assert words(page) != before
    assert page.look("completion-page-walked") != first
    page.tab.keyboard.press("ArrowRight")
    assert page.tab.locator(".nl-text [aria-selected='true']").get_attribute("data-step") == "6"
    page.look_around("completion-page", (1280, 400))
