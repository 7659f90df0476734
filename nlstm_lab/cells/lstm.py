"""The LSTM without peepholes: equations 1-6 of Nested LSTMs (Moniz & Krueger 2017)."""

from typing import Literal, Unpack, get_args

import torch
from torch import Tensor, nn

from nlstm_lab.cells.base import GatedCell, Record, Start, State, noted
from nlstm_lab.cells.checks import choice
from nlstm_lab.cells.exchange import Exchangeable

CandidateStart = Literal["drawn", "identity"]


class LSTMCell(GatedCell):
    """Computes one LSTM step, with the one bias a gate that the paper's parameter counts demand.

    Rows of the matrices hold the gates i, f, g, o, as in `torch.nn.LSTM`.

    Shapes: input [B, input_size], h and c [B, hidden_size] each, returns the new (h, c).
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
        **start: Unpack[Start],
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"f": forget_bias}, **start)
        choice("candidate_start", candidate_start, get_args(CandidateStart))
        self.candidate_start = candidate_start
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.candidate_start == "identity":
            nn.init.eye_(self.weight_hh[self.gates.index("g") * self.hidden_size :][: self.hidden_size])

    def recur(self, projected: Tensor, state: State, record: Record | None = None) -> State:
        h, c = state
        (summed,) = noted(record, preactivation=projected + h @ self.weight_hh.t())
        i, f, g, o = summed.chunk(4, dim=-1)
        i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)  # equations 1, 2, 5
        i, f, g, o = noted(record, i=i, f=f, g=torch.tanh(g), o=o)
        (c,) = noted(record, c=f * c + i * g)  # equations 3, 4
        (h,) = noted(record, h=o * torch.tanh(c))  # equation 6
        return h, c


class LSTM(Exchangeable):
    """Unrolls LSTM layers over time: `output, (h_n, c_n) = LSTM(input_size, hidden_size)(input, (h_0, c_0))`.

    Shapes as in `Recurrent`; h_n and c_n [num_layers, B, hidden_size]. Equations 1-6 of Nested LSTMs.

    Args:
        forget_bias: What is added to where the forget gate's bias starts.
        candidate_start: Whether the candidate's recurrent matrix is "drawn" like the others or starts as the
            "identity", an option of zoneout's code.

    >>> import torch, nlstm_lab as lab
    >>> theirs, x = torch.nn.LSTM(10, 20), torch.randn(5, 3, 10)
    >>> torch.allclose(lab.cells.LSTM.from_torch(theirs)(x)[0], theirs(x)[0], atol=1e-6)
    True
    """

    cell_class = LSTMCell
    torch_class = nn.LSTM
