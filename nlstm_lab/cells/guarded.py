"""LSTM cells whose state cannot count without bound: remedies for the inner memory of a Nested LSTM (notebook 93)."""

from typing import Literal, Unpack, get_args

import torch
from torch import Tensor, nn

from nlstm_lab.cells.base import GatedCell, Record, Start, State, noted
from nlstm_lab.cells.checks import choice

Guard = Literal["coupled", "refined", "clipped", "normalized"]
BOUND = 1.0  # of a clipped state


class GuardedLSTMCell(GatedCell):
    """Computes one step of an LSTM with a guard against counting.

    Shapes: input [B, input_size], h and c [B, hidden_size] each, returns the new (h, c).

    Args:
        guard: What keeps c from counting.
            "coupled": i = 1 - f, as in a GRU.
            "refined": UR gates (Gu et al. 2020, arXiv 1910.09890): a refine gate r in the place of i, the forget gate
            f^2 + 2 r f (1 - f), i = 1 minus that; forget biases start at the logits of uniform numbers, those of r at
            their negatives.
            "clipped": c is clipped to [-1, 1].
            "normalized": c goes through layer normalization.
        forget_bias: What is added to where the forget gate's bias starts, unless refined.
    """

    state_names = ("h", "c")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        guard: Guard,
        forget_bias: float = 1.0,
        **start: Unpack[Start],
    ) -> None:
        choice("guard", guard, get_args(Guard))
        gates = {"coupled": ("f", "g", "o"), "refined": ("r", "f", "g", "o")}
        vars(self).update(guard=guard, gates=gates.get(guard, ("i", "f", "g", "o")))
        super().__init__(input_size, hidden_size, bias, gate_bias={"f": forget_bias}, **start)
        self.norm: nn.LayerNorm | None = None
        if guard == "normalized":
            self.norm = nn.LayerNorm(hidden_size, device=self.like.device, dtype=self.like.dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.norm is not None:
            self.norm.reset_parameters()
        if self.guard == "refined" and self.bias is not None:
            size = self.hidden_size
            forget = torch.logit(
                torch.empty_like(self.bias[:size], dtype=torch.promote_types(self.bias.dtype, torch.float32)).uniform_(
                    1 / size, 1 - 1 / size
                )
            )
            with torch.no_grad():
                self.bias[: 2 * size] = torch.cat((-forget, forget))

    def recur(self, projected: Tensor, state: State, record: Record | None = None) -> State:
        h, c = state
        (summed,) = noted(record, preactivation=projected + h @ self.weight_hh.t())
        *first, g, o = summed.chunk(len(self.gates), dim=-1)
        *first, f, o = map(torch.sigmoid, (*first, o))
        g = torch.tanh(g)
        if self.guard == "refined":
            f = f * f + 2 * first[0] * f * (1 - f)
        i = first[0] if self.gates[0] == "i" else 1 - f
        i, f, g, o = noted(record, i=i, f=f, g=g, o=o)
        c = f * c + i * g
        if self.guard == "clipped":
            c = c.clamp(-BOUND, BOUND)
        if self.norm is not None:
            c = self.norm(c)
        (c,) = noted(record, c=c)
        (h,) = noted(record, h=o * torch.tanh(c))
        return h, c

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, guard={self.guard!r}"
