"""A record is measured once, read ever after, and found for nothing else than what it was measured with."""

import gzip
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import nlstm_lab as lab
from nlstm_lab.datasets.base import Symbols
from nlstm_lab.errors import DamagedFile, UsageError
from nlstm_lab.models import wrap
from nlstm_lab.probes.records import digest, ensure

pytestmark = pytest.mark.usefixtures("probes_folder")
VALUES = {"memory": ["outer", "inner"], "timescale": [1 / 3, np.nan], "reason": ["", "latched"]}
FRAME = pd.DataFrame(VALUES, index=[7, 9])


def test_it_is_measured_once_and_the_same_both_times(network, text, probes_folder):
    measure = Mock(return_value=FRAME)
    first = ensure("timescales", measure, weights=network(), text=text, skip=100)
    second = ensure("timescales", measure, weights=network(), text=text, skip=np.int64(100))
    assert measure.call_count == 1
    pd.testing.assert_frame_equal(first, second)
    assert first.timescale[0] == pytest.approx(1 / 3, rel=1e-6)
    assert np.isnan(first.timescale[1])
    assert first.reason.tolist() == ["", "latched"]
    (record,) = probes_folder.iterdir()
    assert gzip.decompress(record.read_bytes()).decode().splitlines()[1] == "memory,timescale,reason"


@pytest.mark.parametrize("change", ["weights", "vocabulary", "text", "skip", "name"])
def test_anything_else_is_another_record(network, text, change):
    measure = Mock(return_value=FRAME)
    ensure("timescales", measure, weights=network(), text=text, skip=100)
    otherwise = network()
    otherwise.vocabulary = type(otherwise.vocabulary)(otherwise.vocabulary.symbols[::-1])
    others = {"weights": network(seed=1), "vocabulary": otherwise, "text": text + "a", "skip": 101, "name": "others"}
    changed = {"weights" if change == "vocabulary" else change: others[change]}
    given = {"name": "timescales", "weights": network(), "text": text, "skip": 100} | changed
    ensure(given.pop("name"), measure, **given)
    assert measure.call_count == 2


def test_what_is_set_by_hand_is_another_record(probes_folder):
    config, symbols = lab.models.ModelConfig("hmlstm", hidden_size=8, num_layers=2), Symbols(5)
    model = lab.models.build(config, lab.models.Interface(symbols, symbols), seed=0, name="run")
    measure = Mock(return_value=FRAME)
    ensure("timescales", measure, weights=model)
    assert f'"{digest(model)}"' in gzip.decompress(next(probes_folder.iterdir()).read_bytes()).decode()
    for flag, value in (("boundary", "soft"), ("threshold", 0), ("reset", False)):
        setattr(model.recurrent.cells[1], flag, value)
        ensure("timescales", measure, weights=model)
    assert measure.call_count == 4


def test_the_same_weights_in_another_network_are_another_record():
    measure, relu, tanh = Mock(return_value=FRAME), nn.RNN(2, 3, nonlinearity="relu"), nn.RNN(2, 3)
    tanh.load_state_dict(relu.state_dict())
    parts = {"embedding": nn.Embedding(4, 2), "readout": nn.Linear(3, 4), "vocabulary": "abcd"}
    for rnn in (relu, tanh, relu.eval()):
        ensure("timescales", measure, weights=wrap(rnn, **parts))
    assert measure.call_count == 2


def test_weights_are_known_by_every_value(network):
    model = network()
    before = digest(model)
    with torch.no_grad():
        model.recurrent.layers[0].memory.bias[3] += 1e-6
    assert digest(model) != before
    assert digest(model.half()) != digest(model.float())


def test_a_carriage_return_is_a_symbol_and_no_line_end():
    measured = pd.DataFrame({"symbol": ["a", "\r", "\n", '"', ","], "value": [0.5, np.nan, 1, 2, 3]})
    pd.testing.assert_frame_equal(ensure("symbols", lambda: measured, k=1), measured)


def test_nothing_is_recorded_of_a_measurement_that_failed(probes_folder):
    with pytest.raises(RuntimeError):
        ensure("timescales", Mock(side_effect=RuntimeError), seed=0)
    assert not list(probes_folder.iterdir())


def test_bad_requests_and_files_are_refused_in_a_sentence(probes_folder):
    with pytest.raises(UsageError):
        ensure("../escape", Mock(return_value=FRAME))
    with pytest.raises(UsageError, match="model"):
        ensure("timescales", Mock(return_value=FRAME), model=object())
    ensure("timescales", Mock(return_value=FRAME), seed=0)
    (record,) = probes_folder.iterdir()
    for damaged in (b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n"), record.read_bytes()[:-9]):
        record.write_bytes(damaged)
        with pytest.raises(DamagedFile, match="timescales"):
            ensure("timescales", Mock(return_value=FRAME), seed=0)
