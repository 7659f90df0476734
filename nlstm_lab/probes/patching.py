"""Patch maps: what each memory, put from one reading into another, restores of the prediction.

Two texts differ in a word and end alike. Just before each character of the common end, one memory of the corrupted
reading is replaced by that of the clean one (activation patching, Vig et al. 2020; Meng et al. 2022). Attribution
patching (Nanda 2023; Syed, Rager and Conmy 2023) is its first-order approximation, from one gradient.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm.auto import tqdm

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import reading
from nlstm_lab.probes.records import ensure

NOUNS = """
company bank market stock price year government trader analyst investor bond fund share rate firm plan official issue
president maker
"""
BETWEEN = ("", " in japan", " of the group", " on the market", " at the new york exchange")
VERBS = """
buy:bank sell:state make:market give:government pay:price raise:rate take:trade help:house find:fund keep:key
"""
SUBJECTS = ("he expects ", "they want ", "the company plans ", "it agreed with ")
ADVERBS = (" ", " also ", " now really ")
NAMES = """
john:josh smith:small david:daniel miller:mitchell peters:perry morgan:morris robert:roger stevens:stewart
carter:carlson harris:harvey
"""
SAID = (" said ", " said that ", " said the company is his and that ")


class Pair(NamedTuple):
    """A clean and a corrupted text, and the symbols with which they go on."""

    family: str
    clean: str
    corrupted: str
    right: str
    wrong: str


def minimal_pairs() -> list[Pair]:
    """Return the generated pairs of all families.

    - number: the verb of a singular or plural noun, some words later ("w": was or were; "ha": has or have);
    - class: a verb or a noun after "to" or "a", as far as they begin alike;
    - repetition: a name that was read before, as far as two names begin alike.
    """
    found = []
    for noun in NOUNS.split():
        plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
        for between in BETWEEN:
            for start in ("the ", "some of what the "):
                one, many = (f"{start}{each}{between}" for each in (noun, plural))
                found.append(Pair("number", f"{one} w", f"{many} w", "a", "e"))
                found.append(Pair("number", f"{many} ha", f"{one} ha", "v", "s"))
    for pair in VERBS.split():
        verb, noun = pair.split(":")
        same, right, wrong = _parted(verb, noun)
        for subject in SUBJECTS:
            for adverb in ADVERBS:
                clean, corrupted = (f"{subject}{word}{adverb}{same}" for word in ("to", "a"))
                found.append(Pair("class", clean, corrupted, right, wrong))
    for pair in NAMES.split():
        one, other = pair.split(":")
        for first, second in ((one, other), (other, one)):
            same, right, wrong = _parted(first, second)
            for said in SAID:
                clean, corrupted = (f"mr. {name}{said}mr. {same}" for name in (first, second))
                found.append(Pair("repetition", clean, corrupted, right, wrong))
    return found


def _parted(one: str, other: str) -> tuple[str, str, str]:
    """What two words begin with alike, and how each goes on."""
    k = next(k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return one[:k], one[k], other[k]


EFFECT = 0.1  # nats that the differing word must move the preference by: less cannot be shared out
HARDLY = 0.01  # of the metric's size: two texts that differ by less leave nothing to share out
AT_ONCE = 4096  # patched readings side by side
AXES = ("memory", "time", "unit")
Metric = Callable[[Tensor], Tensor]


class Task(NamedTuple):
    """A pair as it is read: codes, the length of the common end, and what is measured of the logits."""

    clean: Tensor
    corrupted: Tensor
    common: int
    metric: Metric


def patch(
    model: Network,
    pairs: Any,
    metric: Metric | None = None,
    over: Sequence[str] = ("memory", "time"),
    *,
    resamples: int = 1000,
    seed: int = 0,
    watch: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Patch what a clean reading holds into a corrupted one, just before steps of their common end.

    Args:
        model: A network with a readout: of symbols, words or classes; it may read vectors.
        pairs: (clean, corrupted, right, wrong), or (clean, corrupted) where a metric is given; or a list of them. Texts
            of a pair differ, end alike, and may be of other lengths; `right` and `wrong` are symbols or codes.
        metric: Of logits [n, outputs] after the last step, [n]; None for the logit of `right` less that of `wrong`.
        over: What is patched apart: "memory" (and hidden states), "time" (the steps of the common end), "unit". What is
            not named is patched together.
        resamples: Of the pairs, for the interval.
        watch: Called with the share that is done; may raise to end it.

    Returns:
        Dimensions pair (not for one pair alone) and those of `over`; time counts the steps since the texts last
        differed. `clean`, `corrupted` and `effect`, their difference (pair): the metric unpatched. `patched` (pair,
        *over): what patching adds to `corrupted`; NaN where a pair is shorter. `attributed`, its first-order
        approximation by gradients. `share` with its bootstrap interval `low` to `high` over pairs (*over): the sum of
        `patched` relative to that of `effect`; NaN where the texts hardly differ, and no interval of one pair. Of one
        pair without units `log_p` (.., code), too: what is then predicted.

    Raises:
        UsageError: Texts do not end alike or are the same; there is no such symbol or axis, or no readout.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> pairs = [("the rates ha", "the rate ha", "v", "s"), ("some rates ha", "some rate ha", "v", "s")]
    >>> found = lab.probes.patch(model, pairs)
    >>> dict(found.patched.sizes), bool(found.effect.min() > 0.1)
    ({'pair': 2, 'memory': 3, 'time': 3}, True)
    """
    axes = [axis for axis in AXES if axis in over]
    if isinstance(over, str) or set(over) - set(AXES):
        raise UsageError(f"over must name some of {', '.join(map(repr, AXES))}, not {over!r}")
    if model.readout is None:
        raise UsageError(f"{reading.called(model)} has no readout: hand one to lab.models.wrap")
    alone = isinstance(pairs, tuple) and bool(pairs) and not isinstance(pairs[0], tuple | list)
    tasks = [_task(model, pair, metric) for pair in ([pairs] if alone else pairs)]
    if not tasks:
        raise UsageError("pairs: there is no pair of texts: hand in at least one")
    every = reading.every_name(model.recurrent)
    size = model.recurrent.hidden_size
    apart = torch.eye(size, dtype=torch.bool) if "unit" in axes else torch.ones(1, size, dtype=torch.bool)
    groups = [[name] for name in every] if "memory" in axes else [every]
    masks = {name: torch.cat([apart & (name in group) for group in groups]).to(model.device) for name in every}
    rows_of_one = len(groups) * len(apart) * max(task.common for task in tasks) ** ("time" in axes)
    together, found = max(1, AT_ONCE // rows_of_one), []
    for k in tqdm(range(0, len(tasks), together), disable=len(tasks) <= together, leave=False, unit=" groups"):
        some = tasks[k : k + together]
        done = None if watch is None else lambda share, k=k: watch(min((k + share * together) / len(tasks), 1.0))
        with reading.evaluating(model), torch.enable_grad():
            attributed = _attributed(model, some, every)
        with reading.reading(model):
            ends = _patched_ends(model, some, masks, "time" in axes, max(1, AT_ONCE // len(some)), done)
        for task, first, logits in zip(some, attributed, ends, strict=True):
            found.append(_described(model, task, every, axes, first, logits, alone and "unit" not in axes))
    if alone:
        data = found[0]
    else:  # no row of NaN behind the longest, and none of symbols, which differ
        data = xr.concat([one.drop_vars("symbol", errors="ignore") for one in found], "pair", join="outer")
    return data.assign(_shares(data, axes, resamples, seed)).assign_attrs(model=model.name)


def _task(model: Network, pair: Any, metric: Metric | None) -> Task:
    wanted = "(clean, corrupted, right, wrong)" if metric is None else "(clean, corrupted) beside a metric"
    if not isinstance(pair, tuple | list) or len(pair) != (4 if metric is None else 2):
        raise UsageError(f"pairs must be {wanted}, not {str(pair)[:60]}")
    one, other = reading.encode(model, pair[0], "clean"), reading.encode(model, pair[1], "corrupted")
    shorter = min(len(one), len(other))
    unlike = (one[-shorter:] != other[-shorter:]).view(shorter, -1).any(-1).nonzero().flatten()
    common = shorter - 1 - int(unlike[-1]) if len(unlike) else shorter
    if common == shorter:
        common = shorter - 1  # the shorter text is an end of the longer one: they differ in how they begin
        if len(one) == len(other):
            raise UsageError("pairs: the clean and the corrupted text are the same: they must differ in a word")
    if common < 1:
        raise UsageError("pairs: the clean and the corrupted text must end alike, in one character at least")
    return Task(one, other, common, metric or partial(_preference, model, *pair[2:]))


def _preference(model: Network, right: str | int, wrong: str | int, logits: Tensor) -> Tensor:
    """The logit of one symbol less that of another."""
    asked = {"right": right, "wrong": wrong}
    codes = [reading.code_of(model, symbol, logits.shape[-1], name) for name, symbol in asked.items()]
    return logits[:, codes[0]] - logits[:, codes[1]]


def _begun(model: Network, tasks: Sequence[Task]) -> Iterator[tuple[list[int], list[Any], Tensor]]:
    """At each step of the longest common end which pairs begin with it, the states with which their clean and corrupted
    texts enter it, and what each pair reads, [pairs, ...]."""
    longest = max(task.common for task in tasks)
    ends = nn.utils.rnn.pad_sequence([task.corrupted[-task.common :].flip(0) for task in tasks]).flip(0)
    for step in range(longest):
        fresh = [k for k, task in enumerate(tasks) if longest - task.common == step]
        texts = [text[: len(text) - tasks[k].common, None] for k in fresh for text in tasks[k][:2]]
        with torch.no_grad():
            states = [model.recurrent(*model.recurrent_arguments(text))[1] for text in texts]
        yield fresh, states, ends[step]


def _attributed(model: Network, tasks: Sequence[Task], every: Sequence[str]) -> list[Tensor | None]:
    """Of each pair the first-order effect of each patch, [steps, memories, units]; None where the metric has none."""
    state, owner, held, added = None, list[int](), list[Tensor](), list[Tensor]()
    for fresh, states, x in _begun(model, tasks):
        state, owner = reading.batched([state, *states]), [*owner, *np.repeat(fresh, 2).tolist()]
        held.append(torch.stack([reading.component(model.recurrent, state, name) for name in every], 1).detach())
        added.append(torch.zeros_like(held[-1], requires_grad=True))
        for name, more in zip(every, added[-1].unbind(1), strict=True):
            reading.component(model.recurrent, state, name).add_(more)
        output, state = model.recurrent(*model.recurrent_arguments(x[None, owner]), state)
    logits, places = model.readout(output[0]), [owner.index(k) for k in range(len(tasks))]
    value = torch.stack([task.metric(logits[row + 1 : row + 2]) for task, row in zip(tasks, places, strict=True)]).sum()
    if not value.requires_grad:
        return [None] * len(tasks)
    slopes = torch.autograd.grad(value, added)
    first: list[list[Tensor]] = [[] for _ in tasks]
    for entered, slope in zip(held, slopes, strict=True):
        for effects, row in zip(first, places, strict=True):
            if row < len(entered):  # the pair has begun
                effects.append((entered[row] - entered[row + 1]) * slope[row + 1])
    return [torch.stack(effects) for effects in first]


def _patched_ends(
    model: Network, tasks: Sequence[Task], masks: dict[str, Tensor], each_time: bool, room: int, watch: Any
) -> list[Tensor]:
    """Of each pair the logits [2 + patches, V] after its clean, its corrupted and its patched readings, time by time
    where `each_time`; `masks` [n, units] of a memory are what each of n patches replaces of it."""
    count, longest = len(next(iter(masks.values()))), max(task.common for task in tasks)
    piece, pieces = max(1, room // (longest if each_time else 1)), []
    for start in range(0, count, piece):
        some = {name: mask[start : start + piece] for name, mask in masks.items()}
        n, state, owner, patched = len(next(iter(some.values()))), None, list[int](), list[int]()
        clean: dict[int, int] = {}  # the row of each pair, before that of its corrupted text
        for step, (fresh, states, x) in enumerate(_begun(model, tasks)):
            clean |= {k: len(owner) + 2 * place for place, k in enumerate(fresh)}
            owner = [*owner, *np.repeat(fresh, 2).tolist()]
            state = reading.batched([state, *states])
            new = [k for k in (clean if each_time else fresh) for _ in range(n)]
            patched = [*([] if each_time else patched), *range(len(owner), len(owner) + len(new))]
            if new:
                corrupted = reading.rows(state, [clean[k] + 1 for k in new])
                state, owner = reading.batched([state, corrupted]), [*owner, *new]
            donors = [clean[owner[row]] for row in patched]
            for name, mask in some.items():
                held = reading.component(model.recurrent, state, name)
                held[patched] = torch.where(mask.repeat(len(patched) // n, 1), held[donors], held[patched])
            output, state = model.recurrent(*model.recurrent_arguments(x[None, owner]), state)
            if watch is not None:
                watch((start + n * (step + 1) / longest) / count)
        of = torch.tensor(owner, device=output.device)
        pieces.append([model.readout(output[0, of == k]) for k in range(len(tasks))])
    found = []
    for task, *each in zip(tasks, *pieces, strict=True):
        apart = [logits[2:].unflatten(0, (task.common if each_time else 1, -1)) for logits in each]
        found.append(torch.cat([each[0][:2], torch.cat(apart, 1).flatten(0, 1)]))
    return found


def _described(
    model: Network, task: Task, every: list[str], axes: list[str], first: Any, logits: Tensor, predictions: bool
) -> xr.Dataset:
    """`patch` of one pair, from what `_attributed` and `_patched_ends` give."""
    shape = {"time": task.common, "memory": len(every), "unit": model.recurrent.hidden_size}
    dims = [axis for axis in shape if axis in axes]  # as they are read
    lengths = [shape[axis] for axis in dims]
    measured = task.metric(logits).detach().double().cpu()
    clean, begun = measured[:2].tolist()
    patched = (measured[2:] - begun).float().view(lengths).numpy()
    data: dict[str, Any] = {"patched": (dims, patched), "clean": clean, "corrupted": begun, "effect": clean - begun}
    if first is not None:
        summed = tuple(k for k, axis in enumerate(shape) if axis not in axes)
        data["attributed"] = (dims, (first.sum(summed) if summed else first).float().cpu().numpy())
    if predictions:
        log_p = logits[2:].float().log_softmax(-1).view(*lengths, -1)
        data["log_p"] = ((*dims, "code"), log_p.cpu().numpy())
    coords: dict[str, Any] = {"memory": every, "time": np.arange(task.common), "unit": np.arange(shape["unit"])}
    coords = {axis: coords[axis] for axis in axes}
    if "time" in axes and (symbols := reading.symbols_of(model, task.corrupted[-task.common :])) is not None:
        coords["symbol"] = ("time", symbols)
    return xr.Dataset(data, coords).transpose(*axes, ...)


def _shares(data: xr.Dataset, axes: Sequence[str], resamples: int, seed: int) -> dict[str, Any]:
    """The share that each patch restores, and its bootstrap interval over pairs."""
    data = data if "pair" in data.dims else data.expand_dims("pair")
    patched = data["patched"].transpose("pair", *axes)
    values = patched.values.reshape(len(patched), -1).astype(np.float64)
    there, pairs = np.isfinite(values), len(values)
    value, effect = np.where(there, values, 0), there * data["effect"].values[:, None]
    size = there * (np.abs(data["clean"].values) + np.abs(data["corrupted"].values))[:, None]

    def ratio(weights: NDArray[Any], part: slice = slice(None)) -> NDArray[Any]:
        moved = weights @ effect[:, part]
        shared = np.abs(moved) > HARDLY * (weights @ size[:, part])
        return np.where(shared, weights @ value[:, part], np.nan) / np.where(shared, moved, 1)

    draws = np.random.default_rng(seed).multinomial(pairs, np.full(pairs, 1 / pairs), resamples).astype(np.float64)
    found = {"share": ratio(np.ones(pairs)), "low": np.full(values.shape[1], np.nan)}
    found["high"] = found["low"].copy()
    for k in range(0, values.shape[1] if pairs > 1 and resamples else 0, 1000):
        part = slice(k, k + 1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that a place has none
            found["low"][part], found["high"][part] = np.nanquantile(ratio(draws, part), (0.025, 0.975), axis=0)
    return {name: (axes, each.reshape(patched.shape[1:])) for name, each in found.items()}


def patches(model: Network) -> pd.DataFrame:
    """Measure the patch maps of all minimal pairs that a network can do, summed; recorded.

    A pair is kept where the clean text's preference is above 0 and above the corrupted text's by `EFFECT`.

    Returns:
        One row a family, memory and time: family, pairs, kept, memory, time (characters since the texts last differed),
        `patched`, `attributed` and `effect` (the difference of the preferences), sums over the kept pairs that are that
        long, in nats.
    """
    pairs = minimal_pairs()
    text = "\n".join("|".join(pair) for pair in pairs)
    return ensure("patches", lambda: _patches(model, pairs), weights=model, text=text, effect=EFFECT)


def _patches(model: Network, pairs: Sequence[Pair]) -> pd.DataFrame:
    found = patch(model, [tuple(pair[1:]) for pair in pairs], resamples=0)
    found = found.assign_coords(family=("pair", [pair.family for pair in pairs]))
    found = found.isel(pair=np.flatnonzero(found["clean"] > np.maximum(0, found["corrupted"] + EFFECT)))
    counts = pd.Series([pair.family for pair in pairs]).value_counts(sort=False).rename("pairs").rename_axis("family")
    kept = pd.Series(found["family"].values).value_counts()
    frame = counts.reset_index().assign(kept=lambda each: each["family"].map(kept).fillna(0).astype(int))
    rows = found[["patched", "attributed", "effect"]].to_dataframe().reset_index().dropna(subset="patched")
    sums = rows.groupby(["family", "memory", "time"], sort=False)[["patched", "attributed", "effect"]].sum()
    return frame.merge(sums.reset_index(), on="family", how="left")
