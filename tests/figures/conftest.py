"""Traces, histories and tables with known numbers."""

import numpy as np
import pytest
import xarray as xr

from nlstm_lab import paths

TEXT = "shares fell sharply\nbut recovered by friday"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Figures go to a folder of the test's own."""
    monkeypatch.setattr(paths, "figures", lambda: tmp_path / "figures")
    return tmp_path / "figures"


@pytest.fixture
def trace():
    """A Nested LSTM's trace: the inner memory counts upward, the outer one alternates."""

    def made(memories=("outer", "inner"), text=TEXT, units=12, leaking=("inner",)):
        values = np.random.default_rng(0).normal(size=(len(text), len(memories), units))
        values[:, -1] = np.linspace(0, 4, len(text))[:, None]
        values[:, 0] = np.tanh(values[:, 0])
        return xr.Dataset(
            {"c": (("time", "memory", "unit"), values)},
            {"symbol": ("time", list(text)), "memory": list(memories), "unit": np.arange(units)}
            | {"leaks": ("memory", [memory in leaking for memory in memories])},
            {"model": "nlstm", "depth": len(memories)},
        )

    return made
