"""Scores of a network: nats and hits, from predictions held all at once or, where they are many, in pieces."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nlstm_lab.errors import UsageError

# Outputs from which on a batch's predictions are never held all at once, and how many are held then: what stays in a
# core's cache, or fills a GPU.
MANY = 2_048
HELD = {"cpu": 1 << 19, "cuda": 1 << 26}


class Score(NamedTuple):
    """Sums over a batch, still on its device.

    Args:
        nats: -log p of the predictions that count.
        counted, hits: How many these are, and how many of them are right.
        all_hits, all: How many of all predictions are right, and how many there are.
        sequences: How many sequences began.
    """

    nats: Tensor
    counted: Tensor
    hits: Tensor
    all_hits: Tensor
    all: Tensor
    sequences: Tensor


def metrics(sums: Sequence[float], metric: str) -> dict[str, float]:
    """Compute what the documents report from the sums of a `Score`.

    Args:
        sums: The sums of a `Score`.
        metric: The metric's name, with its unit, such as "bpc".

    Returns:
        By name: nats, `metric`, and accuracy in percent, which a density has not. Where the loss masks predictions that
        the article's accuracy does not (unknown words and padding), accuracy over all as well.
    """
    nats, counted, hits, all_hits, everything, sequences = sums
    nll = nats / counted
    if metric == "log_likelihood_nats":
        return {"nll_nats": nll, metric: -nats / sequences}
    named = {"nll_nats": nll, "top1_accuracy_pct": 100 * hits / counted}
    if metric == "nll_nats" and everything != counted:
        named["top1_accuracy_unmasked_pct"] = 100 * all_hits / everything
    elif metric == "bpc":
        named["bpc"] = nll / math.log(2)
    elif metric == "perplexity":
        named["perplexity"] = math.exp(min(nll, 700.0))  # above, a float overflows
    return named


def nats_of_many(layer: nn.Linear, hidden: Tensor, targets: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """A dense layer's cross-entropy in nats, summed where `mask` [N] is true, and which predictions are hits.

    The same as `cross_entropy` of the layer's outputs for hidden [N, inputs], but made a few rows at a time, while they
    lie in the cache, which takes half the time for Chinese poetry's.
    """
    if not torch.is_grad_enabled():
        nats, hits, *_ = _in_pieces(layer.weight, layer.bias, hidden, targets, mask, with_gradients=False)
        return nats, hits
    return _SummedNats.apply(layer.weight, layer.bias, hidden, targets, mask)  # type: ignore[no-any-return, no-untyped-call]


class _SummedNats(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        nats, hits, *gradients = _in_pieces(*tensors, with_gradients=True)
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(hits)
        return nats, hits

    @staticmethod
    def backward(ctx: Any, d_nats: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise UsageError(f"the loss of {MANY} outputs and more has no second derivative: use F.cross_entropy")
        return *(d_nats * gradient for gradient in ctx.saved_tensors), None, None


def _in_pieces(
    weight: Tensor, bias: Tensor, hidden: Tensor, targets: Tensor, mask: Tensor, *, with_gradients: bool
) -> tuple[Tensor, ...]:
    """Summed nats, hits and, where asked for, the gradients of the nats by weight, bias and hidden."""
    rows = max(1, HELD[hidden.device.type] // len(weight))
    held = hidden.new_empty(2, min(rows, len(hidden)), len(weight))
    nats, hits = hidden.new_empty(len(hidden)), torch.empty_like(mask)
    gradients = [torch.zeros_like(weight), torch.zeros_like(bias), torch.empty_like(hidden)] if with_gradients else []
    for start in range(0, len(hidden), rows):
        here = slice(start, start + rows)
        h, target = hidden[here], targets[here].unsqueeze(1)
        logits, shares = held[:, : len(h)]
        torch.addmm(bias, h, weight.t(), out=logits)
        largest, chosen = logits.amax(1), logits.gather(1, target).squeeze(1)
        torch.softmax(logits, 1, out=shares)
        # the largest logit's own share gives the normalizer, which softmax keeps to itself
        nats[here] = largest - shares.amax(1).log() - chosen
        hits[here] = chosen == largest
        if with_gradients:
            d_weight, d_bias, d_hidden = gradients
            shares.scatter_add_(1, target, shares.new_full((1, 1), -1.0).expand_as(target))
            shares.mul_(mask[here].unsqueeze(1))
            torch.mm(shares, weight, out=d_hidden[here])
            d_weight.addmm_(shares.t(), h)
            d_bias.add_(shares.sum(0))
    return torch.where(mask, nats, 0).sum(), hits, *gradients
