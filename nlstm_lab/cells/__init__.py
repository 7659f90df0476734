"""The recurrent units of the documents: `XCell` is one step, `X` is unrolled over time."""

from nlstm_lab.cells.base import Cell, Record, Records, noted
from nlstm_lab.cells.clockwork import ClockworkRNN, ClockworkRNNCell
from nlstm_lab.cells.fast import fused, gru, hmlstm  # noqa: F401  (the fast ways register themselves)
from nlstm_lab.cells.gru import GRU, GRUCell
from nlstm_lab.cells.hierarchical import HierarchicalRNN, HierarchicalRNNCell
from nlstm_lab.cells.hmlstm import HMLSTM, Boundaries, HMLSTMCell, Operation
from nlstm_lab.cells.layernorm import LayerNormLSTM, LayerNormLSTMCell
from nlstm_lab.cells.lstm import LSTM, LSTMCell
from nlstm_lab.cells.nested import Addition, NestedLSTM, NestedLSTMCell
from nlstm_lab.cells.precision import precision
from nlstm_lab.cells.recurrent import Recurrent
from nlstm_lab.cells.rnn import RNN, RNNCell

__all__ = [
    "GRU",
    "HMLSTM",
    "LSTM",
    "RNN",
    "Addition",
    "Boundaries",
    "Cell",
    "ClockworkRNN",
    "ClockworkRNNCell",
    "GRUCell",
    "HMLSTMCell",
    "HierarchicalRNN",
    "HierarchicalRNNCell",
    "LSTMCell",
    "LayerNormLSTM",
    "LayerNormLSTMCell",
    "NestedLSTM",
    "NestedLSTMCell",
    "Operation",
    "RNNCell",
    "Record",
    "Records",
    "Recurrent",
    "noted",
    "precision",
]
