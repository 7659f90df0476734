"""The pointwise part of one layer's step in an HM-LSTM, forward and backward: pure functions of named tensors.

Shapes: gates and states [B, H], boundaries and what a row has one of [B, 1]. The pre-activations of a layer are
[i | f | g | o] and, below the top layer, the detector's score.
"""

from typing import NamedTuple

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]
Named = dict[str, Tensor]


class Kind(NamedTuple):
    """What a layer is, by its place and by the choices of `HMLSTM`."""

    bottom: bool
    top: bool
    top_down: bool  # whether it hears a layer above
    hard: bool
    sample: bool
    soft: bool
    threshold: float
    limit: float | None
    bias: bool
    epsilon: float | None  # of the gates' norm, None without


def act(*tensors: Tensor, takes: tuple[str, ...], gives: tuple[str, ...], kind: Kind) -> Tensors:
    """A layer's step, given its product: equations 2 to 5 and 8, 9.

    Takes: product; bottom: projected, the input's share; h, c, flush, below; the parameters bias, gamma, slope; chance,
    the draws of sampled boundaries. Gives: i, f, g, o, c, h; normed, scale (one by the deviation); score, z_tilde, z;
    own, h for the layer's next product, upward, for that of the layer above, and downward, for the next one of the
    layer below.
    """
    x = dict(zip(takes, tensors, strict=True))
    out = {}
    summed = x["product"] + x["projected"] if kind.bottom else x["product"]
    size = x["h"].shape[1]
    gates, score = summed[:, : 4 * size], summed[:, -1:]
    if kind.epsilon is not None:
        out["normed"], out["scale"] = _normalized(gates, kind.epsilon)
        gates = out["normed"] * x["gamma"]
    if kind.bias:
        gates, score = gates + x["bias"][: 4 * size], score + x["bias"][-1]
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), _tanh(g), o.sigmoid()
    flush, below, copy = _choices(x, kind)
    written = i * g
    updated = f * x["c"] + written
    if kind.hard:
        c = torch.where(flush > 0, written, updated if kind.bottom else torch.where(below > 0, updated, x["c"]))
        h = torch.where(copy > 0, x["h"], o * _tanh(c))
    else:
        c = (1 - flush) * below * updated + copy * x["c"] + flush * written
        h = copy * x["h"] + (1 - copy) * (o * _tanh(c))
    out.update(i=i, f=f, g=g, o=o, c=c, h=h, own=h)
    if "downward" in gives:
        out["downward"] = below * h
    if not kind.top:
        z = z_tilde = ((x["slope"] * score + 1) / 2).clamp(0, 1)
        if not kind.soft:
            z = (z_tilde > (x["chance"] if kind.sample else kind.threshold)).to(z_tilde.dtype)
        out.update(score=score, z_tilde=z_tilde, z=z, upward=z * h)
    return tuple(out[name] for name in gives)


