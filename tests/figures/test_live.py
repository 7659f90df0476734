"""What a network computes for a figure differs between processors in its last digits: the stored files do not."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from IPython.core.interactiveshell import InteractiveShell

from nlstm_lab import execute, figures, paths, probes
from nlstm_lab.figures import connectivity_sentence

TEXT = "to be or not to be"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def moved(found: xr.Dataset, relative: float = 0.0, absolute: float = 0.0) -> xr.Dataset:
    """The same with every floating value moved, up or down."""
    rng = np.random.default_rng(1)
    result = found.copy(deep=True)
    for name, values in found.data_vars.items():
        if np.issubdtype(values.dtype, np.floating):
            sign = rng.choice([-1.0, 1.0], values.shape)
            result[name] = values.dims, values.values * (1 + sign * relative) + sign * absolute
    return result


def boundaries() -> xr.Dataset:
    rng = np.random.default_rng(0)
    dims, shape = ("time", "layer"), (len(TEXT), 3)
    operation = rng.integers(0, 3, shape).astype(np.int8)
    data = {"z": rng.random(shape), "operation": operation, "norm": 3 * rng.random(shape)}
    coords = {"time": np.arange(len(TEXT)), "layer": [1, 2, 3], "symbol": ("time", list(TEXT))}
    return xr.Dataset({k: (dims, v) for k, v in data.items()}, coords, {"boundary": "soft", "threshold": None})


def connectivity() -> xr.Dataset:
    lag = np.subtract.outer(np.arange(len(TEXT)), np.arange(len(TEXT)))
    data = {
        "connectivity": (("time", "source"), np.where(lag >= 0, 11 * 0.7 ** np.maximum(lag, 0), 0)),
        "prediction": (("time", "rank"), np.tile(np.array(["be", "to", "or"], dtype=object), (len(TEXT), 1))),
        "probability": (("time", "rank"), np.tile([0.505, 0.2, 0.1], (len(TEXT), 1))),  # on the edge of two percents
    }
    along = {"symbol": list(TEXT), "target": ["be"] * len(TEXT), "window": np.zeros(len(TEXT), int)}
    return xr.Dataset(data, {name: ("time", value) for name, value in along.items()})


def activations() -> xr.Dataset:
    """Two memories, in which some cells move alike but for their last digits, and some not at all."""
    values = np.random.default_rng(0).normal(size=(len(TEXT), 2, 12))
    values[..., 6:9] = values[..., :3] * (1 + 1e-7)
    values[..., 9:] = 0.9
    values[:, 1, [2, 8]] *= 50  # as far as saturated cells go
    coords = {"symbol": ("time", list(TEXT)), "memory": ["outer", "inner"], "unit": np.arange(12)}
    return xr.Dataset({"c": (("time", "memory", "unit"), values)}, coords, {"model": "nlstm"})


FIGURES = {
    "cells": (activations, figures.cell_activations),
    "raw cells": (activations, lambda found: figures.cell_activations(found, values="raw")),
    "boundaries": (boundaries, lambda found: figures.boundary_rows(found, width=1.0)),
    "norms": (boundaries, lambda found: figures.hidden_norms(found, width=1.0)),
    "connectivity": (connectivity, lambda found: connectivity_sentence({"nlstm": found}, 10, "log")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_other_last_digits_change_no_file_and_more_than_a_stored_digit_does(name: str, folder: Path) -> None:
    """Every live value moved by 1e-5 of itself, as between processors; then by more than half a stored digit."""
    found, draw = FIGURES[name]
    figures.save(draw(found()), "lab_live_figure")
    before = contents(folder)
    figures.save(draw(moved(found(), relative=1e-5)), "lab_live_figure")
    assert contents(folder) == before
    figures.save(draw(moved(found(), absolute=2e-4)), "lab_live_figure")
    after = contents(folder)
    assert {key for key in after if after[key] != before[key]} >= {"lab_live_figure.csv", "lab_live_figure.json"}


@pytest.mark.slow
def test_a_recorded_number_is_drawn_anew_where_its_last_stored_digit_changes(folder: Path) -> None:
    """A record is the same everywhere: only the last place of a double may differ."""
    record = pd.DataFrame({"step": [1, 2, 3], "value": [0.1234567, 1234.567, 0.0]})
    figures.save(figures.subplots()[0], data=record, name="lab_recorded_figure")
    before = contents(folder)
    same = record.assign(value=record["value"] * (1 + 1e-15))
    figures.save(figures.subplots()[0], data=same, name="lab_recorded_figure")
    assert contents(folder) == before
    other = record.assign(value=record["value"] * (1 + 3e-6))
    figures.save(figures.subplots()[0], data=other, name="lab_recorded_figure")
    assert contents(folder) != before


def otherwise(calls: list[str], measure: Callable[..., xr.Dataset], *args: Any, **options: Any) -> xr.Dataset:
    """What a probe would measure on another processor."""
    calls.append(measure.__name__)
    return moved(measure(*args, **options), relative=1e-5)


PROBES = {"12": ["trace"], "20": ["boundaries"], "22": ["boundaries"], "32": ["connectivity"]}


@pytest.mark.slow
@pytest.mark.parametrize("number", PROBES)
def test_the_committed_figures_stay_on_another_processor(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: InteractiveShell
) -> None:
    """The cells of a notebook whose probes answer with other digits, up to the last figure that it saves.

    Cells that compute a measurement by hand are left out: they assert the digits that are changed here.
    """
    for kind in ("figures", "probes"):
        copy = tmp_path / kind
        shutil.copytree(getattr(paths, kind)(), copy, ignore=shutil.ignore_patterns("pages"))
        monkeypatch.setenv(f"NLSTM_LAB_{kind.upper()}", str(copy))
    calls: list[str] = []
    for name in PROBES[number]:
        monkeypatch.setattr(probes, name, partial(otherwise, calls, getattr(probes, name)), raising=False)
    before = contents(tmp_path / "figures")
    cells = execute.plan([number])[0].code
    last = max(k for k, cell in enumerate(cells) if "figures.save(" in cell)
    for cell in cells[: last + 1]:
        if "assert " in cell:
            continue
        shell.run_cell(cell).raise_error()
    assert calls
    assert contents(tmp_path / "figures") == before
