"""A unit of one's own, by the name of its class."""

import importlib

from nlstm_lab.cells import Recurrent
from nlstm_lab.errors import UsageError
from nlstm_lab.models.network import UNITS


def unit(name: str) -> str:
    """`name` where it is one of `UNITS`; or "module:Class", a subclass of `lab.cells.Recurrent`, which becomes one.

    >>> unit("nlstm")
    'nlstm'

    Hand what comes back to `lab.experiments.variant(..., unit=...)`: it is trained, probed and drawn like the others.
    UsageError: there is no such unit, module or class, or the class is no Recurrent.
    """
    if name in UNITS:
        return name
    module, separator, attribute = name.partition(":")
    if not separator:
        raise UsageError(f"there is no unit {name!r}; there are {', '.join(UNITS)}, and your own as module:Class")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the unit {name!r} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Recurrent)):
        raise UsageError(f"the unit {name!r} must be a subclass of nlstm_lab.cells.Recurrent with a cell_class")
    UNITS[name] = found
    return name
