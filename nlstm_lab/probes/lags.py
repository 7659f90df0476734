"""Connectivity: which earlier characters a prediction depends on (Madsen's article), and how far gradients reach.

connectivity(t, s) is the size of the gradient of one logit at position t, of the target word, with respect to the
one-hot vector that was read at position s. In means, every position counts the same, whatever its gradient's size: its
connectivities are shares of their own sum.
"""

import copy
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.cells import HierarchicalRNN, Recurrent
from nlstm_lab.cells.base import Cache
from nlstm_lab.datasets import Sequences
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import reading
from nlstm_lab.probes.attributing import logits_at, vectors_of
from nlstm_lab.probes.interventions import refuse_sampling
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.seeds import untrained
from nlstm_lab.probes.words import likeliest
from nlstm_lab.settings import choice
from nlstm_lab.statistics import bootstrap

Mode = Literal["l2", "gradient_x_input"]
Target = Literal["true", "predicted"]
NO_CODE = -1
LARGEST = 1000  # characters, whose matrix a browser holds whole
CHUNK = 50  # targets side by side: bounds the memory
TOP = 3  # words that the article shows for every position
LAGS = 100  # characters back in a lag profile
PLACES = 10  # positions of each text whose connectivity stands for all
PROJECTIONS = 8  # random directions that a gradient's norm is estimated from
DISTANCE = 100  # characters that a gradient comes back
SMALLEST = float(np.finfo(np.float64).tiny)  # what a gradient of exactly 0 counts as
KEYS = ["where", "quantity", "lag"]
Array = NDArray[np.float64]


