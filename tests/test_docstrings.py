"""The examples in docstrings run as they stand; every public function, class and method describes its arguments."""

import doctest
import enum
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import nlstm_lab as lab

EXAMPLES = sorted(
    module.name
    for module in pkgutil.walk_packages(lab.__path__, "nlstm_lab.")
    if ">>> " in Path(module.module_finder.find_spec(module.name).origin).read_text(encoding="utf-8")
)
TAKE_LONG = ("figures.activations", "figures.saving", "probes.interventions", "nlstm_lab.probes", "targets.rendering")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name.endswith(TAKE_LONG) else name for name in EXAMPLES]
)
def test_the_examples_of_a_module_run(name, tmp_path, monkeypatch):
    monkeypatch.setenv("NLSTM_LAB_FIGURES", str(tmp_path))
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert not failed


DOORS = ("cells", "datasets", "experiments", "figures", "models", "probes", "runs", "targets", "training")


def plain(member):
    """The function of a method or property; anything else as it is."""
    for wrapper in ("__func__", "fget", "func"):
        member = getattr(member, wrapper, None) or member
    return member


def public(door):
    """Names of functions, constructors and methods, each with the docstrings that may describe its arguments."""
    module = importlib.import_module(f"nlstm_lab.{door}")
    for name in module.__all__:
        thing = getattr(module, name)
        own = f"{inspect.getdoc(thing) or ''}\n{module.__doc__}"
        if inspect.isfunction(thing) or inspect.ismethod(thing):
            yield name, thing, own
        elif inspect.isclass(thing) and not issubclass(thing, enum.Enum | list):
            yield name, thing, own
            for method in (name for name, member in vars(thing).items() if inspect.isfunction(plain(member))):
                if not method.startswith("_"):
                    docs = [inspect.getdoc(getattr(one, method, None)) or "" for one in thing.__mro__]
                    yield f"{name}.{method}", plain(vars(thing)[method]), "\n".join([*docs, own])


def is_described(argument, text):
    """Whether a docstring has an entry of that argument, alone or beside others (`a, b: ...`), or quotes it."""
    return bool(re.search(rf"(?<![\w.])\*{{0,2}}{argument}\b[^\n:]*: |`{argument}`", text))


@pytest.mark.parametrize("door", DOORS)
def test_what_is_public_describes_each_argument(door):
    found = list(public(door))
    assert found
    assert [name for name, _, text in found if not re.match(r"\S.*", text)] == [], "each begins with what it does"
    lacking = [
        f"{name}: {argument}"
        for name, thing, text in found
        for argument in inspect.signature(thing).parameters
        if argument not in ("self", "cls") and not is_described(argument, text)
    ]
    assert lacking == [], "describe these under Args"
