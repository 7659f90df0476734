"""The LSTM without peepholes: equations 1-6 of Nested LSTMs (Moniz & Krueger 2017)."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from nlstm_lab.cells.base import GatedCell, Hook, State, gates, hooked
from nlstm_lab.cells.recurrent import Exchangeable
from nlstm_lab.settings import choice

CandidateStart = Literal["drawn", "identity"]
Guard = Literal["coupled", "refined", "clipped", "normalized"]


class LSTMCell(GatedCell):
    """Computes one LSTM step, with the one bias a gate that the paper's parameter counts demand.

    Rows of the matrices hold the gates i, f, g, o, as in `torch.nn.LSTM`. Shapes: input [B, input_size], h and c [B,
    hidden_size] each, returns the new (h, c). `forget_bias` and `candidate_start` as in `LSTM`.
    """

    state_names = ("h", "c")
    gates = ("i", "f", "g", "o")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        forget_bias: float = 1.0,
        candidate_start: CandidateStart = "drawn",
        **options: Any,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"f": forget_bias}, **options)
        self.candidate_start = choice(candidate_start, "candidate_start", CandidateStart)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.candidate_start == "identity":
            nn.init.eye_(self.weight_hh[self.gates.index("g") * self.hidden_size :][: self.hidden_size])

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        h, c = state
        summed = hooked(hook, "preactivation", projected + h @ self.weight_hh.t())
        i, f, g, o = gates(summed, hook)  # equations 1, 2, 4, 5
        c = hooked(hook, "c", f * c + i * g)  # equation 3
        h = hooked(hook, "h", o * torch.tanh(c))  # equation 6
        return h, c


class GuardedLSTMCell(GatedCell):
    """Computes one step of an LSTM with a guard against counting: a remedy for an inner memory (notebook 93).

    Shapes: input [B, input_size], h and c [B, hidden_size] each, returns the new (h, c).

    Args:
        guard: What keeps c from counting.
            "coupled": i = 1 - f, as in a GRU.
            "refined": UR gates (Gu et al. 2020, arXiv 1910.09890): a refine gate r in the place of i, the forget gate
            f^2 + 2 r f (1 - f), i = 1 minus that; forget biases begin at the logits of uniform numbers, those of r at
            their negatives.
            "clipped": c is clipped to [-1, 1].
            "normalized": c goes through layer normalization.
        forget_bias: Added to the forget gate's initial bias, unless refined.
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
        **options: Any,
    ) -> None:
        own = {"coupled": ("f", "g", "o"), "refined": ("r", "f", "g", "o")}.get(guard, ("i", "f", "g", "o"))
        super().__init__(input_size, hidden_size, bias, gates=own, gate_bias={"f": forget_bias}, **options)
        self.guard = choice(guard, "guard", Guard)
        self.norm = self.layer_norm(hidden_size) if guard == "normalized" else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.guard == "refined" and self.bias is not None:
            size, wide = self.hidden_size, torch.promote_types(self.bias.dtype, torch.float32)
            forget = torch.empty_like(self.bias[:size], dtype=wide).uniform_(1 / size, 1 - 1 / size).logit()
            self.bias[: 2 * size] = torch.cat((-forget, forget))

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        h, c = state
        summed = hooked(hook, "preactivation", projected + h @ self.weight_hh.t())
        gate = dict(zip(self.gates, summed.chunk(len(self.gates), dim=-1), strict=True))
        f, g, o = torch.sigmoid(gate["f"]), torch.tanh(gate["g"]), torch.sigmoid(gate["o"])
        if self.guard == "refined":
            f = f * f + 2 * torch.sigmoid(gate["r"]) * f * (1 - f)
        i, f = hooked(hook, "i", torch.sigmoid(gate["i"]) if "i" in gate else 1 - f), hooked(hook, "f", f)
        g, o = hooked(hook, "g", g), hooked(hook, "o", o)
        c = f * c + i * g
        if self.guard == "clipped":
            c = c.clamp(-1, 1)
        c = hooked(hook, "c", c if self.norm is None else self.norm(c))
        h = hooked(hook, "h", o * torch.tanh(c))
        return h, c


class LSTM(Exchangeable):
    """Unrolls LSTM layers over time: `output, (h_n, c_n) = LSTM(input_size, hidden_size)(input, (h_0, c_0))`.

    Shapes as in `Recurrent`; h_n and c_n [num_layers, B, hidden_size]. Equations 1-6 of Nested LSTMs.

    Args:
        forget_bias: Added to the forget gate's initial bias.
        candidate_start: Whether the candidate's recurrent matrix is "drawn" like the others or starts as the
            "identity", an option of zoneout's code.

    >>> import torch, nlstm_lab as lab
    >>> theirs, x = torch.nn.LSTM(10, 20), torch.randn(5, 3, 10)
    >>> torch.allclose(lab.cells.LSTM.from_torch(theirs)(x)[0], theirs(x)[0], atol=1e-6)
    True
    """

    cell_class = LSTMCell
    torch_class = nn.LSTM
