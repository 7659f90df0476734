"""Patch maps: what each memory, put from one reading into another, restores of the prediction.

Two texts differ in a word and end alike. Just before each character of the common end, one memory of the corrupted
reading is replaced by that of the clean one (activation patching, Vig et al. 2020; Meng et al. 2022). Attribution
patching (Nanda 2023; Syed, Rager and Conmy 2023) is its first-order approximation, from one gradient.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.edits import BEFORE
from nlstm_lab.probes.reading import (
    batched,
    component,
    encode,
    encode_symbols,
    hidden_names,
    names,
    reading,
    rows,
    symbols_of,
)
from nlstm_lab.probes.records import ensure
from nlstm_lab.probes.running import run
from nlstm_lab.probes.texts import code_of

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
    """A clean and a corrupted text, and the symbols with which the clean and the corrupted one go on."""

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
        raise UsageError(f"{model.name or 'this network'} has no readout: hand one to lab.models.wrap")
    alone = isinstance(pairs, tuple) and not isinstance(pairs[0], tuple | list)
    several = [pairs] if alone else list(pairs)
    if not several:
        raise UsageError("pairs: there is no pair of texts: hand in at least one")
    found = []
    for k, pair in enumerate(tqdm(several, disable=len(several) < 10, leave=False, unit=" pairs")):
        part = None if watch is None else lambda done, k=k: watch((k + done) / len(several))
        found.append(_patched(model, pair, metric, axes, part, alone and "unit" not in axes))
    if alone:
        data = found[0]
    else:  # no row of NaN behind the longest, and none of symbols, which differ
        data = xr.concat([one.drop_vars("symbol", errors="ignore") for one in found], "pair", join="outer")
    return data.assign(_shares(data, axes, resamples, seed)).assign_attrs(model=model.name)


def _patched(
    model: Network, pair: Any, metric: Metric | None, axes: Sequence[str], watch: Any, predictions: bool
) -> xr.Dataset:
    """`patch` of one pair."""
    if len(pair) != (4 if metric is None else 2):
        wanted = "(clean, corrupted, right, wrong)" if metric is None else "(clean, corrupted) beside a metric"
        raise UsageError(f"pairs must be {wanted}, not of {len(pair)}")
    one, other = encode(model, pair[0], "clean"), encode(model, pair[1], "corrupted")
    common = _common_end(one, other)
    every = [*names(model.recurrent), *hidden_names(model.recurrent.num_layers)]
    measured = metric or _preference(model, *pair[2:])
    like, size = next(model.parameters()), model.recurrent.hidden_size
    with torch.no_grad():
        states, clean = _entering(model, one, common, every)
    more = {name: like.new_zeros(common, size, requires_grad=True) for name in every}
    mine, corrupted = _entering(model, other, common, every, more)
    value = measured(corrupted[None])[0]
    begun, effect = value.item(), measured(clean[None]).item() - value.item()
    slopes = torch.autograd.grad(value, list(more.values())) if value.requires_grad else None
    units = torch.eye(size) if "unit" in axes else torch.ones(1, size)
    groups = [[name] for name in every] if "memory" in axes else [every]
    apart = {name: torch.cat([units * (name in group) for group in groups]).bool().to(like.device) for name in every}
    with reading(model):
        ends = _read_on(model, other, common, states, apart, "time" in axes, watch)
    shape = {"time": common, "memory": len(every), "unit": size}
    dims = [axis for axis in ("time", "memory", "unit") if axis in axes]  # as they are read
    patched = (measured(ends).cpu() - begun).view([shape[axis] for axis in dims]).detach().float().numpy()
    data: dict[str, Any] = {"patched": (dims, patched), "clean": begun + effect, "corrupted": begun, "effect": effect}
    if slopes is not None:
        first = torch.stack([(states[name] - mine[name]) * slope for name, slope in zip(every, slopes, strict=True)], 1)
        summed = tuple(k for k, axis in enumerate(("time", "memory", "unit")) if axis not in axes)
        data["attributed"] = (dims, (first.sum(summed) if summed else first).float().cpu().numpy())
    if predictions:
        log_p = ends.float().log_softmax(-1).view(*[shape[axis] for axis in dims], -1)
        data["log_p"] = ((*dims, "code"), log_p.cpu().numpy())
    coords: dict[str, Any] = {"memory": every, "time": np.arange(common), "unit": np.arange(size)}
    coords = {axis: coords[axis] for axis in axes}
    if "time" in axes and (symbols := symbols_of(model, other[-common:])) is not None:
        coords["symbol"] = ("time", symbols)
    return xr.Dataset(data, coords).transpose(*axes, ...)


def _preference(model: Network, right: str | int, wrong: str | int) -> Metric:
    """The logit of one symbol less that of another."""

    def metric(logits: Tensor) -> Tensor:
        size = logits.shape[-1]
        return logits[:, code_of(model, right, size, "right")] - logits[:, code_of(model, wrong, size, "wrong")]

    return metric


def _common_end(one: Tensor, other: Tensor) -> int:
    shorter = min(len(one), len(other))
    unlike = (one[-shorter:] != other[-shorter:]).view(shorter, -1).any(-1).nonzero().flatten()
    common = shorter - 1 - int(unlike[-1]) if len(unlike) else shorter
    if common == shorter:
        common = shorter - 1  # the shorter text is an end of the longer one: they differ in how they begin
        if len(one) == len(other):
            raise UsageError("the clean and the corrupted text are the same: they must differ in a word")
    if common < 1:
        raise UsageError("the clean and the corrupted text must end alike, in one character at least, to be compared")
    return common


def _entering(
    model: Network, codes: Tensor, common: int, memories: Sequence[str], more: dict[str, Tensor] | None = None
) -> tuple[dict[str, Tensor], Tensor]:
    """What each of the last `common` steps reads of each memory, [common, units], with `more` added, and logits."""
    seen: dict[str, list[Tensor]] = {name: [] for name in memories}

    def see(name: str, values: Tensor) -> Tensor:
        seen[name].append(values[0].detach())
        return values if more is None else values + more[name][len(seen[name]) - 1]

    steps = range(len(codes) - common, len(codes))
    edits: dict[Any, Any] = {(name + BEFORE, steps): partial(see, name) for name in memories}
    logits = run(model, codes, edits=edits, keep=[], gradients=more is not None).logits
    assert logits is not None  # there is a readout
    return {name: torch.stack(values) for name, values in seen.items()}, logits[-1]


def _read_on(
    model: Network,
    codes: Tensor,
    common: int,
    states: dict[str, Tensor],
    apart: dict[str, Tensor],
    each_time: bool,
    watch: Callable[[float], None] | None,
) -> Tensor:
    """The logits after each patched reading, time by time where `each_time`, side by side as far as there is room;
    `apart` [n, units] of a memory is what each of n patches replaces of it."""
    count, found = len(next(iter(apart.values()))), []
    room = max(1, AT_ONCE // (common if each_time else 1))
    _, begun = model.recurrent(*model.recurrent_arguments(codes[: len(codes) - common, None]))
    for start in range(0, count, room):
        masks = {name: mask[start : start + room] for name, mask in apart.items()}
        state, n = begun, len(next(iter(masks.values())))
        for step in range(common):
            if each_time or not step:
                state = batched([state, rows(state, [0] * n)])
            for name, mask in masks.items():
                held = component(model.recurrent, state, name)[-n:]
                held.copy_(torch.where(mask, states[name][step], held))
            x = codes[len(codes) - common + step].expand(1, n * (step + 1 if each_time else 1) + 1, *codes.shape[1:])
            output, state = model.recurrent(*model.recurrent_arguments(x), state)
            if watch is not None:
                watch((start + n * (step + 1) / common) / count)
        found.append(model.readout(output[0, 1:]).unflatten(0, (-1, n)))
    return torch.cat(found, 1).flatten(0, 1)


def _shares(data: xr.Dataset, axes: Sequence[str], resamples: int, seed: int) -> dict[str, Any]:
    """The share that each patch restores, and its bootstrap interval over pairs."""
    patched = data["patched"] if "pair" in data.dims else data["patched"].expand_dims("pair")
    values = patched.transpose("pair", *axes).values.reshape(patched.sizes["pair"], -1).astype(np.float64)
    there = np.isfinite(values)
    value, effect = np.where(there, values, 0), np.where(there, np.atleast_1d(data["effect"].values)[:, None], 0)
    size = there * np.atleast_1d(np.abs(data["clean"].values) + np.abs(data["corrupted"].values))[:, None]

    def ratio(weights: NDArray[Any], part: slice) -> NDArray[Any]:
        moved, all_of = weights @ effect[:, part], weights @ size[:, part]
        shared = np.abs(moved) > HARDLY * all_of
        return np.where(shared, weights @ value[:, part], np.nan) / np.where(shared, moved, 1)

    pairs = len(values)
    draws = np.random.default_rng(seed).multinomial(pairs, np.full(pairs, 1 / pairs), resamples).astype(np.float64)
    low, high = np.full((2, values.shape[1]), np.nan)
    for k in range(0, values.shape[1] if pairs > 1 and resamples else 0, 1000):
        part = slice(k, k + 1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that a place has none
            low[part], high[part] = np.nanquantile(ratio(draws, part), (0.025, 0.975), axis=0)
    shape = [patched.sizes[axis] for axis in axes]
    return {
        "share": (axes, ratio(np.ones(pairs), slice(None)).reshape(shape)),
        "low": (axes, low.reshape(shape)),
        "high": (axes, high.reshape(shape)),
    }


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
    able = [pair for pair in pairs if _is_able(model, pair)]
    kept = pd.Series([pair.family for pair in able]).value_counts()
    counts = pd.Series([pair.family for pair in pairs]).value_counts(sort=False).rename("pairs").rename_axis("family")
    frame = counts.reset_index().assign(kept=lambda each: each["family"].map(kept).fillna(0).astype(int))
    if not able:
        return frame.assign(memory="", time=0, patched=0.0, attributed=0.0, effect=0.0)
    found = patch(model, [tuple(pair[1:]) for pair in able], resamples=0)
    found = found.assign_coords(family=("pair", [pair.family for pair in able]))
    rows = found[["patched", "attributed", "effect"]].to_dataframe().reset_index().dropna(subset="patched")
    sums = rows.groupby(["family", "memory", "time"], sort=False)[["patched", "attributed", "effect"]].sum()
    return frame.merge(sums.reset_index(), on="family", how="left")


def _is_able(model: Network, pair: Pair) -> bool:
    metric = _preference(model, pair.right, pair.wrong)
    with reading(model):
        codes = (encode_symbols(model, text)[:, None] for text in (pair.clean, pair.corrupted))
        right, wrong = (float(metric(model(each)[0][-1])) for each in codes)
    return right > max(0.0, wrong + EFFECT)
