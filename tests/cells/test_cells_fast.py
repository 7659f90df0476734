"""The fast paths equal the oracle, the plain loop over `Cell.recur`: outputs, states and every gradient."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from nlstm_lab.cells import LSTM, NestedLSTM, precision
from nlstm_lab.cells.fast import disabled
from nlstm_lab.cells.precision import has_bf16, onednn_is_exact
from nlstm_lab.errors import UsageError

needs_bf16 = pytest.mark.skipif(not has_bf16(torch.device("cpu")), reason="no bf16 instructions here")


def everything(unit: nn.Module, x: Tensor, state: tuple[Tensor, ...] | None) -> list[Tensor]:
    """Output, final states, and the gradients of inputs, states and parameters when all of them are weighed."""
    leaves = [*unit.parameters(), *(state or ()), *([x] if x.is_floating_point() else [])]
    output, final = unit(x, state)
    results = [output, *final]
    generator = torch.Generator().manual_seed(1)
    loss = sum(
        (torch.randn(r.shape, generator=generator, dtype=torch.float64).to(r.dtype) * r).sum()
        for r in results
    )
    return [*results, *torch.autograd.grad(loss, leaves)]


def state_of(unit: nn.Module, batch: int) -> tuple[Tensor, ...]:
    _, final = unit(torch.randn(1, batch, unit.input_size, dtype=torch.float64))
    return tuple(torch.randn_like(part).requires_grad_() for part in final)


def difference(left: list[Tensor], right: list[Tensor]) -> float:
    assert len(left) == len(right)
    return max(float((a - b).detach().abs().max()) for a, b in zip(left, right, strict=True))


@settings(max_examples=25, deadline=None)
@given(
    unit=st.sampled_from([NestedLSTM, LSTM]),
    depth=st.integers(1, 4),
    candidate=st.sampled_from(["identity", "tanh"]),
    bias=st.booleans(),
    sizes=st.tuples(*[st.integers(1, 5)] * 4),
    num_layers=st.integers(1, 2),
    given_state=st.booleans(),
    symbols=st.booleans(),
)
def test_float64_gradients_equal_the_oracles(
    unit, depth, candidate, bias, sizes, num_layers, given_state, symbols
):
    steps, batch, features, hidden = sizes
    torch.manual_seed(0)
    nested = {"depth": depth, "candidate": candidate} if unit is NestedLSTM else {}
    layer = unit(features, hidden, num_layers, bias=bias, dtype=torch.float64, **nested)
    x = torch.randint(features, (steps, batch)) if symbols else torch.randn(steps, batch, features).double()
    if not symbols:
        x.requires_grad_()
    state = state_of(layer, batch) if given_state else None
    fast = everything(layer, x, state)
    with disabled():
        oracle = everything(layer, x, state)
    assert difference(fast, oracle) < 1e-10


def test_the_fast_path_is_taken_and_can_be_turned_off():
    layer = NestedLSTM(3, 4)
    output, _ = layer(torch.randn(5, 2, 3))
    assert output.grad_fn.name() == "UnrolledBackward"
    with disabled():
        output, _ = layer(torch.randn(5, 2, 3))
    assert output.grad_fn.name() == "StackBackward0"


def test_without_gradients_long_sequences_come_out_the_same():
    torch.manual_seed(0)
    layer, x = NestedLSTM(3, 5, depth=3, dtype=torch.float64), torch.randn(150, 2, 3, dtype=torch.float64)
    with torch.no_grad():
        output, (h, memories) = layer(x)
    with disabled():
        expected, (expected_h, expected_memories) = layer(x)
    assert difference([output, h, memories], [expected, expected_h, expected_memories]) < 1e-12


def test_a_second_derivative_is_refused_in_a_sentence():
    layer = NestedLSTM(3, 4)
    output, _ = layer(torch.randn(5, 2, 3))
    with pytest.raises(UsageError, match="no second derivative"):
        torch.autograd.grad(output.sum(), list(layer.parameters()), create_graph=True)


@pytest.mark.parametrize(
    ("name", "tolerance"), [("fp32", 1e-5), pytest.param("bf16", 1e-2, marks=needs_bf16)]
)
@pytest.mark.parametrize("unit", [LSTM, NestedLSTM])
def test_precisions_stay_close_to_float64(unit, name, tolerance):
    torch.manual_seed(0)
    layer, x = unit(20, 64), torch.randint(20, (30, 8))
    with precision(name):
        results = everything(layer, x, None)
    with disabled():
        truth = everything(layer.double(), x, None)
    for result, true in zip(results, truth, strict=True):
        assert (result - true).norm() <= tolerance * true.norm()


def test_the_global_switch_is_put_back():
    before = torch.backends.mkldnn.matmul.fp32_precision
    layer = NestedLSTM(3, 4)
    output, _ = layer(torch.randn(5, 2, 3))
    output.sum().backward()
    onednn_is_exact()
    assert torch.backends.mkldnn.matmul.fp32_precision == before


def test_an_unknown_precision_is_refused():
    with pytest.raises(UsageError, match="precision must be one of"), precision("fp8"):
        pass
