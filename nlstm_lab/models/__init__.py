"""Embedding or one-hot input, a unit, a readout; built from literal values, or around a network of your own."""

from nlstm_lab.models.config import Interface, ModelConfig
from nlstm_lab.models.network import UNITS, Network, build, digest, parameter_count, wrap
from nlstm_lab.models.own import unit
from nlstm_lab.models.readouts import MixtureDensity, OutputModule
from nlstm_lab.models.scoring import Score, metrics

__all__ = [
    "UNITS",
    "Interface",
    "MixtureDensity",
    "ModelConfig",
    "Network",
    "OutputModule",
    "Score",
    "build",
    "digest",
    "metrics",
    "parameter_count",
    "unit",
    "wrap",
]
