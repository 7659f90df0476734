"""How an LSTM starts."""

import pytest
import torch

from nlstm_lab.cells import LSTM, LSTMCell


def drawn(**flags: object) -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    return {name: value.detach() for name, value in LSTM(5, 4, num_layers=2, **flags).named_parameters()}


def test_the_candidates_recurrent_matrix_may_start_at_the_identity_and_nothing_else_changes() -> None:
    before, identity = drawn(), drawn(candidate_start="identity")
    for name, value in before.items():
        if name.endswith("weight_hh"):
            i, f, g, o = value.chunk(4)
            torch.testing.assert_close(g @ g.T, torch.eye(4))  # orthogonal, and not the identity
            assert not torch.equal(g, torch.eye(4))
            value = torch.cat([i, f, torch.eye(4), o])
        assert torch.equal(identity[name], value), name


def test_another_start_is_refused() -> None:
    with pytest.raises(ValueError, match=r"candidate_start.*'zero'"):
        LSTMCell(5, 4, candidate_start="zero")  # type: ignore[arg-type]
