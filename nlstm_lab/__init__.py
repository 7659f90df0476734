"""nlstm_lab: recurrent networks with nested and hierarchical memory, trained, probed and drawn.

Everything is imported when it is first used, so `import nlstm_lab as lab` costs nothing:

    run = lab.runs.ensure("ptb_char_nlstm", seed=0)
    trace = lab.probes.trace(run.model(), "a short text")
    figure = lab.figures.cell_activations(trace)
"""

import importlib
import sys
from typing import Any

__version__ = "0.1.0"

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
_UNITS = ("HMLSTM", "LSTM", "NestedLSTM")

__all__ = [*_MODULES, *_UNITS, "workspace"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"nlstm_lab.{name}")
    if name == "workspace":
        return importlib.import_module("nlstm_lab.paths").workspace
    if name in _UNITS:
        return getattr(importlib.import_module("nlstm_lab.cells"), name)
    raise AttributeError(f"module 'nlstm_lab' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


if "ipykernel" in sys.modules:  # a notebook: what papermill injects there has no types of its own
    importlib.import_module("nlstm_lab.injected").listen()
