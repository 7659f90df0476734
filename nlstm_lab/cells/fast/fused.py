"""The plain LSTM, unrolled by the kernel behind `torch.nn.LSTM` where that is the fastest."""

import torch
import torch.nn.functional as F
from torch import Tensor

from nlstm_lab.cells.fast import State, nested, serves
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.precision import product_type

LARGEST_ONE_HOT = 100  # beyond, the look-up that only our own loop has saves more than the kernel does


@serves(LSTMCell)
def unroll(cell: LSTMCell, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """An LSTM layer over all steps: `nlstm_lab.cells.fast.unroll`.

    The kernel is exact fp32 on a CPU; its bf16 keeps the cell state in bf16 too, and it has no fp64.
    """
    symbols = not x.is_floating_point()
    if product_type(state[0]) != torch.float32 or (symbols and cell.input_size > LARGEST_ONE_HOT):
        return nested.unroll(cell, x, state)
    if symbols:
        x = F.one_hot(x, cell.input_size).to(cell.weight_ih.dtype)
    weights = [cell.weight_ih, cell.weight_hh]
    if cell.bias is not None:
        weights += [cell.bias, torch.zeros_like(cell.bias)]
    first = [part.unsqueeze(0) for part in state]
    hidden, h, c = torch._VF.lstm(x, first, weights, cell.bias is not None, 1, 0.0, True, False, False)
    return hidden, (h[0], c[0])
