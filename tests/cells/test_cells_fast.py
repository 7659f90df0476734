"""The fast paths equal the oracle, the plain loop over `Cell.recur`: outputs, states and every gradient."""

import copy
import gc
import weakref

import pytest
import torch
from curves import curve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nlstm_lab.cells import HMLSTM, LSTM, NestedLSTM, precision
from nlstm_lab.cells.fast import disabled
from nlstm_lab.cells.fast.compiling import compiled
from nlstm_lab.cells.precision import exact_kernels, has_bf16, onednn_is_exact
from nlstm_lab.errors import UsageError

needs_bf16 = pytest.mark.skipif(not has_bf16(torch.device("cpu")), reason="no bf16 instructions here")


def everything(unit, x, state):
    """Output, final states, and the gradients of inputs, states and parameters when all of them are
    weighed."""
    leaves = [*unit.parameters(), *(state or ()), *([x] if x.requires_grad else [])]
    output, final = unit(x, state)
    results = [output, *(final if isinstance(final, tuple) else (final,))]
    generator = torch.Generator().manual_seed(1)
    loss = sum((torch.randn(r.shape, generator=generator, dtype=torch.float64).to(r.dtype) * r).sum() for r in results)
    return [*results, *torch.autograd.grad(loss, leaves)]


def state_of(unit, batch):
    _, final = unit(torch.randn(1, batch, unit.input_size, dtype=torch.float64))
    return tuple(torch.randn_like(part).requires_grad_() for part in (final if isinstance(final, tuple) else (final,)))


def difference(left, right):
    assert len(left) == len(right)
    return max(float((a - b).detach().abs().max()) for a, b in zip(left, right, strict=True))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    unit=st.sampled_from([NestedLSTM, NestedLSTM, LSTM]),
    depth=st.integers(1, 4),
    candidate=st.sampled_from(["identity", "tanh"]),
    bias=st.booleans(),
    sizes=st.tuples(*[st.integers(1, 5)] * 4),
    num_layers=st.integers(1, 2),
    given_state=st.booleans(),
    symbols=st.booleans(),
)
def test_float64_gradients_equal_the_oracles(unit, depth, candidate, bias, sizes, num_layers, given_state, symbols):
    steps, batch, features, hidden = sizes
    torch.manual_seed(0)
    flags = {NestedLSTM: {"depth": depth, "candidate": candidate}, LSTM: {}}[unit]
    layer = unit(features, hidden, num_layers, bias=bias, dtype=torch.float64, **flags)
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


@pytest.mark.parametrize(("name", "tolerance"), [("fp32", 1e-5), pytest.param("bf16", 1e-2, marks=needs_bf16)])
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


@pytest.mark.parametrize("symbols", [True, False])
def test_torchs_kernel_goes_on_from_a_given_state(symbols):
    """In single precision, in which networks are trained: in double precision the LSTM takes another way."""
    torch.manual_seed(0)
    layer = LSTM(7, 5, 2)
    x = torch.randint(7, (6, 3)) if symbols else torch.randn(6, 3, 7)
    state = torch.randn(2, 3, 5), torch.randn(2, 3, 5)
    results = layer(x, state)
    with disabled():
        torch.testing.assert_close(results, layer(x, state), atol=1e-6, rtol=0)


@pytest.mark.parametrize("capability", ["AVX2", "AVX512"])
def test_either_library_keeps_fp32_accuracy(capability, monkeypatch):
    """Whichever the processor at hand would choose."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    torch.manual_seed(0)
    layer, x = NestedLSTM(20, 75), torch.randn(30, 8, 20)
    results = everything(layer, x, None)
    with disabled():
        truth = everything(layer.double(), x.double(), None)
    for result, true in zip(results, truth, strict=True):
        assert (result - true).norm() <= 1e-5 * true.norm()


@pytest.mark.slow
def test_a_training_has_the_same_curve_with_and_without_the_fast_path():
    torch.manual_seed(0)
    slow = NestedLSTM(4, 8, dtype=torch.float64)
    fast = copy.deepcopy(slow)
    with disabled():
        expected = curve(slow, slow.hidden_size, 60)
    assert expected[-1] < 0.7 * expected[0]
    torch.testing.assert_close(curve(fast, fast.hidden_size, 60), expected, atol=1e-10, rtol=0)


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("unit", "name", "dtype", "tolerance"),
    [
        (NestedLSTM, "fp32", torch.float64, 1e-10),
        pytest.param(NestedLSTM, "bf16", torch.float32, 1e-2, marks=[needs_bf16, pytest.mark.soak]),
    ],
)
def test_compiled_functions_give_the_same(unit, name, dtype, tolerance):
    torch.manual_seed(0)
    layer, x = unit(5, 19, dtype=dtype), torch.randn(7, 3, 5, dtype=dtype)
    with precision(name), compiled():
        results = everything(layer, x, None)
    with disabled():
        truth = everything(layer.double(), x.double(), None)
    for result, true in zip(results, truth, strict=True):
        assert (result - true).norm() <= tolerance * true.norm()


def test_every_switch_of_torch_is_put_back():
    switches = torch.backends.mkldnn.matmul, torch.backends.cudnn.rnn
    before = [switch.fp32_precision for switch in switches]
    with precision("fp32"):
        assert switches[1].fp32_precision == "ieee"
    NestedLSTM(3, 4)(torch.randn(5, 2, 3))[0].sum().backward()
    onednn_is_exact()
    with pytest.raises(KeyError), exact_kernels():
        raise KeyError
    assert [switch.fp32_precision for switch in switches] == before
    with pytest.raises(UsageError, match="precision"), precision("fp8"):
        pass


@pytest.mark.parametrize("make", [LSTM, NestedLSTM, HMLSTM])
def test_a_graph_is_walked_twice_when_it_is_retained_and_goes_with_its_output(make):
    torch.manual_seed(0)
    layer, x = make(4, 6, 2).double(), torch.randn(8, 3, 4, dtype=torch.float64)
    with torch.inference_mode():
        layer(x)
    output, last = layer(x)
    first = torch.autograd.grad(output.sum(), layer.layers[0].weight_hh, retain_graph=True)[0]
    layer(x)[0].sum().backward()
    output_again = output.detach().clone()
    assert torch.equal(first, torch.autograd.grad(output.sum(), layer.layers[0].weight_hh)[0])
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(output.sum(), layer.layers[0].weight_hh)
    node = weakref.ref(output.grad_fn)
    del output, last
    gc.collect()
    assert node() is None
    free = layer(x)[0]
    free.mul_(0)  # as of torch's modules, an output may be written over
    assert torch.equal(layer(x)[0], output_again)


def test_torchs_kernel_is_given_contiguous_states_and_may_not_round_to_tf32(monkeypatch):
    """cuDNN's refuses other states, as where one start is expanded to a batch."""
    kernel, given = torch._VF.lstm, []

    def noted(x, state, *arguments):
        given.extend([torch.backends.cudnn.rnn.fp32_precision, *(part.is_contiguous() for part in state)])
        return kernel(x, state, *arguments)

    monkeypatch.setattr(torch._VF, "lstm", noted)
    first = torch.randn(6).expand(1, 3, 6)
    LSTM(5, 6)(torch.randn(4, 3, 5), (first, first))
    assert given == ["ieee", True, True]
