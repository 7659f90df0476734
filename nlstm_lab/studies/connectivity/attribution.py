"""What a logit hangs on: its gradients with respect to the input or to a memory's states, in four modes, by captum."""

import warnings
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from nlstm_lab.cells.base import Record, Records
from nlstm_lab.cells.memories import memories
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.texts import vocabulary_of

Mode = Literal["l2", "as_coded", "gradient_x_input", "integrated_gradients"]
Read = tuple[Tensor, ...]  # what the unit is called with, [S, features] each, or [n, S, features] side by side
Attribute = Callable[[Read, Tensor, Tensor], Tensor]  # also positions [n] and codes [n], to [n, S]

STEPS, MOST_STEPS = 50, 800  # from zero to the input, for integrated gradients: doubled until they are complete
INCOMPLETE = 0.01  # how much of their absolute sum may be missing


def attribution(model: Network, mode: Mode, memory: str | None) -> Attribute:
    """How the logits of a network are attributed to its input, or to the states of a memory.

    The modes are those of `connectivity`. UsageError: another mode, or one that a memory has not.
    """
    if mode not in get_args(Mode):
        raise UsageError(f"mode must be one of {', '.join(map(repr, get_args(Mode)))}, not {mode!r}")
    if memory is None:
        return lambda read, positions, codes: _from_input(model, mode, read, positions, codes)
    if mode == "integrated_gradients":
        raise UsageError("integrated gradients need an input to start from zero: for a memory choose another mode")
    return lambda read, positions, codes: _from_memory(model, mode, memory, read, positions, codes)


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
    if mode == "integrated_gradients":
        return _integrated(predict, inputs, asked)
    gradient: Tensor = Saliency(predict).attribute(inputs, abs=False, **asked)
    if model.embedding is not None:
        with torch.no_grad():
            table = model.embedding(torch.arange(len(vocabulary_of(model)), device=x.device))
            gradient = gradient @ table.t()  # with respect to the one-hot vector
    return _sized(gradient, mode)


def _integrated(predict: Callable[..., Tensor], inputs: Tensor, asked: dict[str, Any]) -> Tensor:
    """Integrated gradients, [n, S], with steps enough that they sum to what they explain."""
    from captum.attr import IntegratedGradients

    steps, gap = STEPS, float("inf")
    while gap > INCOMPLETE and steps <= MOST_STEPS:
        attributions, missing = IntegratedGradients(predict).attribute(
            inputs, n_steps=steps, internal_batch_size=len(inputs), return_convergence_delta=True, **asked
        )
        signed: Tensor = attributions.sum(-1).detach()
        gap = float((missing.abs() / signed.abs().sum(-1).clamp(min=1e-12)).max())
        steps *= 2
    if gap > INCOMPLETE:
        warnings.warn(f"integrated gradients leave up to {gap:.0%} of a prediction unexplained", stacklevel=2)
    return signed


def _from_memory(model: Network, mode: Mode, memory: str, read: Read, positions: Tensor, codes: Tensor) -> Tensor:
    """The states are read off the traced loop, where they are nodes of the graph; captum knows inputs and layers."""
    unit, number = model.recurrent, len(positions)
    steps = [Records() for _ in unit.cells]
    x, *given = (tensor.transpose(0, 1).clone() for tensor in read)
    beside = {"boundaries": given[0]} if given else {}
    output, _ = unit.run(x.requires_grad_(), [cell.initial_state(number) for cell in unit.cells], steps, **beside)
    rows = torch.arange(number, device=x.device)
    logits = model.readout(output[positions, rows])
    nodes = [memory_state(list(layers), memory) for layers in zip(*steps, strict=True)]
    gradients = torch.autograd.grad(logits[rows, codes].sum(), nodes, materialize_grads=True)
    gradient = torch.stack(gradients, 1)
    if mode == "gradient_x_input":
        return (gradient * torch.stack(nodes, 1)).sum(-1).detach()
    return _sized(gradient, mode)


def _sized(gradient: Tensor, mode: Mode) -> Tensor:
    """The size of gradients [..., features]: the article's formula, or its code."""
    squares = gradient.square().sum(-1)
    return squares if mode == "as_coded" else squares.sqrt()


def memory_state(layers: list[Record], memory: str) -> Tensor:
    """The state of one memory in the records of one step, [n, hidden_size]; a UsageError names those there are."""
    known = memories(layers)
    if memory not in known:
        there = f"it has {', '.join(known)}" if known else "it has none"
        raise UsageError(f"the unit has no memory {memory!r}: {there}")
    state: Tensor = known[memory]["c"]
    return state
