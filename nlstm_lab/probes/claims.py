"""What probes measured of the documents' claims: one small committed table, `data/probes/claims.csv`."""

import numpy as np
import pandas as pd

from nlstm_lab import paths
from nlstm_lab.statistics import Interval
from nlstm_lab.targets.evidence import CLAIMS


def claims() -> pd.DataFrame:
    """Every claim that was measured, as `targets.verdicts` takes it: claim, scale, value, low, high, n (of seeds)."""
    path = paths.probes() / "claims.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=CLAIMS)


def note(claim: str, scale: str, interval: Interval, n: int) -> pd.DataFrame:
    """Enter what was measured of a claim ("nested_lstm.inner_slower_than_outer") at a scale; returns the whole table.

    An earlier entry of that claim and scale is replaced, so that a notebook may be run again.
    """
    row = pd.DataFrame([[claim, scale, *np.round(interval, 6), n]], columns=CLAIMS)
    before = claims()
    others = before[~((before["claim"] == claim) & (before["scale"] == scale))]
    table = pd.concat([others, row]) if len(others) else row
    table = table.sort_values(CLAIMS[:2], ignore_index=True)
    with paths.atomic(paths.probes() / "claims.csv") as partial:
        table.to_csv(partial, index=False, lineterminator="\n")
    return table
