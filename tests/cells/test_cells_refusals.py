"""What cannot work is refused in one sentence: the argument, what came, what was expected."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from nlstm_lab.cells import (
    GRU,
    HMLSTM,
    LSTM,
    RNN,
    ClockworkRNN,
    ClockworkRNNCell,
    HierarchicalRNN,
    LayerNormLSTM,
    LSTMCell,
    NestedLSTM,
)
from nlstm_lab.cells.lstm import GuardedLSTMCell

T, B, D, H, L = 6, 3, 5, 4, 2

SIZES = [
    ({"input_size": 0}, ValueError, "input_size.*0"),
    ({"hidden_size": -1}, ValueError, "hidden_size.*-1"),
    ({"hidden_size": 2.0}, TypeError, "hidden_size.*float 2.0"),
    ({"num_layers": 0}, ValueError, "num_layers.*0"),
    ({"num_layers": True}, TypeError, "num_layers.*bool True"),
    *(({"dropout": value}, ValueError, f"dropout.*{value}") for value in (True, "a", None, -0.1, 1.5)),
    ({"initialization": "he"}, ValueError, "initialization"),
]
NUMBERS = {
    **{LSTM: ["forget_bias"], LayerNormLSTM: ["forget_bias"]},
    **{NestedLSTM: ["forget_bias", "inner_forget_bias", "inner_input_bias"], HMLSTM: ["forget_bias", "detector_scale"]},
}
FLAGS = [
    *((make, *row) for make in (LSTM, NestedLSTM, HMLSTM) for row in SIZES),
    *(
        (make, {name: value}, ValueError, f"{name}.*{value}")
        for make, names in NUMBERS.items()
        for name in names
        for value in (float("nan"), float("inf"), True, "1")
    ),
    (LSTM, {"candidate_start": "zero"}, ValueError, "candidate_start.*'zero'"),
    (NestedLSTM, {"depth": 0}, ValueError, "depth.*0"),
    (NestedLSTM, {"depth": 1.5}, TypeError, "depth.*1.5"),
    (NestedLSTM, {"candidate": "relu"}, ValueError, "candidate.*'relu'"),
    (NestedLSTM, {"memory": torch.nn.Linear}, TypeError, "memory.*Linear"),
    (NestedLSTM, {"memory": lambda d, h: LSTMCell(d, h + 1)}, ValueError, "memory.*hidden_size"),
    (NestedLSTM, {"memory": ClockworkRNNCell}, ValueError, "memory.*hidden_size"),
    (NestedLSTM, {"inner_cell": "gru"}, ValueError, "inner_cell"),
    (NestedLSTM, {"inner_cell": "clipped", "depth": 3}, ValueError, "inner_cell"),
    (NestedLSTM, {"inner_cell": "clipped", "inner_chrono": 100}, ValueError, "inner_chrono"),
    (NestedLSTM, {"inner_chrono": 2}, ValueError, "inner_chrono"),
    (NestedLSTM, {"inner_chrono": 100, "depth": 1}, ValueError, "inner_chrono"),
    (NestedLSTM, {"inner_input_bias": 1.0, "memory": GuardedLSTMCell}, ValueError, "inner_input_bias"),
    (HMLSTM, {"boundary": "maybe"}, ValueError, "boundary.*'maybe'"),
    (HMLSTM, {"straight_through": "no"}, ValueError, "straight_through"),
    (HMLSTM, {"selection": "soft"}, ValueError, "selection"),
    (HMLSTM, {"detect_from": "x"}, ValueError, "detect_from"),
    (HMLSTM, {"boundary": "soft", "selection": "hard"}, ValueError, "selection"),
    (HMLSTM, {"normalize_boundary": True}, ValueError, "normalize_boundary.*layer_norm"),
    (HMLSTM, {"threshold": 1.0}, ValueError, "threshold.*1.0"),
    *((HMLSTM, {name: 0.0}, ValueError, f"{name}.*0.0") for name in ("gradient_limit", "detector_scale")),
    (GRU, {"reset": "within"}, ValueError, "reset.*'within'"),
    (RNN, {"nonlinearity": "sine"}, ValueError, "nonlinearity.*'sine'"),
    (ClockworkRNN, {"periods": (1, 2, 4)}, ValueError, "hidden_size.*4"),
    (ClockworkRNN, {"periods": (2, 1)}, ValueError, "periods"),
    (ClockworkRNN, {"periods": ()}, ValueError, "periods"),
    (ClockworkRNN, {"periods": (0, 1)}, ValueError, "periods.*0"),
    (ClockworkRNN, {"periods": (1.5, 2)}, TypeError, "periods.*1.5"),
]


@pytest.mark.parametrize(("make", "flags", "error", "message"), FLAGS)
def test_refusals_of_flags(make, flags, error, message):
    with pytest.raises(error, match=message):
        make(**{"input_size": D, "hidden_size": H, **flags})


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


def test_refusals_of_boundaries():
    x = torch.zeros(T, B, D)
    cases = [
        (x, None, TypeError, "boundaries.*NoneType"),
        (x, torch.zeros(T, B, 3), ValueError, r"boundaries.*\[6, 3, 2\].*\[6, 3, 3\]"),
        (pack_padded_sequence(x, [T] * B), torch.zeros(T, B, 2), TypeError, "boundaries.*Tensor"),
    ]
    for input, boundaries, error, message in cases:
        with pytest.raises(error, match=message):
            HierarchicalRNN(D, H, 3)(input, boundaries)
