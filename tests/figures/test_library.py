"""Figures as a library: data first, `ax=None` last, a figure that carries its data, and a test for each."""

import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab import figures

# diagrams
WITHOUT_DATA = (
    "computational_graphs",
    "hierarchical_architectures",
    "hierarchical_gating",
    "nested_architecture",
    "unit_diagrams",
)
TESTS = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))


def drawing() -> dict[str, Callable[..., Any]]:
    """Every public function that returns a figure, without the one that takes a figure."""
    found = {name: getattr(figures, name) for name in figures.__all__}
    functions = {name: one for name, one in found.items() if inspect.isfunction(one) and name != "attach"}
    return {name: one for name, one in functions.items() if typing.get_type_hints(one).get("return") is Figure}


def test_there_are_figures() -> None:
    assert set(WITHOUT_DATA) < set(drawing())


@pytest.mark.parametrize("name", drawing())
def test_data_comes_first_and_axes_last(name: str) -> None:
    function = drawing()[name]
    parameters = list(inspect.signature(function).parameters.values())
    assert parameters[-1].name == "ax"
    assert parameters[-1].default is None
    assert typing.get_type_hints(function)["ax"] == Axes | None
    if name not in WITHOUT_DATA:
        assert parameters[0].default is inspect.Parameter.empty
        widths = [parameter.default for parameter in parameters if parameter.name == "width"]
        assert widths in ([figures.COLUMN], [figures.PAGE])
    assert function.__doc__


def test_each_is_drawn_from_given_numbers_in_a_test() -> None:
    assert [name for name in drawing() if not re.search(rf"\b{name}\b", TESTS)] == []
