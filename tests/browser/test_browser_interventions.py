"""InterventionLab and PatchLab in notebooks, and as pages of their own."""

import pytest

import nlstm_lab as lab

pytestmark = pytest.mark.browser


def test_notebook_91(notebook, desk):
    page = notebook("91_interventions")
    first = page.tour("interventions")

    # a moment: pointer, slider, keys
    page.widget().locator(".nl-text [data-step='20']").click()
    page.see(".nl-sum", "after 20 characters")
    assert page.look("interventions-moment") != first
    slider = page.widget().get_by_label("after this many characters")
    slider.focus()
    for _ in range(6):
        page.tab.keyboard.press("ArrowRight")
    page.see(".nl-sum", "after 26 characters")
    text = page.widget().locator(".nl-text")
    text.focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.tab.keyboard.press(key)
    page.see(".nl-sum", "after 28 characters")

    # what is ablated, and how
    page.widget().get_by_label("Memory", exact=True).select_option("outer memory")
    page.see(".nl-sum", "With the outer memory resampled")
    page.widget().get_by_role("radio", name="set to zero", exact=True).check()
    page.see(".nl-sum", "set to zero after 28 characters")
    page.widget().get_by_role("radio", name="frozen from there on", exact=True).check()
    page.see(".nl-sum", "frozen after 28 characters")
    page.widget().get_by_role("radio", name="one unit", exact=True).check()
    page.see(".nl-sum", "With unit 0 of the outer memory")
    page.widget().get_by_role("radio", name="all units", exact=True).check()
    page.widget().get_by_role("radio", name="divergence of the prediction", exact=True).check()
    page.see(".nl-legend", "divergence, nats")

    # units ranked, one of them ablated alone
    page.widget().get_by_role("checkbox", name="Ablate every unit alone").check()
    page.see("h3", "by what ablating each alone costs")
    page.widget().get_by_role("button", name="ablate unit").first.click()
    page.see(".nl-sum", "With unit")
    page.widget().get_by_role("checkbox", name="Ablate every unit alone").uncheck()
    page.widget().get_by_role("radio", name="all units", exact=True).check()

    # an error is a sentence
    page.widget().get_by_role("radio", name="resampled from another text", exact=True).check()
    page.widget().get_by_label("The other text").fill("too short")
    assert "lengthen it, or ablate earlier" in page.error()
    page.widget().get_by_role("radio", name="set to zero", exact=True).check()
    page.see(".nl-sum", "set to zero")
    page.no_error()


def test_the_page(page, tmp_path):
    run = lab.runs.load("ptb_char_nlstm_logfreq", scale="small")
    widget = lab.widgets.InterventionLab(run, "the bank of the west fell sharply on monday", moment=15)
    page.open_file(widget.to_html(tmp_path / "cut.html"))
    first = page.look("interventions-page")
    page.tab.locator(".nl-text [data-step='18']").hover()
    page.see(".nl-readout h3", "Character 19 of 43")
    page.tab.get_by_role("radio", name="divergence of the prediction", exact=True).check()
    assert page.look("interventions-page-divergence") != first
    assert page.tab.get_by_label("Memory", exact=True).is_disabled()
    page.look_around("interventions-page", (1280, 400))


CELLS = [
    "import nlstm_lab as lab",
    "nested = lab.runs.load('ptb_char_nlstm_logfreq', seed=1, scale='small')",
    "stack = lab.runs.load('ptb_char_lstm2_logfreq', seed=0, scale='small')",
    "lab.widgets.PatchLab([nested, stack], 'the rates ha', 'the rate ha', right='v', wrong='s')",
]


def test_patching_in_a_notebook(notebook):
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

    # other texts, other answers, another network; an error is a sentence
    widget.get_by_label("Corrupted text").fill("the rates ho")
    assert "end alike" in page.error()
    widget.get_by_label("Corrupted text").fill("the company ha")
    page.see(".nl-sum", "of 3")
    page.no_error()
    widget.get_by_label("over", exact=True).fill("d")
    page.see(".nl-sum", "over “d”")
    widget.get_by_label("Run", exact=True).select_option("stacked LSTM, initialized to the log-frequencies, seed 0")
    page.see(".nl-body h3", "layer 1")
    assert widget.locator(".nl-text").count() == 4


def test_the_page_of_patching(page, tmp_path):
    run = lab.runs.load("ptb_char_nlstm_logfreq", seed=1, scale="small")
    widget = lab.widgets.PatchLab(run, "the rates ha", "the rate ha")
    page.open_file(widget.to_html(tmp_path / "patch.html"))
    first = page.look("patching-page")
    page.tab.locator(".nl-text").nth(1).locator("[data-step='1']").hover()
    page.see(".nl-sum", "The inner memory, put in before “h” (2 of 3)")
    assert page.look("patching-page-square") != first
    assert page.tab.get_by_label("Clean text", exact=True).is_disabled()
    page.look_around("patching-page", (1280, 400))
