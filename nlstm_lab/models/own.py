"""A cell type of your own, by the name of its class."""

import importlib

from nlstm_lab.cells import Recurrent
from nlstm_lab.errors import UsageError
from nlstm_lab.models.network import CELL_TYPES


def cell_type(name: str) -> str:
    """Register a cell type of your own, so that it is trained, probed and drawn like the others.

    Args:
        name: "module:Class", a subclass of `lab.cells.Recurrent`; a key of `CELL_TYPES` is returned as it is.

    Returns:
        The name, for `lab.experiments.variant(..., cell_type=...)`.

    Raises:
        UsageError: There is no such cell type, module or class, or the class is no Recurrent.

    >>> cell_type("nlstm")
    'nlstm'
    """
    if name in CELL_TYPES:
        return name
    module, separator, attribute = name.partition(":")
    if not separator:
        raise UsageError(
            f"there is no cell type {name!r}; there are {', '.join(CELL_TYPES)}, and your own as module:Class"
        )
    try:
        own = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the cell type {name!r} cannot be imported: {error}") from error
    if not (isinstance(own, type) and issubclass(own, Recurrent)):
        raise UsageError(f"the cell type {name!r} must be a subclass of nlstm_lab.cells.Recurrent with a cell_class")
    CELL_TYPES[name] = own
    return name
