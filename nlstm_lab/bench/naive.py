"""The Nested LSTM as it is usually written: a Python loop over the steps, and four gates in one product."""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab.cells import LSTMCell, NestedLSTM, NestedLSTMCell


class NaiveNestedLSTM(nn.Module):
    """Depth 2, one layer, with the parameters of `network`: input [T, B, input_size] to h of every step."""

    def __init__(self, network: NestedLSTM) -> None:
        super().__init__()
        self.outer = cast(NestedLSTMCell, network.cells[0])
        self.inner = cast(LSTMCell, self.outer.memory)

    def forward(self, x: Tensor) -> Tensor:
        outer, inner = self.outer, self.inner
        h = c = n = x.new_zeros(x.shape[1], outer.hidden_size)
        hidden = []
        for t in range(x.shape[0]):
            gates = F.linear(x[t], outer.weight_ih, outer.bias) + F.linear(h, outer.weight_hh)
            i, f, g, o = gates.chunk(4, 1)
            i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)
            gates = F.linear(i * g, inner.weight_ih, inner.bias) + F.linear(f * c, inner.weight_hh)
            ii, ff, gg, oo = gates.chunk(4, 1)
            n = torch.sigmoid(ff) * n + torch.sigmoid(ii) * torch.tanh(gg)
            c = torch.sigmoid(oo) * torch.tanh(n)
            h = o * torch.tanh(c)
            hidden.append(h)
        return torch.stack(hidden)
