"""What the boundaries of an HM-LSTM need: one respect of the network changed at a time, and the verdict on each.

Settings, criterion and predictions were written down before the runs (`data/targets/protocol.md`).
"""

from collections.abc import Iterable, Mapping

import pandas as pd

from nlstm_lab.datasets.excerpt import Excerpt, KnownText
from nlstm_lab.probes.seeds import gather
from nlstm_lab.runs import Run
from nlstm_lab.statistics import Interval, t_interval
from nlstm_lab.studies.boundaries.recorded import word_alignment

NEAR = 0.05  # F1 above chance: boundaries whose interval ends below do not fall on words


def ladder_scores(
    runs: Mapping[tuple[str, str], Iterable[Run]], places: Mapping[str, Excerpt | KnownText]
) -> pd.DataFrame:
    """Gather `word_alignment` over the seeds of every setting.

    Args:
        runs: Of each text and setting; an empty list is left out.
        places: Which part of each text is read.

    Returns:
        A row a run: its columns and those of `word_alignment`, text and setting.
    """
    networks = {key: [(run, run.model()) for run in some] for key, some in runs.items()}
    frames = [
        gather(some, word_alignment, places[text]).assign(text=text, setting=setting)
        for (text, setting), some in networks.items()
        if some
    ]
    return pd.concat(frames, ignore_index=True)


def ladder_verdicts(scores: pd.DataFrame) -> pd.DataFrame:
    """Judge whether the first layer's boundaries fall on words, for every setting and text.

    Args:
        scores: Of `ladder_scores`.

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
        rows.append(row | {"verdict": _verdict(f1, bits)})
    return pd.DataFrame(rows).set_index(["text", "setting"])


def _verdict(f1: Interval, bits: Interval) -> str:
    """By the protocol; fewer than three seeds have no interval, and all comparisons with it fail."""
    if f1.low > 0 and bits.low > 0:
        return "yes"
    return "no" if f1.high < NEAR else "inconclusive"
