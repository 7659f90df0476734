"""BoundaryExplorer: the threshold moved, in JupyterLab and as a page; its scores are the probes'."""

import pytest
from networks import SETUP, TEXT, boundary_network

from nlstm_lab.probes import boundaries
from nlstm_lab.probes.boundary_scores import WINDOWS, agreement, text_truths
from nlstm_lab.widgets import BoundaryExplorer

pytestmark = pytest.mark.browser

NETWORKS = "{'printed': boundary_network(), 'another': boundary_network(threshold=0.3)}"


def scores(page):
    """The rows of the agreement's table."""
    return page.tab.locator(".nl-agreement tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))"
    )


def slide(page, label, value):
    script = "(box, value) => { box.value = value; box.dispatchEvent(new Event('input', {bubbles: true})); }"
    page.widget().get_by_label(label).evaluate(script, value)


def test_in_jupyterlab(notebook):
    page = notebook("boundaries", [*SETUP, f"lab.widgets.BoundaryExplorer({NETWORKS}, TEXT)"])
    first, before = page.tour("boundaries"), scores(page)
    slide(page, "Threshold of z", 0.6)
    page.idle()
    assert scores(page) != before
    assert page.look("boundaries-threshold") != first
    assert "is being read again" not in page.widget().inner_text()
    page.widget().get_by_role("button", name="As trained").click()
    page.idle()
    assert scores(page) == before

    # a slider's burst is answered once, and its key moves it
    for value in (0.55, 0.6, 0.65, 0.7):
        slide(page, "Threshold of z", value)
    page.idle()
    page.widget().get_by_label("Threshold of z").focus()
    page.tab.keyboard.press("ArrowLeft")
    page.idle()
    assert page.widget().get_by_label("Threshold of z").input_value() == "0.69"

    page.widget().get_by_label("Judge against").select_option("word ends")
    page.widget().get_by_role("radio", name="1 after").check()
    page.widget().get_by_label("norms").uncheck()
    text = page.widget().locator(".nl-text")
    text.locator("[data-step='20']").click()
    page.tab.keyboard.press("ArrowRight")
    page.see(".nl-facts h3", "Character 22 of 100: “i”")  # the pointer rests on the one before

    # another network reads the text, with the detectors that it was trained with
    page.widget().get_by_role("button", name="As trained").click()
    page.idle()
    before = scores(page)
    page.widget().get_by_label("Run").select_option("another")
    page.idle()
    assert scores(page) != before
    assert "at threshold 0.3" in page.widget().inner_text()
    page.widget().get_by_label("Run").select_option("printed")
    page.idle()
    assert scores(page) == before

    page.widget().get_by_text("Another text").click()
    page.widget().get_by_label("What the network reads").fill("<script>window.hacked=1</script> É 👩 שלום 漢字")
    page.widget().get_by_role("button", name="Read it").click()
    page.idle()
    assert page.widget().locator(".nl-tracks [data-step]").count() < 60
    page.widget().get_by_label("What the network reads").fill("")
    page.widget().get_by_role("button", name="Read it").click()
    assert "the text is empty" in page.error()


def test_the_page_judges_as_the_probes_do(page, tmp_path):
    network = boundary_network()
    page.open_file(BoundaryExplorer(network, TEXT).to_html(tmp_path / "boundaries.html"))
    first = page.look("boundaries-page")
    slide(page, "Threshold of z", 0.6)
    assert page.look("boundaries-page-threshold") != first
    reading = boundaries(network, TEXT, threshold=0.6)
    for truth, flags in text_truths(TEXT).items():
        page.widget().get_by_label("Judge against").select_option(truth)
        for name, label in {"0": "0", "±1": "1", "or one after": "1 after"}.items():
            page.widget().get_by_role("radio", name=label, exact=True).check()
            for row, layer in zip(scores(page), (1, 2), strict=False):
                found = agreement([reading["z"].sel(layer=layer).values > 0.5], [flags], WINDOWS[name])
                assert [_share(cell) for cell in row[2:5]] == pytest.approx(list(found), abs=0.005, nan_ok=True)
    page.look_around("boundaries-page", (1280, 400))


def _share(cell):
    return float("nan") if cell == "–" else float(cell.removesuffix(" %")) / 100
