"""nlstm_lab: recurrent networks with nested and hierarchical memory, trained, probed and drawn.

Everything is imported when it is first used, so `import nlstm_lab as lab` costs nothing:

    run = lab.runs.ensure("ptb_char_nlstm", seed=0)
    trace = lab.probes.trace(run.model(), "a short text")
    figure = lab.figures.cell_activations(trace)
"""

import importlib
from typing import Any

from nlstm_lab.door import door

__version__ = "0.2.0"

_MODULES = (
    *("bench", "cells", "datasets", "experiments", "figures", "models"),
    *("notebooks", "probes", "runs", "targets", "training", "widgets"),
)
_places = {"cells": ["HMLSTM", "LSTM", "NestedLSTM"], "parameters": ["check_parameters"], "paths": ["workspace"]}
_get, _names = door(__name__, _places)

__all__ = [*_MODULES, *_names]


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"nlstm_lab.{name}") if name in _MODULES else _get(name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
