"""What a unit reads: an embedding whose first row is nothing, and words that are given."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab import cells
from nlstm_lab.cells.base import Record


class PaddedEmbedding(nn.Module):
    """Vectors for symbols of which 0 is the padding: a row of zeros that is no parameter (Madsen's article).

    rows [symbols - 1, width] start uniform within 1 / sqrt(symbols - 1). Shapes: symbols [...] to [..., width].
    """

    def __init__(self, symbols: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.empty(symbols - 1, width))
        bound = 1 / math.sqrt(symbols - 1)
        nn.init.uniform_(self.rows, -bound, bound)

    @property
    def weight(self) -> Tensor:
        """The whole matrix [symbols, width], as of `nn.Embedding`."""
        return torch.cat([torch.zeros_like(self.rows[:1]), self.rows])

    def forward(self, symbols: Tensor) -> Tensor:
        return F.embedding(symbols, self.weight)


class GivenWords(cells.HierarchicalRNN):
    """A hierarchical RNN of two layers over symbols [T, B], in which a word ends with one of `separators`.

    One-hot input, since the boundaries are read off the symbols. Called and traced as every other unit is.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 2, *, separators: tuple[int, ...], **flags: Any
    ) -> None:
        if num_layers != 2:
            raise ValueError(f"num_layers must be 2, characters and words, not {num_layers}")
        super().__init__(input_size, hidden_size, num_layers, **flags)
        ends = torch.zeros(input_size, dtype=torch.bool)
        ends[list(separators)] = True
        self.register_buffer("ends", ends)
        self.ends: Tensor

    def forward(self, input: Tensor, state: Any = None) -> Any:  # type: ignore[override]
        return super().forward(input, self.ends[input].unsqueeze(-1), state)

    def trace(self, input: Tensor, state: Any = None) -> tuple[Tensor, Any, list[Record]]:  # type: ignore[override]
        """As `Recurrent.trace`."""
        return super().trace(input, self.ends[input].unsqueeze(-1), state)
