"""What every unit shares: one step (`Cell`), and the time loop around it (`Recurrent`).

A step is written once, readably, in `Cell.recur`; it stays the oracle of every faster path. Internally a state is a
flat tuple (h, memory, deeper memory, ...) of tensors [B, hidden_size]; `pack` and `unpack` translate it to and from
what users see.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from nlstm_lab.cells import fast

State = tuple[Tensor, ...]
Record = dict[str, Any]  # every gate and state of one step by name; a nested memory's under "memory"


class Cell(nn.Module, ABC):
    """One step of a unit: x_t and the last state in, the new state out."""

    state_names: tuple[str, ...] = ("h",)

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"{name} must be a positive integer, not {size!r}")
        self.input_size, self.hidden_size = input_size, hidden_size

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw the parameters anew from torch's global generator."""

    @abstractmethod
    def recur(self, projected: Tensor, state: State, record: Record | None = None) -> State:
        """The step proper, given x_t's share of the pre-activations; writes gates and states into `record`."""

    def project(self, x: Tensor) -> Tensor:
        """The input's share of the pre-activations, W x + b, for any number of steps at once.

        `x` is [..., input_size], or integer symbols [...] that stand for one-hot vectors: then a product with a
        one-hot vector is a look-up of one column.
        """
        if x.is_floating_point():
            return F.linear(x, self.weight_ih, self.bias)  # type: ignore[arg-type]
        columns = F.embedding(x, self.weight_ih.t())  # type: ignore[operator]
        return columns if self.bias is None else columns + self.bias  # type: ignore[operator]

    def step(self, x: Tensor, state: State, record: Record | None = None) -> State:
        """x_t [B, input_size] and a flat state to the next flat state."""
        return self.recur(self.project(x), state, record)

    def initial_state(self, batch_size: int) -> State:
        """Zeros, on the device and in the type of the parameters."""
        like = next(self.parameters())
        return tuple(like.new_zeros(batch_size, self.hidden_size) for _ in self.state_names)

    def pack(self, state: State) -> Any:
        """A flat state as users see it: h alone, or the tuple (h, c)."""
        return state if len(state) > 1 else state[0]

    def unpack(self, state: Any) -> State:
        """What users hand in, as a flat state."""
        return state if isinstance(state, tuple) else (state,)

    def forward(self, input: Tensor, state: Any = None) -> Any:
        batch = input.shape[0]
        flat = self.initial_state(batch) if state is None else self.unpack(state)
        return self.pack(self.step(input, flat))

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class Recurrent(nn.Module):
    """Layers of one kind of cell, unrolled over time, with the interface of `torch.nn.LSTM`."""

    cell_class: ClassVar[type[Cell]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        batch_first: bool = False,
        dropout: float = 0.0,
        **flags: Any,
    ) -> None:
        super().__init__()
        if not isinstance(num_layers, int) or num_layers < 1:
            raise ValueError(f"num_layers must be a positive integer, not {num_layers!r}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout = batch_first, dropout
        self.layers = nn.ModuleList(
            self.cell_class(input_size if k == 0 else hidden_size, hidden_size, takes_input=k == 0, **flags)
            for k in range(num_layers)
        )

    def reset_parameters(self) -> None:
        """Draw the parameters anew, layer by layer."""
        for cell in self.layers:
            cell.reset_parameters()

    def forward(self, input: Tensor | PackedSequence, state: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            raise NotImplementedError
        features = input.dim() - int(input.is_floating_point())
        unbatched = features == 1
        x = input.unsqueeze(1) if unbatched else input.transpose(0, 1) if self.batch_first else input
        states = self._unpack(state, x.shape[1])
        final = []
        for k, (cell, first) in enumerate(zip(self.layers, states, strict=True)):
            if k and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            x, last = self.unroll(cell, x, first)
            final.append(last)
        output = x.squeeze(1) if unbatched else x.transpose(0, 1) if self.batch_first else x
        return output, self._pack(final)

    def unroll(self, cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One layer over all steps: x [T, B, features] to h [T, B, hidden_size] and the last state."""
        done = fast.unroll(cell, x, state)
        if done is not None:
            return done
        projected = cell.project(x)
        hidden = []
        for t in range(x.shape[0]):
            state = cell.recur(projected[t], state)
            hidden.append(state[0])
        return torch.stack(hidden), state

    def _unpack(self, state: Any, batch_size: int) -> list[State]:
        if state is None:
            return [cell.initial_state(batch_size) for cell in self.layers]
        parts = state if isinstance(state, tuple) else (state,)
        return [
            cell.unpack(tuple(part[k] for part in parts) if len(parts) > 1 else parts[0][k])
            for k, cell in enumerate(self.layers)
        ]

    def _pack(self, states: list[State]) -> Any:
        packed = [cell.pack(state) for cell, state in zip(self.layers, states, strict=True)]
        if not isinstance(packed[0], tuple):
            return torch.stack(packed)
        return tuple(torch.stack(parts) for parts in zip(*packed, strict=True))
