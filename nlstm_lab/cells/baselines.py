"""The documents' baselines: the vanilla network and the GRU of Madsen's article, the layer-normalized LSTM and the
clockwork RNN, also layer-normalized, of the HM-RNN paper.
"""

import itertools
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab.cells.base import GatedCell, Hook, State, fill, gates, hooked, product
from nlstm_lab.cells.checks import positive
from nlstm_lab.cells.recurrent import Exchangeable, Recurrent
from nlstm_lab.settings import choice

Nonlinearity = Literal["tanh", "relu"]
Reset = Literal["before", "after"]


class RNNCell(GatedCell):
    """Computes one step of a vanilla network, h_t = sigma(W x_t + U h_{t-1} + b).

    Shapes: input [B, input_size], h [B, hidden_size], returns the new h. `nonlinearity` as in `RNN`.
    """

    gates = ("h",)

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: Nonlinearity = "tanh", **options: Any
    ) -> None:
        super().__init__(input_size, hidden_size, bias, **options)
        self.nonlinearity = choice(nonlinearity, "nonlinearity", Nonlinearity)
        self.reset_parameters()

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        sigma = torch.tanh if self.nonlinearity == "tanh" else torch.relu
        summed = hooked(hook, "preactivation", projected + state[0] @ self.weight_hh.t())
        return (hooked(hook, "h", sigma(summed)),)


class RNN(Exchangeable):
    """Unrolls a vanilla network's layers over time: `output, h_n = RNN(input_size, hidden_size)(input, h_0)`.

    Shapes as in `Recurrent`; h_n [num_layers, B, hidden_size]. The arguments' order is that of `torch.nn.RNN`.

    Args:
        nonlinearity: sigma: "tanh" or "relu".
    """

    cell_class = RNNCell
    torch_class = nn.RNN
    shared = (*Exchangeable.shared, "nonlinearity")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Nonlinearity = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        **options: Any,
    ) -> None:
        torchs = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size)
        super().__init__(*torchs, nonlinearity=nonlinearity, **options)


class GRUCell(GatedCell):
    """Computes one step of a gated recurrent unit (Cho et al. 2014).

    The reset gate acts on h_{t-1} before the candidate's matrix (the article's equations, with the one bias a gate of
    its counts) or after it (`torch.nn.GRU`, with a second bias `bias_hh` inside the reset). Rows of matrices hold r,
    u and the candidate g, torch's order; u = 1 keeps the old state, as at first: the biases of r and u start at 1.

    Shapes: input [B, input_size], h [B, hidden_size], returns the new h. `reset` as in `GRU`.
    """

    gates = ("r", "u", "g")

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, reset: Reset = "before", **options: Any
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"r": 1.0, "u": 1.0}, **options)
        self.reset = choice(reset, "reset", Reset)
        after = self.bias is not None and reset == "after"
        self.bias_hh = nn.Parameter(torch.empty_like(self.weight_hh[:, 0])) if after else None
        self.reset_parameters()

    def fans(self) -> list[int]:
        inputs = self.input_size + self.hidden_size
        return [inputs + 2 * self.hidden_size] * 2 + [inputs + self.hidden_size]  # r and u share one, g has its own

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        (h,) = state
        size = 2 * self.hidden_size
        if self.reset == "before":
            r, u = self._gates(projected[..., :size] + h @ self.weight_hh[:size].t(), hook)
            g = torch.tanh(projected[..., size:] + (r * h) @ self.weight_hh[size:].t())
        else:
            recurrent = h @ self.weight_hh.t() if self.bias_hh is None else h @ self.weight_hh.t() + self.bias_hh
            r, u = self._gates(projected[..., :size] + recurrent[..., :size], hook)
            g = torch.tanh(projected[..., size:] + r * recurrent[..., size:])
        g = hooked(hook, "g", g)
        return (hooked(hook, "h", (1 - u) * g + u * h),)

    @staticmethod
    def _gates(summed: Tensor, hook: Hook | None) -> tuple[Tensor, Tensor]:
        summed = hooked(hook, "preactivation", summed)  # of r and u: the candidate's needs r first
        r, u = torch.sigmoid(summed).chunk(2, dim=-1)
        return hooked(hook, "r", r), hooked(hook, "u", u)


class GRU(Exchangeable):
    """Unrolls gated recurrent units over time: `output, h_n = GRU(input_size, hidden_size)(input, h_0)`.

    Shapes as in `Recurrent`; h_n [num_layers, B, hidden_size].

    Args:
        reset: Whether the reset gate acts "before" the candidate's matrix, as the article has it, or "after", as torch.
    """

    cell_class = GRUCell
    torch_class = nn.GRU
    as_torch: ClassVar[dict[str, Any]] = {"reset": "after"}


