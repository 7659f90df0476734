"""Boundaries of recorded networks, judged: read from records, or made and recorded.

What the ladder changes, its criterion and its predictions were written down before the runs
(`data/targets/protocol.md`).
"""

from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from nlstm_lab.cells.hierarchical import MultiscaleCell
from nlstm_lab.datasets import Excerpt, KnownText, Lines
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import boundary_chance as segments
from nlstm_lab.probes.boundary_chance import fires
from nlstm_lab.probes.interventions import ROWS, continuations, effect, predictions
from nlstm_lab.probes.reading import encode_symbols, reading, rows, states_at
from nlstm_lab.probes.records import digest, read, recorded
from nlstm_lab.probes.segmentation import OPERATIONS, boundaries, together
from nlstm_lab.statistics import t_interval

PIECE = 500  # characters that are judged in one piece, from a zero state, side by side with the others
MOMENTS, DISTANCE = 60, 20  # at which a FLUSH is turned, and predictions after that
PEN_WINDOWS = {name: segments.WINDOWS[name] for name in ("0", "±1")}
Readings = tuple[list[xr.Dataset], list[dict[str, segments.Flags]], dict[str, segments.Window]]


@recorded("boundary_scores", by=["seed"], piece=PIECE)
def segment_scores(model: Network, text: Excerpt | KnownText | Lines, seed: int = 0) -> pd.DataFrame:
    """Judge boundaries by what a text ends, or by the pen's being lifted (`segments.judged`).

    Args:
        model: The network that reads.
        text: What it reads.
        seed: Of the detectors that are drawn.

    Returns:
        The columns of `segments.judged`.
    """
    return segments.judged(*_readings(model, text), seed=seed)


@recorded("boundary_information", by=["seed"], piece=PIECE)
def boundary_information(model: Network, text: Excerpt | KnownText, seed: int = 0) -> pd.DataFrame:
    """Measure what boundaries tell of what a text ends, in bits a character (`segments.information`)."""
    readings, truths, _ = _readings(model, text)
    return segments.information(readings, truths, seed)


@recorded("word_alignment", by=["seed"], piece=PIECE)
def word_alignment(model: Network, text: Excerpt | KnownText, seed: int = 0) -> pd.DataFrame:
    """Judge the first layer's boundaries against words, by the criterion of the protocol.

    Args:
        model: The network that reads.
        text: What it reads: F1 is at a space or the character after it, in a known language at the ends of words.
        seed: Of what is drawn at random.

    Returns:
        One row: rate (boundaries a step) and base (true ones), f1 and chance (of a random detector of the same rate);
        bits, what z and the ends of words share given the current symbol, and shuffled, the same after z was permuted
        among the steps of each symbol.
    """
    readings, truths, windows = _readings(model, text)
    truth, within = ("word ends", "0") if isinstance(text, KnownText) else ("spaces", "or one after")
    of_truth = [{truth: of_text[truth]} for of_text in truths]
    scores = segments.judged(readings, of_truth, {within: windows[within]}, seed)
    f1 = scores[scores["layer"] == 1].set_index("detector")["f1"]
    bits, shuffled = segments.beyond_symbol(readings, [of_text["word ends"] for of_text in truths], seed)
    row = scores[(scores["layer"] == 1) & (scores["detector"] == segments.NETWORK)][["rate", "base", "f1"]]
    return row.assign(chance=f1["random"], bits=bits, shuffled=shuffled)


@recorded("updates", piece=PIECE)
def update_costs(model: Network, text: Excerpt | Lines) -> pd.DataFrame:
    """Count what each layer did over all pieces, and what that costs beside doing it at every step.

    Embedding, output module and products with gates are left out.

    Returns:
        One row a layer: layer, steps; updates, the steps at which it did not COPY, and of these `flushes`;
        multiply-adds of matrices with states: `sparse`, where a layer that copies computes nothing and one that acts
        reads what equations 5 to 7 let through; `dense`, all products at every step; `stack`, an LSTM of as many units.
    """
    counts = [updates(model, boundaries) for boundaries in _readings(model, text)[0]]
    return pd.concat(counts).groupby("layer").sum().reset_index()


