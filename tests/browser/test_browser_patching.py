"""PatchLab in a notebook, and as a page of its own."""

import pytest

import nlstm_lab as lab

pytestmark = pytest.mark.browser

CELLS = [
    "import nlstm_lab as lab",
    "nested = lab.runs.load('ptb_char_nlstm_logfreq', seed=1, scale='small')",
    "stack = lab.runs.load('ptb_char_lstm2_logfreq', seed=0, scale='small')",
    "lab.widgets.PatchLab([nested, stack], 'the rates ha', 'the rate ha', right='v', wrong='s')",
]


def test_in_a_notebook(notebook) -> None:
    page = notebook("patching", CELLS)
    first = page.tour("patching", (1280, 400))
    widget = page.widget()
    assert widget.locator(".nl-text").count() == 3

    # a square: pointer, keys
    inner = widget.locator(".nl-text").nth(1)
    inner.locator("[data-step='2']").click()
    page.see(".nl-sum", "The inner memory, put in before “a” (3 of 3)")
    inner.focus()
    page.tab.keyboard.press("ArrowLeft")
    page.see(".nl-sum", "before “h” (2 of 3)")
    assert page.look("patching-square") != first
    widget.get_by_role("radio", name="first order", exact=True).check()
    page.show("patching-first-order")

    # other texts, other answers, another network; an error is a sentence
    widget.get_by_label("Corrupted text").fill("the rates ho")
    assert "end alike" in page.error()
    page.show("patching-error")
    widget.get_by_label("Corrupted text").fill("the company ha")
    page.see(".nl-sum", "of 3")
    page.no_error()
    widget.get_by_label("over", exact=True).fill("d")
    page.see(".nl-sum", "over “d”")
    widget.get_by_label("Run", exact=True).select_option("stacked LSTM, initialized at the log-frequencies, seed 0")
    page.see(".nl-body h3", "layer 1")
    assert widget.locator(".nl-text").count() == 4


def test_the_page(page, tmp_path) -> None:
    run = lab.runs.load("ptb_char_nlstm_logfreq", seed=1, scale="small")
    widget = lab.widgets.PatchLab(run, "the rates ha", "the rate ha")
    page.open_file(widget.to_html(tmp_path / "patch.html"))
    first = page.look("patching-page")
    page.tab.locator(".nl-text").nth(1).locator("[data-step='1']").hover()
    page.see(".nl-sum", "The inner memory, put in before “h” (2 of 3)")
    assert page.look("patching-page-square") != first
    assert page.tab.get_by_label("Clean text", exact=True).is_disabled()
    page.look_around("patching-page", (1280, 400))
