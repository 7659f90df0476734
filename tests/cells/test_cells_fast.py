"""The fast paths equal the oracle, the readable step: outputs, boundaries, states and every gradient."""

import gc
import weakref

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from nlstm_lab.cells import GRU, HMLSTM, LSTM, HierarchicalRNN, LayerNormLSTM, NestedLSTM, precision
from nlstm_lab.cells.fast import compiled, disabled, exact_kernels, has_bf16, sparse
from nlstm_lab.errors import UsageError

DOUBLE = torch.float64
BOUNDARIES = ("step", "sample", "soft")
needs_bf16 = pytest.mark.skipif(not has_bf16(torch.device("cpu")), reason="no bf16 instructions here")


def hmlstm(features, hidden, spread=1.0, slope=1.3, dtype=DOUBLE, **flags):
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


def read(unit, x, state=None):
    """Output and states, with z and z~ of an HM-LSTM."""
    torch.manual_seed(5)  # of sampled boundaries
    output, last, *boundaries = (unit.read_boundaries if isinstance(unit, HMLSTM) else unit)(x, state)
    return [output, *last, *boundaries]


def everything(unit, x, state=None):
    """What is read, and the gradients of inputs, states and parameters when all of it is weighed."""
    leaves = [*unit.parameters(), *(state or ()), *([x] if x.requires_grad else [])]
    results = read(unit, x, state)
    generator = torch.Generator().manual_seed(1)
    loss = sum((torch.randn(r.shape, generator=generator, dtype=DOUBLE).to(r) * r).sum() for r in results)
    return [*results, *torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)]


def within(tolerance, results, truth):
    for result, true in zip(results, truth, strict=True):
        assert (result - true).norm() <= tolerance * true.norm()


def data(features, steps, batch, symbols):
    if symbols:
        return torch.randint(features, (steps, batch))
    return torch.randn(steps, batch, features, dtype=DOUBLE, requires_grad=True)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    unit=st.sampled_from([NestedLSTM, NestedLSTM, LSTM, LayerNormLSTM]),
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
    flags = {NestedLSTM: {"depth": depth, "candidate": candidate}}.get(unit, {})
    layer = unit(features, hidden, num_layers, bias=bias, dtype=DOUBLE, **flags)
    x, state = data(features, steps, batch, symbols), None
    if given_state:
        state = tuple(torch.randn_like(part).requires_grad_() for part in layer(x)[1])
    fast = everything(layer, x, state)
    with disabled():
        torch.testing.assert_close(fast, everything(layer, x, state), atol=1e-10, rtol=0)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    flags=st.fixed_dictionaries(
        {
            "num_layers": st.integers(1, 4),
            "boundary": st.sampled_from(BOUNDARIES),
            "straight_through": st.sampled_from(["clamped", "identity"]),
            "selection": st.sampled_from(["arithmetic", "hard"]),
            "detect_from": st.sampled_from(["preactivation", "hidden"]),
            "threshold": st.sampled_from([0.3, 0.5, 0.6]),
            "gradient_limit": st.sampled_from([None, 0.05]),
            **dict.fromkeys(("bias", "all_layers", "detect_on_copy", "top_down", "reset"), st.booleans()),
            **dict.fromkeys(("layer_norm", "normalize_boundary", "normalize_cell"), st.booleans()),
        }
    ),
    sizes=st.tuples(st.integers(1, 30), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5)),
    slope=st.sampled_from([0.5, 1.0, 2.5]),
    carried=st.sampled_from(["no", "of a text", "anything"]),
    symbols=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_float64_gradients_of_the_hm_lstm_equal_the_oracles(flags, sizes, slope, carried, symbols, seed):
    steps, batch, features, hidden = sizes
    torch.manual_seed(seed)
    unit = hmlstm(features, hidden, spread=0.7, slope=slope, **flags)
    x = data(features, steps, batch, symbols)
    state = None if carried == "no" else unit(torch.randn(7, batch, features, dtype=DOUBLE))[1]
    if carried == "anything":
        state = tuple(torch.rand_like(part) for part in state)
    state = state and tuple(part.detach().requires_grad_() for part in state)
    fast = everything(unit, x, state)
    with disabled():
        oracle = everything(unit, x, state)
    for one, other in zip(fast, oracle, strict=True):
        # gradients grow with the steps, and the norm of two cells that are alike multiplies rounding by up to 300
        size = max(1.0, float(other.detach().abs().max())) if other.numel() else 1.0
        torch.testing.assert_close(one, other, atol=1e-11 * size, rtol=1e-10)


