"""One measurement of many runs, and what may be said of it over their seeds."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.runs import Run
from nlstm_lab.runs.tables import NO_RUNS, run_columns
from nlstm_lab.statistics import Compared, compare, t_interval

RUN = ("experiment", "scale", "model", "start", "seed")
NETWORK = RUN[:-1]  # with the seed: which network a row is of


def gather(
    networks: Iterable[tuple[Run, Network]], measure: Callable[..., pd.DataFrame], *arguments: Any, **options: Any
) -> pd.DataFrame:
    """Measure every run's network: `measure(network, *arguments, **options)`.

    Args:
        networks: `[(run, run.model()) for run in runs]`. A measure that has a parameter `seed` is given the run's, so
            that untrained networks and shuffled texts differ between the seeds as trained networks do.
        measure: Called with a network, `arguments` and `options`; returns a frame.
        arguments: Passed to `measure` after the network.
        options: Options of `measure`.

    Returns:
        The frames one under another, with RUN's columns in front.

    Raises:
        UsageError: There is no run.
    """
    seeded = "seed" in inspect.signature(measure).parameters
    frames = []
    for run, network in networks:
        seed = {"seed": run.seed} if seeded else {}
        frame = measure(network, *arguments, **seed, **options).reset_index(drop=True)
        frames.append(pd.DataFrame({**run_columns(run)}, index=frame.index).join(frame))
    if not frames:
        raise UsageError(NO_RUNS)
    return pd.concat(frames, ignore_index=True)


def summarized(
    frame: pd.DataFrame, by: Iterable[str], summary: Callable[[pd.DataFrame], dict[Any, Any]]
) -> pd.DataFrame:
    """One row a group, in the order in which they come: its keys, and what `summary` makes of it."""
    groups = frame.groupby(by := list(by), sort=False, dropna=False)
    return pd.DataFrame([dict(zip(by, key, strict=True)) | summary(group) for key, group in groups])


def intervals(frame: pd.DataFrame, column: str, by: Iterable[str]) -> pd.DataFrame:
    """Take the mean over seeds of a column and its t interval, for each group.

    Args:
        frame: A tidy frame, one row a value.
        column: The column of `frame` with the values.
        by: Columns that tell the groups apart; what is NaN in them (no reader, no layer) is a group of its own.

    Returns:
        One row a group: `by`, mean, low, high, n (seeds with a number).

    Raises:
        UsageError: A group has two rows of a seed, which would count as two.

    >>> values = pd.DataFrame({"memory": ["inner"] * 3, "seed": [0, 1, 2], "lag": [2.0, 2.5, 3.0]})
    >>> intervals(values, "lag", by=["memory"]).round(2).to_dict("records")
    [{'memory': 'inner', 'mean': 2.5, 'low': 1.26, 'high': 3.74, 'n': 3}]
    """
    rows, by = [], list(by)
    for key, group in frame.groupby(by, sort=False, dropna=False):
        values = _of_seeds(group, column, dict(zip(by, key, strict=True)))
        rows.append(dict(zip(by, key, strict=True)) | t_interval(values)._asdict() | {"n": len(values)})
    return pd.DataFrame(rows)


def compared(frame: pd.DataFrame, column: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Compared:
    """Compare `column` in the rows that `first` describes with that in the rows of `second`, over seeds.

    Where both sides are of the same networks (as the columns `NETWORK` and an untrained `condition` tell), the
    difference is taken within each; else they are independent (`data/targets/protocol.md`). A seed without a number is
    left out.

    Args:
        frame: One row a seed of whatever a side describes.
        column: What is compared.
        first: Columns and their values.
        second: The same.

    Returns:
        The difference, first minus second, with its interval.

    Raises:
        UsageError: A side has two rows of a seed.
    """
    sides, networks = [], []
    for described in (first, second):
        side = frame
        for name, value in described.items():
            side = side[side[name] == value]
        sides.append({int(seed): float(value) for seed, value in _of_seeds(side, column, described).items()})  # type: ignore[call-overload]
        untrained = side.get("condition", pd.Series("", side.index)) == "untrained"
        columns = side[[name for name in NETWORK if name in side]].assign(untrained=untrained)
        networks.append(set(columns.itertuples(index=False, name=None)))
    return compare(*sides, paired=networks[0] == networks[1])


def comparisons(
    frame: pd.DataFrame,
    column: str,
    sides: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]],
    by: str | None = None,
) -> pd.DataFrame:
    """Compare several pairs over seeds (`compared`), one row each.

    Args:
        frame: One row a seed of whatever a side describes.
        column: What is compared.
        sides: Both sides of each comparison, by its name.
        by: A column of `frame`; each of its values is compared by itself.

    Returns:
        Columns comparison (and `by`), verdict (whether the first is larger), difference, low, high, seeds, df.

    Raises:
        UsageError: A side has two rows of a seed.

    >>> values = pd.DataFrame({"unit": list("aaabbb"), "seed": [0, 1, 2] * 2, "bpc": [2.0, 2.1, 2.2, 1.0, 1.1, 1.2]})
    >>> comparisons(values, "bpc", {"a worse than b": ({"unit": "a"}, {"unit": "b"})})["verdict"].tolist()
    ['holds']
    """
    rows = []
    groups = [("", frame)] if by is None else list(frame.groupby(by, sort=False))
    for name, (first, second) in sides.items():
        for value, group in groups:
            named = {"comparison": name} | ({} if by is None else {by: value})
            rows.append(named | compared(group, column, first, second).row())
    return pd.DataFrame(rows)


def _of_seeds(frame: pd.DataFrame, column: str, described: Mapping[str, Any]) -> "pd.Series[float]":
    """The numbers of a column by their seeds, of rows that agree in all that is `described`."""
    values = frame.set_index("seed")[column].dropna()
    if values.index.has_duplicates:
        raise UsageError(f"{dict(described)} describes more than one row of a seed: say also what tells them apart")
    return values
