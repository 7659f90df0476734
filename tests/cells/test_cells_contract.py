"""What every unit keeps to, whatever it computes: layouts, packing, causality, states, traces, refusals."""

import copy
import pickle
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from nlstm_lab.cells import (
    GRU,
    HMLSTM,
    LSTM,
    RNN,
    ClockworkRNN,
    GRUCell,
    HierarchicalRNN,
    LayerNormLSTM,
    NestedLSTM,
    fast,
)

T, B, D, H, L = 6, 3, 5, 4, 2
UNITS = {
    "RNN": RNN,
    "RNN relu": partial(RNN, nonlinearity="relu"),
    "LSTM": LSTM,
    "LSTM without bias": partial(LSTM, bias=False),
    "GRU": GRU,
    "GRU reset after": partial(GRU, reset="after"),
    "LayerNormLSTM": LayerNormLSTM,
    "ClockworkRNN": partial(ClockworkRNN, periods=(1, 3)),
    "ClockworkRNN normalized": partial(ClockworkRNN, periods=(1, 3), layer_norm=True),
    "NestedLSTM": NestedLSTM,
    "NestedLSTM depth 3": partial(NestedLSTM, depth=3, candidate="tanh"),
    "NestedLSTM of a GRU": partial(NestedLSTM, memory=GRUCell),
    "NestedLSTM of UR gates": partial(NestedLSTM, inner_cell="refined"),
    "HMLSTM": HMLSTM,
    "HMLSTM hard": partial(HMLSTM, selection="hard", straight_through="identity", detect_on_copy=False),
    "HMLSTM soft": partial(HMLSTM, boundary="soft"),
    "HMLSTM normalized": partial(HMLSTM, layer_norm=True, normalize_boundary=True, normalize_cell=True),
    "HMLSTM footnote 2": partial(HMLSTM, boundary="soft", detect_from="hidden"),
    "HierarchicalRNN": HierarchicalRNN,
}
every_unit = pytest.mark.parametrize("make", UNITS.values(), ids=UNITS)


def built(make, dtype=torch.float64, **flags):
    """A unit away from its starting point, where biases are 0 and boundaries rare."""
    torch.manual_seed(0)
    unit = make(D, H, **{"num_layers": L, "dtype": dtype, **flags})
    for parameter in unit.parameters():
        nn.init.normal_(parameter, std=0.7)
    return unit


def run(unit, x, state=None):
    """Output and final state; a HierarchicalRNN's boundaries follow from the same step's input."""
    if not isinstance(unit, HierarchicalRNN):
        return unit(x, state)
    features = x.data if isinstance(x, PackedSequence) else x
    ends = (features[..., : unit.num_layers - 1] > 0).cumprod(-1)
    return unit(x, PackedSequence(ends, *x[1:]) if isinstance(x, PackedSequence) else ends, state)


def parts(state):
    return state if isinstance(state, tuple) else (state,)


def rows(unit, state, where):
    """These rows of the batch: its dimension is the last but one, or the last where units have no part."""
    scalar = ("z", "clock")
    names = unit.layers[0].part_names or unit.layers[0].state_names
    cut = [
        part[..., where] if name in scalar else part[..., where, :]
        for name, part in zip(names, parts(state), strict=True)
    ]
    return tuple(cut) if isinstance(state, tuple) else cut[0]


