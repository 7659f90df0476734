"""The Nested LSTM of any depth: equations 7-15 of Nested LSTMs (Moniz & Krueger 2017)."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from nlstm_lab.cells.base import Cell, Device, GatedCell, Hook, Initialization, State, gates, hooked
from nlstm_lab.cells.checks import finite, positive
from nlstm_lab.cells.lstm import Guard, GuardedLSTMCell, LSTMCell
from nlstm_lab.cells.recurrent import Recurrent
from nlstm_lab.settings import choice

Candidate = Literal["identity", "tanh"]
InnerCell = Literal["lstm", Guard]
Memory = Callable[[int, int], Cell]  # (input_size, hidden_size), equal here, to a cell: any cell class is one


class Addition(Cell):
    """The memory function of a plain LSTM, c = h~ + x~ (equation 9): no parameters, no memory of its own."""

    def project(self, x: Tensor) -> Tensor:
        return x

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        return (state[0] + projected,)


class NestedLSTMCell(GatedCell):
    """Computes one Nested LSTM step: an LSTM whose cell update another cell computes, c_t = m_t(f * c_{t-1}, i * g).

    The memory function sees x~ = i * g as its input and h~ = f * c_{t-1} as its hidden state; what it returns as its
    hidden state becomes c_t, and what else it keeps are the inner memories.

    Shapes: input [B, input_size], h [B, hidden_size], memories [depth, B, hidden_size], outermost first; (h, c) as of
    `torch.nn.LSTMCell` is taken, too. `depth`, `candidate`, `forget_bias`, `inner_forget_bias`, `inner_input_bias`,
    `inner_chrono`, `inner_cell` and `memory` as in `NestedLSTM`.
    """

    part_names = ("h", "memories")
    gates = ("i", "f", "g", "o")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        depth: int = 2,
        candidate: Candidate = "identity",
        forget_bias: float = 1.0,
        inner_forget_bias: float = 1.0,
        inner_input_bias: float = 0.0,
        inner_chrono: int | None = None,
        inner_cell: InnerCell = "lstm",
        memory: Memory | None = None,
        **options: Any,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"f": forget_bias}, **options)
        positive(depth, "depth")
        finite(inner_forget_bias, "inner_forget_bias")
        finite(inner_input_bias, "inner_input_bias")
        choice(inner_cell, "inner_cell", InnerCell)
        self.candidate, self.inner_chrono = choice(candidate, "candidate", Candidate), inner_chrono
        if inner_chrono is not None and positive(inner_chrono, "inner_chrono") < 3:
            raise ValueError(f"inner_chrono must be at least 3 steps, not {inner_chrono}")
        biased, guarded = inner_chrono is not None or bool(inner_input_bias), inner_cell != "lstm"
        if (biased and guarded) or ((biased or guarded) and (memory is not None or depth != 2)):
            raise ValueError(
                "inner_cell, or inner_chrono and inner_input_bias, are for depth 2 without another memory or inner_cell"
            )
        sizes = (hidden_size, hidden_size)
        inner: Any = {**options, "bias": bias, "forget_bias": inner_forget_bias, "takes_input": False}
        if memory is not None:
            if not isinstance(made := memory(*sizes), Cell):
                raise TypeError(f"memory must make a Cell when called with two sizes, not {type(made).__name__}")
            if {tuple(tensor.shape) for tensor in made.initial_state(1)} != {(1, hidden_size)}:
                raise ValueError(f"memory must keep states of hidden_size {hidden_size} alone, not {made}")
            given = {name: options[name] for name in ("device", "dtype") if options.get(name) is not None}
            self.memory = made.to(**given) if given else made
        elif depth == 1:
            self.memory = Addition(*sizes)
        elif inner_cell != "lstm":
            self.memory = GuardedLSTMCell(*sizes, guard=inner_cell, **inner)
        elif depth == 2:  # the innermost memory function is an LSTM's
            self.memory = LSTMCell(*sizes, **inner)
            if inner_input_bias:
                self.memory.gate_bias["i"] = inner_input_bias
        else:  # tanh for every candidate inside the outermost (section 4, read for more than two)
            inner |= {"depth": depth - 1, "candidate": "tanh", "inner_forget_bias": inner_forget_bias}
            self.memory = NestedLSTMCell(*sizes, **inner)
        self.state_names = ("h", "c", *(f"memory.{name}" for name in self.memory.state_names[1:]))
        self.reset_parameters()

    @property
    def depth(self) -> int:
        """Number of nested memories, the outermost included."""
        return len(self.state_names) - 1

    @torch.no_grad()
    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.inner_chrono is not None and isinstance(self.memory, GatedCell) and self.memory.bias is not None:
            size = self.hidden_size
            forget = torch.empty_like(self.memory.bias[:size]).uniform_(1, self.inner_chrono - 1).log()
            self.memory.bias[: 2 * size] = torch.cat((-forget, forget))

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        h, c, *deeper = state
        summed = hooked(hook, "preactivation", projected + h @ self.weight_hh.t())
        i, f, g, o = gates(summed, hook, self.candidate == "tanh")  # equations 1, 2, 5
        h_tilde = f * c  # equation 7
        x_tilde = i * g  # equation 8
        inside = None if hook is None else lambda name, value: hook(f"memory.{name}", value)
        c, *deeper = self.memory.step(x_tilde, (h_tilde, *deeper), inside)  # equations 10-15 (or 9)
        c = hooked(hook, "c", c)
        h = hooked(hook, "h", o * torch.tanh(c))  # equation 6
        return h, c, *deeper

    def completed(self, state: Any, dim: int) -> Any:
        """An LSTM's (h, c) holds the outermost memory alone: those inside start at zero."""
        parts = state if isinstance(state, tuple | list) and all(isinstance(part, Tensor) for part in state) else ()
        if len(parts) != 2 or parts[0].shape != parts[1].shape:
            return state
        h, c = parts
        return h, torch.stack((c, *[torch.zeros_like(c)] * (self.depth - 1)), dim)

    def pack(self, state: State) -> tuple[Tensor, ...]:
        return state[0], torch.stack(state[1:])

    def unpack(self, state: Any) -> State:
        h, memories = state
        return h, *memories.unbind(0)


