"""Networks: input map, recurrent layers, readout; built from literal values, or around your own layers.

What these arguments mean wherever they are taken:

    inputs: Symbols [T, B], or vectors [T, B, features].
    state: Of the recurrent layers; None: zeros, or what was learned.
    hidden: What the readout is given, [..., num_layers * hidden_size] where it sees every layer.
    outputs: What the readout gives, [..., size]; of a constructor, that size.
    targets: What was to be predicted, [...].
    points: Offsets and pen, (dx, dy, pen up), [..., 3].
    vocabulary: The symbols in the order of their codes; None where the input is no text.
    per_sequence: One prediction a sequence, not one a step.
    hidden_size, num_layers: Width and number of the recurrent layers.
    name: What figures and messages call the network.
"""

from nlstm_lab.models.network import CELL_TYPES, Network, build, cell_type, parameter_count
from nlstm_lab.models.parts import Interface, MixtureDensity, ModelConfig, OutputModule, Score, metrics
from nlstm_lab.models.saving import PRETRAINED, card, digest, load, pretrained, save
from nlstm_lab.models.wrapping import wrap

__all__ = [
    "CELL_TYPES",
    "PRETRAINED",
    "Interface",
    "MixtureDensity",
    "ModelConfig",
    "Network",
    "OutputModule",
    "Score",
    "build",
    "card",
    "cell_type",
    "digest",
    "load",
    "metrics",
    "parameter_count",
    "pretrained",
    "save",
    "wrap",
]
