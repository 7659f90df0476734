"""The clockwork RNN (Koutník et al. 2014, arXiv 1402.3511), also layer-normalized: a baseline of HM-RNN."""

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab.cells import initialization as init
from nlstm_lab.cells.base import Cell, Device, Hook, State, hooked, product
from nlstm_lab.cells.checks import positive, switch
from nlstm_lab.cells.recurrent import Recurrent


class ClockworkRNNCell(Cell):
    """Computes one step of a clockwork RNN: module k, of equally wide ones, acts at every periods[k]-th step only.

    A module reads the input, itself and the slower modules (the block-triangular matrix of the paper, of which the
    zeros are not stored). Steps are counted from 0, at which every module acts; the count is part of the state, so that
    a carried state keeps the rhythm.

    Parameters: weight_ih [hidden_size, input_size], weight_hh[k] [width, hidden_size - k * width], bias, gain. Shapes:
    input [B, input_size], h [B, hidden_size], clock [B] (integer), returns the new (h, clock). `periods` and
    `layer_norm` as in `ClockworkRNN`.
    """

    state_names = ("h", "clock")
    shown = ("active",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        periods: tuple[int, ...] = (1, 2, 4, 8),
        layer_norm: bool = False,
        takes_input: bool = True,
        initialization: init.Initialization = "nested_lstm",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        for period in periods:
            positive("every one of periods", period)
        if not periods or any(fast >= slow for fast, slow in itertools.pairwise(periods)):
            raise ValueError(f"periods must grow from module to module, not {periods}")
        if hidden_size % len(periods):
            raise ValueError(f"hidden_size must divide into {len(periods)} equal modules, not {hidden_size}")
        self.takes_input, self.initialization = takes_input, init.scheme(initialization)
        self.width = hidden_size // len(periods)
        new: Any = {"device": device, "dtype": dtype}
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size, **new))
        self.weight_hh = nn.ParameterList(
            torch.empty(self.width, hidden_size - k * self.width, **new) for k in range(len(periods))
        )
        self.bias = nn.Parameter(torch.empty(hidden_size, **new)) if switch("bias", bias) else None
        self.gain = nn.Parameter(torch.empty(hidden_size, **new)) if layer_norm else None
        self.register_buffer("periods", torch.tensor(periods, device=device), persistent=False)
        self.periods: Tensor
        self.reset_parameters()

    def reset_parameters(self) -> None:
        scheme, size = self.initialization, self.hidden_size
        init.fill(self.weight_ih, scheme, takes_input=self.takes_input, hidden_size=size)
        for block in self.weight_hh:
            init.fill(block, scheme, takes_input=False, hidden_size=size)
        if self.bias is not None:
            init.fill_bias(self.bias, scheme, hidden_size=size)
        if self.gain is not None:
            nn.init.ones_(self.gain)

    def initial_state(self, batch_size: int) -> State:
        h = self.like.new_zeros(batch_size, self.hidden_size)
        return h, self.periods.new_zeros(batch_size)

    def project(self, x: Tensor) -> Tensor:
        return product(x, self.weight_ih, self.bias if self.gain is None else None)

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        h, clock = state
        reads = [h[..., k * self.width :] @ block.t() for k, block in enumerate(self.weight_hh)]
        summed = projected + torch.cat(reads, dim=-1)
        if self.gain is not None:
            modules = summed.unflatten(-1, (-1, self.width))
            summed = F.layer_norm(modules, (self.width,)).flatten(-2) * self.gain
            summed = summed if self.bias is None else summed + self.bias
        active = (clock.unsqueeze(-1) % self.periods == 0).repeat_interleave(self.width, dim=-1)
        summed = hooked(hook, "preactivation", summed)
        hooked(hook, "active", active)
        h = hooked(hook, "h", torch.where(active, torch.tanh(summed), h))
        return h, clock + 1

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, periods={tuple(self.periods.tolist())}"


class ClockworkRNN(Recurrent):
    """Unrolls clockwork layers over time: `output, (h_n, clock) = ClockworkRNN(input_size, hidden_size)(input)`.

    Shapes as in `Recurrent`; h_n [num_layers, B, hidden_size], clock [num_layers, B]: steps done.

    Args:
        periods: Of each module, at every how many steps it acts; growing, and as many as divide `hidden_size`.
        layer_norm: Whether each module's pre-activation is normalized by itself (over several modules, the faster ones
            would reach the slower), with a gain, before the bias is added.

    >>> import torch, nlstm_lab as lab
    >>> output, (h_n, clock) = lab.cells.ClockworkRNN(10, 20, periods=(1, 2, 4, 8))(torch.randn(5, 3, 10))
    >>> output.shape, clock.tolist()
    (torch.Size([5, 3, 20]), [[5, 5, 5]])
    """

    cell_class = ClockworkRNNCell
