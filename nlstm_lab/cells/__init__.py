"""The recurrent networks of the documents: `XCell` is one step, `X` is unrolled over time.

What these arguments mean wherever they are taken:

    input: What is read, in one of the forms that the class names.
    x: Vectors [..., features], or integer symbols [...] that stand for one-hot vectors; time, then the batch first.
    hx, state, states: The last state, as users see it, flat, or flat for each layer; None: zeros, or what was learned.
    projected, summed: What the input adds to the pre-activations, and all of them, [B, rows of the matrices].
    hook, hooks: Called with every gate and state of a step (`Hook`), one for each layer; None for none.
    z_below, h_above, boundary: z_t [B] of the layer below, h_{t-1} [B, hidden_size] of the one above, a given z_t [B].
    batch_size: How many sequences are read side by side.
    input_size, hidden_size, num_layers: Features of x_t or the number of symbols, features of h, and layers.
    bias: Whether the gates have a bias.
    batch_first, dropout, bidirectional, proj_size, all_layers: As in `Recurrent`.
    initialization: Of the parameters: "nested_lstm", "glorot", "madsen" or "torch" (`cells.base`).
    device, dtype: Where the parameters lie, and their type.
    options: Of a network: the further arguments of its cell; of a cell: initialization, device, dtype, takes_input.
    takes_input: Whether x_t is the network's input, whose matrix may be initialized otherwise.
    top: Whether no layer is above this one.
"""

from nlstm_lab.cells import fast
from nlstm_lab.cells.base import Cache, Cell, Hook, hooked
from nlstm_lab.cells.baselines import (
    GRU,
    RNN,
    ClockworkRNN,
    ClockworkRNNCell,
    GRUCell,
    LayerNormLSTM,
    LayerNormLSTMCell,
    RNNCell,
)
from nlstm_lab.cells.fast import layers as _layers
from nlstm_lab.cells.fast import precision
from nlstm_lab.cells.hierarchical import HierarchicalRNN, HierarchicalRNNCell
from nlstm_lab.cells.hmlstm import HMLSTM, HMLSTMCell, Operation
from nlstm_lab.cells.lstm import LSTM, LSTMCell
from nlstm_lab.cells.nested import Addition, NestedLSTM, NestedLSTMCell
from nlstm_lab.cells.recurrent import Recurrent

# what is unrolled by a faster way than the loop over its readable step
fast.WAYS |= {
    LSTMCell: _layers.unroll_lstm,
    LayerNormLSTMCell: _layers.unroll_layer_norm,
    NestedLSTMCell: _layers.unroll,
    HMLSTM: _layers.unroll_hmlstm,
}

__all__ = [
    "GRU",
    "HMLSTM",
    "LSTM",
    "RNN",
    "Addition",
    "Cache",
    "Cell",
    "ClockworkRNN",
    "ClockworkRNNCell",
    "GRUCell",
    "HMLSTMCell",
    "HierarchicalRNN",
    "HierarchicalRNNCell",
    "Hook",
    "LSTMCell",
    "LayerNormLSTM",
    "LayerNormLSTMCell",
    "NestedLSTM",
    "NestedLSTMCell",
    "Operation",
    "RNNCell",
    "Recurrent",
    "hooked",
    "precision",
]
