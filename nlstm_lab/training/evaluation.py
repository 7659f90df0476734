"""What a network scores on a split."""

from collections.abc import Iterable

import torch

from nlstm_lab.datasets.base import Batch
from nlstm_lab.errors import LabError
from nlstm_lab.models import Network, metrics


@torch.inference_mode()
def evaluate(network: Network, batches: Iterable[Batch], device: torch.device, metric: str) -> dict[str, float]:
    """Compute metrics over all predictions of batches, with the state carried where a batch says so.

    Args:
        batches: The batches to read.
        metric: The metric's name, with its unit, such as "bpc".

    Raises:
        LabError: There is no batch.
    """
    network.eval()
    state, sums = None, None
    for batch in batches:
        score, state = network.score(batch.to(device), None if batch.fresh else state)
        scored = torch.stack([value.double() for value in score])
        sums = scored if sums is None else sums + scored
    if sums is None:
        raise LabError(
            "there is nothing to evaluate: the split is shorter than one block; choose a shorter length or longer text"
        )
    return metrics(sums.tolist(), metric)
