"""CellExplorer in notebook 12, and as a page of its own."""

import numpy as np
import pytest

import nlstm_lab as lab
from nlstm_lab.widgets import base

pytestmark = pytest.mark.browser


def test_notebook_12(notebook):
    page = notebook("12_cell_activations")
    page.tour("explorer")
    page.see("h3", "units are saturated here")  # it opens on a memory that has died, beside one that lives
    page.widget().get_by_role("button", name="show initialized to the log-frequencies").click()
    page.idle()
    first = page.look("explorer-before")

    # a character: pointer and keys, in the browser alone
    text = page.widget().locator(".nl-text").first
    text.locator("[data-step='20']").hover()
    page.see(".nl-readout h3", "21 of 93")
    text.locator("[data-step='20']").click()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.tab.keyboard.press(key)
    page.see(".nl-readout h3", "22 of 93")
    assert text.locator("[aria-selected='true']").get_attribute("data-step") == "21"
    page.tab.mouse.move(5, 5)
    second = page.look("explorer-character")
    assert second != first

    # a unit: slider, map, search
    slider = page.widget().get_by_label("Unit", exact=True)
    slider.focus()
    page.tab.keyboard.press("Home")
    page.tab.keyboard.press("ArrowRight")
    page.see("h3", "inner memory, unit 1:")
    page.widget().locator("canvas").first.click(position={"x": 60, "y": 35})
    page.see("h3", "inner memory, unit 44:")
    page.see(".nl-unit h3", "Unit 44 of the inner memory")
    page.widget().get_by_label("Find units").select_option("slowest first")
    page.see(".nl-score", "1 of")
    third = page.look("explorer-slowest")
    assert third != second

    # values: printed, tanh, raw
    page.widget().get_by_role("radio", name="raw", exact=True).check()
    page.see(".nl-legend", "the maps end at")

    # another run, and another text: Python answers
    page.widget().get_by_label("Run").select_option("stacked LSTM, baseline initialization, seed 1, small scale")
    page.see("h3", "layer 2, unit")
    page.widget().get_by_label("Text: type").fill("another text")
    page.see(".nl-text", "another text")

    # a phrase, dragged over or selected by keys: the units that are on in it
    page.see(".nl-text", "another text")
    text = page.widget().locator(".nl-text").first
    text.locator("[data-step='0']").hover()
    page.tab.mouse.down()
    text.locator("[data-step='6']").hover()
    page.tab.mouse.up()
    page.see(".nl-unit h3", "“another”")
    page.tab.keyboard.press("Shift+ArrowLeft")
    page.idle()
    assert text.locator("[data-span]").count() > 1
    page.widget().get_by_role("button", name="clear the phrase").click()
    page.idle()
    assert not text.locator("[data-span]").count()

    # an error is a sentence
    page.widget().get_by_label("Text: type").fill("ÜBER")
    page.see("p", "read as “uber”")
    page.widget().get_by_label("Text: type").fill("")
    assert "empty" in page.error()
    page.widget().get_by_label("Text: type").fill("back again on monday")
    page.see(".nl-text", "back again on monday")
    page.no_error()


def test_the_page(page, tmp_path):
    run = lab.runs.load("ptb_char_nlstm_logfreq", scale="small")
    text = "the bank of the west fell sharply on monday but recovered by friday and left"
    page.open_file(lab.widgets.CellExplorer(run, text, unit=3).to_html(tmp_path / "explorer.html"))
    first = page.look("explorer-page")
    page.tab.locator(".nl-text").first.locator("[data-step='30']").click()
    page.see(".nl-readout h3", "31 of")
    page.see("p", "Not defined for the outer memory")  # what is left of what was written
    page.tab.get_by_label("Find units").select_option("follows position in word")
    assert page.look("explorer-page-found") != first
    page.look_around("explorer-page", (1280, 400))

    # what a paper takes draws what is shown
    page.tab.get_by_label("Unit", exact=True).focus()
    page.tab.keyboard.press("Home")
    page.tab.get_by_text("Copy for a paper").click()
    scope: dict = {}
    exec(page.filled("Python"), scope)
    assert set(lab.figures.data(scope["figure"])["unit"]) == {0}
    assert run.result["commit"][:10] in page.filled("Caption")
    page.tab.get_by_role("button", name="copy BibTeX").click()
    page.see("button", "Copied")
    page.look_around("explorer-paper", (1280, 400))
    with page.tab.expect_download() as picture:
        page.tab.get_by_text("Picture (PNG)").click()
    assert picture.value.path().read_bytes().startswith(b"\x89PNG")

    # a unit's page, and the link to it
    page.tab.locator("canvas").nth(1).click(position={"x": 60, "y": 35})
    page.see(".nl-unit h3", "Unit 44 of the outer memory")
    page.look_around("explorer-unit", (1280, 400))
    page.until("location.hash.includes('unit=44&page=1')")
    page.open_file(tmp_path / "explorer.html", "unit=7&page=0&step=9999&values=<img src=x onerror=window.hacked=1>")
    page.see(".nl-unit h3", "Unit 7 of the inner memory")
    page.tab.get_by_role("button", name="close the unit's page").click()
    assert page.tab.get_by_label("the unit's page", exact=True).is_hidden()


