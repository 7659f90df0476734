"""A loss that holds the rate of boundary detectors."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nlstm_lab.errors import UsageError


def ratio_loss(notes: Sequence[tuple[Tensor, Tensor]], lengths: Sequence[float]) -> Tensor:
    """The ratio loss of dynamic chunking (Hwang, Wang & Gu 2025, arXiv 2507.07955), summed over the layers.

    N / (N - 1) ((N - 1) F G + (1 - F)(1 - G)), N the mean length of a segment (`lengths`, of every layer but the top
    one), F the mean of z, without a gradient, and G that of z~ in `notes`: 1 where both are 1 / N.
    """
    count = notes[0][0].shape[1] - 1 if notes else 0
    if count != len(lengths):
        raise UsageError(f"rate_lengths holds {len(lengths)} lengths, and the network has {count} boundary detectors")
    z, z_tilde = notes[0]
    fired, open_ = z.detach()[:, :count].mean((0, 2)), z_tilde[:, :count].mean((0, 2))
    N = torch.as_tensor(lengths, dtype=z.dtype, device=z.device)
    return (N / (N - 1) * ((N - 1) * fired * open_ + (1 - fired) * (1 - open_))).sum()