def connectivity(
    model: Network,
    text: str,
    *,
    target: Target = "true",
    given: str | None = None,
    mode: Mode = "l2",
    at: Iterable[int] | None = None,
    watch: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Compute the connectivity of every position of `text` to every earlier one, from a zero state.

    Args:
        target: The "true" word, or the "predicted" one, at every position; or `given`, one word for all of them. The
            true one is the word that a position or the space before it belongs to, or the next character where the
            network has no words.
        given: That word.
        mode: "l2", the norm that the article writes (its code returns the sum of squares); or "gradient_x_input", which
            has signs.
        at: The positions whose connectivity is computed (NaN elsewhere); None for all, [] for none.
        watch: Called with the share that is computed, instead of a progress bar; may raise to end it.

    Returns:
        Dimensions time, source and rank. `connectivity` (time, source), exactly 0 beyond the position itself, NaN where
        it was not computed or the target has no code; `prediction` and `probability` (time, rank), the three likeliest
        words; `p` (time), the target's. Coordinates (time): symbol, target, word, known (characters of the word that
        are known) and word_start (where the word starts).

    Raises:
        UsageError: The text is empty or longer than 1,000 characters, a character, word or mode is unknown, or the
            network does not predict at every character or samples its boundaries.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("autocomplete_gru", scale="small").model()
    >>> result = connectivity(model, "the united states of america", given="states")
    >>> result.connectivity.shape, bool(result.connectivity[4, 5:].fillna(0).any())  # nothing depends on the future
    ((28, 28), False)
    """
    reading.vocabulary_of(model)
    refuse_sampling(model)
    codes, said = reading.encode(model, reading.string(text)), reading.words_of(text)
    for name, value, kind in (("mode", mode, Mode), ("target", target, Target)):
        choice(value, name, kind)
    if (T := len(text)) > LARGEST:
        raise UsageError(f"text must be of at most {LARGEST} characters, not {T}: the work grows with the square")
    places = [] if isinstance(at, Sized) and not len(at) else reading.whole(at, T, "at must be positions from")
    with reading.evaluating(model):
        heard = vectors_of(model, codes)
        with torch.inference_mode():
            logits = model.readout(model.recurrent(*(tensor.unsqueeze(1) for tensor in heard))[0].squeeze(1))
        names, p = reading.outputs_of(model, logits.shape[-1]), torch.softmax(logits.double(), -1).cpu().numpy()
        top = likeliest(logits, names, TOP)
        true = [*text[1:], ""] if model.words is None else said.word  # the next character, or the word
        known = {name: code for code, name in enumerate(names)}
        asked = true if target == "true" else [row[0].word for row in top]
        wanted = np.array([known.get(name, NO_CODE) for name in asked])
        if given is not None:
            wanted[:] = reading.code_of(model, given, len(names), "given")
        here = np.where(np.isin(np.arange(T), places), wanted, NO_CODE)
        values = _matrix(model, mode, heard, here, watch)
    data = {
        "connectivity": (("time", "source"), values),
        "prediction": (("time", "rank"), np.array([[each.word for each in row] for row in top], dtype=object)),
        "probability": (("time", "rank"), np.array([[each.probability for each in row] for row in top])),
        "p": ("time", np.where(wanted < 0, np.nan, p[np.arange(T), wanted])),
    }
    about = {"symbol": list(text), "word": said.word, "word_start": said.start, "known": said.known}
    about["target"] = [names[code] if code >= 0 else "" for code in wanted]
    coords = {name: ("time", values) for name, values in about.items()} | {"time": np.arange(T)}
    return xr.Dataset(data, coords, {"model": model.name, "mode": mode})


def _matrix(
    model: Network,
    mode: Mode,
    read: Sequence[Tensor],
    wanted: NDArray[np.int_],
    watch: Callable[[float], None] | None,
) -> NDArray[np.float64]:
    """[S, S], some rows after the others; the steps after their last target are not computed."""
    from captum.attr import InputXGradient, Saliency  # here, as every other probe goes without it

    length, signed, logits = len(read[0]), mode == "gradient_x_input", partial(logits_at, model)
    method, how = (InputXGradient(logits), {}) if signed else (Saliency(logits), {"abs": False})
    values = np.where(wanted[:, None] < 0, np.nan, np.zeros((length, length)))
    (places,) = np.nonzero(wanted >= 0)
    pieces = [places[k : k + CHUNK] for k in range(0, len(places), CHUNK)]
    for k, rows in enumerate(tqdm(pieces, delay=2, leave=False, disable=watch is not None), 1):
        end = rows[-1] + 1
        x, *given = (tensor[:end].expand(len(rows), -1, -1) for tensor in read)
        positions, codes = (torch.from_numpy(tensor).to(x.device) for tensor in (rows, wanted[rows]))
        asked: dict[str, Any] = {"target": codes, "additional_forward_args": (positions, *given), **how}
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):  # its backward refuses eval mode
            gradient: Tensor = method.attribute(x.clone().requires_grad_(), **asked).detach()
        if not signed and model.embedding is not None:  # with respect to the one-hot vector
            symbols = torch.arange(len(reading.vocabulary_of(model)), device=x.device)
            gradient = gradient @ model.embedding(symbols).detach().t()
        # the article's formula; its code forgets the root
        found = gradient.sum(-1) if signed else gradient.square().sum(-1).sqrt()
        values[rows, :end] = found.double().cpu().numpy()
        if watch is not None:
            watch(k / len(pieces))
    return values


def shares(data: xr.Dataset) -> pd.DataFrame:
    """A row for each position of `connectivity(...)` that depends on anything and each source up to it: time, known
    (characters of the word), lag, share of the position's sum, and whether the source is inside the word, from the
    space before it on."""
    values = np.abs(data["connectivity"].values)
    total, lag = values.sum(1), np.arange(len(values))[:, None] - np.arange(len(values))
    t, s = np.nonzero((total > 0)[:, None] & (lag >= 0))
    frame = pd.DataFrame({"time": t, "known": data["known"].values[t], "lag": lag[t, s]})
    inside = frame["lag"] <= (data["time"] - data["word_start"]).values[t]
    return frame.assign(share=values[t, s] / total[t], inside=inside)


def measure(frame: pd.DataFrame) -> pd.DataFrame:
    """The means over positions of `shares`: where, quantity, lag, value."""
    start, frames = frame["known"] == 0, []
    for where, some in {"all": frame, "word start": frame[start], "within word": frame[~start]}.items():
        if len(some):
            sums = {"mean_lag": some["lag"] @ some["share"], "share_in_word": some["inside"] @ some["share"]}
            means = pd.Series(sums).rename_axis("quantity") / some["time"].nunique()
            frames.append(means.reset_index(name="value").assign(where=where, lag=np.nan))
            along = some[some["lag"] <= LAGS].groupby("lag")["share"].mean().reset_index(name="value")
            frames.append(along.astype(float).assign(where=where, quantity="share_at_lag"))
    return pd.concat(frames, ignore_index=True)[[*KEYS, "value"]]


@recorded("lags", by=["seed"], places=PLACES)
def connectivity_lags(model: Network, texts: Sequence[str] | Sequences, seed: int = 0) -> pd.DataFrame:
    """Measure how far the connectivity of the true word reaches, in its L2 norm.

    Args:
        texts: What is read, each from a zero state; one without a word that the network knows counts for nothing.
        seed: Of the `PLACES` positions of each text that are drawn.

    Returns:
        One row a place ("all", "word start", "within word"), quantity ("mean_lag", "share_in_word", "share_at_lag")
        and lag: value, the mean over texts, with its bootstrap interval (low, high), and the number of texts.
    """
    draw = np.random.default_rng(seed)
    some = ((text, sorted(draw.permutation(len(reading.string(text)))[:PLACES].tolist())) for text in read(texts))
    measured = (shares(connectivity(model, text, at=chosen)) for text, chosen in some)
    frames = [measure(frame) for frame in measured if len(frame)]
    if not frames:
        raise UsageError("nothing can be measured: no position of the texts has a target that the network predicts")
    rows = []
    for key, group in pd.concat(frames).groupby(KEYS, dropna=False, sort=False):
        rows.append([*key, *bootstrap(group["value"]), len(group)])
    return pd.DataFrame(rows, columns=[*KEYS, "value", "low", "high", "texts"])


def gradient_by_distance(recurrent: Recurrent, inputs: Tensor, seed: int = 0) -> pd.DataFrame:
    """log10 of the norm of d h_T / d x_t and of d h_T / d h_t of every layer, for each sequence and distance T - t.

    Only the gradient with respect to the input compares units: a unit's h is not all that it remembers. The norm is
    Frobenius's, estimated without bias from `PROJECTIONS` random directions v as the mean of |v' J|^2, in float64.
    Inputs are symbols [T, B] or vectors [T, B, features]; h_T is the output at the last step.
    """
    if isinstance(recurrent, HierarchicalRNN):
        raise UsageError("a hierarchical RNN lacks its boundaries here: ask lab.probes.connectivity")
    recurrent = copy.deepcopy(recurrent).double()
    device, number = inputs.device, inputs.shape[1]
    if not inputs.is_floating_point():
        inputs = torch.nn.functional.one_hot(inputs, recurrent.input_size)
    x = inputs.double().repeat_interleave(PROJECTIONS, dim=1)
    caches = [Cache() for _ in recurrent.cells]
    with reading.evaluating(recurrent), torch.enable_grad():
        steps = [step.requires_grad_() for step in x.unbind()]
        begun = [cell.initial_state(x.shape[1]) for cell in recurrent.cells]
        output, _ = recurrent.run(torch.stack(steps), begun, caches)
        directions = torch.randn(output[-1].shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        nodes = [*steps, *(h for cache in caches for h in cache.values["h"])]
        gradients = torch.autograd.grad((output[-1] * directions.to(device)).sum(), nodes, materialize_grads=True)
    squares = torch.stack([gradient.square().sum(-1) for gradient in gradients])  # [layers and input x T, B x v]
    norms = squares.view(len(caches) + 1, len(steps), number, PROJECTIONS).mean(-1).sqrt().cpu().numpy()
    values = np.log10(np.maximum(norms, SMALLEST))[:, ::-1]
    where = ["input", *(f"layer {k + 1}" for k in range(len(caches)))]
    index = pd.MultiIndex.from_product([where, range(len(steps)), range(number)], names=["where", "lag", "text"])
    return index.to_frame(index=False).assign(quantity="log10_gradient", value=values.ravel())[["text", *KEYS, "value"]]


def gradients(model: Network, texts: Sequence[str] | Sequences, seed: int = 0) -> pd.DataFrame:
    """Measure how gradients shrink with the distance, one row a layer and distance.

    Args:
        texts: Several texts, of which the first `DISTANCE` characters are read.

    Returns:
        Columns where ("input", "layer 1", ...), quantity ("log10_gradient"), lag (the distance), `value`, the mean over
        texts of log10 of the norm, and condition: "trained", or "as initialized", its parameters drawn anew.
    """
    both = {"as initialized": False, "trained": True}
    frames = [_gradients(model, texts, trained, seed).assign(condition=name) for name, trained in both.items()]
    return pd.concat(frames, ignore_index=True)


@recorded("gradients", by=["trained", "seed"])
def _gradients(model: Network, texts: Sequence[str] | Sequences, trained: bool, seed: int) -> pd.DataFrame:
    network = model if trained else untrained(model, seed)
    codes = [reading.encode(network, text[:DISTANCE]) for text in read(texts) if len(reading.string(text)) >= DISTANCE]
    if not codes:
        raise UsageError(f"texts must be strings, one of them of {DISTANCE} characters at least")
    with reading.reading(network):
        inputs = network.inputs(torch.stack(codes, 1))
    frame = gradient_by_distance(network.recurrent, inputs.clone(), seed=seed)
    return frame.groupby(KEYS, sort=False)["value"].mean().reset_index()
