"""RunBrowser, and what it offers to another widget."""

import pytest

import nlstm_lab as lab

pytestmark = pytest.mark.browser


def test_it_lists_sorts_finds_picks_and_offers(notebook):
    page = notebook(
        "runs",
        [
            "import nlstm_lab as lab",
            "browser = lab.widgets.RunBrowser('ptb_char_[ln]*[2m]', pick=['ptb_char_nlstm/small-seed0'])\nbrowser",
            "lab.widgets.CellExplorer(browser, 'the bank of the west fell sharply on monday')",
        ],
    )
    first = page.tour("runs")
    page.widget().get_by_label("Find runs").fill("lstm2 seed1")
    page.see(".nl-controls", "1 of")
    page.widget().get_by_label("pick ptb_char_lstm2/small-seed1").check()
    page.see(".nl-names", "ptb_char_lstm2/small-seed1")
    page.see(".nl-about", "ptb_char_lstm2/small-seed1")
    assert page.look("runs-picked") != first
    offered = page.widget(1).get_by_label("Run").locator("option")
    offered.nth(1).wait_for(state="attached")
    assert set(offered.all_inner_texts()) == {
        "Nested LSTM, baseline initialization, seed 0",
        "stacked LSTM, baseline initialization, seed 1",
    }

    page.widget().get_by_label("Find runs").fill("")
    heading = page.widget().get_by_role("columnheader").filter(has_text="valid")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    page.tab.keyboard.press("Tab")
    page.widget().get_by_label("pick ptb_char_nlstm/small-seed0").focus()
    page.tab.keyboard.press("ArrowDown")
    page.tab.keyboard.press("Space")
    page.see(".nl-controls", "3 picked")


def test_the_page(page, tmp_path):
    widget = lab.widgets.RunBrowser("ptb_char_nlstm*")
    hostile = "<img src=x onerror=window.hacked=1></script><script>window.hacked=1</script> é שלום 漢字"
    rows = [*widget.rows, {**widget.rows[0], "name": hostile, "unit": hostile, "layers": hostile}]
    widget.rows = [*rows[:-1], {**rows[-1], "provenance": {hostile: hostile}}]
    widget.run, widget.picked = hostile, [*widget.picked, hostile]
    page.open_file(widget.to_html(tmp_path / "runs.html"))
    first = page.look("runs-page")
    for selector in (".nl-about h3", ".nl-about dt", ".nl-chosen .nl-name", ".nl-names"):
        page.see(selector, hostile)
    page.tab.get_by_label("Metric").select_option("accuracy, %")
    page.tab.get_by_label("pick ptb_char_nlstm_logfreq/small-seed0").check()
    assert page.look("runs-page-picked") != first
    page.look_around("runs-page", (1280, 400))
