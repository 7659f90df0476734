"""What probes measured of the documents' claims: one small committed table, `data/probes/claims.csv`."""

import numpy as np
import pandas as pd

from nlstm_lab import paths
from nlstm_lab.statistics import Interval
from nlstm_lab.targets import DOCUMENTS, load
from nlstm_lab.targets.evidence import CLAIMS, measurements


def measured_claims() -> pd.DataFrame:
    """Every claim that was measured, as `targets.verdicts` takes it: claim, scale, value, low, high, n (of seeds)."""
    path = paths.probes() / "claims.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=CLAIMS)


def record_claim(claim: str, scale: str, interval: Interval, n: int) -> pd.DataFrame:
    """Enter what was measured of a claim ("nested_lstm.inner_slower_than_outer") at a scale; returns the whole table.

    An earlier entry of that claim and scale is replaced, so that a notebook may be run again; several may note at
    once. UsageError: no document registers the claim, or there is no such scale. LabError: the table cannot be written.
    """
    row = pd.DataFrame([[claim, scale, *np.round(interval, 6), n]], columns=CLAIMS)
    measurements(row, map(load, DOCUMENTS))  # what this refuses would keep every verdict from being read
    path = paths.probes() / "claims.csv"
    with paths.locked(path, "another process is noting a claim"):
        before = measured_claims()
        others = before[~((before["claim"] == claim) & (before["scale"] == scale))]
        table = pd.concat([others, row]) if len(others) else row
        table = table.sort_values(CLAIMS[:2], ignore_index=True)
        paths.write(path, table.to_csv(index=False, lineterminator="\n"))
    return table
