"""One training loop for all tasks.

What these arguments mean wherever they are taken:

    network: The network that is trained, or scored.
    device: Where it is computed: "cpu", "cuda" or a torch.device.
"""

from nlstm_lab.training.config import TrainingConfig
from nlstm_lab.training.loop import Fit, evaluate, fit

__all__ = ["Fit", "TrainingConfig", "evaluate", "fit"]
