"""The sparse reader of one text equals the dense HM-LSTM, whatever the operations."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nlstm_lab.cells import HMLSTM
from nlstm_lab.cells.fast import disabled, sparse


@settings(max_examples=30, deadline=None)
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
