"""A training step that is captured as a CUDA graph; on a CPU the same code runs the step plainly."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from nlstm_lab.bench.graph import Captured
from nlstm_lab.cells import GRU, HMLSTM, LSTM, HierarchicalRNN, NestedLSTM

WAITS = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select", "unique")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


class NothingWaits(TorchDispatchMode):
    """Fails on every operation that brings a value or a size from the device to the host."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not any(func.__name__.startswith(name) for name in WAITS), f"{func} waits for the device"
        return func(*args, **(kwargs or {}))


def update(unit: nn.Module, optimizer: torch.optim.Optimizer):
    def step(x: Tensor, wanted: Tensor) -> tuple[Tensor, ...]:
        optimizer.zero_grad()
        output, _ = unit(x)
        loss = (output - wanted).square().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(unit.parameters(), 1.0)
        optimizer.step()
        return loss.detach(), norm

    return step


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("unit", [NestedLSTM, LSTM, GRU])
def test_a_captured_step_trains_as_the_plain_one(unit, device):
    torch.manual_seed(0)
    plain = unit(7, 8, device=device)
    captured = copy.deepcopy(plain)
    options = {"lr": 0.01, "capturable": device == "cuda"}
    plainly = update(plain, torch.optim.Adam(plain.parameters(), **options))
    step = Captured(update(captured, torch.optim.Adam(captured.parameters(), **options)))
    for k in range(8):
        batch = 3 if k == 5 else 4  # the last one of an epoch is smaller
        x = torch.randint(7, (6, batch), device=device)
        wanted = torch.randn(6, batch, 8, device=device)
        for ours, theirs in zip(step(x, wanted), plainly(x, wanted), strict=True):
            torch.testing.assert_close(ours, theirs)
    for ours, theirs in zip(captured.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("unit", [NestedLSTM, GRU, HMLSTM])
def test_a_step_never_waits_for_the_device(unit):
    """From the checked input on: the check itself looks at symbols on the CPU alone."""
    layer, x = unit(7, 8), torch.randint(7, (6, 4))
    states = [cell.initial_state(4) for cell in layer.cells]
    with NothingWaits():
        output, _ = layer.run(x, states)
        output.sum().backward()


def test_given_boundaries_are_not_looked_at_off_the_cpu():
    """Meta tensors have no values to look at."""
    x, boundaries = torch.zeros(6, 4, dtype=torch.int64, device="meta"), torch.zeros(6, 4, 1, device="meta")
    output, _ = HierarchicalRNN(7, 8, num_layers=2, device="meta")(x, boundaries)
    assert output.shape == (6, 4, 8)
