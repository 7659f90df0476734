"""The gated recurrent unit, as Madsen's article writes it (Cho et al. 2014), and as torch does."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from nlstm_lab.cells import initialization as init
from nlstm_lab.cells.base import Device, GatedCell, Hook, State, hooked
from nlstm_lab.cells.checks import choice
from nlstm_lab.cells.exchange import Exchangeable

Reset = Literal["before", "after"]


class GRUCell(GatedCell):
    """Computes one step of a gated recurrent unit.

    The reset gate acts on h_{t-1} before the candidate's matrix (the article's equations, one bias a gate) or after it
    (`torch.nn.GRU`, with a second bias `bias_hh` inside the reset). Rows of the matrices hold r, u and the candidate g,
    torch's order; u = 1 keeps the old state.

    Shapes: input [B, input_size], h [B, hidden_size], returns the new h. `reset` and `gate_bias` as in `GRU`.
    """

    gates = ("r", "u", "g")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        reset: Reset = "before",
        gate_bias: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"r": gate_bias, "u": gate_bias}, **options)
        choice("reset", reset, get_args(Reset))
        self.reset = reset
        after = self.bias is not None and reset == "after"
        self.bias_hh = nn.Parameter(torch.empty_like(self.weight_hh[:, 0])) if after else None
        self.reset_parameters()

    def fans(self) -> list[int]:
        inputs = self.input_size + self.hidden_size
        return [inputs + 2 * self.hidden_size] * 2 + [inputs + self.hidden_size]  # r and u share one, g has its own

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.bias_hh is not None:
            init.fill_bias(self.bias_hh, self.initialization, hidden_size=self.hidden_size)

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        (h,) = state
        size = self.hidden_size
        if self.reset == "before":
            r, u = self._gates(projected[..., : 2 * size] + h @ self.weight_hh[: 2 * size].t(), hook)
            g = torch.tanh(projected[..., 2 * size :] + (r * h) @ self.weight_hh[2 * size :].t())
        else:
            recurrent = h @ self.weight_hh.t() if self.bias_hh is None else h @ self.weight_hh.t() + self.bias_hh
            r, u = self._gates(projected[..., : 2 * size] + recurrent[..., : 2 * size], hook)
            g = torch.tanh(projected[..., 2 * size :] + r * recurrent[..., 2 * size :])
        g = hooked(hook, "g", g)
        return (hooked(hook, "h", (1 - u) * g + u * h),)

    @staticmethod
    def _gates(summed: Tensor, hook: Hook | None) -> tuple[Tensor, Tensor]:
        summed = hooked(hook, "preactivation", summed)  # of r and u: the candidate's needs r first
        r, u = torch.sigmoid(summed).chunk(2, dim=-1)
        return hooked(hook, "r", r), hooked(hook, "u", u)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, reset={self.reset!r}"


class GRU(Exchangeable):
    """Unrolls gated recurrent units over time: `output, h_n = GRU(input_size, hidden_size)(input, h_0)`.

    Shapes as in `Recurrent`; h_n [num_layers, B, hidden_size].

    Args:
        reset: Whether the reset gate acts "before" the candidate's matrix, as the article has it, or "after", as torch.
        gate_bias: Added to the initial biases of r and u.

    >>> import torch, nlstm_lab as lab
    >>> theirs, x = torch.nn.GRU(10, 20), torch.randn(5, 3, 10)
    >>> torch.allclose(lab.cells.GRU.from_torch(theirs)(x)[0], theirs(x)[0], atol=1e-6)
    True
    """

    cell_class = GRUCell
    torch_class = nn.GRU
    two_biases = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        all_layers: bool = False,
        reset: Reset = "before",
        gate_bias: float = 1.0,
        initialization: init.Initialization = "nested_lstm",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        torchs = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size)
        options: Any = {"initialization": initialization, "device": device, "dtype": dtype}
        super().__init__(*torchs, all_layers=all_layers, reset=reset, gate_bias=gate_bias, **options)

    @classmethod
    def options_of(cls, module: nn.RNNBase) -> dict[str, Any]:
        return {"reset": "after"}

    def torch_options(self) -> dict[str, Any]:
        if self.cells[0].reset != "after":
            raise ValueError('reset must be "after" for torch.nn.GRU to compute the same, not "before"')
        return {}
