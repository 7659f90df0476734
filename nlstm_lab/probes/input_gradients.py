"""Connectivity: which earlier characters a prediction depends on (Madsen's article, its figure of that name).

connectivity(t, s) is the size of the gradient of one logit at position t, of the target word, with
respect to the one-hot vector x_s that was read at position s.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import texts as wording
from nlstm_lab.probes.reading import evaluating
from nlstm_lab.probes.words import likeliest

Mode = Literal["l2", "gradient_x_input"]
Read = tuple[Tensor, ...]  # what the unit is called with, [S, features] each, or [n, S, features] side by side
Attribute = Callable[[Read, Tensor, Tensor], Tensor]  # also positions [n] and codes [n], to [n, S]


def _attributed(model: Network, mode: Mode, read: Read, positions: Tensor, codes: Tensor) -> Tensor:
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
    gradient: Tensor = Saliency(predict).attribute(inputs, abs=False, **asked)
    if model.embedding is not None:
        with torch.no_grad():
            table = model.embedding(torch.arange(len(wording.vocabulary_of(model)), device=x.device))
            gradient = gradient @ table.t()  # with respect to the one-hot vector
    return gradient.square().sum(-1).sqrt()  # the article's formula; its code forgets the root


Target = Literal["true", "predicted"]

NO_CODE = -1
CHUNK = 50  # targets side by side: bounds the memory
TOP = 3  # words that the article shows for every position
DELAY = 2  # seconds after which a progress bar is worth its line


def connectivity(
    model: Network,
    text: str,
    *,
    target: Target = "true",
    given: str | None = None,
    mode: Mode = "l2",
    unknown: wording.Unknown = "refuse",
    at: Iterable[int] | None = None,
    window: int = wording.LONGEST,
    chunk: int = CHUNK,
    done: Callable[[int], object] | None = None,
) -> xr.Dataset:
    """Compute the connectivity of every position of `text` to every earlier one, from a zero state.

    Args:
        target: The "true" word, or the "predicted" one, at every position; or `given`, one word for all of them. The
            true one is the word that a position or the space before it belongs to, or the next character where the
            network has no words.
        given: The word that is the target at every position.
        mode: "l2", the norm that the article writes (its code returns the sum of squares); or "gradient_x_input", which
            has signs.
        unknown: What happens to characters outside the vocabulary: "refuse" or "map". With "map" T counts an accented
            letter once, however it is written (`wording.composed`).
        at: The positions whose connectivity is computed (NaN elsewhere); None for all, and none at all costs a reading.
        window: Longer texts are read in pieces of at most so many characters, each from a zero state; a warning says
            so.
        chunk: Targets computed side by side; memory grows with chunk * window.
        done: Called after each chunk with how many positions it had, instead of a progress bar; what it raises ends the
            computation.

    Returns:
        Dimensions time (T positions), source (places in the window of a position) and rank. Variables:
        - `connectivity` (time, source): exactly 0 beyond the position itself; NaN where it was not computed, or where
          the target has no code;
        - `prediction`, `probability` (time, rank): the three likeliest words;
        - `p` (time): the target's probability.
        Coordinates, all (time): symbol (as given), read (as read), target, word, known (characters of the word that are
        known), word_start and window (where the word and the window start).

    Raises:
        UsageError: The text is empty, a character, word or mode is unknown, or the network is not autoregressive.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("autocomplete_gru", scale="small").model()
    >>> result = connectivity(model, "the united states of america", given="states")
    >>> result.connectivity.shape, bool(result.connectivity[4, 5:].fillna(0).any())  # nothing depends on the future
    ((28, 28), False)
    """
    vocabulary = wording.vocabulary_of(model)
    text = wording.composed(text, unknown)
    codes, read = wording.encode_leniently(vocabulary, text, unknown)
    if mode not in get_args(Mode):
        raise UsageError(f"mode must be one of {', '.join(map(repr, get_args(Mode)))}, not {mode!r}")
    attribute = partial(_attributed, model, mode)
    pieces, places = wording.windows(read, window), np.arange(len(text)) if at is None else np.array([*at], int)
    if strange := [int(place) for place in places if not 0 <= place < len(text)]:
        raise UsageError(f"there is no position {strange[0]}: the text has the positions 0 to {len(text) - 1}")
    asked = np.isin(np.arange(len(text)), places)
    if len(pieces) > 1:
        warnings.warn(
            f"a text of {len(text)} characters is read in {len(pieces)} windows of at most {window}, each from a "
            f"zero state: no connectivity reaches across them",
            stacklevel=2,
        )
    described: list[dict[str, Any]] = []
    said = wording.words_of(read)
    true = [*read[1:], ""] if model.words is None else said.word  # the next character, or the word
    shown: dict[str, Any] = {"delay": DELAY, "leave": False, "unit": " characters", "disable": done is not None}
    with evaluating(model), tqdm(total=int(asked.sum()), **shown) as bar:
        for start, stop in pieces:
            heard = wording.unit_input(model, codes[start:stop])
            with torch.inference_mode():
                hidden = model.recurrent(*(tensor.unsqueeze(1) for tensor in heard))[0]
                logits: Tensor = model.readout(hidden.squeeze(1))
            names = wording.outputs_of(model, logits.shape[-1])
            wanted = _targets(model, names, true[start:stop], logits, target, given)
            here = np.where(asked[start:stop], wanted, NO_CODE)
            values = _matrix(heard, here, attribute, max(1, chunk), done or bar.update)
            described.append(_described(values, logits, names, wanted, start))
    return labelled(described, text, read, said, {"model": model.name, "mode": mode})


def _targets(
    model: Network, names: Sequence[str], true: list[str], logits: Tensor, target: Target, given: str | None
) -> NDArray[np.int_]:
    """The target's code at every position; NO_CODE where the true one is none of the network's."""
    if given is not None:
        return np.full(len(logits), wording.code_of(model, given, len(names)))
    if target not in get_args(Target):
        raise UsageError(f"target must be one of {', '.join(map(repr, get_args(Target)))}, not {target!r}")
    asked = true if target == "true" else [first.word for (first,) in likeliest(logits, names, 1)]
    codes = {name: code for code, name in enumerate(names)}
    return np.array([codes.get(name, NO_CODE) for name in asked])


def _matrix(
    read: Read, wanted: NDArray[np.int_], attribute: Attribute, chunk: int, done: Callable[[int], object]
) -> NDArray[np.float64]:
    """[S, S], chunk by chunk; the steps after a chunk's last target are not computed."""
    length = len(read[0])
    values = np.where(wanted[:, None] < 0, np.nan, np.zeros((length, length)))
    (places,) = np.nonzero(wanted >= 0)
    for rows in (places[k : k + chunk] for k in range(0, len(places), chunk)):
        end = rows[-1] + 1
        side_by_side = tuple(tensor[:end].expand(len(rows), -1, -1) for tensor in read)
        positions, codes = (torch.from_numpy(tensor).to(read[0].device) for tensor in (rows, wanted[rows]))
        with torch.backends.cudnn.flags(enabled=False):  # its backward refuses a network in eval mode
            values[rows, :end] = attribute(side_by_side, positions, codes).double().cpu().numpy()
        if np.any(np.nan_to_num(values[rows][np.arange(length) > rows[:, None]])):
            raise UsageError("this network is not autoregressive: a prediction depends on later characters")
        done(len(rows))
    return values


