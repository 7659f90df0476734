"""nlstm_lab: recurrent networks with nested and hierarchical memory, trained, probed and drawn.

Everything is imported when it is first used, so `import nlstm_lab as lab` costs nothing:

    run = lab.runs.ensure("ptb_char_nlstm", seed=0)
    trace = lab.probes.trace(run.model(), "a short text")
    figure = lab.figures.cell_activations(trace)
"""

import importlib
from typing import Any

__version__ = "0.2.0"

_MODULES = (
    "bench",
    "cells",
    "datasets",
    "experiments",
    "figures",
    "models",
    "notebooks",
    "probes",
    "runs",
    "targets",
    "training",
    "widgets",
)
_PLACES = {
    "HMLSTM": "cells",
    "LSTM": "cells",
    "NestedLSTM": "cells",
    "check_parameters": "parameters",
    "workspace": "paths",
}

__all__ = [*_MODULES, *_PLACES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"nlstm_lab.{name}")
    if name in _PLACES:
        return getattr(importlib.import_module(f"nlstm_lab.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'nlstm_lab' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
