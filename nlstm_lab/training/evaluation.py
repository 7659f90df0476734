"""What a network scores on a split."""

from collections.abc import Iterable

import torch

from nlstm_lab.datasets.base import Batch
from nlstm_lab.errors import LabError
from nlstm_lab.models import Network, metrics
from nlstm_lab.training.group import ALONE, Group


@torch.inference_mode()
def evaluate(
    network: Network, batches: Iterable[Batch], device: torch.device, metric: str, group: Group = ALONE
) -> dict[str, float]:
    """Metrics over all predictions of `batches`, with the state carried where a batch says so.

    The processes of a group share the rows, and all get the same metrics. Raises LabError where there is no batch.
    """
    network.eval()
    state, sums = None, None
    for batch in batches:
        rows, weight = group.rows(batch)
        moved = rows.to(device)
        score, state = network.score(moved, None if batch.fresh else state)
        weighed = weight * torch.stack([part.double() for part in score])
        sums = weighed if sums is None else sums + weighed
    if sums is None:
        raise LabError(
            "there is nothing to evaluate: the split is shorter than one block; choose a shorter length or longer text"
        )
    return metrics(group.sum(sums).tolist(), metric)