class NestedLSTM(Recurrent):
    """Unrolls Nested LSTM layers: `output, (h_n, memories) = NestedLSTM(input_size, hidden_size, depth=2)(input)`.

    Shapes as in `Recurrent`; h_n [num_layers, B, hidden_size], memories [num_layers, depth, B, hidden_size], outermost
    first. Equations 7-15 of Nested LSTMs.

    A state (h_0, c_0) as of `torch.nn.LSTM` is taken, too: c_0 [num_layers, B, hidden_size] is the outermost memory,
    and those inside start at zero. The batch is dimension 2 of the memories, not 1, so that a layer's memories lie
    together: `outer, inner = memories[k]`. What splits or joins states along dimension 1 (`nn.DataParallel(dim=1)`,
    sorting by length) must take dimension 2 there, or `memories.transpose(1, 2)`.

    Args:
        depth: Nested memories, the outermost included: 1 is an LSTM, 2 the paper's network, whose memory is an LSTM's.
        candidate: What the outermost candidate passes through: "identity" (section 4) or "tanh".
        forget_bias: Added to the outermost forget gate's initial bias.
        inner_forget_bias: The same of the forget gates inside.
        inner_input_bias: The same of the inner input gate (depth 2).
        inner_chrono: T of at least 3 steps (depth 2; Tallec & Ollivier 2018, arXiv 1804.11188): the inner forget biases
            begin at the logarithms of numbers uniform between 1 and T - 1, the input biases at their negatives.
        inner_cell: The inner memory's function: "lstm", or an LSTM with one of the guards of `cells.lstm` (depth 2).
        memory: Another memory function than `depth` says: what makes a cell from two equal sizes, as `GRUCell` or
            `functools.partial(LSTMCell, forget_bias=0.0)`.

    >>> import torch, nlstm_lab as lab
    >>> nlstm = lab.NestedLSTM(input_size=10, hidden_size=20, num_layers=1, depth=2)
    >>> output, (h_n, memories) = nlstm(torch.randn(5, 3, 10))
    >>> output.shape, h_n.shape, memories.shape
    (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]), torch.Size([1, 2, 3, 20]))
    >>> outer, inner = memories[0]
    """

    cell_class = NestedLSTMCell

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
        depth: int = 2,
        candidate: Candidate = "identity",
        forget_bias: float = 1.0,
        inner_forget_bias: float = 1.0,
        inner_input_bias: float = 0.0,
        inner_chrono: int | None = None,
        inner_cell: InnerCell = "lstm",
        memory: Memory | None = None,
        initialization: Initialization = "nested_lstm",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        torchs = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size)
        options: Any = {"initialization": initialization, "device": device, "dtype": dtype, "forget_bias": forget_bias}
        options |= {"inner_forget_bias": inner_forget_bias, "inner_input_bias": inner_input_bias}
        options |= {"inner_chrono": inner_chrono, "inner_cell": inner_cell, "memory": memory}
        super().__init__(*torchs, all_layers=all_layers, depth=depth, candidate=candidate, **options)
