"""Every public function says what it does and what each of its arguments is, itself or in its door's list."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

DOORS = ("cells", "experiments", "figures", "models", "probes", "runs", "targets", "training")


def functions() -> Iterator[Any]:
    for door in DOORS:
        module = importlib.import_module(f"nlstm_lab.{door}")
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) or inspect.ismethod(function):
                yield pytest.param(function, module.__doc__, id=f"{door}.{name}")


def is_described(argument: str, text: str) -> bool:
    """Whether a docstring has an entry of that argument, alone or beside others: `first, second: ...`."""
    return bool(re.search(rf"(?<![\w.])\*{{0,2}}{argument}\b[^\n:]*: ", text))


@pytest.mark.parametrize(("function", "door"), list(functions()))
def test_a_public_function_describes_each_argument(function: Callable[..., Any], door: str) -> None:
    text = inspect.getdoc(function) or ""
    assert re.match(r"\S.*", text), "a public function begins its docstring with what it does"
    lacking = [name for name in inspect.signature(function).parameters if not is_described(name, f"{text}\n{door}")]
    assert not lacking, "describe these under Args"


def test_an_argument_that_nothing_describes_is_noticed() -> None:
    assert is_described("width", "    width: Inches.")
    assert is_described("low", "    low, high: The ends.")
    assert not is_described("width", "A figure of some width.")