def close(a, b):
    for one, other in zip(parts(a), parts(b), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@every_unit
def test_no_output_depends_on_a_later_input(make):
    unit = built(make)
    x = torch.randn(T, B, D, dtype=torch.float64, requires_grad=True)
    output = run(unit, x)[0]
    for t in range(T - 1):
        later = x.detach().clone()
        later[t + 1 :] = torch.randn_like(later[t + 1 :])
        assert torch.equal(run(unit, later)[0][: t + 1], output[: t + 1])
        (gradient,) = torch.autograd.grad(output[t].sum(), x, retain_graph=True)
        assert not gradient[t + 1 :].any()


@every_unit
def test_rows_of_a_batch_padding_and_packing_change_nothing(make):
    unit = built(make, all_layers=True)
    lengths = [2, T, 2, 4]
    x = torch.randn(T, len(lengths), D, dtype=torch.float64)
    state = run(unit, torch.randn(3, len(lengths), D, dtype=torch.float64))[1]
    sequences = pack_padded_sequence(x, lengths, enforce_sorted=False)
    packed, last = run(unit, sequences, state)
    assert all(torch.equal(one, other) for one, other in zip(packed[1:], sequences[1:], strict=True))
    output, got = pad_packed_sequence(packed)
    assert got.tolist() == lengths
    padded, _last = run(unit, x, state)
    for b, length in enumerate(lengths):
        row, row_last = run(unit, x[:length, b], rows(unit, state, b))
        close(output[:length, b], row)
        close(padded[:length, b], row)
        close(rows(unit, last, b), row_last)
        assert not output[length:, b].any()


@every_unit
def test_a_sequence_may_be_cut_and_its_state_carried(make):
    unit = built(make)
    x = torch.randn(T, B, D, dtype=torch.float64)
    whole, last = run(unit, x)
    row, row_last = run(unit, x[:, 1])  # unbatched, from no state
    close((row, *parts(row_last)), (whole[:, 1], *parts(rows(unit, last, 1))))
    first, state = run(unit, x[:2])
    second, end = run(unit, x[2:], state)
    close(torch.cat([first, second]), whole)
    close(end, last)


@every_unit
def test_batch_first_turns_input_and_output(make):
    unit = built(make)
    turned = built(make, batch_first=True)
    x = torch.randn(T, B, D, dtype=torch.float64)
    output, last = run(unit, x)
    got, got_last = run(turned, x.transpose(0, 1))
    close(got.transpose(0, 1), output)
    close(got_last, last)


@every_unit
def test_symbols_are_one_hot_vectors(make):
    if make is HierarchicalRNN:
        pytest.skip("boundaries are derived from a real input here")
    unit = built(make)
    symbols = torch.randint(D, (T, B))
    one_hot = nn.functional.one_hot(symbols, D).double()
    for dtype in (torch.int64, torch.int32, torch.uint8):
        close(unit(symbols.to(dtype))[0], unit(one_hot)[0])
    close(unit(symbols[:, 0])[0], unit(one_hot[:, 0])[0])
    close(unit.layers[0](symbols[0]), unit.layers[0](one_hot[0]))
    close(unit.layers[0](symbols[0, 0]), unit.layers[0](one_hot[0, 0]))


@every_unit
def test_the_cell_step_by_step_is_the_unrolled_unit(make):
    unit = built(make, num_layers=1)
    cell, state = unit.layers[0], None
    x = torch.randn(T, B, D, dtype=torch.float64)
    output, last = run(unit, x)
    for t in range(T):
        state = cell(x[t], state)
        close(parts(state)[0], output[t])
    close(state, tuple(part[0] for part in last) if isinstance(last, tuple) else last[0])


@every_unit
def test_trace_names_every_gate_and_state_and_changes_nothing(make):
    unit = built(make)
    x = torch.randn(T, B, D, dtype=torch.float64)
    beside = [(x[..., : L - 1] > 0).cumprod(-1)] if make is HierarchicalRNN else []
    output, last, layers = unit.trace(x, *beside)
    close(output, run(unit, x)[0])
    with fast.disabled():
        expected, expected_last = run(unit, x)
    assert torch.equal(output, expected)
    assert all(torch.equal(a, b) for a, b in zip(parts(last), parts(expected_last), strict=True))
    assert len(layers) == L
    assert torch.equal(layers[-1]["h"], output)
    named = set(getattr(unit.layers[0], "gates", ())) | set(unit.layers[0].state_names)
    named = {name.rpartition(".")[2] for name in named} - {"clock"}
    for k, layer in enumerate(layers):
        assert named <= set(layer)
        assert torch.equal(layer["h"][-1], parts(last)[0][k])
        inner = (value.shape for name, value in layer.items() if "memory." in name and "preactivation" not in name)
        assert set(inner) <= {(T, B, H)}
        assert all(tensor.shape[:2] == (T, B) for tensor in layer.values())


def test_trace_of_nested_memories_agrees_with_the_states():
    unit = built(partial(NestedLSTM, depth=3), batch_first=True)
    _output, (_h, memories), layers = unit.trace(torch.randn(B, T, D, dtype=torch.float64))
    for k, layer in enumerate(layers):
        for depth, name in enumerate(("c", "memory.c", "memory.memory.c")):
            assert torch.equal(layer[name][:, -1], memories[k, depth])
        assert torch.equal(layer["memory.h"], layer["c"])  # equation 15


@every_unit
def test_gradients_are_those_of_finite_differences(make):
    if make in (UNITS["HMLSTM"], UNITS["HMLSTM hard"], UNITS["HMLSTM normalized"]):
        pytest.skip("a straight-through gradient is not the function's own")
    unit = built(make)
    names = [name for name, _parameter in unit.named_parameters()]
    x = torch.randn(3, 2, D, dtype=torch.float64)
    boundaries = (torch.tensor([0, 1, 0]).view(3, 1, 1).expand(3, 2, 1),) if make is HierarchicalRNN else ()

    def outputs(x, *parameters):
        weights = dict(zip(names, parameters, strict=True))
        output, last = torch.func.functional_call(unit, weights, (x, *boundaries))
        return output, *(part for part in parts(last) if part.is_floating_point() and part.requires_grad)

    inputs = (x.requires_grad_(), *unit.parameters())
    assert torch.autograd.gradcheck(outputs, inputs, fast_mode=True)


@every_unit
def test_functional_call_and_function_transforms(make):
    unit = built(make)
    x = torch.randn(T, B, D, dtype=torch.float64)
    weights = {name: parameter.detach() for name, parameter in unit.named_parameters()}

    beside = [(x[..., : L - 1] > 0).cumprod(-1)] if make is HierarchicalRNN else []

    def loss(weights):
        return torch.func.functional_call(unit, weights, (x, *beside))[0].square().sum()

    gradients = torch.func.grad(loss)(weights)
    run(unit, x)[0].square().sum().backward()
    for name, parameter in unit.named_parameters():
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        close(gradients[name], expected)


@every_unit
def test_copies_pickles_and_state_dicts_compute_the_same(make):
    unit = built(make)
    fresh = make(D, H, num_layers=L, dtype=torch.float64)
    fresh.load_state_dict(unit.state_dict())
    x = torch.randn(T, B, D, dtype=torch.float64)
    for other in (fresh, copy.deepcopy(unit), pickle.loads(pickle.dumps(unit))):
        close(run(other, x)[0], run(unit, x)[0])


@every_unit
def test_the_seed_decides_the_parameters(make):
    torch.manual_seed(1)
    unit = make(D, H, num_layers=L)
    torch.manual_seed(1)
    other = make(D, H, num_layers=L)
    for a, b in zip(unit.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    unit.reset_parameters()
    assert not torch.equal(unit.layers[0].weight_ih, other.layers[0].weight_ih)
    assert str(unit).startswith(f"{type(unit).__name__}(\n  5, 4, num_layers=2")


def test_a_function_of_symbols_can_be_vectorized():
    unit = built(LSTM)
    texts = torch.randint(D, (3, T))
    all_at_once = torch.func.vmap(lambda text: unit(text)[0])(texts)
    close(all_at_once, torch.stack([unit(text)[0] for text in texts]))


def test_dropout_acts_between_layers_only_in_training():
    with pytest.warns(UserWarning, match="dropout"):
        LSTM(D, H, dropout=0.5)
    for make in (LSTM, HMLSTM):
        unit = built(make, dropout=1.0, all_layers=True)
        plain = built(make, all_layers=True)
        x = torch.randn(T, B, D, dtype=torch.float64)
        dropped, kept = unit(x)[0], unit.eval()(x)[0]
        close(kept, plain(x)[0])
        nn.init.zeros_(plain.layers[1].weight_ih)  # as if nothing came from below
        close(dropped, plain(x)[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["GRU", "NestedLSTM", "HMLSTM"])
def test_compiles_without_a_break(name):
    unit = built(UNITS[name])
    x = torch.randn(2, B, D, dtype=torch.float64)
    compiled = torch.compile(unit, fullgraph=True, backend="eager")
    close(compiled(x)[0], unit(x)[0])
