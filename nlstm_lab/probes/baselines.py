"""What a finding must be held against: an untrained network, a text without order."""

import copy
import re
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network


def untrained(model: Network, seed: int = 0) -> Network:
    """Copy `model` with every parameter drawn anew from `seed`, each part by its own `reset_parameters`.

    The unit starts as its own initialization says; a dense readout as `torch.nn.Linear` does. Weights that are computed
    (weight norm, pruning, a parametrization) are drawn as plain ones; what was pruned stays zero.

    Raises:
        UsageError: A part has no `reset_parameters`, or a weight is still the trained one after it.
    """
    fresh = copy.deepcopy(model)
    masks = _computed_no_more(fresh)
    modules: list[Any] = [fresh.recurrent, *(m for m in (fresh.embedding, fresh.readout) if m is not None)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in modules:
            _reset(module)
    with torch.no_grad():
        for weight, mask in masks:
            weight.mul_(mask)
    trained = dict(model.named_parameters())
    for name, weight in fresh.named_parameters():
        old = trained.get(name)
        if (
            old is not None
            and not old.is_meta
            and old.dim() > 1
            and torch.equal(old, weight)
            and old.unique().numel() > 2
        ):
            raise UsageError(f"{name} is not drawn anew by `reset_parameters`, so the network would stay trained in it")
    return fresh


def _computed_no_more(model: nn.Module) -> list[tuple[nn.Parameter, Tensor]]:
    """Make plain parameters of weights that are computed from others; return those that were pruned, with the masks."""
    masks = []
    for part in model.modules():
        if parametrize.is_parametrized(part):  # torch's own removal would change the class, which the model shares
            computed: Any = part.parametrizations
            values = {name: getattr(part, name).detach() for name in computed}
            part.__class__ = type(part).__bases__[0]
            del part.parametrizations
            for name, value in values.items():
                part.register_parameter(name, nn.Parameter(value))
        for key, hook in list(part._forward_pre_hooks.items()):
            if isinstance(hook, prune.BasePruningMethod):
                name = hook._tensor_name
                mask = getattr(part, f"{name}_mask").clone()
                hook.remove(part)
                masks.append((getattr(part, name), mask))
            elif isinstance(hook, WeightNorm | SpectralNorm):
                hook.remove(part)
            else:
                continue
            del part._forward_pre_hooks[key]
    return masks


def _reset(module: nn.Module) -> None:
    """Reset `module`, or, if it cannot do that itself, its children."""
    reset = getattr(module, "reset_parameters", None)
    if reset is not None:
        reset()
        return
    if next(module.parameters(recurse=False), None) is not None or hasattr(module, "_packed_params"):
        raise UsageError(f"{type(module).__name__} has parameters but no `reset_parameters`, so it cannot be reset")
    for child in module.children():
        _reset(child)


def shuffled(text: str, by: Literal["characters", "words"], seed: int = 0) -> str:
    """Put the characters, or the words and the same white space between them, in an order without meaning.

    Args:
        by: What is shuffled: "characters" or "words".
    """
    generator = np.random.default_rng(seed)
    if by == "characters":
        return "".join(np.array(list(text))[generator.permutation(len(text))])
    if by == "words":
        pieces = re.split(r"(\s+)", text)
        words = [k for k in range(0, len(pieces), 2) if pieces[k]]  # white space at an end leaves an empty piece there
        for place, word in zip(words, [pieces[words[k]] for k in generator.permutation(len(words))], strict=True):
            pieces[place] = word
        return "".join(pieces)
    raise UsageError(f"a text is shuffled by 'characters' or by 'words', not by {by!r}")
