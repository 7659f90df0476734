"""What a logit hangs on: its gradients with respect to the input, by captum."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.texts import vocabulary_of

Mode = Literal["l2", "gradient_x_input"]
Read = tuple[Tensor, ...]  # what the unit is called with, [S, features] each, or [n, S, features] side by side
Attribute = Callable[[Read, Tensor, Tensor], Tensor]  # also positions [n] and codes [n], to [n, S]


def attribution(model: Network, mode: Mode) -> Attribute:
    """How the logits of a network are attributed to its input, in a mode of `connectivity`; UsageError: another."""
    if mode not in get_args(Mode):
        raise UsageError(f"mode must be one of {', '.join(map(repr, get_args(Mode)))}, not {mode!r}")
    return lambda read, positions, codes: _from_input(model, mode, read, positions, codes)


def _from_input(model: Network, mode: Mode, read: Read, positions: Tensor, codes: Tensor) -> Tensor:
    x, *given = read

    def predict(inputs: Tensor, positions: Tensor, *given: Tensor) -> Tensor:
        """[n, S, features] to the logits [n, outputs] of each row's own position."""
        beside = (tensor.transpose(0, 1) for tensor in given)
        hidden = model.recurrent(inputs.transpose(0, 1), *beside)[0]
        return model.readout(hidden[positions, torch.arange(len(inputs), device=x.device)])  # type: ignore[no-any-return]

    from captum.attr import InputXGradient, Saliency  # here, as every other probe goes without it

    inputs = x.clone().requires_grad_()
    asked: dict[str, Any] = {"target": codes, "additional_forward_args": (positions, *given)}
    if mode == "gradient_x_input":
        signed: Tensor = InputXGradient(predict).attribute(inputs, **asked)
        return signed.sum(-1).detach()
    gradient: Tensor = Saliency(predict).attribute(inputs, abs=False, **asked)
    if model.embedding is not None:
        with torch.no_grad():
            table = model.embedding(torch.arange(len(vocabulary_of(model)), device=x.device))
            gradient = gradient @ table.t()  # with respect to the one-hot vector
    return gradient.square().sum(-1).sqrt()  # the article's formula; its code forgets the root
