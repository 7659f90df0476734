"""The pointwise part of one layer's step in an HM-LSTM, forward and backward: pure functions of named tensors.

Shapes: gates and states [B, H], boundaries and what a row has one of [B, 1]. The pre-activations of a layer are
[i | f | g | o] and, where the detector is a row of them, its score. The backward function takes what the forward one
saved, and the gradients that came from the step after, from the layer above and from the layer below.
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
    top_down: bool  # whether it reads a layer above
    hard: bool
    sample: bool
    soft: bool
    identity: bool
    hidden: bool  # whether the detector weighs the new h
    detect_on_copy: bool
    reset: bool
    threshold: float
    limit: float | None
    bias: bool
    epsilon: float | None  # of the gates' norm, None without
    epsilon_c: float | None  # of the cell's

    @property
    def scored(self) -> bool:
        """Whether the detector's score is the last pre-activation."""
        return not (self.top or self.hidden)


def act(*tensors: Tensor, takes: tuple[str, ...], gives: tuple[str, ...], kind: Kind) -> Tensors:
    """A layer's step, given its product: equations 2 to 5 and 8, 9.

    Takes: product; bottom: projected, the input's share; h, c, flush, below; the parameters bias, gamma, gamma_c,
    bias_c, weight_z, slope; chance, the draws of sampled boundaries. Gives: i, f, g, o, c, h; normed, scale (one by the
    deviation); score, z_tilde, z; own, h for the layer's next product, upward, for that of the layer above, and
    downward, for the next one of the layer below.
    """
    x = dict(zip(takes, tensors, strict=True))
    out = {}
    summed = x["product"] + x["projected"] if kind.bottom else x["product"]
    size = x["h"].shape[1]
    gates, score = summed, summed[:, -1:]
    if kind.epsilon is not None:
        width = x["gamma"].shape[0]
        out["normed"], out["scale"] = _normalized(summed[:, :width], kind.epsilon)
        gates = out["normed"] * x["gamma"]
        score = score if width == 4 * size else gates[:, -1:]
    gates = gates[:, : 4 * size]
    if kind.bias:
        gates, score = gates + x["bias"][: 4 * size], score + x["bias"][-1]
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), _tanh(g), o.sigmoid()
    flush, below, copy = _choices(x, kind)
    written = i * g
    updated = f * x["c"] + written
    flushed = written if kind.reset else updated
    if kind.hard:
        c = torch.where(flush > 0, flushed, updated if kind.bottom else torch.where(below > 0, updated, x["c"]))
        h = torch.where(copy > 0, x["h"], _emitted(o, c, x, kind))
    else:
        c = (1 - flush) * below * updated + copy * x["c"] + flush * flushed
        h = copy * x["h"] + (1 - copy) * _emitted(o, c, x, kind)
    out.update(i=i, f=f, g=g, o=o, c=c, h=h, own=h)
    if "downward" in gives:
        out["downward"] = below * h
    if not kind.top:
        score = score if kind.scored else (h * x["weight_z"]).sum(1, keepdim=True)
        out["score"], out["z_tilde"] = score, ((x["slope"] * score + 1) / 2).clamp(0, 1)
        z = _fired(out["z_tilde"], x, kind)
        out["z"] = z if kind.detect_on_copy else z * (1 - copy)
        out["upward"] = out["z"] * h
    return tuple(out[name] for name in gives)


