"""One training loop for all tasks."""

from nlstm_lab.training.config import TrainingConfig
from nlstm_lab.training.loop import Fit, Interrupted, evaluate, fit

__all__ = ["Fit", "Interrupted", "TrainingConfig", "evaluate", "fit"]
