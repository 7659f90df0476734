"""The LSTM without peepholes: equations 1-6 of Nested LSTMs (Moniz & Krueger 2017)."""

from typing import Any

import torch
from torch import Tensor, nn

from nlstm_lab.cells import initialization as init
from nlstm_lab.cells.base import Cell, Record, Recurrent, State


class LSTMCell(Cell):
    """One LSTM step, with the one bias a gate that the paper's parameter counts demand.

    Rows of the matrices hold the gates i, f, g, o, as in `torch.nn.LSTM`.

    Shapes: input [B, input_size], h and c [B, hidden_size] each, returns the new (h, c).
    """

    state_names = ("h", "c")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        forget_bias: float = 1.0,
        initialization: init.Initialization = "paper",
        takes_input: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        init.check(initialization)
        self.forget_bias, self.initialization, self.takes_input = forget_bias, initialization, takes_input
        new = {"device": device, "dtype": dtype}
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_size, input_size, **new))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_size, hidden_size, **new))
        self.bias = nn.Parameter(torch.empty(4 * hidden_size, **new)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        size = self.hidden_size
        init.fill(self.weight_ih, self.initialization, takes_input=self.takes_input, hidden_size=size)
        init.fill(self.weight_hh, self.initialization, takes_input=False, hidden_size=size)
        if self.bias is not None:
            init.fill_bias(self.bias, self.initialization, hidden_size=size)
            with torch.no_grad():
                self.bias[size : 2 * size] += self.forget_bias

    def recur(self, projected: Tensor, state: State, record: Record | None = None) -> State:
        h, c = state
        i, f, g, o = (projected + h @ self.weight_hh.t()).chunk(4, dim=-1)
        i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)  # equations 1, 2, 5
        g = torch.tanh(g)
        c = f * c + i * g  # equations 3, 4
        h = o * torch.tanh(c)  # equation 6
        if record is not None:
            record.update(i=i, f=f, g=g, o=o, c=c)
        return h, c


class LSTM(Recurrent):
    """A stack of LSTM layers with the interface of `torch.nn.LSTM`: `output, (h_n, c_n) = lstm(input, (h_0, c_0))`.

    Shapes: input [T, B, input_size] (or [B, T, input_size], [T, input_size], a packed sequence, or integer symbols
    [T, B] that stand for one-hot vectors), output [T, B, hidden_size], h_n and c_n [num_layers, B, hidden_size].
    """

    cell_class = LSTMCell
