"""Every public function, class and method says what it does and what each of its arguments is.

Itself, in its class, in the method of the same name of a class above, or in its door's list.
"""

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

DOORS = ("bench", "cells", "datasets", "experiments", "figures", "models", "probes", "runs", "targets", "training")


def plain(member: Any) -> Any:
    """The function of a method or property; anything else as it is."""
    for wrapper in ("__func__", "fget", "func"):
        member = getattr(member, wrapper, None) or member
    return member


def public() -> Iterator[Any]:
    """Functions, constructors and methods, each with the docstrings that may describe its arguments."""
    for door in DOORS:
        module = importlib.import_module(f"nlstm_lab.{door}")
        for name in module.__all__:
            thing = getattr(module, name)
            own = f"{inspect.getdoc(thing) or ''}\n{module.__doc__}"
            if inspect.isfunction(thing) or inspect.ismethod(thing):
                yield pytest.param(thing, own, id=f"{door}.{name}")
            elif inspect.isclass(thing) and not issubclass(thing, enum.Enum | list):
                yield pytest.param(thing, own, id=f"{door}.{name}")
                for method in (name for name, member in vars(thing).items() if inspect.isfunction(plain(member))):
                    if not method.startswith("_"):
                        docs = [inspect.getdoc(getattr(one, method, None)) or "" for one in thing.__mro__]
                        yield pytest.param(
                            plain(vars(thing)[method]), "\n".join([*docs, own]), id=f"{door}.{name}.{method}"
                        )


def is_described(argument: str, text: str) -> bool:
    """Whether a docstring has an entry of that argument, alone or beside others (`a, b: ...`), or quotes it."""
    return bool(re.search(rf"(?<![\w.])\*{{0,2}}{argument}\b[^\n:]*: |`{argument}`", text))


@pytest.mark.parametrize(("thing", "text"), list(public()))
def test_what_is_public_describes_each_argument(thing: Any, text: str) -> None:
    assert re.match(r"\S.*", text), "a docstring begins with what its function or class does"
    lacking = [name for name in inspect.signature(thing).parameters if name != "self" and name != "cls"]
    assert not [name for name in lacking if not is_described(name, text)], "describe these under Args"


def test_an_argument_that_nothing_describes_is_noticed() -> None:
    assert is_described("width", "    width: Inches.")
    assert is_described("low", "    low, high: The ends.")
    assert is_described("wanted", "Draw what is `wanted`.")
    assert not is_described("width", "A figure of some width.")
