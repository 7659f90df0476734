"""The LSTM without peepholes: equations 1-6 of Nested LSTMs (Moniz & Krueger 2017)."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from nlstm_lab.cells import initialization as init
from nlstm_lab.cells.base import GatedCell, Record, State, choice
from nlstm_lab.cells.exchange import Exchangeable

CandidateStart = Literal["drawn", "identity"]


class LSTMCell(GatedCell):
    """One LSTM step, with the one bias a gate that the paper's parameter counts demand.

    Rows of the matrices hold the gates i, f, g, o, as in `torch.nn.LSTM`. With `candidate_start="identity"` the
    candidate's recurrent matrix starts as the identity, an option of zoneout's code, and not drawn like the others.

    Shapes: input [B, input_size], h and c [B, hidden_size] each, returns the new (h, c).
    """

    state_names = ("h", "c")
    gates = ("i", "f", "g", "o")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        forget_bias: float = 1.0,
        initialization: init.Initialization = "paper",
        candidate_start: CandidateStart = "drawn",
        takes_input: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        forget = {"f": forget_bias}
        super().__init__(input_size, hidden_size, bias, initialization, takes_input, forget, device, dtype)
        choice("candidate_start", candidate_start, get_args(CandidateStart))
        self.candidate_start = candidate_start
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.candidate_start == "identity":
            nn.init.eye_(self.weight_hh[self.gates.index("g") * self.hidden_size :][: self.hidden_size])

    def recur(self, projected: Tensor, state: State, record: Record | None = None) -> State:
        h, c = state
        i, f, g, o = (projected + h @ self.weight_hh.t()).chunk(4, dim=-1)
        i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)  # equations 1, 2, 5
        g = torch.tanh(g)
        c = f * c + i * g  # equations 3, 4
        h = o * torch.tanh(c)  # equation 6
        if record is not None:
            record.update(i=i, f=f, g=g, o=o, c=c, h=h)
        return h, c


class LSTM(Exchangeable):
    """A stack of LSTM layers: `output, (h_n, c_n) = LSTM(input_size, hidden_size)(input, (h_0, c_0))`.

    Shapes as in `Recurrent`; h_n and c_n [num_layers, B, hidden_size]. Flags as in `LSTMCell`.

    >>> import torch, nlstm_lab as lab
    >>> theirs, x = torch.nn.LSTM(10, 20), torch.randn(5, 3, 10)
    >>> torch.allclose(lab.cells.LSTM.from_torch(theirs)(x)[0], theirs(x)[0], atol=1e-6)
    True
    """

    cell_class = LSTMCell
    torch_class = nn.LSTM
