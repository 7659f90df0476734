"""Embeddings whose first row, the padding's, is zero."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PaddedEmbedding(nn.Module):
    """Vectors [..., width] for symbols [...] of which 0 is the padding, a row of zeros (Madsen's article)."""

    def __init__(self, symbols: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.empty(symbols - 1, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows as at the start."""
        bound = 1 / math.sqrt(len(self.rows))
        nn.init.uniform_(self.rows, -bound, bound)

    @property
    def weight(self) -> Tensor:
        """The whole matrix [symbols, width], as of `nn.Embedding`."""
        return torch.cat([torch.zeros_like(self.rows[:1]), self.rows])

    def forward(self, symbols: Tensor) -> Tensor:
        return F.embedding(symbols, self.weight)
