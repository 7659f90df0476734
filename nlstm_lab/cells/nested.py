"""The Nested LSTM of any depth: equations 7-15 of Nested LSTMs (Moniz & Krueger 2017)."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from nlstm_lab.cells import initialization as init
from nlstm_lab.cells.base import Cell, Record, Recurrent, State
from nlstm_lab.cells.lstm import LSTMCell

Candidate = Literal["identity", "tanh"]


class Addition(Cell):
    """The memory function of a plain LSTM, c = h~ + x~ (equation 9): no parameters, no memory of its own."""

    state_names = ("h",)

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size, hidden_size)

    def reset_parameters(self) -> None:
        """Nothing to start."""

    def project(self, x: Tensor) -> Tensor:
        return x

    def recur(self, projected: Tensor, state: State, record: Record | None = None) -> State:
        return (state[0] + projected,)


class NestedLSTMCell(Cell):
    """One Nested LSTM step: an LSTM whose cell update is computed by another cell, c_t = m_t(f * c_{t-1}, i * g).

    The memory function sees x~ = i * g as its input and h~ = f * c_{t-1} as its hidden state; what it returns as its
    hidden state becomes c_t, and what else it keeps are the inner memories. With `depth=2` it is an LSTM cell (the
    paper's unit), with `depth=1` it is addition, and the unit is an LSTM; `memory` nests any other cell.

    Shapes: input [B, input_size], h [B, hidden_size], memories [depth, B, hidden_size], outermost first.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        depth: int = 2,
        bias: bool = True,
        candidate: Candidate = "identity",
        forget_bias: float = 1.0,
        inner_forget_bias: float = 1.0,
        initialization: init.Initialization = "paper",
        takes_input: bool = True,
        memory: Cell | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        init.check(initialization)
        if depth < 1:
            raise ValueError(f"depth must be at least 1 (1 is a plain LSTM, 2 the paper's unit), not {depth}")
        if candidate not in ("identity", "tanh"):
            raise ValueError(f"candidate must be 'identity' or 'tanh', not {candidate!r}")
        self.candidate, self.forget_bias = candidate, forget_bias
        self.initialization, self.takes_input = initialization, takes_input
        new = {"device": device, "dtype": dtype}
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_size, input_size, **new))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_size, hidden_size, **new))
        self.bias = nn.Parameter(torch.empty(4 * hidden_size, **new)) if bias else None
        inner = {"initialization": initialization, "takes_input": False, **new}
        if memory is not None:
            self.memory = memory
        elif depth == 1:
            self.memory = Addition(hidden_size)
        elif depth == 2:  # the innermost memory function is an LSTM's
            self.memory = LSTMCell(hidden_size, hidden_size, bias, forget_bias=inner_forget_bias, **inner)
        else:  # tanh for every candidate inside the outermost (section 4, read for more than two)
            self.memory = NestedLSTMCell(
                hidden_size, hidden_size, depth - 1, bias, "tanh", inner_forget_bias, inner_forget_bias, **inner
            )
        self.state_names = ("h", "c", *(f"memory.{name}" for name in self.memory.state_names[1:]))
        self.reset_parameters()

    @property
    def depth(self) -> int:
        """Number of nested memories, the outermost included."""
        return len(self.state_names) - 1

    reset_outer = LSTMCell.reset_parameters

    def reset_parameters(self) -> None:
        self.reset_outer()  # type: ignore[misc]
        self.memory.reset_parameters()

    def recur(self, projected: Tensor, state: State, record: Record | None = None) -> State:
        h, c, *deeper = state
        i, f, g, o = (projected + h @ self.weight_hh.t()).chunk(4, dim=-1)
        i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)  # equations 1, 2, 5
        if self.candidate == "tanh":
            g = torch.tanh(g)
        h_tilde = f * c  # equation 7
        x_tilde = i * g  # equation 8
        inside: Record | None = None if record is None else {}
        c, *deeper = self.memory.step(x_tilde, (h_tilde, *deeper), inside)  # equations 10-15 (or 9)
        h = o * torch.tanh(c)  # equation 6
        if record is not None:
            record.update(i=i, f=f, g=g, o=o, c=c, memory=inside)
        return h, c, *deeper

    def pack(self, state: State) -> tuple[Tensor, ...]:
        return state[0], torch.stack(state[1:])

    def unpack(self, state: tuple[Tensor, ...]) -> State:
        h, memories = state
        return h, *memories.unbind(0)


class NestedLSTM(Recurrent):
    """Nested LSTM layers with the interface of `torch.nn.LSTM`: `output, (h_n, memories) = nlstm(input)`.

    Shapes: input [T, B, input_size] (or [B, T, input_size], [T, input_size], a packed sequence, or integer symbols
    [T, B] that stand for one-hot vectors), output [T, B, hidden_size], h_n [num_layers, B, hidden_size], memories
    [num_layers, depth, B, hidden_size], outermost first.
    """

    cell_class = NestedLSTMCell