def test_the_fast_path_is_taken_where_it_serves_and_can_be_turned_off():
    x = torch.randn(5, 2, 3)
    for unit in (NestedLSTM(3, 4), LayerNormLSTM(3, 4), HMLSTM(3, 4, 3)):
        assert unit(x)[0].grad_fn.name() == "UnrolledBackward"
        with disabled():
            assert unit(x)[0].grad_fn.name() == "StackBackward0"
    dropping = HMLSTM(3, 4, 3, dropout=0.5)
    assert dropping(x)[0].grad_fn.name() == "StackBackward0"
    assert dropping.eval()(x)[0].grad_fn.name() == "UnrolledBackward"


@pytest.mark.slow
@pytest.mark.parametrize("boundary", [None, *BOUNDARIES])
def test_without_gradients_long_sequences_come_out_the_same(boundary):
    torch.manual_seed(0)
    hm = boundary and hmlstm(3, 5, boundary=boundary, all_layers=True)
    unit, x = hm or NestedLSTM(3, 5, depth=3, dtype=DOUBLE), torch.randn(150, 2, 3, dtype=DOUBLE)
    with torch.no_grad():
        found = read(unit, x)
    with disabled():
        torch.testing.assert_close(found, read(unit, x), atol=1e-12, rtol=0)


@pytest.mark.parametrize(("name", "tolerance"), [("fp32", 1e-5), pytest.param("bf16", 1e-2, marks=needs_bf16)])
@pytest.mark.parametrize(("unit", "steps"), [(LSTM, 30), (NestedLSTM, 30), (LayerNormLSTM, 4)])  # norms enlarge it
def test_precisions_stay_close_to_float64(unit, steps, name, tolerance, device):
    torch.manual_seed(0)
    layer, x = unit(20, 64).to(device), torch.randint(20, (steps, 8)).to(device)
    with precision(name):
        results = everything(layer, x)
    assert torch.equal(results[0], everything(layer, x)[0]) is (name == "fp32")  # bf16 is bf16
    with disabled():
        within(tolerance, results, everything(layer.double(), x))


@needs_bf16
@pytest.mark.parametrize(
    "unit", [GRU(4, 3), HMLSTM(4, 3, 2, dropout=0.5), NestedLSTM(4, 3, inner_cell="coupled"), HierarchicalRNN(4, 3, 2)]
)
def test_what_has_no_bf16_products_refuses_them(unit):
    given = [torch.ones(5, 2, 1)] if isinstance(unit, HierarchicalRNN) else []
    with precision("bf16"), pytest.raises(UsageError, match="bf16"):
        unit(torch.randn(5, 2, 4), *given)
    unit(torch.randn(5, 2, 4), *given)


@needs_bf16
def test_bf16_products_of_the_hm_lstm_stay_close_to_float64(device):
    """With soft boundaries: of others a rounded score may choose another operation."""
    torch.manual_seed(0)
    unit = hmlstm(20, 64, spread=0.05, dtype=torch.float32, boundary="soft").to(device)
    x = torch.randn(20, 8, 20).to(device)
    with precision("bf16"):
        results = read(unit, x)
    assert not torch.equal(results[0], read(unit, x)[0])
    with disabled():
        within(2e-2, results, read(unit.double(), x.double()))


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


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("make", "name", "dtype", "tolerance"),
    [
        (NestedLSTM, "fp32", DOUBLE, 1e-10),
        (LayerNormLSTM, "fp32", DOUBLE, 1e-10),
        pytest.param(NestedLSTM, "bf16", torch.float32, 1e-2, marks=[needs_bf16, pytest.mark.soak]),
    ],
)
def test_compiled_functions_give_the_same(make, name, dtype, tolerance, device):
    torch.manual_seed(0)
    layer, x = make(5, 19, dtype=dtype).to(device), torch.randn(7, 3, 5, dtype=dtype).to(device)
    with precision(name), compiled():
        results = everything(layer, x)
    with disabled():
        within(tolerance, results, everything(layer.double(), x.double()))


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "flags",
    [
        {"num_layers": 2, "layer_norm": True, "normalize_cell": True},
        pytest.param({"layer_norm": True, "all_layers": True}, marks=pytest.mark.soak),  # compiling takes a minute
        pytest.param({"normalize_cell": True, "selection": "hard"}, marks=pytest.mark.soak),
    ],
)
def test_compiled_functions_of_the_hm_lstm_give_the_same(flags, device):
    torch.manual_seed(0)
    unit, x = hmlstm(5, 19, spread=0.3, **flags).to(device), torch.randn(7, 3, 5, dtype=DOUBLE).to(device)
    with compiled():
        results = everything(unit, x)
    with disabled():
        torch.testing.assert_close(results, everything(unit, x), atol=1e-11, rtol=1e-9)


