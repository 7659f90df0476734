"""The recurrent networks of the documents: `XCell` is one step, `X` is unrolled over time.

What these arguments mean wherever they are taken:

    input: What is read, in one of the forms that the class names.
    x: Vectors [..., features], or integer symbols [...] that stand for one-hot vectors; time, then the batch first.
    hx, state, states: The last state, as users see it, flat, or flat for each layer; None for zeros.
    projected, summed: What the input adds to the pre-activations, and all of them, [B, rows of the matrices].
    record, records, steps: Where a step, a layer or all layers note their gates and states; None for nowhere.
    z_below, h_above, boundary: z_t [B] of the layer below, h_{t-1} [B, hidden_size] of the one above, a given z_t [B].
    batch_size: How many sequences are read side by side.
    module: A recurrent network of `torch.nn`.
"""

from nlstm_lab.cells.base import Cell, Record, Records, noted
from nlstm_lab.cells.clockwork import ClockworkRNN, ClockworkRNNCell
from nlstm_lab.cells.fast import hmlstm  # noqa: F401  (the fast ways register themselves)
from nlstm_lab.cells.gru import GRU, GRUCell
from nlstm_lab.cells.hierarchical import HierarchicalRNN, HierarchicalRNNCell
from nlstm_lab.cells.hmlstm import HMLSTM, HMLSTMCell, Operation
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
