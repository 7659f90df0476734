"""Vanishing gradients, measured: how the gradient shrinks with the distance that it has come (Madsen's article)."""

import copy
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nlstm_lab.cells.base import Records
from nlstm_lab.cells.hierarchical import HierarchicalRNN
from nlstm_lab.cells.recurrent import Recurrent
from nlstm_lab.datasets.excerpt import Sequences
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.baselines import untrained
from nlstm_lab.probes.reading import encode, evaluating, reading
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.studies.connectivity.lags import KEYS

DISTANCE = 100  # characters that a gradient comes back
SMALLEST = float(np.finfo(np.float64).tiny)  # what a gradient of exactly 0 counts as


def gradient_by_distance(unit: Recurrent, inputs: Tensor, projections: int = 8, seed: int = 0) -> pd.DataFrame:
    """log10 of the norm of d h_T / d x_t and of d h_T / d h_t of every layer, for every distance T - t.

    Only the gradient with respect to the input compares units: it comes by every path, while a unit's h is not all
    that it remembers (the article's delta_l^t, which is what reaches h_t of layer l).

    Returns a row for each sequence, layer and distance in the columns text, where ("input", "layer 1", ...),
    quantity ("log10_gradient"), lag (the distance) and value: `within_seed` makes intervals of it.
    UsageError: no projection, a unit whose boundaries are given.

    Args:
        unit: Any that reads its inputs alone, trained or not, with or without memory cells.
        inputs: Symbols [T, B] or vectors [T, B, features] as the unit takes them; each sequence is read from a zero
            state. h_T is the output at the last step, and the norm Frobenius's, estimated without bias from
            `projections` random directions v as the mean of |v' J|^2. In float64.
        projections: Random directions that the gradient is projected on.
    """
    if projections < 1:
        raise UsageError(f"at least one projection is needed, not {projections}")
    if isinstance(unit, HierarchicalRNN):
        raise UsageError(
            "a hierarchical RNN reads given boundaries beside its inputs, and here it would have none: choose another "
            "unit, or ask lab.probes.connectivity for the gradients of its network"
        )
    unit = copy.deepcopy(unit).double()
    device, number = inputs.device, inputs.shape[1]
    if not inputs.is_floating_point():
        inputs = torch.nn.functional.one_hot(inputs, unit.input_size)
    x = inputs.double().repeat_interleave(projections, dim=1)
    steps = [Records() for _ in unit.cells]
    with evaluating(unit), torch.enable_grad():
        read = [step.requires_grad_() for step in x.unbind()]
        output, _ = unit.run(torch.stack(read), [cell.initial_state(x.shape[1]) for cell in unit.cells], steps)
        directions = torch.randn(output[-1].shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        nodes = [*read, *(record["h"] for layer in steps for record in layer)]
        gradients = torch.autograd.grad((output[-1] * directions.to(device)).sum(), nodes, materialize_grads=True)
    squares = torch.stack([gradient.square().sum(-1) for gradient in gradients])  # [layers and input x T, B x v]
    norms = squares.view(len(steps) + 1, len(read), number, projections).mean(-1).sqrt().cpu().numpy()
    values = np.log10(np.maximum(norms, SMALLEST))[:, ::-1]
    index = pd.MultiIndex.from_product(
        [["input", *(f"layer {k + 1}" for k in range(len(steps)))], range(len(read)), range(number)],
        names=["where", "lag", "text"],
    )
    frame = pd.DataFrame({"value": values.ravel()}, index=index).reset_index()
    return frame.assign(quantity="log10_gradient")[["text", "where", "quantity", "lag", "value"]]


def gradients(model: Network, texts: Sequence[str] | Sequences, seed: int = 0) -> pd.DataFrame:
    """Measure how gradients shrink with the distance (`gradient_by_distance`), one row a layer and distance.

    Read are the first `DISTANCE` characters of each text.

    Returns:
        The means over texts of log10 of the norm, as `value`; condition "trained", and "as initialized" for the same
        network with its parameters drawn anew from `seed`.
    """
    both = {"as initialized": False, "trained": True}
    return pd.concat(
        [_gradients(model, texts, trained, seed).assign(condition=name) for name, trained in both.items()],
        ignore_index=True,
    )


@recorded("gradients", by=["trained", "seed"])
def _gradients(model: Network, texts: Sequence[str] | Sequences, trained: bool, seed: int) -> pd.DataFrame:
    network = model if trained else untrained(model, seed)
    codes = [encode(network, text[:DISTANCE]) for text in read(texts) if len(text) >= DISTANCE]
    with reading(network):
        inputs = network.inputs(torch.stack(codes, 1))
    frame = gradient_by_distance(network.recurrent, inputs.clone(), seed=seed)
    return frame.groupby(KEYS, sort=False)["value"].mean().reset_index()
