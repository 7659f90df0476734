"""The other widgets where the collection has them: run to the end in JupyterLab, then looked at and used."""

from collections.abc import Callable

import pytest
from driving import Desk, Page

pytestmark = pytest.mark.browser


def sort(page: Page) -> None:
    page.widget().get_by_role("columnheader").filter(has_text="valid").get_by_role("button").click()


def move_the_threshold(page: Page) -> None:
    page.widget().get_by_label("Threshold of z").focus()
    for _ in range(8):
        page.tab.keyboard.press("ArrowRight")


def type_on(page: Page) -> None:
    page.widget().get_by_label("Your text").focus()
    page.tab.keyboard.press("End")
    page.tab.keyboard.type(" the qu")


def walk_the_text(page: Page) -> None:
    page.widget().locator(".nl-facet .nl-text").first.focus()
    for _ in range(7):
        page.tab.keyboard.press("ArrowLeft")


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("00_verdicts", sort),
        ("22_boundaries", move_the_threshold),
        ("30_autocomplete", type_on),
        ("32_connectivity", walk_the_text),
    ],
)
def test_the_widget_of(name: str, use: Callable[[Page], None], notebook: Callable[[str], Page]) -> None:
    page = notebook(name)
    page.resize(1280, 1900)
    page.idle()
    before = page.look(f"notebook-{name[:2]}-before")
    use(page)
    page.idle()
    assert page.look(f"notebook-{name[:2]}-used") != before
    page.no_error()


@pytest.mark.parametrize("name", ["12_cell_activations", "13_poetry"])
def test_a_notebook_that_is_opened_is_not_changed(name: str, desk: Desk, page: Page) -> None:
    page.open_notebook(desk, name)
    known = "window.jupyterapp.shell.currentWidget.context.model.getMetadata('language_info')?.name === 'python'"
    page.tab.wait_for_function(known)
    assert not page.tab.evaluate("window.jupyterapp.shell.currentWidget.context.model.dirty")
