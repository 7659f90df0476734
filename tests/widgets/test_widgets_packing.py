"""What a browser gets of a connectivity matrix is the matrix, to three digits, and nothing of the future."""

import json

import numpy as np
import pytest
import xarray as xr

from nlstm_lab.probes import connectivity
from nlstm_lab.widgets.words import FULL, described, packed


@pytest.fixture(scope="module")
def read(character_network):
    def at(window: int = 60, **asked) -> dict[str, xr.Dataset]:
        text = " abba hid a badge in a cage, he said"
        return {
            kind: connectivity(character_network(kind), text, unknown="map", window=window, **asked)
            for kind in ("gru", "nlstm")
        }

    return at


def unpacked(about: dict, codes: np.ndarray, window: np.ndarray) -> np.ndarray:
    """One network's matrix again, [T, widest window]; what the browser computes from the same bytes."""
    place = np.arange(len(window)) - window
    values = np.zeros((len(window), int(place.max()) + 1))
    share = codes.astype(float) / FULL
    values[np.arange(values.shape[1]) <= place[:, None]] = share * np.abs(share)
    largest = np.array([np.nan if size is None else size for size in about["largest"]])
    return values * largest[:, None]


def again(data: dict[str, xr.Dataset]) -> dict[str, np.ndarray]:
    about, raw = packed(data).values()
    codes = np.frombuffer(raw, "<i2").reshape(len(about), -1)
    window = data["gru"]["window"].values
    return {name: unpacked(one, part, window) for name, one, part in zip(("gru", "nlstm"), about, codes, strict=True)}


@pytest.mark.parametrize("mode", ["l2", "gradient_x_input"])
@pytest.mark.parametrize("window", [60, 14])
def test_three_digits_of_whatever_matters_come_back(read, mode, window):
    with pytest.warns() if window == 14 else np.errstate():
        data = read(window, mode=mode, target="predicted")
    for name, values in again(data).items():
        true = data[name]["connectivity"].values
        share = np.abs(true) / np.abs(true).max(1, keepdims=True)
        strong = share >= 1e-4
        np.testing.assert_allclose(values[strong], true[strong], rtol=5e-3)
        assert np.abs(values - true)[~strong].max() <= 1e-6 * np.abs(true).max()


def test_words_and_looks_are_plain_json_in_the_order_of_every_figure(read):
    data = read()
    told = json.loads(json.dumps(described(data), allow_nan=False))
    json.dumps(packed(data)["networks"], allow_nan=False)
    assert [one["label"] for one in told["networks"]] == ["GRU", "Nested LSTM"]
    assert "".join(told["symbols"]) == " abba hid a badge in a cage, he said"
    assert "".join(told["networks"][0]["read"]) == " abba hid a badge in a cage  he said"
    assert told["word"][6] == "hid"
    assert told["known"][5:9] == [0, 1, 2, 3]
    assert np.shape(told["networks"][1]["predictions"]) == (36, 3)


def test_the_future_is_not_sent_and_a_position_without_a_target_is_empty(read):
    length, data = 36, read(target="true")  # of the last character the next is not known
    held = packed(data)
    assert len(held["codes"]) == 2 * 2 * length * (length + 1) // 2
    assert (held["networks"][0]["largest"][-1], held["networks"][0]["target"][-1]) == (None, "")
    assert np.isnan(again(data)["gru"][-1]).all()
