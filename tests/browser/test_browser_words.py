"""ConnectivityExplorer and AutocompleteDemo: networks of the test's own, in JupyterLab and as pages."""

import pytest
from networks import SETUP, TEXT, word_networks

from nlstm_lab.figures.connectivity import sentence_frame
from nlstm_lab.figures.style import STRENGTH
from nlstm_lab.probes import connectivity
from nlstm_lab.widgets import AutocompleteDemo, ConnectivityExplorer, base

pytestmark = pytest.mark.browser

LINKS = "from IPython.display import Markdown; Markdown('see [the second grammar](#connectivity-grammar-2-3)')"


def selected(page):
    """The shared character, which must be the same in every facet."""
    marked = page.tab.locator(".nl-facet .nl-text [data-mark='at']")
    places = [marked.nth(k).get_attribute("data-step") for k in range(marked.count())]
    assert len(places) == 3
    assert len(set(places)) == 1
    return int(places[0])


def test_in_jupyterlab(notebook):
    page = notebook("connectivity", [*SETUP, "lab.widgets.ConnectivityExplorer(word_networks(), TEXT, at=40)", LINKS])
    first = page.tour("connectivity")
    assert selected(page) == 40
    facets = page.widget().locator(".nl-facet")
    assert [facets.nth(k).locator("h3").inner_text() for k in range(3)] == ["GRU", "LSTM", "Nested LSTM"]
    assert facets.first.locator("li").count() == 3

    # pointer and keys choose the shared character, in every facet
    text = facets.nth(1).locator(".nl-text")
    text.locator("[data-step='12']").hover()
    assert selected(page) == 12
    assert page.look("connectivity-pointed") != first
    text.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.tab.keyboard.press(key)
    assert selected(page) == 13

    # locked by a click, the pointer reads numbers and moves nothing
    text.locator("[data-step='30']").click()
    assert page.widget().get_by_role("checkbox", name="Lock").is_checked()
    text.locator("[data-step='25']").hover()
    assert selected(page) == 30
    assert "5 back: " in facets.first.locator(".nl-facet-number").inner_text()
    page.tab.keyboard.press("ArrowLeft")
    assert "of its largest" in facets.first.locator(".nl-facet-number").inner_text()
    text.locator("[data-step='30']").click()
    assert not page.widget().get_by_role("checkbox", name="Lock").is_checked()

    # normalization in the browser, another target and mode through Python, once
    before = page.look("connectivity-log")
    page.widget().get_by_role("radio", name="of each one's largest").check()
    assert page.look("connectivity-row") != before
    page.widget().get_by_label("Asked for").select_option("the likeliest word")
    page.idle()
    page.widget().get_by_label("Shown").select_option("gradient times input")
    page.idle()
    page.widget().get_by_role("radio", name="of each one's largest").check()
    assert "−1" in page.widget().locator(".nl-legend").first.inner_text()
    page.widget().get_by_label("Asked for").select_option("one word")
    page.tab.keyboard.type("grammer")  # the field is in focus
    page.tab.keyboard.press("Enter")
    assert "did you mean 'grammar'" in page.error()
    page.widget().get_by_label("Which word").fill("grammar")
    page.tab.keyboard.press("Enter")
    page.idle()
    page.no_error()
    assert "target: grammar" in facets.first.inner_text()

    # a link in the text selects a character, and visibly
    before = page.look("connectivity-before-link")
    page.tab.get_by_role("link", name="the second grammar").click()
    assert selected(page) == TEXT.rindex("grammar") + 2
    assert page.look("connectivity-linked") != before


def test_the_page_shows_the_figures_shades(page, tmp_path):
    networks = word_networks()
    page.open_file(ConnectivityExplorer(networks, TEXT, at=40).to_html(tmp_path / "connectivity.html"))
    first = page.look("connectivity-page")
    frame = sentence_frame({name: connectivity(one, TEXT) for name, one in networks.items()}, 40, "log")
    shades = base._shades(STRENGTH)
    for k, model in enumerate(("gru", "lstm", "nlstm")):
        expected = frame.loc[frame["model"] == model, "shade"].to_numpy()
        pieces = page.tab.locator(".nl-facet .nl-text").nth(k)
        drawn = pieces.evaluate("node => [...node.children].map((piece) => piece.style.backgroundColor)")
        for t in range(41):
            place = round(expected[t] * 255)
            assert drawn[t] in map(_rgb, shades[max(place - 1, 0) : place + 2]), (model, t)
        assert not any(drawn[41:])
    page.widget().get_by_label("Asked for").select_option("the likeliest word")  # without Python
    page.widget().get_by_label("Shown").select_option("gradient times input")
    assert page.look("connectivity-page-signed") != first
    assert not page.widget().get_by_label("Asked for").get_by_text("one word").count()
    page.look_around("connectivity-page", (1280, 400))


def _rgb(colour):
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


def words(page):
    return page.tab.locator(".nl-completion").evaluate_all(
        "nodes => nodes.map((node) => node.getAttribute('aria-label'))"
    )


def test_completions_in_jupyterlab(notebook):
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
    page.tab.keyboard.press("Escape")
    assert page.tab.evaluate("document.activeElement.tagName") == "TEXTAREA"

    # the caret decides what is read; text is text
    text.fill("<script>window.hacked=1</script> É 👩 שלום 漢字")
    page.idle()
    assert "read as “ script window" in page.widget().locator(".nl-column").first.inner_text()
    last = words(page)
    page.tab.keyboard.press("Home")
    page.idle()
    assert words(page) != last


def test_the_page_of_completions(page, tmp_path):
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
