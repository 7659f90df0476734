"""A package as a door: its public names lie in modules elsewhere, which are imported when a name is first used."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def door(package: str, places: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], list[str]]:
    """Build the `__getattr__` and the `__all__` of a package (PEP 562).

    Args:
        package: The package's `__name__`.
        places: The public names of each module, by the module's path below `nlstm_lab`.

    Returns:
        What the package defines as `__getattr__`, and its public names in alphabetical order.
    """
    module_of = {name: module for module, names in places.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"nlstm_lab.{module_of[name]}"), name)

    return get, sorted(module_of)
