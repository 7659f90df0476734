"""What a measurement is held against: other seeds, an untrained network, a shuffled text; and the claims it decides.

What was measured of the documents' claims is one small committed table, `data/probes/claims.csv`.
"""

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import nn

from nlstm_lab import parameters, paths
from nlstm_lab.datasets import Excerpt
from nlstm_lab.datasets.corpora import TextSource
from nlstm_lab.errors import UsageError
from nlstm_lab.models.network import Network, check_network
from nlstm_lab.probes.reading import string
from nlstm_lab.runs import Run
from nlstm_lab.runs.tables import NO_RUNS, run_columns
from nlstm_lab.settings import choice
from nlstm_lab.statistics import Compared, Interval, compare, t_interval
from nlstm_lab.targets import Comparison
from nlstm_lab.targets.rendering import claimed
from nlstm_lab.targets.verdicts import CLAIMS

RUN = ("experiment", "scale", "model", "start", "seed")
NETWORK = RUN[:-1]  # with the seed: which network a row is of
MADE_WITH = "made_with"  # the column of the parameters that a claim was measured with, as JSON


def untrained(model: Network, seed: int = 0) -> Network:
    """Copy `model` with every parameter drawn anew from `seed`, each part by its own `reset_parameters`.

    UsageError where a part has none, or a weight is still the trained one after it: one that is computed (weight norm,
    pruning, a parametrization) is to be made a plain parameter first.
    """
    check_network(model)
    fresh = copy.deepcopy(model).to("cpu" if model.device.type == "cuda" else model.device)  # the same on both
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` would seed GPUs, too, and leave them so
        for weight in fresh.parameters():
            weight.fill_(torch.nan)  # where it stays, nothing was drawn
        for module in (fresh.recurrent, fresh.embedding, fresh.readout):
            if module is not None:
                _reset(module)
    fresh.load_state_dict(dict(model.named_buffers()), strict=False)  # the slope stays
    trained = dict(model.named_parameters())
    for name, weight in fresh.to(model.device).named_parameters():
        if weight.isnan().any():
            if (old := trained[name]).unique().numel() > 2:
                raise UsageError(f"{name} is not drawn anew by `reset_parameters`, so it would stay trained")
            weight.data.copy_(old)
    return fresh


def _reset(module: nn.Module) -> None:
    """Reset `module`, or, if it cannot do that itself, its children."""
    if (reset := getattr(module, "reset_parameters", None)) is not None:
        reset()
        return
    if next(module.parameters(recurse=False), None) is not None:
        raise UsageError(f"{type(module).__name__} has parameters but no `reset_parameters`, so it cannot be reset")
    for child in module.children():
        _reset(child)


def shuffled(text: str, by: Literal["characters", "words"], seed: int = 0) -> str:
    """Put what `by` says, the "characters" or the "words" of a text between the same white space, in another order."""
    choice(by, "by", ("characters", "words"))
    pieces = [*string(text)] if by == "characters" else re.split(r"(\s+)", string(text))
    # between words is white space; at an end it leaves an empty piece there
    moved = [k for k in range(0, len(pieces), 1 if by == "characters" else 2) if pieces[k]]
    order = np.random.default_rng(seed).permutation(len(moved))
    for place, piece in zip(moved, [pieces[moved[k]] for k in order], strict=True):
        pieces[place] = piece
    return "".join(pieces)


def gather(
    networks: Iterable[tuple[Run, Network]], measure: Callable[..., pd.DataFrame], *arguments: Any, **options: Any
) -> pd.DataFrame:
    """Measure every run's network: `measure(network, *arguments, **options)`.

    A measure that has a parameter `seed` is given the run's, so that untrained networks and shuffled texts differ,
    unless `options` name one. An excerpt of the corpus that a network was trained on is read with the line ends of its
    training.

    Args:
        networks: `[(run, run.model()) for run in runs]`.
        measure: Returns a frame.
        arguments, options: Passed to `measure` after the network.

    Returns:
        The frames one under another, with RUN's columns in front; UsageError where there is no run, or where a frame
        has one of these columns.
    """
    seeded = "seed" in inspect.signature(measure).parameters and "seed" not in options
    frames = []
    for run, network in networks:
        given, named = [as_trained(run, v) for v in arguments], {k: as_trained(run, v) for k, v in options.items()}
        frame = measure(network, *given, **({"seed": run.seed} if seeded else {}), **named).reset_index(drop=True)
        if own := [name for name in RUN if name in frame]:
            raise UsageError(f"what was measured has a column {own[0]!r}, which says of which run it is: rename it")
        frames.append(pd.DataFrame({**run_columns(run)}, index=frame.index).join(frame))
    if not frames:
        raise UsageError(NO_RUNS)
    return pd.concat(frames, ignore_index=True)


def as_trained(run: Run, one: Any) -> Any:
    """An excerpt of the run's corpus with the line ends that its network was trained on; what is none as it is."""
    if isinstance(one, Excerpt) and isinstance(task := run.experiment.task, TextSource) and task.corpus == one.corpus:
        return replace(one, line_ends=task.line_ends)
    return one


def intervals(frame: pd.DataFrame, column: str, by: str | Sequence[str]) -> pd.DataFrame:
    """Take the mean over seeds of a column and its t interval, for each group.

    Args:
        frame: One row a seed of each group.
        column: The column with the values.
        by: The columns (or one) that tell groups apart; what is NaN there (no reader, no layer) is a group of its own.

    Returns:
        One row a group: `by`, mean, low, high, n (seeds with a number); UsageError where one has two rows of a seed.

    >>> values = pd.DataFrame({"memory": ["inner"] * 3, "seed": [0, 1, 2], "lag": [2.0, 2.5, 3.0]})
    >>> intervals(values, "lag", by=["memory"]).round(2).to_dict("records")
    [{'memory': 'inner', 'mean': 2.5, 'low': 1.26, 'high': 3.74, 'n': 3}]
    """
    by = [by] if isinstance(by, str) else [*by]
    groups = [(dict(zip(by, key, strict=True)), group) for key, group in frame.groupby(by, sort=False, dropna=False)]
    each = [(about, _of_seeds(group, column, about).values()) for about, group in groups]
    rows = [about | t_interval(values)._asdict() | {"n": len(values)} for about, values in each]
    return pd.DataFrame(rows, columns=[*by, *Interval._fields, "n"])


def comparisons(
    frame: pd.DataFrame,
    column: str,
    sides: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]],
    by: str | None = None,
) -> pd.DataFrame:
    """Compare several pairs over seeds, one row each.

    Where both sides are of the same networks (as the columns `NETWORK` and an untrained `condition` tell), the
    difference is taken within each; else, and where there is no such column, they are independent
    (`data/targets/protocol.md`). A seed without a number is left out.

    Args:
        frame: One row a seed of whatever a side describes.
        column: What is compared.
        sides: By a comparison's name what the rows of its first and of its second side have: columns and their values.
        by: A column of `frame`; each of its values is compared by itself.

    Returns:
        Columns comparison (and `by`), verdict, difference (first minus second, in the column's unit), low, high, seeds,
        df. "holds": the whole 95 % interval lies above 0, so the first is larger; "fails": it lies below.
        UsageError where a side has two rows of a seed.

    >>> values = pd.DataFrame({"model": list("aaabbb"), "seed": [0, 1, 2] * 2, "bpc": [2.0, 2.1, 2.2, 1.0, 1.1, 1.2]})
    >>> comparisons(values, "bpc", {"a worse than b": ({"model": "a"}, {"model": "b"})})["verdict"].tolist()
    ['holds']
    """
    groups = [({by: at}, part) for at, part in frame.groupby(by, sort=False, dropna=False)] if by else [({}, frame)]
    pairs = [({"comparison": name} | at, group, pair) for name, pair in sides.items() for at, group in groups]
    return pd.DataFrame([about | _compared(group, column, *pair).row() for about, group, pair in pairs])


def _compared(frame: pd.DataFrame, column: str, *described: Mapping[str, Any]) -> Compared:
    values, networks = [], []
    for side in described:
        rows = frame[(frame[[*side]] == pd.Series(side, dtype=object)).all(axis=1)]
        values.append(_of_seeds(rows, column, side))
        untrained = rows.get("condition", pd.Series("", rows.index)).isin(("untrained", "as initialized"))
        columns = rows[[name for name in NETWORK if name in rows]].assign(untrained=untrained)
        networks.append(set(columns.itertuples(index=False, name=None)))
    # where no column names the networks, nothing says that they are the same
    return compare(*values, paired=networks[0] == networks[1] and any(name in frame for name in NETWORK))


def _of_seeds(frame: pd.DataFrame, column: str, described: Mapping[str, Any]) -> dict[int, float]:
    """The numbers of a column by their seeds, of rows that agree in all that is `described`."""
    values = frame.set_index("seed")[column].dropna()
    if values.index.has_duplicates:
        raise UsageError(f"{dict(described)} describes more than one row of a seed: say also what tells them apart")
    return {int(seed): float(value) for seed, value in values.items()}  # type: ignore[call-overload]


def measured_claims() -> pd.DataFrame:
    """Read every claim that was measured: the columns of `targets.verdicts.CLAIMS`."""
    return _stored()[CLAIMS]


def _stored() -> pd.DataFrame:
    path = paths.probes() / "claims.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=[*CLAIMS, MADE_WITH])


def record_claims(document: str, scale: str, measured: pd.DataFrame | Mapping[str, Compared]) -> Comparison:
    """Enter what was measured of claims at a scale, in the place of earlier entries.

    Where a claim, or another one of the same notebook, was measured with other parameters, the file stays as it is, and
    a printed line says so.

    Args:
        document: The document that registers the claims.
        scale: The scale of the runs.
        measured: `lab.probes.comparisons`, named as the claims; or by the claims' names `lab.statistics.compare`.

    Returns:
        Each claim with what was measured, what decides and the verdict. UsageError: the document has no such claim, or
        there is no such scale.
    """
    if isinstance(measured, Mapping):
        measured = pd.DataFrame([{"comparison": name} | one.row() for name, one in measured.items()])
    new = measured[["difference", "low", "high", "seeds", "df"]].set_axis(CLAIMS[2:], axis=1)
    new = new.round(dict.fromkeys(CLAIMS[2:5], 6) | {CLAIMS[-1]: 3})
    new.insert(0, CLAIMS[0], document + "." + measured["comparison"])
    new.insert(1, CLAIMS[1], scale)
    shown = claimed(new)  # what this refuses would keep every verdict from being read
    now = parameters.current()
    new[MADE_WITH] = json.dumps(now)
    path = paths.probes() / "claims.csv"
    with paths.locked(path, "another process is noting a claim"):
        before = _stored()
        stored = before[MADE_WITH].map(json.loads)
        # of what this notebook measured before the nearest: a cell of parameters may have been edited
        alike = [one for one in stored if one.keys() == now.keys()]
        alike.sort(key=lambda one: len(parameters.changed(path, one)))
        made_with = {name: list(stored[before["claim"] == name]) or alike[:1] for name in new["claim"]}
        kept = [name for name, some in made_with.items() if any(parameters.changed(path, one) for one in some)]
        if kept:
            print(f"Committed {path.name} kept (measured with other parameters): {', '.join(kept)}")
        entered = new[~new["claim"].isin(kept)]
        if len(entered):
            before = before[~(before["claim"].isin(entered["claim"]) & (before["scale"] == scale))]
            table = pd.concat([before, entered]) if len(before) else entered
            table = table.sort_values(CLAIMS[:2], ignore_index=True)
            paths.write(path, table.to_csv(index=False, lineterminator="\n"))
    return shown  # of a trial, too
