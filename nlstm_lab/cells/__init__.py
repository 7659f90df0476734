"""The recurrent units of the documents: `XCell` is one step, `X` is unrolled over time."""

from nlstm_lab.cells.base import Cell
from nlstm_lab.cells.fast import fused as _fused  # registers itself, and the loops that it falls back on
from nlstm_lab.cells.lstm import LSTM, LSTMCell
from nlstm_lab.cells.nested import Addition, NestedLSTM, NestedLSTMCell
from nlstm_lab.cells.precision import precision
from nlstm_lab.cells.recurrent import Recurrent

__all__ = ["LSTM", "Addition", "Cell", "LSTMCell", "NestedLSTM", "NestedLSTMCell", "Recurrent", "precision"]
