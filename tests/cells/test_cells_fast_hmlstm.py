"""The HM-LSTM's fast path equals the oracle, the readable step: outputs, boundaries, states and every gradient."""

import copy

import pytest
import torch
from curves import curve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from nlstm_lab.cells import HMLSTM, precision
from nlstm_lab.cells.fast import disabled
from nlstm_lab.cells.fast.compiling import compiled
from nlstm_lab.cells.precision import has_bf16

DOUBLE = torch.float64
FLAGS = {
    "num_layers": st.integers(1, 4),
    "bias": st.booleans(),
    "all_layers": st.booleans(),
    "boundary": st.sampled_from(["step", "sample", "soft"]),
    "straight_through": st.sampled_from(["clamped", "identity"]),
    "selection": st.sampled_from(["arithmetic", "hard"]),
    "detect_from": st.sampled_from(["preactivation", "hidden"]),
    "detect_on_copy": st.booleans(),
    "threshold": st.sampled_from([0.3, 0.5, 0.6]),
    "layer_norm": st.booleans(),
    "normalize_boundary": st.booleans(),
    "normalize_cell": st.booleans(),
    "gradient_limit": st.sampled_from([None, 0.05]),
    "top_down": st.booleans(),
    "reset": st.booleans(),
}


def made(features, hidden, spread=1.0, slope=1.3, dtype=DOUBLE, **flags):
    """A unit whose boundaries, gates and norms are all of every kind."""
    if flags.get("boundary") == "soft":
        flags["selection"] = "arithmetic"
    if not flags.get("layer_norm") or flags.get("detect_from") == "hidden":
        flags["normalize_boundary"] = False
    unit = HMLSTM(features, hidden, flags.pop("num_layers", 3), dtype=dtype, **flags)
    for parameter in unit.parameters():
        nn.init.normal_(parameter, std=spread)
    unit.slope = slope
    return unit


def everything(unit, x, state):
    """Output, states, z and z~, and the gradients of inputs, states and parameters when all of these are weighed."""
    leaves = [*unit.parameters(), *(state or ()), *([x] if x.requires_grad else [])]
    torch.manual_seed(5)  # of sampled boundaries
    output, last, *boundaries = unit.read_boundaries(x, state)
    results = [output, *last, *boundaries]
    generator = torch.Generator().manual_seed(1)
    loss = sum((torch.randn(r.shape, generator=generator, dtype=DOUBLE).to(r.dtype) * r).sum() for r in results)
    gradients = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
    return [*results, *gradients]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    flags=st.fixed_dictionaries(FLAGS),
    sizes=st.tuples(st.integers(1, 30), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5)),
    slope=st.sampled_from([0.5, 1.0, 2.5]),
    carried=st.sampled_from(["no", "of a text", "anything"]),
    symbols=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_float64_gradients_equal_the_oracles(flags, sizes, slope, carried, symbols, seed):
    steps, batch, features, hidden = sizes
    torch.manual_seed(seed)
    unit = made(features, hidden, spread=0.7, slope=slope, **flags)
    x = torch.randint(features, (steps, batch)) if symbols else torch.randn(steps, batch, features, dtype=DOUBLE)
    state = None if carried == "no" else unit(torch.randn(7, batch, features, dtype=DOUBLE))[1]
    if carried == "anything":
        state = tuple(torch.rand_like(part) for part in state)
    state = state and tuple(part.detach().requires_grad_() for part in state)
    if not symbols:
        x.requires_grad_()
    fast = everything(unit, x, state)
    with disabled():
        oracle = everything(unit, x, state)
    for one, other in zip(fast, oracle, strict=True):
        # gradients grow with the steps, and the norm of two cells that are alike multiplies rounding by up to 300
        size = max(1.0, float(other.detach().abs().max())) if other.numel() else 1.0
        torch.testing.assert_close(one, other, atol=1e-11 * size, rtol=1e-10)


def test_the_fast_path_is_taken_where_it_serves_and_can_be_turned_off():
    x = torch.randn(5, 2, 3)
    assert HMLSTM(3, 4, 3)(x)[0].grad_fn.name() == "UnrolledBackward"
    with disabled():
        assert HMLSTM(3, 4, 3)(x)[0].grad_fn.name() == "StackBackward0"
    dropping = HMLSTM(3, 4, 3, dropout=0.5)
    assert dropping(x)[0].grad_fn.name() == "StackBackward0"
    assert dropping.eval()(x)[0].grad_fn.name() == "UnrolledBackward"


