"""How the matrices of a unit start. Each is filled gate block by gate block, in the order of its rows.

`paper`: Nested LSTMs, section 4: the matrices that take the input vector Glorot uniform, every other one
orthogonal.
`glorot`: every matrix Glorot uniform (the default of the framework that Madsen's article was written in).
`torch`: everything, biases included, uniform within 1 / sqrt(hidden_size), as `torch.nn.LSTM` starts.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

Initialization = Literal["paper", "glorot", "torch"]


@torch.no_grad()
def fill(matrix: Tensor, initialization: Initialization, *, takes_input: bool, hidden_size: int) -> None:
    """Fill `matrix` [gates * hidden_size, columns] in place, one gate block after the other."""
    for block in torch.split(matrix, hidden_size):
        if initialization == "torch":
            nn.init.uniform_(block, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))
        elif initialization == "glorot" or takes_input:
            nn.init.xavier_uniform_(block)
        else:
            nn.init.orthogonal_(block)


@torch.no_grad()
def fill_bias(bias: Tensor, initialization: Initialization, *, hidden_size: int) -> None:
    """Zero, or uniform where the scheme is torch's; a unit adds its own gate biases on top."""
    if initialization == "torch":
        nn.init.uniform_(bias, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))
    else:
        nn.init.zeros_(bias)