class LayerNormLSTMCell(GatedCell):
    """Computes one step of a layer-normalized LSTM (Ba, Kiros & Hinton 2016, arXiv 1607.06450, the supplement).

    The one bias acts after the norms; all four gates share one mean and deviation. Shapes: input [B, input_size], h and
    c [B, hidden_size] each, returns the new (h, c). `forget_bias` as in `LayerNormLSTM`.
    """

    state_names = ("h", "c")
    gates = ("i", "f", "g", "o")

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, forget_bias: float = 1.0, **options: Any
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"f": forget_bias}, **options)
        self.norm, self.norm_ih = (self.layer_norm(4 * hidden_size, bias=False) for _ in range(2))
        self.norm_c = self.layer_norm(hidden_size)
        self.reset_parameters()

    def project(self, x: Tensor) -> Tensor:
        return self.norm_ih(product(x, self.weight_ih))  # type: ignore[no-any-return]

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        h, c = state
        summed = projected + self.norm(h @ self.weight_hh.t())  # their first equation
        summed = hooked(hook, "preactivation", summed if self.bias is None else summed + self.bias)
        i, f, g, o = gates(summed, hook)
        c = hooked(hook, "c", f * c + i * g)  # the second
        h = hooked(hook, "h", o * torch.tanh(self.norm_c(c)))  # the third
        return h, c


class LayerNormLSTM(Recurrent):
    """Unrolls layer-normalized LSTMs: `output, (h_n, c_n) = LayerNormLSTM(input_size, hidden_size)(input)`.

    Shapes as in `Recurrent`; h_n and c_n [num_layers, B, hidden_size].

    Args:
        forget_bias: Added to the forget gate's initial bias.
    """

    cell_class = LayerNormLSTMCell


class ClockworkRNNCell(GatedCell):
    """Computes one step of a clockwork RNN (Koutník et al. 2014, arXiv 1402.3511).

    Module k, of equally wide ones, acts at every periods[k]-th step only. A module reads the input, itself and the
    slower modules (the block-triangular matrix of the paper, of which the zeros are not stored). Steps are counted from
    0, at which all act; the count is part of the state, and so is kept.

    Shapes: input [B, input_size], h [B, hidden_size], clock [B] (integer), returns the new (h, clock); weight_hh[k]
    [width, hidden_size - k * width]. `periods` and `layer_norm` as in `ClockworkRNN`.
    """

    state_names = ("h", "clock")
    gates = ("h",)
    shown = ("active",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        periods: tuple[int, ...] = (1, 2, 4, 8),
        layer_norm: bool = False,
        **options: Any,
    ) -> None:
        for period in periods:
            positive(period, "every one of periods")
        if not periods or any(fast >= slow for fast, slow in itertools.pairwise(periods)):
            raise ValueError(f"periods must grow from module to module, not {periods}")
        if positive(hidden_size, "hidden_size") % len(periods):
            raise ValueError(f"hidden_size must divide into {len(periods)} equal modules, not {hidden_size}")
        super().__init__(input_size, hidden_size, bias, **options)
        self.width, like = hidden_size // len(periods), self.like
        del self.weight_hh
        self.weight_hh: Any = nn.ParameterList(
            like.new_empty(self.width, hidden_size - k * self.width) for k in range(len(periods))
        )
        self.gain = nn.Parameter(torch.empty_like(like[:, 0])) if layer_norm else None
        self.register_buffer("periods", torch.tensor(periods, device=like.device), persistent=False)
        self.periods: Tensor
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for block in self.weight_hh:
            fill(block, self.initialization, takes_input=False, hidden_size=self.hidden_size)
        if self.gain is not None:
            nn.init.ones_(self.gain)

    def initial_state(self, batch_size: int) -> State:
        return self.like.new_zeros(batch_size, self.hidden_size), self.periods.new_zeros(batch_size)

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


class ClockworkRNN(Recurrent):
    """Unrolls clockwork layers over time: `output, (h_n, clock) = ClockworkRNN(input_size, hidden_size)(input)`.

    Shapes as in `Recurrent`; h_n [num_layers, B, hidden_size], clock [num_layers, B]: steps done.

    Args:
        periods: Of each module, at every how many steps it acts; growing, and as many as divide `hidden_size`.
        layer_norm: Whether each module's pre-activation is normalized by itself (over several modules, the faster ones
            would reach the slower), with a gain, before the bias is added.
    """

    cell_class = ClockworkRNNCell
