"""The plain LSTM, unrolled by the kernel behind `torch.nn.LSTM` where that is the fastest."""

import warnings

import torch
from torch import Tensor

from nlstm_lab.cells.base import State, product
from nlstm_lab.cells.fast import nested, ways
from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.precision import exact_kernels, product_type

# On a GPU torch advises the caller, who is always one of our modules, to lay out the weights as those of its own. They
# are a cell's, each in its place; the results are the same, and no user could act upon it.
warnings.filterwarnings("ignore", "RNN module weights are not part of", UserWarning, r"nlstm_lab\.cells\.fast\.")

LARGEST_ONE_HOT = 100  # beyond, the look-up that only our own loop has saves more than the kernel does


def unroll(cell: LSTMCell, x: Tensor, state: State) -> tuple[Tensor, State] | None:
    """An LSTM layer over all steps; the kernel has no fp64, and its bf16 keeps the cell state in bf16."""
    symbols = not x.is_floating_point()
    if product_type(state[0]) != torch.float32 or (symbols and cell.input_size > LARGEST_ONE_HOT):
        return nested.unroll(cell, x, state)
    dense = product(x, torch.eye(cell.input_size, dtype=cell.like.dtype, device=x.device)) if symbols else x
    weights: list[Tensor] = [cell.weight_ih, cell.weight_hh]
    if cell.bias is not None:
        weights += [cell.bias, torch.zeros_like(cell.bias)]
    first = [tensor.contiguous().unsqueeze(0) for tensor in state]  # cuDNN refuses any other
    with exact_kernels():
        hidden, h, c = torch._VF.lstm(dense, first, weights, cell.bias is not None, 1, 0.0, True, False, False)
    return hidden, (h[0], c[0])


ways[LSTMCell] = unroll