def act_backward(*tensors: Tensor, takes: tuple[str, ...], gives: tuple[str, ...], kind: Kind) -> Tensors:
    """Backward of `act`.

    Takes besides what `act` took and saved: d_output; from the step after d_own (through the product), d_kept, d_c and
    d_flush; from the layer below, a step after, d_downward; from the layer above d_upward and d_below, and of it
    h_above for d_above, which the layer's own next product sent there; d_detected and d_z of what users see of z~ and
    z; total_bias and total_gamma, the sums so far. Gives: d_summed, the gradient of the product; d_kept, d_c, d_flush
    and d_under (of z below) for the step and layer before; the sums with this step's added.
    """
    x = dict(zip(takes, tensors, strict=True))
    out = {}
    flush, below, copy = _choices(x, kind)
    d_h = x["d_output"] + x["d_own"] + x["d_kept"]
    if "d_downward" in takes:
        d_h = d_h + below * x["d_downward"]
    if not kind.top:
        d_h = d_h + x["z"] * x["d_upward"]
        d_z = x["d_z"] + x["d_flush"] + x["d_below"] + (x["d_upward"] * x["h_new"]).sum(1, keepdim=True)
        if "d_above" in takes:
            d_z = d_z + (x["d_above"] * x["h_above"]).sum(1, keepdim=True)
        through = (x["slope"] * x["score"] + 1) / 2  # the straight-through gradient
        d_score = torch.where((through >= 0) & (through <= 1), (x["d_detected"] + d_z) * x["slope"] / 2, 0)
    i, f, g, o, c = (x[name] for name in "ifgoc")
    out["d_kept"] = torch.where(copy > 0, d_h, 0) if kind.hard else copy * d_h
    d_emitted = torch.where(copy > 0, 0, d_h) if kind.hard else (1 - copy) * d_h
    seen = _tanh(x["c_new"])
    d_c = x["d_c"] + d_emitted * o * (1 - seen * seen)
    updating, flushing, keeping = _shares(flush, below, copy, kind)
    d_updated = updating * d_c
    d_written = d_updated + flushing * d_c
    out["d_c"] = keeping * d_c + d_updated * f
    out["d_flush"] = out["d_under"] = torch.zeros_like(flush)
    if not kind.hard:  # through equations 2 and 3
        written = i * g
        updated = f * c + written
        d_copy = (d_h * (x["h"] - o * seen) + d_c * c).sum(1, keepdim=True)
        out["d_flush"] = (d_c * (written - below * updated)).sum(1, keepdim=True) - d_copy * (1 - below)
        out["d_under"] = (d_c * (1 - flush) * updated).sum(1, keepdim=True) - d_copy * (1 - flush)
    gates = (
        d_written * g * i * (1 - i),
        d_updated * c * f * (1 - f),
        d_written * i * (1 - g * g),
        d_emitted * seen * o * (1 - o),
    )
    d_summed = torch.cat(gates if kind.top else (*gates, d_score), 1)
    if kind.limit is not None:
        d_summed = d_summed.clamp(-kind.limit, kind.limit)
    if kind.bias:
        out["total_bias"] = x["total_bias"] + d_summed
    if kind.epsilon is not None:
        gradient, rest = d_summed[:, : 4 * c.shape[1]], d_summed[:, 4 * c.shape[1] :]
        out["total_gamma"] = x["total_gamma"] + gradient * x["normed"]
        d_summed = torch.cat((_normalized_backward(gradient * x["gamma"], x["normed"], x["scale"]), rest), 1)
    out["d_summed"] = d_summed
    return tuple(out[name] for name in gives)


def _choices(x: Named, kind: Kind) -> Tensors:
    """z of the layer a step before, z of the layer below, and whether the layer copies."""
    flush = x["flush"]
    below = torch.ones_like(flush) if kind.bottom else x["below"]
    return flush, below, (1 - flush) * (1 - below)


def _shares(flush: Tensor, below: Tensor, copy: Tensor, kind: Kind) -> Tensors:
    """The factors of the updated, the flushed and the old cell in the new one."""
    if not kind.hard:
        return (1 - flush) * below, flush, copy
    flushing = (flush > 0).to(flush.dtype)
    updating = (1 - flushing) * (below > 0).to(flush.dtype)
    return updating, flushing, 1 - flushing - updating


def _tanh(values: Tensor) -> Tensor:
    """By the logistic function, which takes a processor a third of the time; the same but for an absolute rounding."""
    return 2 * (2 * values).sigmoid() - 1


def _normalized(values: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Every row with mean 0 and variance 1, and what it was multiplied with."""
    centred = values - values.mean(1, keepdim=True)
    scale = (centred.square().mean(1, keepdim=True) + epsilon).rsqrt()
    return centred * scale, scale


def _normalized_backward(gradient: Tensor, normed: Tensor, scale: Tensor) -> Tensor:
    along = (gradient * normed).mean(1, keepdim=True)
    return scale * (gradient - gradient.mean(1, keepdim=True) - normed * along)