def _described(
    values: NDArray[np.float64], logits: Tensor, names: Sequence[str], wanted: NDArray[np.int_], start: int
) -> dict[str, Any]:
    """What one window gives, as arrays along its time."""
    top = likeliest(logits, names, TOP)
    p = torch.softmax(logits.double(), -1).cpu().numpy()
    return {
        "connectivity": values,
        "prediction": np.array([[each.word for each in row] for row in top], dtype=object),
        "probability": np.array([[each.probability for each in row] for row in top]),
        "p": np.where(wanted < 0, np.nan, p[np.arange(len(p)), wanted]),
        "target": [names[code] if code >= 0 else "" for code in wanted],
        "window": np.full(len(wanted), start),
    }


def labelled(
    pieces: list[dict[str, Any]], text: str, read: str, words: wording.Words, about: dict[str, str]
) -> xr.Dataset:
    """What the windows give (`_described`), one after the other, as `connectivity` returns it."""
    widest = max(piece["connectivity"].shape[1] for piece in pieces)
    for piece in pieces:  # a shorter window has no later sources: 0, as everywhere in the future
        piece["connectivity"] = np.pad(piece["connectivity"], ((0, 0), (0, widest - piece["connectivity"].shape[1])))
    joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    dims = {"connectivity": ("time", "source"), "prediction": ("time", "rank"), "probability": ("time", "rank")}
    coords = {"target": joined.pop("target"), "window": joined.pop("window"), "symbol": list(text), "read": list(read)}
    coords |= {"word": words.word, "word_start": words.start, "known": words.known}
    return xr.Dataset(
        {name: (dims.get(name, ("time",)), values) for name, values in joined.items()},
        {"time": np.arange(len(text)), **{name: ("time", values) for name, values in coords.items()}},
        {**about, "windows": len(pieces)},
    )