@recorded("segment_lengths", piece=PIECE)
def length_counts(model: Network, text: Excerpt | Lines) -> pd.DataFrame:
    """Count how long segments are, beside those that the truths make (`segments.lengths`)."""
    readings, truths, _ = _readings(model, text)
    return segments.lengths(readings, truths)


@recorded("since_flush", piece=PIECE)
def surprisal_since_flush(model: Network, text: Excerpt | Lines) -> pd.DataFrame:
    """Measure the surprisal of what comes next against the steps since a FLUSH (`segments.since_flush`)."""
    return segments.since_flush(_readings(model, text)[0])


def _readings(model: Network, text: Excerpt | KnownText | Lines) -> Readings:
    """Pieces of a text, or lines, as the network reads them, their truths, and the windows to judge within."""
    return _read_once(model, digest(model), text)


@lru_cache(maxsize=16)  # every measurement of a network, with its weights as they are now, reads the same
def _read_once(model: Network, weights: str, place: Excerpt | KnownText | Lines) -> Readings:
    if isinstance(place, Lines):
        lines = place.read()
        truths = [{"pen-ups": line[:, 2].numpy() > 0} for line in lines]
        return together(model, lines), truths, dict(PEN_WINDOWS)
    text = place.read()
    cuts = range(0, len(text), PIECE)
    whole = segments.text_truths(text) if isinstance(place, Excerpt) else segments.known_truths(place)
    truths = [{name: flags[start : start + PIECE] for name, flags in whole.items()} for start in cuts]
    return together(model, [text[start : start + PIECE] for start in cuts]), truths, dict(segments.WINDOWS)


def updates(model: Network, data: xr.Dataset) -> pd.DataFrame:
    """What each layer did along a text, read as `data`, and what that costs beside doing it at every step."""
    table = []
    for k, cell in enumerate(model.recurrent.cells):
        assert isinstance(cell, MultiscaleCell)
        operation = data["operation"].values[:, k]
        acts, flushed = operation != OPERATIONS.index("COPY"), operation == OPERATIONS.index("FLUSH")
        heard = int(acts.sum()) if k == 0 else int((data["z"].values[:, k - 1] > 0).sum())
        rows, units = cell.weight_hh.shape
        below, own = cell.weight_ih.numel(), cell.weight_hh.numel()
        above = 0 if cell.weight_th is None else cell.weight_th.numel()
        steps, number, anew = len(operation), int(acts.sum()), int(flushed.sum())
        # where boundaries are given, a new segment has h of the layer above in the place of its own
        given = data.attrs["boundary"] == "given"
        stands = int((acts[:-1] & ~acts[1:]).sum()) * (rows - 4 * units) * units  # of a new h, at its first COPY
        table.append(
            {
                "layer": k + 1,
                "steps": steps,
                "updates": number,
                "flushes": anew,
                "sparse": heard * below + (number - (anew if given else 0)) * own + anew * above + stands,
                "dense": steps * (below + own + above),
                "stack": steps * 4 * units * (cell.input_size + units),
            }
        )
    return pd.DataFrame(table)


NEAR = 0.05  # F1 above chance: boundaries whose interval ends below do not fall on words


