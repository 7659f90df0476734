"""Embedding or one-hot input, a unit, a readout; built from literal values, or around a network of your own."""

from nlstm_lab.models.config import Interface, ModelConfig
from nlstm_lab.models.network import UNITS, Network, Score, build, metrics, parameter_count, wrap
from nlstm_lab.models.own import unit
from nlstm_lab.models.readouts import MixtureDensity, OutputModule

__all__ = [
    "UNITS",
    "Interface",
    "MixtureDensity",
    "ModelConfig",
    "Network",
    "OutputModule",
    "Score",
    "build",
    "metrics",
    "parameter_count",
    "unit",
    "wrap",
]
