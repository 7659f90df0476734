"""One study of many runs, and what may be said of it over their seeds."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from nlstm_lab.datasets.excerpt import Excerpt
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import studies
from nlstm_lab.probes.statistics import Paired, compare
from nlstm_lab.runs import Run
from nlstm_lab.runs.together import NO_RUNS, about
from nlstm_lab.statistics import t_interval

ENOUGH = 3  # live cells with a number, below which a memory of a run has no median
CONDITIONS: dict[str, dict[str, Any]] = {
    "trained": {},
    "untrained": {"trained": False},
    "characters shuffled": {"order": "characters"},
    "words shuffled": {"order": "words"},
}
RUN = ("experiment", "model", "start", "seed")


def gather(
    networks: Iterable[tuple[Run, Network]], study: Callable[..., pd.DataFrame], *arguments: Any, **options: Any
) -> pd.DataFrame:
    """`study(network, *arguments, **options)` of every run under each other, with RUN's columns in front.

    networks: `[(run, run.model()) for run in runs]`. A study that has a parameter `seed` is given the run's, so that
    untrained networks and shuffled texts differ between the seeds as trained networks do. UsageError: no run.
    """
    seeded = "seed" in inspect.signature(study).parameters
    parts = []
    for run, network in networks:
        seed = {"seed": run.seed} if seeded else {}
        told = study(network, *arguments, **seed, **options).reset_index(drop=True)
        parts.append(pd.DataFrame({**about(run)}, index=told.index).join(told))
    if not parts:
        raise UsageError(NO_RUNS)
    return pd.concat(parts, ignore_index=True)


def conditions(model: Network, excerpt: Excerpt, seed: int = 0) -> pd.DataFrame:
    """`studies.state_timescales` under each of CONDITIONS, which is the column `condition`."""
    return pd.concat(
        [
            studies.state_timescales(model, excerpt, seed=seed, **how).assign(condition=condition)
            for condition, how in CONDITIONS.items()
        ],
        ignore_index=True,
    )


def quantities(states: pd.DataFrame, gates: pd.DataFrame) -> pd.DataFrame:
    """Four measures of slowness of every cell, long: RUN's columns, memory, unit, life, quantity, value.

    states, gates: `studies.state_timescales` and `studies.gate_timescales`, gathered. Quantities: `raw` and `tanh`,
    integrated autocorrelation times of the two, `gate`, -1 / (mean of ln f), and `persistence`.
    """
    keys = [*RUN, "memory", "unit", "life"]
    parts = [
        states.loc[states["value"] == value, [*keys, "timescale"]].rename(columns={"timescale": "value"})
        for value in ("raw", "tanh")
    ]
    parts += [gates[[*keys, name]].rename(columns={name: "value"}) for name in ("from_mean_ln_f", "persistence")]
    named = zip(parts, ("raw", "tanh", "gate", "persistence"), strict=True)
    return pd.concat([part.assign(quantity=name) for part, name in named], ignore_index=True)


def medians(cells: pd.DataFrame, column: str = "timescale") -> pd.DataFrame:
    """The median of each run's memory over its live cells, with the shares of those that are not beside it.

    cells: a gathered study with one row a cell; `condition`, `value` (a kind of value) and `quantity` are kept apart
    where they are columns. Columns: the keys, `median`, `measured` (cells), `latched`, `silent`, `dead` (shares of all
    cells). Fewer than ENOUGH live cells have no median: NaN.
    """
    kept = [name for name in ("condition", "quantity", "value") if name in cells and name != column]
    rows = []
    for key, group in cells.groupby([*RUN, "memory", *kept], sort=False):
        live = group.loc[group["life"] == "alive", column].dropna()
        life = {name: (group["life"] == name).mean() for name in ("latched", "silent")}
        told = {"median": live.median() if len(live) >= ENOUGH else float("nan"), "measured": len(live)}
        rows.append(dict(zip([*RUN, "memory", *kept], key, strict=True)) | told | life)
        rows[-1]["dead"] = (group["life"] != "alive").mean()
    return pd.DataFrame(rows)


def lost(cuts: pd.DataFrame) -> pd.DataFrame:
    """What a cut costs in all, one row a run, memory and kind, from `studies.cuts`, gathered.

    Columns: `kl` and `loss_increase`, summed over the predictions that followed, in nats, and `lag`: how many
    predictions later a nat of that divergence is paid, on average (1: all of it at once; NaN: none at all).
    """
    rows = []
    for key, group in cuts.groupby([*RUN, "memory", "kind"], sort=False):
        paid = group["kl"].sum()
        lag = (group["kl"] * (group["distance"] + 1)).sum() / paid if paid > 0 else float("nan")
        sums = {"kl": paid, "loss_increase": group["loss_increase"].sum(), "lag": lag}
        rows.append(dict(zip([*RUN, "memory", "kind"], key, strict=True)) | sums)
    return pd.DataFrame(rows)


def carriers(cells: pd.DataFrame) -> pd.DataFrame:
    """On how many cells of each memory the prediction hangs, from `studies.single_cells`, gathered; one row a memory.

    Columns: RUN's, memory, `kl`, the sum over all cells of what a swap of each alone costs (nats a prediction), and
    `half`, the least number of cells that cost half of that together (NaN where no cell costs anything).

    >>> costs = pd.DataFrame({"memory": "inner", "unit": range(4), "kl": [0.1, 0.4, 0.3, 0.2]})
    >>> carriers(costs.assign(experiment="mine", model="nlstm", start="zero", seed=0))[["memory", "kl", "half"]]
      memory   kl  half
    0  inner  1.0     2
    """
    rows = []
    for key, group in cells.groupby([*RUN, "memory"], sort=False):
        total = group["kl"].sum()
        part = group["kl"].sort_values(ascending=False).cumsum() / total
        told = {"kl": total, "half": 1 + (part < 0.5).sum() if total > 0 else float("nan")}
        rows.append(dict(zip([*RUN, "memory"], key, strict=True)) | told)
    return pd.DataFrame(rows)


def reach(horizons: pd.DataFrame, within: float = 0.01) -> pd.DataFrame:
    """How far back each run's network looks, from `studies.horizon`, gathered; one row a run.

    Columns: `reach`, the shortest context from which on the loss stays within `within` nats of that with the longest
    one, and `loss` with the longest. Where that is not finite, there is no reach: NaN.
    """
    rows = []
    for key, group in horizons.sort_values("context").groupby(list(RUN), sort=False):
        end = group["loss"].iloc[-1]
        far = group.loc[~((group["loss"] - end).abs() <= within), "context"]  # NaN is within nothing
        enough = group["context"] if far.empty else group.loc[group["context"] > far.max(), "context"]
        rows.append(dict(zip(RUN, key, strict=True)) | {"reach": enough.min(), "loss": end})
    return pd.DataFrame(rows)


def needed(frame: pd.DataFrame) -> pd.DataFrame:
    """How many characters of the word were read before it was among the three likeliest, one row a run and occurrence.

    frame: `context.suggestions`, gathered. Columns: RUN's, occurrence, needed. A word that is never suggested, not
    even with its last character read, counts as one more than it has.
    """
    keys = [*RUN, "occurrence"]
    never = frame.groupby(keys, sort=False)["known"].max() + 1
    found = frame[frame["place"].notna()].groupby(keys, sort=False)["known"].min()
    return found.reindex(never.index).fillna(never).astype(int).rename("needed").reset_index()


def intervals(frame: pd.DataFrame, column: str, by: Iterable[str]) -> pd.DataFrame:
    """The mean over seeds of a column and its t interval for each group: mean, low, high, n (seeds with a number).

    What is NaN in `by` (no reader, no layer) is a group of its own.
    UsageError: a group has two rows of a seed, which would count as two.

    >>> values = pd.DataFrame({"memory": ["inner"] * 3, "seed": [0, 1, 2], "lag": [2.0, 2.5, 3.0]})
    >>> intervals(values, "lag", by=["memory"]).round(2).to_dict("records")
    [{'memory': 'inner', 'mean': 2.5, 'low': 1.26, 'high': 3.74, 'n': 3}]
    """
    rows, by = [], list(by)
    for key, group in frame.groupby(by, sort=False, dropna=False):
        values = _of_seeds(group, column, dict(zip(by, key, strict=True)))
        rows.append(dict(zip(by, key, strict=True)) | t_interval(values)._asdict() | {"n": len(values)})
    return pd.DataFrame(rows)


def paired(frame: pd.DataFrame, column: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Paired:
    """Whether `column` is larger in the rows that `first` describes than in those of `second`, seed by seed.

    A seed that lacks one of the two (NaN) is left out and not counted.

    >>> paired(medians, "median", {"start": "zero", "memory": "inner"}, {...})  # doctest: +SKIP
    """
    return compare(_by_seed(frame, column, first), _by_seed(frame, column, second))


def _by_seed(frame: pd.DataFrame, column: str, described: Mapping[str, Any]) -> dict[int, float]:
    chosen = frame
    for name, value in described.items():
        chosen = chosen[chosen[name] == value]
    values = _of_seeds(chosen, column, described)
    return {int(seed): float(value) for seed, value in values.items()}  # type: ignore[call-overload]


def _of_seeds(frame: pd.DataFrame, column: str, described: Mapping[str, Any]) -> "pd.Series[float]":
    """The numbers of a column by their seeds, of rows that agree in all that is `described`."""
    values = frame.set_index("seed")[column].dropna()
    if values.index.has_duplicates:
        raise UsageError(f"{dict(described)} describes more than one row of a seed: say also what tells them apart")
    return values
