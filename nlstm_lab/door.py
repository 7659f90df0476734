"""A package as a door: its public names lie in modules elsewhere, which are imported when a name is first used."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def door(package: str, places: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], list[str]]:
    """The `__getattr__` and `__all__` of a package, given its public names by module path (PEP 562)."""
    module_of = {name: module for module, names in places.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"nlstm_lab.{module_of[name]}"), name)

    return get, sorted(module_of)
