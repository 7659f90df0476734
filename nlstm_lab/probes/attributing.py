"""Attribution over captum: which symbols, or which units of a memory, one prediction depends on.

What is attributed is F(x), one logit at one step, x [T, features] the vectors that the layers read. Nothing after that
step counts, so its attribution is 0.
"""

import warnings
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from nlstm_lab.errors import UsageError
from nlstm_lab.models.network import Network, check_network
from nlstm_lab.probes.edits import run
from nlstm_lab.probes.interventions import refuse_sampling
from nlstm_lab.probes.reading import Text, called, code_of, encode, evaluating, hidden_names, symbols_of
from nlstm_lab.settings import choice, counted

Method = Literal["saliency", "input_x_gradient", "integrated_gradients", "feature_ablation"]
BY_UNIT = ("saliency", "input_x_gradient", "integrated_gradients")
FREE = ("saliency", "input_x_gradient")  # of a baseline
TOLERANCE = 0.01  # of F(x) - F(baseline), that may be missing in their sum
FINER = 3  # times that the points of a path may be doubled
AT_ONCE = 2**23  # values of one state that are computed side by side: bounds the memory


def attribution(
    model: Network,
    text: Text,
    target: str | int,
    at: int = -1,
    method: Method = "integrated_gradients",
    baseline: Text | None = None,
    *,
    memory: str | None = None,
    points: int = 50,
) -> xr.DataArray:
    """Attribute one logit to the symbols of a text, or to the units of a memory at every step.

    Args:
        text: What is read from a zero state; vectors [T, features], too.
        target: The symbol or word, or its code, whose logit is attributed.
        at: The step after which it is predicted; negative from the end.
        method: F is the logit, x_s what the layers read at step s, b the baseline:
            "saliency", the L2 norm of dF/dx_s; "input_x_gradient", x_s . dF/dx_s; "integrated_gradients",
            (x_s - b_s) . the mean of dF/dx_s on the straight path from b to x; "feature_ablation", F(x) - F(x with b_s
            in the place of x_s). Of a memory: its gradient's size, gradient times state, and conductance (integrated
            gradients); for ablations see `run` and `unit_ablations`.
        baseline: A symbol, a text of the same length, or vectors; None for vectors of zeros.
        memory: A memory, a layer's h or a gate ("inner f"), as `run` names them.
        points: On the path; doubled up to three times until the sum is F(x) - F(b) within 1 %.

    Returns:
        [time], or with `memory` [time, unit]. Attributes: model, target, at, method, memory; of methods with a baseline
        logit and logit_baseline, F(x) and F(b). Where the method promises that attributions add up (integrated
        gradients of symbols; conductance of the h that the readout reads, at step `at`): sum, missing, the
        share of F(x) - F(b) by which it is wrong, and the points that were taken.

    Raises:
        UsageError: An argument is no choice, which the message lists.

    Warns:
        UserWarning: The sum misses the difference of logits by more than 1 %.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> found = lab.probes.attribution(model, "the old man sai", "d")
    >>> found.sizes["time"], found.attrs["missing"] < 0.01
    (15, True)
    """
    methods = get_args(Method) if memory is None else BY_UNIT
    choice(method, "method" if memory is None else f"method of {memory!r}", methods)
    points = counted(points, "points")
    check_network(model)
    refuse_sampling(model)
    codes = encode(model, text)
    step = _step(model, at, len(codes))
    with evaluating(model), torch.no_grad():
        x, *given = (tensor[None, : step + 1] for tensor in vectors_of(model, codes))
        b = _baseline(model, baseline, x.new_zeros(len(codes), x.shape[-1]))[None, : step + 1]
        code = code_of(model, target, model.readout(x.new_zeros(1, model.recurrent.output_size)).shape[-1])
    beside = (torch.tensor([step], device=x.device), *given)
    rows = max(1, AT_ONCE // (x.shape[1] * model.recurrent.hidden_size * model.recurrent.num_layers))
    about: dict[str, Any] = {"model": model.name, "target": str(target), "at": step, "method": method}
    about |= {"memory": memory} if memory is not None else {}
    # cuDNN's backward refuses a network in eval mode
    with evaluating(model), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        if method not in FREE:
            with torch.no_grad():
                ends = logits_at(model, torch.cat([x, b]), *(each.expand(2, *each.shape[1:]) for each in beside))
            about |= zip(("logit", "logit_baseline"), ends[:, code].tolist(), strict=True)
        # of memories, those of the h that the readout reads, and nothing else, add up
        last, width = hidden_names(model.recurrent.num_layers)[-1], model.recurrent.output_size
        of_output = memory is None or (memory == last and width == model.recurrent.hidden_size)
        promised = method == "integrated_gradients" and of_output
        gap = about["logit"] - about["logit_baseline"] if promised else 0.0
        for points in [points * 2**k for k in range(FINER + 1 if promised else 1)]:
            how = model, code, method, x, b, beside, rows, points
            values = _by_step(*how) if memory is None else _by_unit(*how, memory)
            total = float(values.sum() if memory is None else values[-1].sum())
            missing = abs(total - gap) / max(abs(gap), 1e-12)
            if missing <= TOLERANCE:
                break
    if promised:
        about |= {"sum": total, "missing": missing, "points": points}
        if missing > TOLERANCE:
            warnings.warn(
                f"the attributions sum to {total:.4g}, and the logit differs from the baseline's by "
                f"{gap:.4g}: {missing:.0%} is missing; take more points, or a nearer baseline",
                stacklevel=2,
            )
    whole = np.zeros((len(codes), *values.shape[1:]), np.float32)
    whole[: step + 1] = values.float().cpu().numpy()
    coords: dict[str, Any] = {"time": np.arange(len(codes))}
    coords |= {} if (symbols := symbols_of(model, codes)) is None else {"symbol": ("time", symbols)}
    coords |= {"unit": np.arange(whole.shape[1])} if memory is not None else {}
    return xr.DataArray(whole, coords, ("time", "unit")[: whole.ndim], "attribution", about)


def vectors_of(model: Network, codes: Tensor) -> tuple[Tensor, ...]:
    """What the layers are called with, [T, features] each: vectors, and boundaries that are given."""
    return model.vectors(codes).detach(), *model.recurrent_arguments(codes)[1:]


def _step(model: Network, at: int, length: int) -> int:
    step = counted(at, "at", -length, length - 1) % length
    if model.per_sequence and step != length - 1:
        raise UsageError(f"at must be the last step, -1: {called(model)} predicts once a sequence")
    return step


def _baseline(model: Network, baseline: Text | None, zeros: Tensor) -> Tensor:
    """What is read where there is nothing, [T, features]."""
    if baseline is None:
        return zeros
    read = model.vectors(encode(model, baseline, "baseline"))
    if read.shape not in (zeros.shape, (1, zeros.shape[1])):
        raise UsageError(f"baseline must be one symbol, or as long as the text, {len(zeros)} steps, not {len(read)}")
    return read.expand_as(zeros)


def logits_at(model: Network, x: Tensor, positions: Tensor, *given: Tensor) -> Tensor:
    """x [n, T, features] to the logits [n, outputs] of each row's own position [n]."""
    hidden = model.recurrent(x.transpose(0, 1), *(tensor.transpose(0, 1) for tensor in given))[0]
    return model.readout(hidden[positions, torch.arange(len(x), device=x.device)])  # type: ignore[no-any-return]


def _by_step(
    model: Network, code: int, method: Method, x: Tensor, b: Tensor, beside: tuple[Tensor, ...], rows: int, points: int
) -> Tensor:
    """[T], of x and b [1, T, features]."""
    from captum import attr  # here, as every other probe goes without it

    logits = partial(logits_at, model)
    asked: dict[str, Any] = {"target": code, "additional_forward_args": beside}
    values: Tensor
    if method == "saliency":
        return attr.Saliency(logits).attribute(x.requires_grad_(), abs=False, **asked)[0].norm(dim=-1)  # type: ignore[no-any-return]
    if method == "input_x_gradient":
        values = attr.InputXGradient(logits).attribute(x.requires_grad_(), **asked)
    elif method == "integrated_gradients":
        asked |= {"n_steps": points, "internal_batch_size": min(rows, points)}
        values = attr.IntegratedGradients(logits).attribute(x, b, **asked)
    else:
        steps = torch.arange(x.shape[1], device=x.device)[:, None].expand_as(x[0])[None]
        with torch.no_grad():
            asked |= {"feature_mask": steps, "perturbations_per_eval": min(rows, x.shape[1])}
            values = attr.FeatureAblation(logits).attribute(x, b, **asked)
        return values[0, :, 0]  # a step's features are ablated together, and have one value
    return values[0].sum(-1).detach()


def _by_unit(
    model: Network,
    code: int,
    method: Method,
    x: Tensor,
    b: Tensor,
    beside: tuple[Tensor, ...],
    rows: int,
    points: int,
    memory: str,
) -> Tensor:
    """[T, units]: the gradient by the state at each step, times nothing, the state, or its change along the path."""
    if beside[1:]:
        raise UsageError(f"memory: {type(model.recurrent).__name__} is given its boundaries; attribute its symbols")
    reader = Network(model.recurrent, model.readout)  # of vectors
    path = torch.linspace(0, 1, points + 1) if method == "integrated_gradients" else torch.ones(1)
    found = []
    for some in (b + path.to(x)[:, None, None] * (x - b)).split(rows):
        states: list[Tensor] = []
        added: list[Tensor] = []

        def add(values: Tensor, states: list[Tensor] = states, added: list[Tensor] = added) -> Tensor:
            states.append(values.detach())
            added.append(torch.zeros_like(states[-1], requires_grad=True))
            return values + added[-1]

        reading = run(reader, [*some], {memory: add}, keep=[], gradients=True)
        slopes = torch.autograd.grad(reading.logits[:, -1, code].sum(), added, materialize_grads=True)
        found.append(torch.stack([torch.stack(states), torch.stack(slopes)]))
    state, gradient = torch.cat(found, 2).unbind()  # [T, points, units]
    if method == "saliency":
        return gradient[:, 0].abs()
    if method == "input_x_gradient":
        return gradient[:, 0] * state[:, 0]
    return ((gradient[:, 1:] + gradient[:, :-1]) / 2 * state.diff(dim=1)).sum(1)  # trapezoids
