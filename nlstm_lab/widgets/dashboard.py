"""Several widgets under each other that show one selection; made of ipywidgets' VBox and link."""

from itertools import pairwise
from typing import Any

import ipywidgets

from nlstm_lab.widgets.base import LabWidget
from nlstm_lab.widgets.runs import RunBrowser

SHARED = ("run", "text", "unit", "step", "at")  # what widgets that have it share


class Dashboard(ipywidgets.VBox):  # type: ignore[misc]
    """Widgets that share run, text, unit and position: what is chosen in one is chosen in all.

    It is no more than `ipywidgets.VBox(widgets)` and, for each name, `ipywidgets.link((other, name), (one, name))`, as
    you may write it yourself to lay them out or link them in another way. At first the lower widget's value counts.

    Args:
        widgets: The widgets, from top to bottom.
    """

    def __init__(self, *widgets: LabWidget) -> None:
        super().__init__(widgets)
        for name in SHARED:
            having = [each for each in widgets if each.has_trait(name) and not isinstance(each, RunBrowser)]
            for one, other in pairwise(having):
                ipywidgets.link((other, name), (one, name))

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widgets, and for who cannot run them the picture or page of the first."""
        data, metadata = self.children[0]._repr_mimebundle_(**options)
        return {**data, **(super()._repr_mimebundle_(**options) or {})}, metadata
