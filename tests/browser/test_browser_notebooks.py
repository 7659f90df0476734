"""The other widgets where the collection has them: run to the end in JupyterLab, then looked at and used."""

import shlex
import subprocess
import sys

import pytest
import yaml

from nlstm_lab import paths

pytestmark = pytest.mark.browser


def test_the_dashboard(notebook):
    """What is picked in its first widget, or chosen in the second, is shown by the others."""
    page = notebook("00_verdicts")
    page.resize(1280, 1900)
    page.idle()
    before = page.look("notebook-00-before")
    page.widget().get_by_role("columnheader").filter(has_text="valid").get_by_role("button").click()
    page.widget(1).locator("canvas").first.click(position={"x": 60, "y": 35})
    page.see(".nl-sum", "With unit 44 of the", 2)
    page.widget(1).locator(".nl-text [data-step='20']").first.click()
    page.see(".nl-readout h3", "Character 21 of", 2)
    page.widget(2).get_by_label("Text: type").fill("the bank said on friday")
    page.see(".nl-text", "the bank said on friday", 1)
    page.widget(2).get_by_label("Text: type").fill("<script>window.hacked=1</script> ü")
    page.see(".nl-text", "script", 1)
    page.widget().get_by_label("pick ptb_char_nlstm/small-seed0").uncheck()
    page.see("select", "initialized to", 2)
    page.idle()
    assert page.look("notebook-00-used") != before
    page.no_error()


def test_a_notebook_that_was_opened_and_saved_is_committed_as_it_was(desk, page):
    """JupyterLab writes the version of its Python into each; the hook takes that out, and nothing else has changed."""
    name = "12_cell_activations"
    page.open_notebook(name)
    page.until("window.jupyterapp.shell.currentWidget.context.model.getMetadata('language_info')?.version")
    page.tab.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    hooks = yaml.safe_load((paths.PACKAGE.parent / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    (strip,) = [shlex.split(hook["entry"])[1:] for hook in hooks if hook["id"] == "nbstripout"]
    saved = desk.root / "notebooks" / f"{name}.ipynb"
    committed = (paths.notebooks() / saved.name).read_bytes()
    assert saved.read_bytes() != committed
    subprocess.run([sys.executable, *strip, str(saved)], check=True)
    assert saved.read_bytes() == committed
