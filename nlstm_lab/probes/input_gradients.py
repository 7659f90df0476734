"""Connectivity: which earlier characters a prediction depends on (Madsen's article, its figure of that name).

connectivity(t, s) is the size of the gradient of one logit at position t, of the target word, with respect to the
one-hot vector that was read at position s.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import reading
from nlstm_lab.probes.attributing import logits_at, vectors_of
from nlstm_lab.probes.words import likeliest

Mode = Literal["l2", "gradient_x_input"]
Target = Literal["true", "predicted"]
NO_CODE = -1
CHUNK = 50  # targets side by side: bounds the memory
TOP = 3  # words that the article shows for every position


def connectivity(
    model: Network,
    text: str,
    *,
    target: Target = "true",
    given: str | None = None,
    mode: Mode = "l2",
    unknown: reading.Unknown = "refuse",
    at: Iterable[int] | None = None,
    window: int = reading.LONGEST,
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
        unknown: What happens to characters outside the vocabulary: "refuse" or "map" (an accented letter counts once).
        at: The positions whose connectivity is computed (NaN elsewhere); None for all, and none at all costs a reading.
        window: Longer texts are read in pieces of at most so many characters, each from a zero state, with a warning.
        done: Called with how many positions were computed, instead of a progress bar; may raise to end it.

    Returns:
        Dimensions time (T positions), source (places in the window of a position) and rank. Variables:
        - `connectivity` (time, source): exactly 0 beyond the position itself; NaN where it was not computed, or where
          the target has no code;
        - `prediction`, `probability` (time, rank): the three likeliest words; `p` (time): the target's probability.
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
    codes, read = reading.encode_leniently(reading.vocabulary_of(model), text, unknown)
    text = reading.composed(text, unknown)
    for name, value, kind in (("mode", mode, Mode), ("target", target, Target)):
        if value not in get_args(kind):
            raise UsageError(f"{name} must be one of {', '.join(map(repr, get_args(kind)))}, not {value!r}")
    places, T = np.arange(len(text)) if at is None else np.array([*at], int), len(text)
    if strange := [int(place) for place in places if not 0 <= place < T]:
        raise UsageError(f"at must be positions from 0 to {T - 1}, not {strange[0]}")
    if len(pieces := windows(read, window)) > 1:
        warnings.warn(
            f"a text of {T} characters is read in {len(pieces)} windows of at most {window}, each from a zero state: "
            "no connectivity reaches across them",
            stacklevel=2,
        )
    said = reading.words_of(read)
    true, found = [*read[1:], ""] if model.words is None else said.word, []  # the next character, or the word
    shown: dict[str, Any] = {"delay": 2, "leave": False, "unit": " characters", "disable": done is not None}
    with reading.evaluating(model), tqdm(total=len(places), **shown) as bar:
        for start, stop in pieces:
            heard = vectors_of(model, codes[start:stop].to(model.device))
            with torch.inference_mode():
                logits = model.readout(model.recurrent(*(tensor.unsqueeze(1) for tensor in heard))[0].squeeze(1))
            names, p = reading.outputs_of(model, logits.shape[-1]), torch.softmax(logits.double(), -1).cpu().numpy()
            top = likeliest(logits, names, TOP)
            asked = true[start:stop] if target == "true" else [row[0].word for row in top]
            known = {name: code for code, name in enumerate(names)}
            wanted = np.array([known.get(name, NO_CODE) for name in asked])
            if given is not None:
                wanted[:] = reading.code_of(model, given, len(names), "given")
            here = np.where(np.isin(np.arange(start, stop), places), wanted, NO_CODE)
            data = {
                "connectivity": (("time", "source"), _matrix(model, mode, heard, here, done or bar.update)),
                "prediction": (("time", "rank"), np.array([[each.word for each in row] for row in top], dtype=object)),
                "probability": (("time", "rank"), np.array([[each.probability for each in row] for row in top])),
                "p": ("time", np.where(wanted < 0, np.nan, p[np.arange(len(p)), wanted])),
            }
            coords = {"target": [names[code] if code >= 0 else "" for code in wanted], "window": [start] * len(p)}
            found.append(xr.Dataset(data, {name: ("time", values) for name, values in coords.items()}))
    widest = max(one.sizes["source"] for one in found)  # a shorter window has no later sources: 0, as in the future
    whole = xr.concat([one.pad(source=(0, widest - one.sizes["source"]), constant_values=0) for one in found], "time")
    about: dict[str, Any] = {
        "symbol": list(text),
        "read": list(read),
        "word": said.word,
        "word_start": said.start,
        "known": said.known,
    }
    whole = whole.assign_coords({name: ("time", values) for name, values in about.items()} | {"time": np.arange(T)})
    return whole.assign_attrs(model=model.name, mode=mode, windows=len(pieces))


def windows(text: str, longest: int) -> list[tuple[int, int]]:
    """Consecutive pieces (start, stop) of at most `longest` characters, cut before a space where there is one."""
    if longest < 1:
        raise UsageError(f"window must be at least one character, not {longest}")
    cuts = [0]
    while len(text) - cuts[-1] > longest:
        space = text.rfind(" ", cuts[-1] + 1, cuts[-1] + longest + 1)
        cuts.append(space if space > 0 else cuts[-1] + longest)
    return list(pairwise([*cuts, len(text)]))


def _matrix(
    model: Network, mode: Mode, read: Sequence[Tensor], wanted: NDArray[np.int_], done: Callable[[int], object]
) -> NDArray[np.float64]:
    """[S, S], some rows after the others; the steps after their last target are not computed."""
    from captum.attr import InputXGradient, Saliency  # here, as every other probe goes without it

    length, signed, logits = len(read[0]), mode == "gradient_x_input", partial(logits_at, model)
    method, how = (InputXGradient(logits), {}) if signed else (Saliency(logits), {"abs": False})
    values = np.where(wanted[:, None] < 0, np.nan, np.zeros((length, length)))
    (places,) = np.nonzero(wanted >= 0)
    for rows in (places[k : k + CHUNK] for k in range(0, len(places), CHUNK)):
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
        if np.any(np.nan_to_num(values[rows][np.arange(length) > rows[:, None]])):
            raise UsageError("this network is not autoregressive: a prediction depends on later characters")
        done(len(rows))
    return values
