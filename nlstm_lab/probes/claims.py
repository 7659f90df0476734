"""What probes measured of the documents' claims: one small committed table, `data/probes/claims.csv`."""

import json

import numpy as np
import pandas as pd

from nlstm_lab import parameters, paths
from nlstm_lab.statistics import Interval
from nlstm_lab.targets import DOCUMENTS, load
from nlstm_lab.targets.verdicts import CLAIMS, check_claims

MADE_WITH = "made_with"  # the column of the parameters that a row was measured with, as JSON


def measured_claims() -> pd.DataFrame:
    """Read every claim that was measured, as `targets.verdicts` takes it.

    Returns:
        The columns of `targets.verdicts.CLAIMS`.
    """
    return _stored()[CLAIMS]


def _stored() -> pd.DataFrame:
    path = paths.probes() / "claims.csv"
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=CLAIMS)
    return table if MADE_WITH in table else table.assign(**{MADE_WITH: "{}"})


def record_claim(claim: str, scale: str, interval: Interval, n: int, df: float | None = None) -> pd.DataFrame:
    """Enter what was measured of a claim ("nested_lstm.inner_slower_than_outer") at a scale.

    An earlier entry of that claim and scale is replaced. Where a claim was measured with other parameters of its
    notebook, or parameters were given to a notebook that measures it first, the file stays as it is, and a printed line
    says so: what trials measure is judged by nobody.

    Args:
        claim: The claim's name, document first.
        scale: The scale of the runs.
        interval: The measured difference with its interval.
        n: The number of seeds.
        df: Degrees of freedom of the interval; None for n - 1.

    Returns:
        The whole table.

    Raises:
        UsageError: No document registers the claim, or there is no such scale.
    """
    freedom = n - 1 if df is None else round(df, 3)
    row = pd.DataFrame([[claim, scale, *np.round(interval, 6), n, freedom]], columns=CLAIMS)
    check_claims(row, map(load, DOCUMENTS))  # what this refuses would keep every verdict from being read
    row[MADE_WITH] = json.dumps(parameters.current())
    path = paths.probes() / "claims.csv"
    with paths.locked(path, "another process is noting a claim"):
        before = _stored()
        same = before["claim"] == claim
        others = before[~(same & (before["scale"] == scale))]
        table = (pd.concat([others, row]) if len(others) else row).sort_values(CLAIMS[:2], ignore_index=True)
        if parameters.is_trial(path, [json.loads(made_with) for made_with in before.loc[same, MADE_WITH]]):
            print(f"{path.name} stays as it is: {claim} is judged by a measurement with other parameters")
        else:
            paths.write(path, table.to_csv(index=False, lineterminator="\n"))
    return table[CLAIMS]


def record_claims(document: str, scale: str, compared: pd.DataFrame) -> pd.DataFrame:
    """Enter what was measured of several claims (`record_claim`).

    Args:
        document: The document that registers the claims.
        scale: The scale of the runs.
        compared: `lab.probes.comparisons`, named as the claims.

    Returns:
        Their rows of the table.
    """
    rows = []
    for row in compared.itertuples():
        interval = Interval(row.difference, row.low, row.high)  # type: ignore[arg-type]
        table = record_claim(f"{document}.{row.comparison}", scale, interval, row.seeds, row.df)  # type: ignore[arg-type]
        rows.append(table[table["claim"].eq(f"{document}.{row.comparison}") & table["scale"].eq(scale)])
    return pd.concat(rows).sort_values("claim") if rows else measured_claims()[:0]
