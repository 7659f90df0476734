"""Patch maps: what each memory, put from one reading into another, restores of the prediction.

Two texts differ in a word and end alike. Just before each character of the common end, one memory of the corrupted
reading is replaced by that of the clean one (activation patching, Vig et al. 2020; Meng et al. 2022). Attribution
patching (Nanda 2023; Syed, Rager and Conmy 2023) is its first-order approximation, from one gradient.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.reading import (
    Text,
    batched,
    encode_symbols,
    hidden_names,
    names,
    reading,
    rows,
    symbols_of,
)
from nlstm_lab.probes.records import ensure
from nlstm_lab.probes.running import BEFORE, changed, put, run

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


def patch_map(
    model: Network,
    clean: Text,
    corrupted: Text,
    *,
    right: str | int,
    wrong: str | int,
    watch: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Patch each memory of `clean` into the reading of `corrupted`, before each character that both end with.

    The preference is the difference of the logits of `right` and `wrong` after the last character.

    Args:
        model: The network.
        clean: A text after which `right` is expected.
        corrupted: A text that differs in a word, after which `wrong` is; it may be of another length.
        right: A symbol, or its code.
        wrong: Another.
        watch: Called with the share that is done, at every character; may raise to end it.

    Returns:
        Variables (memory, time): `patched`, the preference that patching restores, and `attributed`, its first-order
        approximation, in nats; and `log_p` (memory, time, code), what is then predicted. `time` counts the characters
        since the texts last differed, with the coordinate `symbol`. Attributes: `clean` and `corrupted`, the preference
        after each text.

    Raises:
        UsageError: The texts do not end alike or are the same, or there is no such symbol or memory.
    """
    one, other = encode_symbols(model, clean), encode_symbols(model, corrupted)
    common = _common_end(one, other)
    answers = [_code(model, symbol) for symbol in (right, wrong)]
    memories = [*names(model.recurrent), *hidden_names(model.recurrent.num_layers)]
    states, _ = _entering(model, one, common, memories)
    like = next(model.parameters())
    more = {name: like.new_zeros(common, model.recurrent.hidden_size, requires_grad=True) for name in memories}
    mine, logits = _entering(model, other, common, memories, more)
    gradients = torch.autograd.grad(logits[-1, answers[0]] - logits[-1, answers[1]], list(more.values()))
    pairs = zip(memories, gradients, strict=True)
    attributed = torch.stack([((states[name] - mine[name]) * gradient).sum(-1) for name, gradient in pairs])
    with reading(model):
        before = _preference(model, one, answers)
        ends = _read_on(model, other, common, states, watch)
    after, *read_on = (ends[:, answers[0]] - ends[:, answers[1]]).tolist()
    patched = torch.tensor(read_on).view(common, len(memories)).t() - after
    log_p = ends[1:].float().log_softmax(-1).unflatten(0, (common, -1)).transpose(0, 1).cpu()
    dims = ("memory", "time")
    data: dict[str, Any] = {"patched": (dims, patched.numpy()), "attributed": (dims, attributed.float().cpu().numpy())}
    data["log_p"] = ((*dims, "code"), log_p.numpy())
    coords: dict[str, Any] = {"memory": memories, "time": np.arange(common)}
    coords["symbol"] = ("time", symbols_of(model, other[-common:]))
    attributes = {"clean": before, "corrupted": after, "right": str(right), "wrong": str(wrong), "model": model.name}
    return xr.Dataset(data, coords, attributes)


def _common_end(one: Tensor, other: Tensor) -> int:
    shorter = min(len(one), len(other))
    differs = (one[-shorter:] != other[-shorter:]).nonzero().flatten()
    common = shorter - 1 - int(differs[-1]) if len(differs) else shorter
    if common == shorter:
        common = shorter - 1  # the shorter text is an end of the longer one: they differ in how they begin
        if len(one) == len(other):
            raise UsageError("the clean and the corrupted text are the same: they must differ in a word")
    if common < 1:
        raise UsageError("the clean and the corrupted text must end alike, in one character at least, to be compared")
    return common


def _code(model: Network, symbol: str | int) -> int:
    symbols = model.vocabulary.symbols if model.vocabulary else ()
    code = symbol if isinstance(symbol, int) else symbols.index(symbol) if symbol in symbols else -1
    if code not in range(len(symbols) or code + 1):
        raise UsageError(f"{symbol!r} is not one symbol of this network: choose among {', '.join(map(repr, symbols))}")
    return code


def _entering(
    model: Network, codes: Tensor, common: int, memories: Sequence[str], more: dict[str, Tensor] | None = None
) -> tuple[dict[str, Tensor], Tensor]:
    """What each of the last `common` steps reads of each memory, [common, units], with `more` added, and the logits."""
    seen: dict[str, list[Tensor]] = {name: [] for name in memories}

    def see(name: str, values: Tensor) -> Tensor:
        seen[name].append(values[0].detach())
        return values if more is None else values + more[name][len(seen[name]) - 1]

    steps = range(len(codes) - common, len(codes))
    edits: dict[Any, Any] = {(name + BEFORE, steps): partial(see, name) for name in memories}
    logits = run(model, codes, edits=edits, keep=[], gradients=more is not None).logits
    assert logits is not None  # `encode_symbols` refuses a network that predicts nothing
    return {name: torch.stack(values) for name, values in seen.items()}, logits


def _preference(model: Network, codes: Tensor, answers: list[int]) -> float:
    logits = model.readout(model.recurrent(*model.recurrent_arguments(codes[:, None]))[0][-1, 0])
    return float(logits[answers[0]] - logits[answers[1]])


def _read_on(
    model: Network, codes: Tensor, common: int, states: dict[str, Tensor], watch: Callable[[float], None] | None
) -> Tensor:
    """The logits after the text unpatched, then after each patched reading, moment by moment: all side by side."""
    _, state = model.recurrent(*model.recurrent_arguments(codes[: len(codes) - common, None]))
    for step, code in enumerate(codes[-common:]):
        plain = rows(state, [0])
        patched = [changed(model.recurrent, plain, name, put(clean[step])) for name, clean in states.items()]
        state = batched([state, *patched])
        output, state, _ = model.trace(code.expand(1, 1 + (step + 1) * len(states)), state)
        if watch is not None:
            watch((step + 1) / common)
    return model.readout(output[0])  # type: ignore[no-any-return]


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
    rows, kept = [], []
    for pair in tqdm(pairs, leave=False, unit=" pairs"):
        answers = [_code(model, symbol) for symbol in pair[3:]]
        with reading(model):
            ends = [_preference(model, encode_symbols(model, text), answers) for text in pair[1:3]]
        if able := ends[0] > max(0.0, ends[1] + EFFECT):
            found = patch_map(model, *pair[1:3], right=pair.right, wrong=pair.wrong)
            found = found.drop_vars("log_p")
            rows.append(found.to_dataframe().reset_index().assign(family=pair.family, effect=ends[0] - ends[1]))
        kept.append({"family": pair.family, "kept": able})
    counts = pd.DataFrame(kept).groupby("family", sort=False)["kept"].agg(["size", "sum"]).reset_index()
    counts.columns = ["family", "pairs", "kept"]
    if not rows:
        return counts.assign(memory="", time=0, patched=0.0, attributed=0.0, effect=0.0)
    sums = pd.concat(rows).groupby(["family", "memory", "time"], sort=False)[["patched", "attributed", "effect"]].sum()
    return counts.merge(sums.reset_index(), on="family", how="left")
