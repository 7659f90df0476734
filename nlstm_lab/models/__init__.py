"""Networks: input map, recurrent layers, readout; built from literal values, or around your own layers."""

from nlstm_lab.models.config import Interface, ModelConfig
from nlstm_lab.models.network import CELL_TYPES, Network, build, digest, parameter_count
from nlstm_lab.models.own import cell_type
from nlstm_lab.models.readouts import MixtureDensity, OutputModule
from nlstm_lab.models.scoring import Score, metrics
from nlstm_lab.models.wrapping import wrap

__all__ = [
    "CELL_TYPES",
    "Interface",
    "MixtureDensity",
    "ModelConfig",
    "Network",
    "OutputModule",
    "Score",
    "build",
    "cell_type",
    "digest",
    "metrics",
    "parameter_count",
    "wrap",
]
