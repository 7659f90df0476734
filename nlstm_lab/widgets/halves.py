"""Small networks as a page computes them: their matrices in half precision, for `forward.js`."""

from typing import Any

import numpy as np
from torch import nn

from nlstm_lab.cells.lstm import LSTMCell
from nlstm_lab.cells.nested import NestedLSTMCell
from nlstm_lab.models import Network

LARGEST = 500_000  # parameters that a page holds of a network: a megabyte


def portable(network: Network) -> dict[str, Any] | None:
    """What `forward.js` reads a text with; None of a large network, or of one that it cannot compute: it knows LSTM
    layers and Nested LSTMs of one layer and two memories, with one-hot characters and a dense readout."""
    cells: list[Any] = list(network.recurrent.cells)
    nested = len(cells) == 1 and isinstance(cells[0], NestedLSTMCell) and type(cells[0].memory) is LSTMCell
    plain = all(type(cell) is LSTMCell for cell in cells)
    vocabulary, readout = network.vocabulary, network.readout
    dense = isinstance(readout, nn.Linear) and network.embedding is None
    if vocabulary is None or not dense or not (nested or plain):
        return None
    every = [each for cell in cells for each in (cell, *([cell.memory] if nested else []))]
    matrices = [matrix for each in every for matrix in (each.weight_ih, each.weight_hh, each.bias)]
    matrices += [readout.weight, readout.bias]
    fits = sum(matrix.numel() for matrix in network.parameters()) <= LARGEST
    if any(matrix is None for matrix in matrices) or not fits or len(vocabulary) != cells[0].input_size:
        return None
    values = np.concatenate([matrix.detach().float().cpu().numpy().ravel() for matrix in matrices])
    return {
        "units": network.recurrent.hidden_size,
        "layers": len(cells),
        "nested": nested,
        "tanh": nested and cells[0].candidate == "tanh",
        "symbols": list(vocabulary.symbols),
        "data": values.astype("<f2").tobytes(),
    }
