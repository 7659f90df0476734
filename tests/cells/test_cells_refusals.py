"""What cannot work is refused in one sentence: the argument, what came, what was expected."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from nlstm_lab.cells import GRU, HMLSTM, LSTM, RNN, ClockworkRNN, LayerNormLSTM, NestedLSTM

T, B, D, H, L = 6, 3, 5, 4, 2

BAD_SIZES = [
    ({"input_size": 0}, ValueError, "input_size.*0"),
    ({"hidden_size": -1}, ValueError, "hidden_size.*-1"),
    ({"hidden_size": 2.0}, TypeError, "hidden_size.*float 2.0"),
    ({"num_layers": 0}, ValueError, "num_layers.*0"),
    ({"num_layers": True}, TypeError, "num_layers.*bool True"),
    ({"dropout": 1.5}, ValueError, "dropout.*1.5"),
    ({"initialization": "he"}, ValueError, "initialization"),
]


@pytest.mark.parametrize(("flags", "error", "message"), BAD_SIZES)
@pytest.mark.parametrize("make", [LSTM, NestedLSTM, HMLSTM])
def test_refusals_of_sizes(make, flags, error, message):
    with pytest.raises(error, match=message):
        make(**{"input_size": D, "hidden_size": H, "num_layers": L, **flags})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1"])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (LSTM, "forget_bias"),
        (GRU, "gate_bias"),
        (LayerNormLSTM, "forget_bias"),
        (NestedLSTM, "forget_bias"),
        (NestedLSTM, "inner_forget_bias"),
        (NestedLSTM, "inner_input_bias"),
        (HMLSTM, "forget_bias"),
        (HMLSTM, "detector_scale"),
    ],
)
def test_refusals_of_numbers(make, name, value):
    with pytest.raises(ValueError, match=f"{name} must be a finite number"):
        make(D, H, **{name: value})


BAD_INPUTS = [
    ([[0.0]], TypeError, "input.*list"),
    (torch.zeros(T, B, D + 1), ValueError, r"input.*\[6, 3, 6\]"),
    (torch.zeros(D), ValueError, r"input.*\[5\]"),
    (torch.zeros(T, B, D).double(), TypeError, "torch.float32.*torch.float64"),
    (torch.zeros(T, B, D) > 0, TypeError, "torch.bool"),
    (torch.zeros(T, B, D).long(), ValueError, r"\[6, 3, 5\]"),
    (torch.full((T, B), D), ValueError, "input.* 4"),
    (torch.full((T, B), -1), ValueError, "input.* 4"),
    (torch.zeros(0, B, D), ValueError, r"input.*\[0, 3, 5\]"),
    (pack_padded_sequence(torch.zeros(T, 1, D + 1), [T]), ValueError, r"input.*\[N, 5\]"),
]


@pytest.mark.parametrize(("input", "error", "message"), BAD_INPUTS)
@pytest.mark.parametrize("make", [LSTM, NestedLSTM, HMLSTM])
def test_refusals_of_inputs(make, input, error, message):
    with pytest.raises(error, match=message):
        make(D, H, num_layers=L)(input)


def test_refusals_of_states():
    x = torch.zeros(T, B, D)
    h = torch.zeros(L, B, H)
    cases = [
        (LSTM, h, ValueError, "state.*h, c.*1"),
        (LSTM, (h, h[:1]), ValueError, r"c of the state.*\[2, 3, 4\].*\[1, 3, 4\]"),
        (LSTM, (h, h.double()), TypeError, "c of the state.*torch.float32.*torch.float64"),
        (LSTM, (h, 0), TypeError, "c of the state.*int"),
        (GRU, (h, h), ValueError, "state.*h.*2"),
        (NestedLSTM, (h, h[:1]), ValueError, r"memories of the state.*\[2, 2, 3, 4\].*\[1, 3, 4\]"),
        (HMLSTM, (h, h, h), ValueError, r"z of the state.*\[2, 3\].*\[2, 3, 4\]"),
        (ClockworkRNN, (h, torch.zeros(L, B)), TypeError, "clock of the state.*torch.int64"),
    ]
    for make, state, error, message in cases:
        with pytest.raises(error, match=message):
            make(D, H, num_layers=L)(x, state)
    with pytest.raises(ValueError, match=r"\[2, 4\].*\[2, 3, 4\]"):
        GRU(D, H, num_layers=L)(x[:, 0], h)
    with pytest.raises(ValueError, match=r"\[3, 4\].*\[4\]"):
        LSTM(D, H).layers[0](x[0], (h[0], h[0, 0]))


@pytest.mark.parametrize("make", [RNN, LSTM, GRU, LayerNormLSTM, ClockworkRNN, NestedLSTM, HMLSTM])
def test_weights_with_nan_are_not_loaded(make):
    unit = make(D, H, num_layers=L)
    weights = {name: tensor.clone() for name, tensor in unit.state_dict().items()}
    weights["layers.1.weight_ih"][0, 0] = float("nan")
    with pytest.raises(ValueError, match=r"layers\.1\.weight_ih"):
        unit.load_state_dict(weights)
