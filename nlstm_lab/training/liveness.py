"""Which memory cells are alive, by their states and gates; logged in training, used by the probes.

This is the one definition of a dead cell. A cell is *saturated* (in records: latched) when its gates are pinned, so
that it counts away from zero and its tanh stands at 1 or -1; it is *constant* (in records: silent) when its tanh is
practically constant. Neither remembers anything: others see its tanh (an outer memory raw, too, from -1 to 1).
Only the second half of the sequences is judged: from a zero state every cell first has to move.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nlstm_lab.cells.base import memories
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.statistics import mutual_information

CLASSES = ("alive", "silent", "latched")  # `liveness` returns positions in this

SATURATED = 0.99  # |tanh c| of a saturated cell
PINNED = 0.9  # the forget gate of a counter, at least: what it holds is not let go
DRIFT = 0.1  # what a counter adds a step, at least, away from zero; a whole 1 where every gate is pinned
STEPS = 0.95  # "practically all": the share of steps, over all texts, at which the above must hold
JUDGED = ("c", "i", "f", "g")  # what must be recorded of a memory whose cells are to be judged
CONSTANT = 0.001  # standard deviation of tanh c below which it carries nothing; untrained outer memories have 0.01


def liveness(c: Tensor, i: Tensor, f: Tensor, g: Tensor) -> Tensor:
    """The class of every cell of one memory, [H] int64 (positions in `CLASSES`), of c, i, f and g [T, B, H].

    A cell is saturated when, at practically all steps of the second half, its tanh is at the same limit, it keeps what
    it holds (f) and is pushed further the same way (i * g), and has indeed moved on by `DRIFT` a step.
    """
    half = c.shape[0] // 2
    visible = torch.tanh(c[half:])
    push = (i * g)[half:]
    sign = torch.sign(visible.sum((0, 1)))
    pinned = (sign * visible >= SATURATED) & (f[half:] >= PINNED) & (sign * push >= DRIFT)
    drift = sign * (c[-1] - c[half]).mean(0) / max(c.shape[0] - 1 - half, 1)
    saturated = (pinned.float().mean((0, 1)) >= STEPS) & (drift >= DRIFT)
    constant = ~saturated & (visible.flatten(0, 1).std(0, correction=0) < CONSTANT)
    return constant.long() + 2 * saturated.long()


@torch.inference_mode()
def shares(network: Network, inputs: Tensor) -> dict[str, float]:
    """The shares of saturated and of constant cells of each memory on one batch, from a zero state; and `detectors`.

    Such as {"latched_share/inner": 0.9, "silent_share/inner": 0.05}, for each memory that records its gates; NaN for
    one whose states are not finite.
    """
    records = network.trace(inputs)[2]
    named = detectors(records, inputs)
    for name, record in memories(records).items():
        if record.keys() >= set(JUDGED):
            classes = liveness(*(record[key] for key in JUDGED))
            finite = bool(record["c"].isfinite().all())
            for code, word in ((2, "latched"), (1, "silent")):
                named[f"{word}_share/{name}"] = float((classes == code).float().mean()) if finite else float("nan")
    return named


def detectors(records: Sequence[dict[str, Any]], inputs: Tensor) -> dict[str, float]:
    """What the boundary detectors of an HM-LSTM, which its top layer lacks, do on one batch.

    boundary_rate/layer 1, the mean of z; clamped_share, of the z~ at 0 or 1, where the straight-through gradient is
    zero; explained_share, the mutual information of z and the current symbol by the entropy of z, NaN where that is 0.
    """
    named = {}
    for k, record in enumerate(records[:-1], 1):
        if "z_tilde" in record:
            z, z_tilde = record["z"], record["z_tilde"]
            named[f"boundary_rate/layer {k}"] = float(z.mean())
            named[f"clamped_share/layer {k}"] = float(((z_tilde <= 0) | (z_tilde >= 1)).float().mean())
            if not inputs.is_floating_point():
                fires, symbols = (z > 0.5).flatten().cpu().numpy(), inputs.flatten().cpu().numpy()
                entropy = mutual_information(fires, fires)
                explained = mutual_information(fires, symbols) / entropy if entropy else float("nan")
                named[f"explained_share/layer {k}"] = explained
    return named


def ratio_loss(z: Tensor, z_tilde: Tensor, lengths: Sequence[float]) -> Tensor:
    """The ratio loss of dynamic chunking (Hwang, Wang & Gu 2025, arXiv 2507.07955), summed over the layers.

    N / (N - 1) ((N - 1) F G + (1 - F)(1 - G)), N the mean length of a segment (`lengths`, of every layer but the top
    one), F the mean of z [T, layers, B], without a gradient, and G that of z~: 1 where both are 1 / N.
    """
    count = z.shape[1] - 1
    if count != len(lengths):
        raise UsageError(f"rate_lengths holds {len(lengths)} lengths, and the network has {count} boundary detectors")
    fired, open_ = z.detach()[:, :count].mean((0, 2)), z_tilde[:, :count].mean((0, 2))
    N = torch.as_tensor(lengths, dtype=z.dtype, device=z.device)
    return (N / (N - 1) * ((N - 1) * fired * open_ + (1 - fired) * (1 - open_))).sum()