def test_torchs_switch_is_put_back():
    before = torch.backends.cudnn.rnn.fp32_precision
    with precision("fp32"):
        assert torch.backends.cudnn.rnn.fp32_precision == "ieee"
    with pytest.raises(KeyError), exact_kernels():
        raise KeyError
    assert torch.backends.cudnn.rnn.fp32_precision == before
    with pytest.raises(UsageError, match="precision"), precision("fp8"):
        pass


@pytest.mark.parametrize("make", [LSTM, NestedLSTM, LayerNormLSTM, HMLSTM])
def test_a_graph_is_walked_twice_when_it_is_retained_and_goes_with_its_output(make):
    torch.manual_seed(0)
    layer, x = make(4, 6, 2).double(), torch.randn(8, 3, 4, dtype=DOUBLE)
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


# The sparse reader of one text equals the dense HM-LSTM, whatever the operations.


def triple(num_layers=3, **flags):
    """Weights so large that all operations occur."""
    unit = HMLSTM(6, 8, num_layers, **flags)
    for parameter in unit.parameters():
        parameter.data.mul_(3.0)
    return unit


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 1000),
    flags=st.fixed_dictionaries(
        {
            "num_layers": st.integers(1, 4),
            "detect_from": st.sampled_from(["preactivation", "hidden"]),
            "selection": st.sampled_from(["arithmetic", "hard"]),
            **dict.fromkeys(("detect_on_copy", "layer_norm", "normalize_cell", "bias", "all_layers"), st.booleans()),
            **dict.fromkeys(("reset", "top_down"), st.booleans()),
        }
    ),
    symbols=st.booleans(),
)
@torch.no_grad()
def test_the_sparse_reader_equals_the_dense_loop(seed, flags, symbols):
    torch.manual_seed(seed)
    unit = triple(**flags)
    x = torch.randint(6, (40, 1)) if symbols else torch.randn(40, 1, 6)
    whole = unit(x)
    first, carried = unit(x[:25])
    second, last = unit(x[25:], carried)
    with disabled():
        dense = unit(x)
    for found in (whole, (torch.cat((first, second)), last)):
        torch.testing.assert_close(found, dense, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("flags", "batch", "gradients", "densely"),
    [
        ({}, 1, False, False),
        ({}, 1, True, True),
        ({}, 2, False, True),
        ({"boundary": "sample"}, 1, False, True),
        ({"boundary": "soft"}, 1, False, True),
    ],
)
def test_what_needs_everything_is_read_densely(flags, batch, gradients, densely):
    unit = HMLSTM(6, 8, 3, **flags)
    with torch.set_grad_enabled(gradients):
        found = sparse.read(unit, torch.randn(4, batch, 6), [cell.initial_state(batch) for cell in unit.cells])
    assert (found is None) == densely


@torch.no_grad()
def test_a_boundary_that_is_given_to_the_top_layer_is_read_densely():
    torch.manual_seed(0)
    unit, x = HMLSTM(6, 8, 2), torch.randn(5, 1, 6)
    state = (torch.randn(2, 1, 8), torch.randn(2, 1, 8), torch.ones(2, 1))
    output = unit(x, state)[0]
    with disabled():
        torch.testing.assert_close(output, unit(x, state)[0])
