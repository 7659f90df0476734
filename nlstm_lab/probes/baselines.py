"""What a finding must be held against: an untrained network, a text without order."""

import copy
import re
from typing import Literal

import numpy as np
import torch
from torch import nn

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network


def untrained(model: Network, seed: int = 0) -> Network:
    """Copy `model` with every parameter drawn anew from `seed`, each part by its own `reset_parameters`.

    The unit starts as its own initialization says; a dense readout as `torch.nn.Linear` does.

    Raises:
        UsageError: A part has no `reset_parameters`, or a weight is still the trained one after it: one that is
            computed (weight norm, pruning, a parametrization) is to be made a plain parameter first.
    """
    fresh = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in (fresh.recurrent, fresh.embedding, fresh.readout):
            if module is not None:
                _reset(module)
    trained = dict(model.named_parameters())
    for name, weight in fresh.named_parameters():
        old = trained[name]
        matrix = not old.is_meta and old.dim() > 1 and old.unique().numel() > 2
        if matrix and torch.equal(old, weight):
            raise UsageError(f"{name} is not drawn anew by `reset_parameters`, so the network would stay trained in it")
    return fresh


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
