"""Patch maps: what each memory, put from one reading into another, restores of the prediction.

Two texts differ in a word and end alike. Just before each character of the common end, one memory of the corrupted
reading is replaced by that of the clean one (activation patching, Vig et al. 2020; Meng et al. 2022). Attribution
patching (Nanda 2023; Syed, Rager and Conmy 2023) is its first-order approximation, from one gradient.
"""

import warnings
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.cells import fast
from nlstm_lab.errors import UsageError
from nlstm_lab.models.network import Network, check_network
from nlstm_lab.probes import reading
from nlstm_lab.probes.interventions import refuse_sampling

HARDLY = 0.01  # of the metric's size: two texts that differ by less leave nothing to share out
AT_ONCE = 4096  # patched readings side by side
RESAMPLES = 1000  # of the pairs, for an interval
AXES = ("memory", "time", "unit")
Metric = Callable[[Tensor], Tensor]


def patch(
    model: Network,
    pairs: Any,
    metric: Metric | None = None,
    over: Sequence[str] = ("memory", "time"),
    *,
    watch: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Patch what a clean reading holds into a corrupted one, just before steps of their common end.

    Args:
        model: A network that predicts symbols, words or classes; it may read vectors.
        pairs: (clean, corrupted, right, wrong), or (clean, corrupted) where a metric is given; or a list of them. Texts
            of a pair differ, end alike, and may be of other lengths; `right` and `wrong` are symbols or codes.
        metric: Of logits [n, outputs] after the last step, [n]; None for the logit of `right` less that of `wrong`.
        over: What is patched apart: "memory" (and hidden states), "time" (the steps of the common end), "unit". What is
            not named is patched together.
        watch: Called with the share that is done; may raise to end it.

    Returns:
        Dimensions pair (not for one pair alone) and those of `over`; time counts the steps since the texts last
        differed. `clean`, `corrupted` and `effect`, their difference (pair): the metric unpatched. `patched` (pair,
        *over): what patching adds to `corrupted`; NaN where a pair is shorter. `attributed`, its first-order
        approximation by gradients. `share` with its bootstrap interval `low` to `high` over pairs (*over): the sum of
        `patched` relative to that of `effect`; NaN where the texts hardly differ, and no interval of one pair. Of one
        pair without units `log_p` (.., code), too: what is then predicted.

    Raises:
        UsageError: Texts do not end alike or are the same; there is no such symbol or axis.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> pairs = [("the rates ha", "the rate ha", "v", "s"), ("some rates ha", "some rate ha", "v", "s")]
    >>> found = lab.probes.patch(model, pairs)
    >>> dict(found.patched.sizes), bool(found.effect.min() > 0.1)
    ({'pair': 2, 'memory': 3, 'time': 3}, True)
    """
    if isinstance(over, str) or not isinstance(over, Collection) or not all(axis in AXES for axis in over):
        raise UsageError(f"over must name some of {', '.join(map(repr, AXES))}, not {over!r}")
    axes = [axis for axis in AXES if axis in over]
    check_network(model)
    refuse_sampling(model)
    alone = isinstance(pairs, tuple) and bool(pairs) and not isinstance(pairs[0], tuple | list)
    if not isinstance(pairs, tuple | list) or not pairs:
        raise UsageError(f"pairs must be a pair of texts or a list of them, one at least, not {str(pairs)[:60]}")
    several, found = [pairs] if alone else [*pairs], []
    for k, pair in enumerate(tqdm(several, disable=len(several) < 100, leave=False, unit=" pairs")):
        done = None if watch is None else lambda share, k=k: watch((k + share) / len(several))
        one = _of_pair(model, pair, metric, axes, done)
        found.append(one if alone else one.drop_vars(["symbol", "log_p"], errors="ignore"))
    data = found[0] if alone else xr.concat(found, "pair", join="outer")
    return data.assign(_shares(data, axes)).assign_attrs(model=model.name)


def _texts(model: Network, pair: Any, size: int) -> tuple[Tensor, Tensor, int]:
    """What a clean and a corrupted text are read as, and how long their common end is."""
    if not isinstance(pair, tuple | list) or len(pair) != size:
        wanted = "(clean, corrupted, right, wrong), or (clean, corrupted) beside a metric"
        raise UsageError(f"pairs must be {wanted}, not {str(pair)[:60]}")
    one, other = reading.encode(model, pair[0], "clean"), reading.encode(model, pair[1], "corrupted")
    shorter = min(len(one), len(other))
    unlike = (one[-shorter:] != other[-shorter:]).view(shorter, -1).any(-1).nonzero().flatten()
    if not len(unlike) and len(one) == len(other):
        raise UsageError("pairs: the clean and the corrupted text are the same: they must differ in a word")
    # where the shorter text is an end of the longer one, they differ in how they begin
    common = shorter - 1 - (int(unlike[-1]) if len(unlike) else 0)
    if common < 1:
        raise UsageError("pairs: the clean and the corrupted text must end alike, in one character at least")
    return one, other, common


def _preference(model: Network, symbols: Sequence[str | int], logits: Tensor) -> Tensor:
    """The logit of the right symbol less that of the wrong one."""
    asked = zip(("right", "wrong"), symbols, strict=True)
    right, wrong = (reading.code_of(model, symbol, logits.shape[-1], name) for name, symbol in asked)
    if right == wrong:
        raise UsageError(f"pairs: right and wrong must be two different symbols, not both {symbols[0]!r}")
    return logits[:, right] - logits[:, wrong]


def _measured(metric: Metric, logits: Tensor) -> Tensor:
    """The metric of logits [n, outputs], [n]; UsageError where it is anything else."""
    values: Any = metric(logits) if callable(metric) else metric
    if not isinstance(values, Tensor) or values.shape != logits.shape[:1]:
        said = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise UsageError(f"metric must be a function of logits [n, outputs] to a tensor [n], a value a row, not {said}")
    return values


def _of_pair(model: Network, pair: Any, metric: Metric | None, axes: Sequence[str], watch: Any) -> xr.Dataset:
    """`patch` of one pair, without shares."""
    recurrent = model.recurrent
    *texts, common = _texts(model, pair, 4 if metric is None else 2)
    metric, end = metric or partial(_preference, model, pair[2:]), texts[1][-common:]
    shape = {"time": common, "memory": len(reading.every_name(recurrent)), "unit": recurrent.hidden_size}
    # what each patch replaces [patches, memories, units]
    memories, units = (torch.eye(n) if axis in axes else torch.ones(1, n) for axis, n in [*shape.items()][1:])
    masks = (memories[:, None, :, None] * units[None, :, None]).flatten(0, 1).bool().to(model.device)
    with reading.evaluating(model), fast.disabled():  # whose preparations do not pay for a single step
        with torch.no_grad():
            begun = [model.read(text[: len(text) - common, None])[1] for text in texts]
            state = reading.batched(begun)
            logits = _patched_ends(model, state, end, masks, "time" in axes, watch)
            measured = _measured(metric, logits).double().cpu()
        with torch.enable_grad():
            first = _first_order(model, state, end, metric)
    dims = [axis for axis in shape if axis in axes]  # as they are read
    clean, corrupted = measured[:2].tolist()
    patched = (measured[2:] - corrupted).float().view([shape[axis] for axis in dims])
    data: dict[str, Any] = {"patched": (dims, patched.numpy()), "clean": clean, "corrupted": corrupted}
    data["effect"] = clean - corrupted
    if first is not None:
        summed = tuple(k for k, axis in enumerate(shape) if axis not in axes)
        data["attributed"] = (dims, (first.sum(summed) if summed else first).float().cpu().numpy())
    if "unit" not in axes:
        data["log_p"] = ((*dims, "code"), logits[2:].float().log_softmax(-1).view(*patched.shape, -1).cpu().numpy())
    coords: dict[str, Any] = {axis: range(shape[axis]) for axis in axes}
    coords |= {"memory": reading.every_name(recurrent)} if "memory" in axes else {}
    if "time" in axes and (symbols := reading.symbols_of(model, end)) is not None:
        coords["symbol"] = ("time", symbols)
    return xr.Dataset(data, coords).transpose(*axes, ...)


def _step(model: Network, x: Tensor, state: Any) -> tuple[Tensor, Any]:
    """All rows of a state read the same symbol or vector."""
    rows = reading.component(model.recurrent, state, reading.every_name(model.recurrent)[0])
    return model.recurrent(*model.recurrent_arguments(torch.stack([x] * len(rows))[None]), state)  # type: ignore[no-any-return]


def _patched_ends(model: Network, begun: Any, end: Tensor, masks: Tensor, each_time: bool, watch: Any) -> Tensor:
    """The logits [2 + patches, V] after the clean, the corrupted and the patched readings, time by time where
    `each_time`; the first two begin as rows of the state `begun`."""
    every, pieces = reading.every_name(model.recurrent), []
    several = masks.split(max(1, AT_ONCE // (len(end) if each_time else 1)))
    for k, some in enumerate(several):
        state, n = begun, len(some)
        for step, x in enumerate(end):
            if each_time or not step:  # further copies of the corrupted reading
                state = reading.batched([state, reading.rows(state, [1] * n)])
            for name, mask in zip(every, some.unbind(1), strict=True):
                held = reading.component(model.recurrent, state, name)
                held[-n:] = torch.where(mask, held[0], held[-n:])
            output, state = _step(model, x, state)
            if watch is not None:
                watch((k + (step + 1) / len(end)) / len(several))
        pieces.append(model.readout(output[0]))
    patched = [logits[2:].unflatten(0, (-1, len(some))) for logits, some in zip(pieces, several, strict=True)]
    return torch.cat([pieces[0][:2], torch.cat(patched, 1).flatten(0, 1)])


def _first_order(model: Network, state: Any, end: Tensor, metric: Metric) -> Tensor | None:
    """The first-order effect of each patch, [steps, memories, units]; None where the metric has none."""
    every, held, added = reading.every_name(model.recurrent), list[Tensor](), list[Tensor]()
    for x in end:
        state = reading.rows(state, [0, 1])  # a copy, which is added to
        parts = [reading.component(model.recurrent, state, name) for name in every]
        held.append(torch.stack(parts, 1).detach())
        added.append(torch.zeros_like(held[-1], requires_grad=True))
        for name, more in zip(every, added[-1].unbind(1), strict=True):
            reading.component(model.recurrent, state, name).add_(more)
        output, state = _step(model, x, state)
    value = _measured(metric, model.readout(output[0])[1:]).sum()
    if not value.requires_grad:
        return None
    slopes = torch.stack(torch.autograd.grad(value, added))
    clean, corrupted = torch.stack(held).unbind(1)
    return (clean - corrupted) * slopes[:, 1]


def _shares(data: xr.Dataset, axes: Sequence[str]) -> dict[str, Any]:
    """The share that each patch restores, and its bootstrap interval over pairs."""
    data = data if "pair" in data.dims else data.expand_dims("pair")
    there, size = data["patched"].notnull(), np.abs(data["clean"]) + np.abs(data["corrupted"])
    three = data["patched"].fillna(0), there * data["effect"], there * size
    summed = [each.transpose("pair", *axes) for each in three]
    parts, pairs = np.stack([each.values.reshape(data.sizes["pair"], -1) for each in summed]), data.sizes["pair"]

    def ratio(weights: np.ndarray, part: np.ndarray) -> np.ndarray:
        value, effect, size = weights @ part.astype(float)
        return np.where(np.abs(effect) > HARDLY * size, value, np.nan) / np.where(effect == 0, 1, effect)

    draws = np.random.default_rng(0).multinomial(pairs, np.full(pairs, 1 / pairs), RESAMPLES)
    share, few = ratio(np.ones((1, pairs)), parts)[0], np.array_split(parts, 1 + parts.shape[-1] // 1000, -1)
    with warnings.catch_warnings(action="ignore"):  # that a place has none
        ends = np.concatenate([np.nanquantile(ratio(draws, part), (0.025, 0.975), axis=0) for part in few], -1)
    low, high = ends if pairs > 1 else np.full_like(ends, np.nan)
    shape = summed[0].shape[1:]
    return {name: (axes, each.reshape(shape)) for name, each in {"share": share, "low": low, "high": high}.items()}