def test_a_page_reads_as_the_library_does(page, tmp_path):
    """Every number that the page computes from a typed text, for a Nested LSTM and a stack; then typed by hand."""
    names = ("ptb_char_nlstm_logfreq", "ptb_char_nlstm", "ptb_char_lstm2")
    runs = [lab.runs.load(name, scale="small") for name in names]
    written = lab.widgets.CellExplorer(runs, "the bank").to_html(tmp_path / "live.html")
    page.open_file(written)
    typed = "É $ N (a <unk>\n 'x' \"in\" 👩 the company said" + " and so on" * 30
    read = """(text) => { SCRIPT
        const kept = stored();
        const plain = (value) => ArrayBuffer.isView(value) ? [...value] : value;
        const all = (about) => Object.entries(readHere(about, text, [3, 9]));
        const read = (about) => all(about).map(([name, value]) => [name, plain(value)]);
        return Object.entries(kept.networks).map(([run, about]) => [run, Object.fromEntries(read(about))]);
    }"""
    script = base.script(("forward.js",), alone=True).partition("function standIn")[0]
    found = dict(page.tab.evaluate(read.replace("SCRIPT", script), typed))
    assert list(found) == [run.name for run in runs]
    for run in runs:
        own, expected = found[run.name], lab.widgets.CellExplorer(run, typed)
        for name in ("symbols", "memories", "vocabulary", "squashed", "notice", "units"):
            assert own[name] == getattr(expected, name), name
        kinds = {"states": "<f2", "gates": "<f2", "chances": "<f4", "surprises": "<f4", "labels": "<f4"}
        for name, kind in kinds.items():
            values = np.frombuffer(getattr(expected, name), kind).astype(float)
            np.testing.assert_allclose(np.array(own[name], float), values, rtol=1e-3, atol=1e-3, err_msg=name)
        assert own["lives"] == list(expected.lives)
        expected.span = [3, 9]
        contrasts = np.frombuffer(expected.contrasts, "<f4").reshape(3, -1)  # the last is of another shuffled text
        found_here = np.reshape(own["contrasts"], contrasts.shape)
        np.testing.assert_allclose(found_here[:2], contrasts[:2], rtol=0.01, atol=0.01)

    page.tab.get_by_label("Text: type").fill("<script>window.hacked=1</script> é")
    page.see(".nl-text", "script")
    page.see("p", "read as")
    page.tab.get_by_role("button", name="show baseline initialization").click()
    page.see("h3", "are saturated here")
    page.tab.get_by_label("Text: type").fill("")
    assert "empty" in page.error()
    page.tab.get_by_label("Text: type").fill("a link shows this again")
    page.see(".nl-text", "a link shows this again")
    page.no_error()
    page.still()  # or what goes with the error moves the text under the pointer
    text = page.widget().locator(".nl-text").first
    text.locator("[data-step='2']").hover()
    page.tab.mouse.down()
    text.locator("[data-step='5']").hover()
    page.tab.mouse.up()
    page.see(".nl-unit h3", "“link”")
    page.look_around("explorer-live", (1280, 400))
    page.until("location.hash.includes('again') && location.hash.includes('span=%5B2%2C5%5D')")
    page.open_file(written, page.tab.url.partition("#")[2])
    page.see(".nl-text", "a link shows this again")
    page.see("h3", "are saturated here")
    page.see(".nl-unit h3", "“link”")


def test_what_takes_long_says_so_and_can_be_ended(notebook):
    page = notebook(
        "large",
        [
            "import nlstm_lab as lab, torch",
            "letters = 'abcdefghijklmnopqrstuvwxyz '\n"
            "unit, readout = lab.NestedLSTM(27, 600), torch.nn.Linear(600, 27)\n"
            "own = lab.models.wrap(unit, readout=readout, vocabulary=letters, name='600 units')",
            "lab.widgets.CellExplorer(own, 'the bank of the west')",
        ],
    )
    text = page.widget().get_by_label("Text: type")
    before = text.input_value()
    text.fill("quite another text " * 50)
    page.see(".nl-progress", "the network reads the text")
    page.widget().get_by_role("button", name="Cancel").click()
    page.idle()
    assert text.input_value() == before
    assert page.widget().locator(".nl-text").first.locator("[data-step]").count() == len(before)


def test_vectors(notebook):
    """Steps and coordinates in place of a text; Python reads another sequence, and tells the units of some steps."""
    own = "lab.models.wrap(torch.nn.LSTM(2, 12), readout=torch.nn.Linear(12, 2), name='own')"
    x = "np.stack([np.sin(np.arange(160) / 5), np.arange(160) % 7 == 0], 1)"
    cell = f"own, x = {own}, {x}\nlab.widgets.CellExplorer(own, {{'waves': x, 'short': x[:30]}})"
    page = notebook("vectors", ["import nlstm_lab as lab, numpy as np, torch", cell])
    page.tour("vectors", (1280, 400))
    page.widget().locator(".nl-text [data-step='120']").click()
    page.see(".nl-readout h3", "Step 120 of 0 to 159")
    page.see(".nl-readout p", "input 0: ")
    page.widget().get_by_label("Find units").select_option("follows input 1")
    page.see(".nl-score", "1 of 12")
    page.widget().get_by_label("Sequence").select_option("short")
    page.see(".nl-readout h3", "Step 29 of 0 to 29")
    page.widget().locator(".nl-text [data-step='2']").click()
    page.tab.keyboard.press("Shift+ArrowRight")
    page.see(".nl-unit h3", "steps 2 to 3")
