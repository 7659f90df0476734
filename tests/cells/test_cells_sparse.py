"""The sparse reader of one text equals the dense HM-LSTM, whatever the operations."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nlstm_lab.cells import HMLSTM
from nlstm_lab.cells.fast import disabled, sparse


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 1000),
    num_layers=st.integers(1, 4),
    flags=st.fixed_dictionaries(
        {
            "detect_from": st.sampled_from(["preactivation", "hidden"]),
            "detect_on_copy": st.booleans(),
            "layer_norm": st.booleans(),
            "normalize_cell": st.booleans(),
            "selection": st.sampled_from(["arithmetic", "hard"]),
            "bias": st.booleans(),
            "all_layers": st.booleans(),
        }
    ),
    symbols=st.booleans(),
)
def test_the_sparse_reader_equals_the_dense_loop(seed, num_layers, flags, symbols):
    torch.manual_seed(seed)
    unit = HMLSTM(6, 8, num_layers, **flags)
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.mul_(3.0)  # so that all operations occur
    x = torch.randint(6, (40, 1)) if symbols else torch.randn(40, 1, 6)
    with torch.no_grad():
        output, state = unit(x)
        middle, carried = unit(x[:25])
        end, state_of_two = unit(x[25:], carried)
    with disabled(), torch.no_grad():
        dense_output, dense_state = unit(x)
    torch.testing.assert_close(output, dense_output, atol=1e-6, rtol=0)
    torch.testing.assert_close(torch.cat((middle, end)), dense_output, atol=1e-6, rtol=0)
    for part, dense, other in zip(state, dense_state, state_of_two, strict=True):
        torch.testing.assert_close(part, dense, atol=1e-6, rtol=0)
        torch.testing.assert_close(other, dense, atol=1e-6, rtol=0)


@pytest.mark.parametrize("flags", [{}, {"detect_from": "hidden"}, {"layer_norm": True}])
def test_what_it_tells_of_every_step_is_what_the_dense_loop_records(flags):
    torch.manual_seed(2)
    unit = HMLSTM(6, 8, 3, **flags)
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.mul_(3.0)
        x = torch.randn(60, 1, 6)
        done = sparse.read_steps(unit, x, [cell.initial_state(1) for cell in unit.cells])
        records = unit.trace(x)[2]
    assert {step.operation for layer in done[2] for step in layer} == {0, 1, 2}
    for told, record in zip(done[2], records, strict=True):
        for name in ("h", "z", "z_tilde", "operation"):
            found = torch.stack([torch.as_tensor(getattr(step, name)) for step in told])
            torch.testing.assert_close(found, record[name][:, 0], atol=1e-6, rtol=0, check_dtype=False)


def test_a_detector_that_rests_on_copy_tells_nothing():
    unit = HMLSTM(6, 8, 3, detect_on_copy=False)
    with torch.no_grad():
        assert sparse.read_steps(unit, torch.randn(4, 1, 6), [cell.initial_state(1) for cell in unit.cells]) is None


@pytest.mark.parametrize("reason", ["gradients", "batch", "sampled", "soft"])
def test_what_needs_everything_is_read_densely(reason):
    unit = HMLSTM(6, 8, 3, boundary={"sampled": "sample", "soft": "soft"}.get(reason, "step"))
    batch = 2 if reason == "batch" else 1
    states = [cell.initial_state(batch) for cell in unit.cells]
    with torch.set_grad_enabled(reason == "gradients"):
        assert sparse.read(unit, torch.randn(4, batch, 6), states) is None
    with torch.no_grad():
        states = [cell.initial_state(1) for cell in unit.cells]
        assert (sparse.read(unit, torch.randn(4, 1, 6), states) is None) == (reason in ("sampled", "soft"))


def test_a_boundary_that_is_given_to_the_top_layer_is_read_densely():
    torch.manual_seed(0)
    unit = HMLSTM(6, 8, 2)
    x = torch.randn(5, 1, 6)
    state = (torch.randn(2, 1, 8), torch.randn(2, 1, 8), torch.ones(2, 1))
    with torch.no_grad():
        output, _ = unit(x, state)
        with disabled():
            torch.testing.assert_close(output, unit(x, state)[0])
