"""What boundaries tell of segments that nobody marked: all of it for a detector that knows them, little by chance."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from nlstm_lab.datasets.synthetic import WITHIN, WORD
from nlstm_lab.studies.boundaries import known_language as nested_language


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NLSTM_LAB_PROBES", str(tmp_path))
    return tmp_path


def test_the_truths_are_the_language_s_own() -> None:
    task = nested_language.LANGUAGE.load()
    begins = task.boundaries["valid"][:101]
    truths = nested_language.language_truths(task, 100)
    assert begins[0] == WITHIN or truths["word starts"][0]
    assert (truths["word ends"][:-1] == truths["word starts"][1:]).all()
    assert truths["word starts"].sum() == (begins[:-1] >= WORD).sum()
    assert truths["word starts"][truths["phrase starts"]].all()


def test_a_detector_that_knows_the_words_tells_all_there_is(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """z of layer 1 is the truth, z of layer 2 noise: bits are the entropy for the one, chance for the other."""
    ends = nested_language.language_truths(nested_language.LANGUAGE.load(), nested_language.READ)["word ends"]
    noise = np.random.default_rng(0).random(len(ends)) < ends.mean()

    def knowing(_: object, texts: list[str]) -> list[xr.Dataset]:
        cuts = np.cumsum([len(text) for text in texts])[:-1]
        layers = [np.split(one, cuts) for one in (ends, noise, np.zeros_like(ends))]
        return [
            xr.Dataset(
                {"z": (("time", "layer"), np.stack(z, 1).astype(np.float32)), "surprise": ("time", np.ones(len(z[0])))},
                coords={"layer": [1, 2, 3], "symbol": ("time", list(text))},
                attrs={"threshold": None},
            )
            for text, *z in zip(texts, *layers, strict=True)
        ]

    monkeypatch.setattr(nested_language, "trained", lambda task, seed: None)
    monkeypatch.setattr(nested_language, "together", knowing)
    told = nested_language.information(0).set_index(["layer", "truth"])
    assert told.loc[(1, "word ends"), "bits"] == pytest.approx(told.loc[(1, "word ends"), "entropy"])
    assert told.loc[(1, "word ends"), "shuffled"] < 0.002
    assert told.loc[2, "bits"].max() < 0.002
    assert told.loc[(1, "word starts"), "bits"] < told.loc[(1, "word ends"), "bits"]


@pytest.mark.slow
def test_a_network_learns_the_language_and_is_recorded(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty updates suffice to tell frequent letters from rare ones; the second call reads the record."""
    monkeypatch.setattr(nested_language, "TRAINING", replace(nested_language.TRAINING, epochs=1))
    told = nested_language.language_information([0])
    assert 0.5 < told["bpc"].iloc[0] < np.log2(26)
    assert set(told["layer"]) == {1, 2}
    assert (told["bits"] <= told["entropy"]).all()
    monkeypatch.delattr(nested_language, "trained")
    assert nested_language.language_information([0]).equals(told)
