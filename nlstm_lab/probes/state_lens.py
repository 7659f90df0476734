"""The state lens: a linear map from each memory to the logits of what comes some characters later.

After the tuned lens (Belrose et al. 2023), with memories for layers. Beside it stands the network's own readout,
applied to a memory as if that were the hidden state (the logit lens).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.decoding import fitted
from nlstm_lab.probes.reading import BURN_IN, Text, Texts, encode_symbols, is_one, seen, skipped
from nlstm_lab.probes.tracing import trace
from nlstm_lab.settings import counts

AHEAD = (0, 1, 3, 7)  # characters beyond the next
PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4)  # on the squared weights of standardized units, a character
HELD_OUT = 0.2  # of the training text, its end: what the penalty is chosen by
STEPS = 60  # of L-BFGS; a third of them for each penalty that is tried


@dataclass(frozen=True)
class Lens:
    """A lens for each memory and hidden state of a network."""

    model: Network
    ahead: tuple[int, ...]  # how many symbols after the next one is predicted, of each prediction
    weights: dict[str, Tensor]  # [units + 1, ahead, V]
    scales: dict[str, Tensor]  # [2, units]: mean and deviation

    def read(self, trace: xr.Dataset) -> xr.DataArray:
        """Predict from each memory of a `trace`, edited or not.

        Returns:
            log p (memory, ahead, time, vocabulary); `ahead` 0 is the next symbol.

        Raises:
            UsageError: The trace has other memories.
        """
        states = _states(trace)
        if list(states) != list(self.weights):
            raise UsageError(f"the lens is for {', '.join(self.weights)}, and this trace has {', '.join(states)}")
        read = [_scaled(values, self.scales[name]) for name, values in states.items()]
        logits = [torch.tensordot(x, weight, 1) for x, weight in zip(read, self.weights.values(), strict=True)]
        predicted = [each.log_softmax(-1).movedim(-2, 0) for each in logits]
        dims = ("memory", "ahead", *(each for each in ("text", "time") if each in trace.dims), "vocabulary")
        coords = {"memory": list(states), "ahead": list(self.ahead), "time": trace["time"].values}
        if self.model.vocabulary is not None:
            coords["vocabulary"] = list(self.model.vocabulary.symbols)
        return xr.DataArray(torch.stack(predicted).numpy(), coords, dims, name="log_p")


def lens(model: Network, text: Texts, *, ahead: Sequence[int] = AHEAD, burn_in: int = BURN_IN) -> Lens:
    """Train a lens on a text: multinomial logistic regression from tanh c, or h, standardized.

    The penalty on its weights is the one of `PENALTIES` with which the text's last fifth, held out, is predicted best.

    Args:
        text: The training text, or several.
        ahead: How many characters beyond the next the lens looks; 0 is the next.
        burn_in: Characters at the start of each that are not trained on.

    Raises:
        UsageError: The network predicts something else, or the text is too short.
    """
    several: Any = [text] if is_one(text) else text
    examples = [_examples(model, each, ahead, burn_in) for each in several]
    targets = torch.cat([targets for _, targets in examples])
    hidden = next(model.parameters()).new_zeros(1, model.recurrent.output_size)
    size = int(model.readout(hidden).shape[-1])
    weights, scales = {}, {}
    for name in examples[0][0]:
        values = torch.cat([states[name] for states, _ in examples])
        deviation = values.std(0)
        scales[name] = torch.stack([values.mean(0), torch.where(deviation > 1e-6, deviation, torch.inf)])
        weights[name] = _fitted(_scaled(values, scales[name]), targets, size)
    return Lens(model, tuple(ahead), weights, scales)


def _examples(model: Network, text: Text, ahead: Sequence[int], burn_in: int) -> tuple[dict[str, Tensor], Tensor]:
    """The states along a text, [T, units] of each memory, and what follows each of them, [T, ahead]."""
    codes = encode_symbols(model, text).cpu()
    if (last := len(codes) - 1 - max(counts(ahead, "ahead", 0))) < 1:
        raise UsageError(f"a text of {len(codes)} characters is too short for a lens that looks {max(ahead)} ahead")
    traced = skipped(trace(model, codes, predictions=False).isel(time=slice(last)), burn_in, 3)  # one is held out
    return _states(traced), torch.stack([codes[burn_in + 1 + k : last + 1 + k] for k in ahead], 1)


def _states(trace: xr.Dataset) -> dict[str, Tensor]:
    return {name: torch.tensor(values) for name, values in seen(trace).items()}


def _scaled(values: Tensor, scale: Tensor) -> Tensor:
    return F.pad((values - scale[0]) / scale[1], (0, 1), value=1.0)


def _fitted(x: Tensor, targets: Tensor, size: int) -> Tensor:
    """Weights whose penalty predicts the held-out end of the training text best; each is tried from the one before."""
    kept = round((1 - HELD_OUT) * len(x))
    weights = x.new_zeros(x.shape[1], targets.shape[1], size)
    best, chosen = torch.inf, PENALTIES[0]
    for penalty in PENALTIES:
        weights = fitted(weights, lambda some: _loss(some, x[:kept], targets[:kept]), penalty, STEPS // 3)
        held_out = float(_loss(weights, x[kept:], targets[kept:]))
        if held_out >= best:
            break
        best, chosen = held_out, penalty
    return fitted(weights, lambda some: _loss(some, x, targets), chosen, STEPS)


def _loss(weights: Tensor, x: Tensor, targets: Tensor) -> Tensor:
    """Nats a character, summed over the distances."""
    return F.cross_entropy(torch.tensordot(x, weights, 1).flatten(0, 1), targets.flatten()) * targets.shape[1]