def act_backward(*tensors: Tensor, takes: tuple[str, ...], gives: tuple[str, ...], kind: Kind) -> Tensors:
    """Backward of `act`.

    Takes besides what `act` took and saved: d_output; from the step after d_own (through the product), d_kept, d_c and
    d_flush; from the layer below, a step after, d_downward; from the layer above d_upward and d_below, and of it
    h_above for d_above, which the layer's own next product sent there; d_detected and d_z of what users see of z~ and
    z; total_bias and total_gamma, the sums so far, and likewise total_gamma_c, total_bias_c. Gives: d_summed, the
    gradient of the product; d_kept, d_c, d_flush and d_under (of z below) for the step and layer before; d_score of a
    detector that weighs h; the sums with this step's added.
    """
    x = dict(zip(takes, tensors, strict=True))
    out = {}
    flush, below, copy = _choices(x, kind)
    d_h, d_copy = x["d_output"] + x["d_own"] + x["d_kept"], None
    if "d_downward" in takes:
        d_h = d_h + below * x["d_downward"]
    if not kind.top:
        d_h = d_h + x["z"] * x["d_upward"]
        d_z = x["d_z"] + x["d_flush"] + x["d_below"] + (x["d_upward"] * x["h_new"]).sum(1, keepdim=True)
        if "d_above" in takes:
            d_z = d_z + (x["d_above"] * x["h_above"]).sum(1, keepdim=True)
        if not kind.detect_on_copy:
            d_copy = -d_z * _fired(x["z_tilde"], x, kind)
            d_z = d_z * (1 - copy)
        d_score = _score_backward(d_z, x, kind)
        if kind.hidden:
            out["d_score"] = d_score
            d_h = d_h + d_score * x["weight_z"]
    i, f, g, o, c = (x[name] for name in "ifgoc")
    d_kept = torch.where(copy > 0, d_h, 0) if kind.hard else copy * d_h
    d_emitted = torch.where(copy > 0, 0, d_h) if kind.hard else (1 - copy) * d_h
    inside = x["c_new"] if kind.epsilon_c is None else _normalized(x["c_new"], kind.epsilon_c)[0]
    seen = _tanh(inside if kind.epsilon_c is None else inside * x["gamma_c"] + x["bias_c"])
    d_inside = d_emitted * o * (1 - seen * seen)
    if kind.epsilon_c is not None:
        out["total_gamma_c"], out["total_bias_c"] = x["total_gamma_c"] + d_inside * inside, x["total_bias_c"] + d_inside
        scale = _normalized(x["c_new"], kind.epsilon_c)[1]
        d_inside = _normalized_backward(d_inside * x["gamma_c"], inside, scale)
    d_c = x["d_c"] + d_inside
    updating, flushing, keeping = _shares(flush, below, copy, kind)
    d_updated, d_flushed = updating * d_c, flushing * d_c
    if not kind.reset:
        d_updated = d_updated + d_flushed
    d_written = d_updated + d_flushed if kind.reset else d_updated
    out["d_c"], out["d_kept"] = keeping * d_c + d_updated * f, d_kept
    out.update(_choices_backward(d_h, d_c, d_copy, o * seen, x, kind))
    gates = (
        d_written * g * i * (1 - i),
        d_updated * c * f * (1 - f),
        d_written * i * (1 - g * g),
        d_emitted * seen * o * (1 - o),
    )
    d_summed = torch.cat((*gates, d_score) if kind.scored else gates, 1)
    if kind.limit is not None:
        d_summed = d_summed.clamp(-kind.limit, kind.limit)
    if kind.bias:
        out["total_bias"] = x["total_bias"] + d_summed
    if kind.epsilon is not None:
        width = x["gamma"].shape[0]
        gradient, normed = d_summed[:, :width], x["normed"]
        out["total_gamma"] = x["total_gamma"] + gradient * normed
        gradient = _normalized_backward(gradient * x["gamma"], normed, x["scale"])
        rest = d_summed[:, width:]
        d_summed = torch.cat((gradient, rest), 1) if rest.shape[1] else gradient
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


def _choices_backward(
    d_h: Tensor, d_c: Tensor, d_copy: Tensor | None, emitted: Tensor, x: Named, kind: Kind
) -> dict[str, Tensor]:
    """d_flush and d_under: the gradients of the two boundaries through equations 2 and 3."""
    flush, below, _ = _choices(x, kind)
    d_flush, d_below = torch.zeros_like(flush), torch.zeros_like(flush)
    if not kind.hard:
        written = x["i"] * x["g"]
        updated = x["f"] * x["c"] + written
        flushed = written if kind.reset else updated
        d_flush = (d_c * (flushed - below * updated)).sum(1, keepdim=True)
        d_below = (d_c * (1 - flush) * updated).sum(1, keepdim=True)
        chosen = (d_h * (x["h"] - emitted) + d_c * x["c"]).sum(1, keepdim=True)
        d_copy = chosen if d_copy is None else d_copy + chosen
    if d_copy is not None:
        d_flush, d_below = d_flush - d_copy * (1 - below), d_below - d_copy * (1 - flush)
    return {"d_flush": d_flush, "d_under": d_below}


def _emitted(o: Tensor, c: Tensor, x: Named, kind: Kind) -> Tensor:
    if kind.epsilon_c is None:
        return o * _tanh(c)
    return o * _tanh(_normalized(c, kind.epsilon_c)[0] * x["gamma_c"] + x["bias_c"])


def _fired(z_tilde: Tensor, x: Named, kind: Kind) -> Tensor:
    """z as the detector has it, before a COPY may withhold it."""
    if kind.soft:
        return z_tilde
    return (z_tilde > (x["chance"] if kind.sample else kind.threshold)).to(z_tilde.dtype)


def _score_backward(d_z: Tensor, x: Named, kind: Kind) -> Tensor:
    """The straight-through gradient of the detector's score."""
    through = (x["slope"] * x["score"] + 1) / 2
    d_z_tilde = x["d_detected"] if kind.identity else x["d_detected"] + d_z
    d_score = torch.where((through >= 0) & (through <= 1), d_z_tilde * x["slope"] / 2, 0)
    return d_score + d_z if kind.identity else d_score


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
