"""How the parameters of a cell are initialized, gate block by gate block, in the order of its rows.

`nested_lstm`: Nested LSTMs, section 4: the matrices that take the input vector Glorot uniform, every other one
orthogonal. `glorot`: every matrix Glorot uniform. `madsen`: Glorot uniform as the article's cells start, whose
framework keeps the matrices of several gates, for the input and for the hidden state, in one kernel [inputs, outputs],
and draws it as one. `torch`: everything, biases included, uniform within 1 / sqrt(hidden_size), as `torch.nn.LSTM`
starts.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from nlstm_lab.cells.checks import choice

Initialization = Literal["nested_lstm", "glorot", "madsen", "torch"]
RECORDED = {"nested_lstm": "paper", "madsen": "tensorflow"}  # what records call them, whose digests stay as they are


def scheme(name: str) -> Initialization:
    """The initialization of that name, today's or a record's; ValueError: there is none."""
    today = {recorded: known for known, recorded in RECORDED.items()}.get(name, name)
    return choice("initialization", today, Initialization)  # type: ignore[no-any-return]


@torch.no_grad()
def fill(
    parameter: Tensor,
    initialization: Initialization,
    *,
    takes_input: bool,
    hidden_size: int,
    fans: Sequence[int] | None = None,
) -> None:
    """Fill a matrix [gates * hidden_size, columns] in place, gate block by gate block, or a bias, zero but torch's.

    Half precision is drawn in float32 and rounded.

    Args:
        fans: Of each block in turn, inputs plus outputs of its kernel.
    """
    if parameter.dtype in (torch.float16, torch.bfloat16):
        drawn = parameter.float()
        fill(drawn, initialization, takes_input=takes_input, hidden_size=hidden_size, fans=fans)
        parameter.copy_(drawn)
        return
    blocks = torch.split(parameter, hidden_size)
    for block, fan in zip(blocks, fans or [sum(parameter.shape)] * len(blocks), strict=True):
        if initialization == "torch":
            nn.init.uniform_(block, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))
        elif parameter.dim() == 1:
            nn.init.zeros_(block)
        elif initialization == "madsen":
            nn.init.uniform_(block, -math.sqrt(6 / fan), math.sqrt(6 / fan))
        elif initialization == "glorot" or takes_input:
            nn.init.xavier_uniform_(block)
        else:
            nn.init.orthogonal_(block)