@pytest.mark.slow
@pytest.mark.parametrize("boundary", ["step", "sample", "soft"])
def test_without_gradients_long_sequences_come_out_the_same(boundary):
    torch.manual_seed(0)
    unit, x = made(3, 5, boundary=boundary, all_layers=True), torch.randn(150, 2, 3, dtype=DOUBLE)
    found = []
    for context in (torch.no_grad, disabled):
        torch.manual_seed(1)
        with context():
            output, last, *boundaries = unit.read_boundaries(x)
        found.append([output, *last, *boundaries])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


@pytest.mark.parametrize("boundary", ["step", "sample", "soft"])
@pytest.mark.parametrize("straight_through", ["clamped", "identity"])
def test_second_and_vectorized_derivatives_are_the_oracles(boundary, straight_through):
    unit = made(3, 4, num_layers=3, boundary=boundary, straight_through=straight_through, layer_norm=True, spread=0.7)
    x = torch.randn(6, 2, 3, dtype=DOUBLE, requires_grad=True)
    leaves = [x, *unit.parameters()]

    def derivatives():
        torch.manual_seed(5)
        output = unit(x)[0]
        batch = torch.stack([torch.ones_like(output), output.detach()])
        batched = torch.autograd.grad(output, x, batch, is_grads_batched=True, retain_graph=True)
        firsts = torch.autograd.grad(output.square().sum(), leaves, create_graph=True, allow_unused=True)
        penalty = sum(first.square().sum() for first in firsts if first is not None)
        return *batched, *firsts, *torch.autograd.grad(penalty, leaves, allow_unused=True, materialize_grads=True)

    found = derivatives()
    with disabled():
        expected = derivatives()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_a_second_derivative_is_that_of_the_weights_that_were_read_with():
    """As meta-learning does: the weights of a step stand in for the unit's own."""
    unit, x = made(3, 4), torch.randn(6, 2, 3, dtype=DOUBLE)
    weights = {name: torch.randn_like(weight).requires_grad_() for name, weight in unit.named_parameters()}

    def second():
        output = torch.func.functional_call(unit, weights, (x,))[0]
        firsts = torch.autograd.grad(output.square().sum(), list(weights.values()), create_graph=True)
        return torch.autograd.grad(sum(first.square().sum() for first in firsts), list(weights.values()))

    found = second()
    with disabled():
        for one, other in zip(found, second(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("boundary", ["step", "soft"])
def test_a_training_has_the_same_curve_with_and_without_the_fast_path(boundary):
    torch.manual_seed(0)
    slow = HMLSTM(4, 8, 3, all_layers=True, layer_norm=True, boundary=boundary, dtype=DOUBLE)
    fast = copy.deepcopy(slow)
    with disabled():
        expected = curve(slow, slow.output_size, 60, carried=True)
    assert expected[-1] < 0.8 * expected[0]
    torch.testing.assert_close(curve(fast, fast.output_size, 60, carried=True), expected, atol=1e-10, rtol=0)


@pytest.mark.skipif(not has_bf16(torch.device("cpu")), reason="no bf16 instructions here")
def test_bf16_products_stay_close_to_float64():
    """With soft boundaries: of others a rounded score may choose another operation."""
    torch.manual_seed(0)
    unit, x = made(20, 64, spread=0.05, dtype=torch.float32, boundary="soft"), torch.randn(20, 8, 20)
    with precision("bf16"):
        results = everything(unit, x, None)
    with disabled():
        truth = everything(unit.double(), x.double(), None)
    for result, true in zip(results[:6], truth[:6], strict=True):
        assert (result - true).norm() <= 2e-2 * true.norm()


@pytest.mark.slow
@pytest.mark.soak  # compiling takes a minute
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "flags", [{"layer_norm": True, "all_layers": True}, {"normalize_cell": True, "selection": "hard"}]
)
def test_compiled_functions_give_the_same(flags):
    torch.manual_seed(0)
    unit, x = made(5, 19, spread=0.3, num_layers=3, **flags), torch.randn(7, 3, 5, dtype=DOUBLE)
    with compiled():
        results = everything(unit, x, None)
    with disabled():
        truth = everything(unit, x, None)
    for result, true in zip(results, truth, strict=True):
        torch.testing.assert_close(result, true, atol=1e-11, rtol=1e-9)
