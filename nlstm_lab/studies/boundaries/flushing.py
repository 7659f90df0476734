"""What flushing does to the loss: a FLUSH withheld where a layer would flush, and one forced where it would not."""

import numpy as np
import pandas as pd
import torch

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.reading import encode_symbols, reading, rows, states_at
from nlstm_lab.studies.boundaries.measure import boundaries
from nlstm_lab.studies.boundaries.segments import fires
from nlstm_lab.studies.interventions.measure import ROWS, continuations, effect, predictions

KINDS = {"withheld": 1.0, "forced": 0.0}  # what z was before it was turned


def flushes(model: Network, text: str, layer: int, *, moments: int = 100, distance: int = 50) -> pd.DataFrame:
    """Turn z_{t-1} of a layer before step t, at moments spread over a text, and read on with and without that.

    withheld: z was 1 and is made 0, so that in the place of a FLUSH comes an UPDATE, or a COPY, by z of the layer below
    (equation 2), and nothing comes down (equation 6). forced: z was 0 and is made 1. One row a kind and distance (0 is
    the prediction at step t itself): kl, the divergence of the turned network's prediction from the intact one's, and
    loss_increase, both in nats and means over `moments`, as many of each kind as the text has; number, how many.

    UsageError: a layer without a detector, a network whose boundaries are not decided by a step function or that
    does not predict the symbols that it reads, no moment or distance, a text too short for the distance.

    Args:
        layer: The layer, from 1.
    """
    if moments < 1 or distance < 1:
        raise UsageError(f"moments and distance must be positive, not {moments} and {distance}")
    data = boundaries(model, text)
    if data.attrs["boundary"] != "step":
        raise UsageError(
            f"a FLUSH is withheld where a step function decides on it; here it is {data.attrs['boundary']}"
        )
    if layer not in range(1, data.sizes["layer"]):
        raise UsageError(f"layer {layer} has no detector; layers 1 to {data.sizes['layer'] - 1} have one")
    codes = encode_symbols(model, text)
    if len(codes) < distance + 3:
        raise UsageError(f"{distance} predictions after a FLUSH need a text of {distance + 3} characters at least")
    before = fires(data, layer)[: len(codes) - distance - 1]  # z_{t-1}, t - 1 = 0, 1, ...
    frames = []
    with reading(model):
        for kind, was in KINDS.items():
            possible = np.flatnonzero(before == was) + 1
            chosen = possible[np.linspace(0, len(possible) - 1, min(moments, len(possible))).astype(int)].tolist()
            pieces = [_turned(model, codes, chosen[k : k + ROWS], layer, distance) for k in range(0, len(chosen), ROWS)]
            loss, turned, kl = (
                np.concatenate(column, 1).mean(1) if pieces else np.full(distance, np.nan)
                for column in (zip(*pieces, strict=True) if pieces else [()] * 3)
            )
            columns = {"distance": range(distance), "kl": kl, "loss_increase": turned - loss}
            frames.append(pd.DataFrame({"layer": layer, "kind": kind, "number": len(chosen), **columns}))
    return pd.concat(frames, ignore_index=True)


def _turned(
    model: Network, codes: torch.Tensor, moments: list[int], layer: int, distance: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    state = states_at(model, codes, moments)
    other = rows(state, range(len(moments)))
    z = other[2][layer - 1]
    z.copy_(1 - z)
    x, targets = continuations(codes, moments, distance)
    return effect(predictions(model, x, state), predictions(model, x, other), targets)
