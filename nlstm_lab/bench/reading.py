"""What COPY saves: an HM-LSTM that reads one text, dense and sparse, at given rates of boundaries."""

from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from nlstm_lab.bench.steps import alternate, ratio
from nlstm_lab.cells import HMLSTM, HMLSTMCell
from nlstm_lab.cells.fast import disabled


@dataclass(frozen=True)
class Reading:
    """Sparse against dense reading, three layers, batch 1, without readout.

    Args:
        ratio: How many times faster sparse is.
        dense_ms_per_step, sparse_ms_per_step: Medians.
    """

    hidden_size: int
    rates: tuple[float, ...]
    ratio: float
    dense_ms_per_step: float
    sparse_ms_per_step: float


def read(
    hidden_size: int = 512, rates: tuple[float, float] = (0.21, 0.033), steps: int = 300, rounds: int = 7
) -> Reading:
    """Measure an untrained HM-LSTM whose detectors are set so that z = 1 at about these rates."""
    network, x, fired = network_with_rates(hidden_size, rates, steps)

    def sparse() -> None:
        with torch.no_grad():
            network(x)

    def dense() -> None:
        with disabled():
            sparse()

    slow, fast = alternate([dense, sparse], rounds, x.device)
    return Reading(hidden_size, fired, ratio(slow, fast), 1e3 * median(slow) / steps, 1e3 * median(fast) / steps)


def network_with_rates(
    hidden_size: int, rates: tuple[float, ...], steps: int
) -> tuple[HMLSTM, Tensor, tuple[float, ...]]:
    """An HM-LSTM, an input, and its rates of z = 1; the detectors' biases are halved in on, lowest layer first."""
    torch.manual_seed(0)
    network, x = HMLSTM(hidden_size, hidden_size, len(rates) + 1), torch.randn(steps, 1, hidden_size)
    for k, rate in enumerate(rates):
        cell = network.cells[k]
        assert isinstance(cell, HMLSTMCell)
        assert cell.bias is not None
        low, high = -8.0, 8.0
        for _ in range(12):
            with torch.no_grad():
                cell.bias[-1] = (low + high) / 2
            low, high = ((low + high) / 2, high) if _rates(network, x)[k] < rate else (low, (low + high) / 2)
    return network, x, _rates(network, x)


def _rates(network: HMLSTM, x: Tensor) -> tuple[float, ...]:
    """Mean z of every layer but the top, read step by step: the state says it, and the sparse reader is quick."""
    state, fired = None, []
    with torch.no_grad():
        for step in torch.split(x, 1):
            _, state = network(step, state)
            fired.append(state[2][:-1, 0])
    return tuple(torch.stack(fired).mean(0).tolist())
