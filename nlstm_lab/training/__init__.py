"""One training loop for all tasks.

What these arguments mean wherever they are taken:

    network: The network that is trained, or scored.
    device: Where it is computed: "cpu", "cuda" or a torch.device.
"""

from nlstm_lab.training.loop import evaluate, fit
from nlstm_lab.training.updating import TrainingConfig, find_device

__all__ = ["TrainingConfig", "evaluate", "find_device", "fit"]