def ladder_verdicts(scores: pd.DataFrame) -> pd.DataFrame:
    """Judge whether the first layer's boundaries fall on words, for every setting and text.

    Args:
        scores: `word_alignment` of the seeds of every setting, gathered, with columns text and setting.

    Returns:
        Index text and setting; seeds, rate; f1 (above chance), f1_low and f1_high; bits (of the ends of words given
        the current symbol, above shuffled), bits_low and bits_high: means and t intervals over seeds; verdict: "yes",
        "no" or "inconclusive".
    """
    rows = []
    for (text, setting), seeds in scores.groupby(["text", "setting"], sort=False):
        f1, bits = t_interval(seeds["f1"] - seeds["chance"]), t_interval(seeds["bits"] - seeds["shuffled"])
        row = {"text": text, "setting": setting, "seeds": len(seeds), "rate": seeds["rate"].mean()}
        row |= dict(zip(("f1", "f1_low", "f1_high"), f1, strict=True))
        row |= dict(zip(("bits", "bits_low", "bits_high"), bits, strict=True))
        # by the protocol; fewer than three seeds have no interval, and all comparisons with it fail
        verdict = "yes" if f1.low > 0 and bits.low > 0 else "no" if f1.high < NEAR else "inconclusive"
        rows.append(row | {"verdict": verdict})
    return pd.DataFrame(rows).set_index(["text", "setting"])


KINDS = {"withheld": 1.0, "forced": 0.0}  # what z was before it was turned


@recorded("flushes", by=["moments", "distance"])
def flush_effects(
    model: Network, text: str | Excerpt, moments: int = MOMENTS, distance: int = DISTANCE
) -> pd.DataFrame:
    """Turn z_{t-1} of each layer with a detector before step t, at moments spread over a text, and read on beside it.

    Args:
        model: The network that reads.
        text: What it reads.
        moments: How many of each kind, or as many as the text has.
        distance: Predictions that are compared.

    Returns:
        One row a layer, kind and distance (0 is the prediction at step t itself): kl, the divergence of the turned
        network's prediction from the intact one's, and loss_increase, both in nats and means over the moments; number,
        how many. Kinds:
        - withheld: z was 1 and is made 0, so that in the place of a FLUSH comes an UPDATE, or a COPY, by z of the layer
          below (equation 2), and nothing comes down (equation 6);
        - forced: z was 0 and is made 1.

    Raises:
        UsageError: The network's boundaries are not decided by a step function, it does not predict the symbols that it
            reads, there is no moment or distance, or the text is too short for the distance.
    """
    if moments < 1 or distance < 1:
        raise UsageError(f"moments and distance must be positive, not {moments} and {distance}")
    text = read(text)
    data = boundaries(model, text)
    if data.attrs["boundary"] != "step":
        raise UsageError(f"a step function must decide on a withheld FLUSH; here it is {data.attrs['boundary']}")
    codes = encode_symbols(model, text)
    if len(codes) < distance + 3:
        raise UsageError(f"{distance} predictions after a FLUSH need a text of {distance + 3} characters at least")
    frames = []
    for layer, (kind, was) in product(data["layer"].values[:-1].tolist(), KINDS.items()):
        before = fires(data, layer)[: len(codes) - distance - 1]  # z_{t-1}, t - 1 = 0, 1, ...
        possible = np.flatnonzero(before == was) + 1
        chosen = possible[np.linspace(0, len(possible) - 1, min(moments, len(possible))).astype(int)].tolist()
        pieces = []
        for k in range(0, len(chosen), ROWS):
            with reading(model):
                state = states_at(model, codes, chosen[k : k + ROWS])
                other = rows(state, range(len(chosen[k : k + ROWS])))
                other[2][layer - 1] = 1 - other[2][layer - 1]
                x, targets = continuations(codes, chosen[k : k + ROWS], distance)
                pieces.append(effect(predictions(model, x, state), predictions(model, x, other), targets))
        loss, turned, kl = (
            np.concatenate(column, 1).mean(1) if pieces else np.full(distance, np.nan)
            for column in (zip(*pieces, strict=True) if pieces else [()] * 3)
        )
        columns = {"distance": range(distance), "kl": kl, "loss_increase": turned - loss}
        frames.append(pd.DataFrame({"layer": layer, "kind": kind, "number": len(chosen), **columns}))
    return pd.concat(frames, ignore_index=True)
