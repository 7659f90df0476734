"""One training loop for all tasks."""

from nlstm_lab.training.config import TrainingConfig
from nlstm_lab.training.evaluation import evaluate
from nlstm_lab.training.loop import Fit, fit

__all__ = ["Fit", "TrainingConfig", "evaluate", "fit"]
