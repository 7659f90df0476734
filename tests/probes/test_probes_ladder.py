"""Boundaries and words in a language whose words are known: all for a detector that knows them, nothing by chance."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from nlstm_lab.datasets import KnownText
from nlstm_lab.datasets.text import WITHIN, WORD, NestedLanguage
from nlstm_lab.probes import boundary_scores as segments

TEXT = KnownText(NestedLanguage(words=32, topics=4), "valid", 9_500)


def reading(z: segments.Flags, symbols: str) -> xr.Dataset:
    """Boundaries of a network of two layers whose first fires at z."""
    layers = np.stack([z, np.zeros_like(z)], 1).astype(np.float32)
    return xr.Dataset(
        {"z": (("time", "layer"), layers), "surprise": ("time", np.ones(len(z)))},
        coords={"layer": [1, 2], "symbol": ("time", list(symbols))},
        attrs={"threshold": None},
    )


def aligned(monkeypatch: pytest.MonkeyPatch, z: segments.Flags) -> "pd.Series[float]":
    """`word_alignment` of a network that fires at z."""
    truths, symbols = segments.known_truths(TEXT), TEXT.read()
    pieces = [slice(start, start + segments.PIECE) for start in range(0, len(z), segments.PIECE)]
    readings = [reading(z[piece], symbols[piece]) for piece in pieces]
    told = [{name: flags[piece] for name, flags in truths.items()} for piece in pieces]
    monkeypatch.setattr(segments, "_readings", lambda model, text: (readings, told, segments.WINDOWS))
    return segments.word_alignment.__wrapped__(None, TEXT).iloc[0]  # type: ignore[attr-defined]


def test_the_truths_are_the_language_s_own() -> None:
    begins = TEXT.language.load().boundaries["valid"][: TEXT.length + 1]
    truths = segments.known_truths(TEXT)
    assert begins[0] == WITHIN or truths["word starts"][0]
    assert (truths["word ends"][:-1] == truths["word starts"][1:]).all()
    assert truths["word starts"].sum() == (begins[:-1] >= WORD).sum()
    assert truths["word starts"][truths["phrase starts"]].all()


def test_a_detector_that_knows_the_words_has_all_that_symbols_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = segments.known_truths(TEXT)["word ends"]
    row = aligned(monkeypatch, ends)
    left = segments.mutual_information(ends, ends) - segments.mutual_information(np.array(list(TEXT.read())), ends)
    assert row["f1"] == 1
    assert row["bits"] == pytest.approx(left)
    assert row["shuffled"] < 0.01 < row["bits"]


def test_a_random_detector_has_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = segments.known_truths(TEXT)["word ends"]
    row = aligned(monkeypatch, np.random.default_rng(0).random(len(ends)) < ends.mean())
    assert row["f1"] == pytest.approx(row["chance"], abs=0.03)
    assert row["bits"] == pytest.approx(row["shuffled"], abs=0.003)


def test_a_detector_that_reads_the_symbol_shares_nothing_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its F1 may be above chance; its bits given the symbol are exactly 0, shuffled or not."""
    row = aligned(monkeypatch, np.isin(list(TEXT.read()), list("aeiou")))
    assert row["bits"] == pytest.approx(0, abs=1e-12)
    assert row["shuffled"] == pytest.approx(0, abs=1e-12)
