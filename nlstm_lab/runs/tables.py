"""Several runs as one list or frame: what figures draw and what is compared over seeds."""

import fnmatch
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from nlstm_lab import experiments, paths
from nlstm_lab.datasets.registry import DATASETS
from nlstm_lab.errors import UsageError
from nlstm_lab.experiments import Experiment
from nlstm_lab.runs import records
from nlstm_lab.runs.partial import unfinished
from nlstm_lab.runs.run import Run, is_known, load, or_left_out, result_of, run_of, seeds_of
from nlstm_lab.settings import SCALES, ended

SHARE = re.compile(r"(latched|silent)_share/(.+)")  # what a history calls the shares of training.liveness
NO_RUNS = "there are no runs to read; train some with `nlstm-lab train NAME`, or choose another pattern or scale"
RUN = ["experiment", "scale", "seed", "parameters", "best_epoch"]  # of a result, in every row of a table
VALUE = ["evaluation", "metric", "split", "epoch", "value"]
KEYS = ("setting", "experiment", "scale", "model", "start", "seed", "memory", "update")


def recorded(pattern: str = "*", scale: str | None = None, partial: bool = False) -> list[Run]:
    """List every recorded run of the documents' experiments that match, in the documents' order; trains nothing.

    What is damaged, or was trained with another configuration than today's, is left out with a warning.

    Args:
        partial: Add those of any experiment that are not done, from their first epoch on (`unfinished`).

    >>> import nlstm_lab as lab
    >>> [run.name for run in lab.runs.recorded("ptb_char_nlstm", "small")][:2]
    ['ptb_char_nlstm/small-seed0', 'ptb_char_nlstm/small-seed1']
    """
    done = []
    for name, one in product(experiments.names(pattern), SCALES):
        if scale in (None, one) and one in experiments.scales(name):
            for seed in _seeds(experiments.get(name, one)):
                with or_left_out():
                    done.append(load(name, seed, one))
    return done + begun(pattern, scale) if partial else done


def _seeds(experiment: Experiment) -> list[int]:
    with or_left_out():
        return seeds_of(experiment)
    return []


def _folders() -> Iterator[Path]:
    """Every folder of a run, recorded or failed."""
    for name in records.listed(paths.runs()):
        with or_left_out():
            for run in records.listed(paths.runs() / name):
                if re.fullmatch(rf"({'|'.join(SCALES)})-seed.*", run):
                    yield paths.runs() / name / run


def begun(pattern: str, scale: str | None) -> list[Run]:
    """Runs that match, are not done and have an epoch, and of which there is no record."""
    return [
        run for run in unfinished(pattern, scale) if run.progress.epoch and run.seed not in seeds_of(run.experiment)
    ]


def table(pattern: str = "*", scale: str | None = None, partial: bool = False) -> pd.DataFrame:
    """Gather recorded runs, variations among them, in a tidy frame.

    What is damaged, or was trained with another configuration than today's, is left out with a warning.

    Args:
        partial: Add those that are not done, as their `state` says; no verdict may rest on them.

    Returns:
        One row a run, split, evaluation and metric.

    >>> import nlstm_lab as lab
    >>> table = lab.runs.table("ptb_char_*", scale="small")
    >>> valid = table.query("metric == 'bpc' and split == 'valid' and evaluation == 'blocks'")
    >>> means = valid.groupby("experiment").value.mean()
    >>> bool(means["ptb_char_nlstm_logfreq"] < means["ptb_char_nlstm"])
    True
    """
    results = []
    for folder in _folders():
        with or_left_out(), suppress(FileNotFoundError):
            result = result_of(folder)
            if fnmatch.fnmatchcase(result["experiment"], pattern) and scale in (None, result["scale"]):
                if is_known(result["experiment"]):
                    run_of(experiments.get(result["experiment"], result["scale"]), result["seed"], result)
                results.append((result, records.state(result)))
    results += [(run.result, run.state) for run in (begun(pattern, scale) if partial else [])]
    about = [({**{key: result[key] for key in RUN}, "state": state}, result["metrics"]) for result, state in results]
    rows = [{**run, **row} for run, metrics in about for row in metrics]
    return pd.DataFrame(rows, columns=[*RUN, "state", *VALUE])


def failures(pattern: str = "*", scale: str | None = None) -> pd.DataFrame:
    """List runs that failed.

    Returns:
        experiment, scale, seed, `what` was not finite, and after which `update`.
    """
    columns = ["experiment", "scale", "seed", "what", "update"]
    failed = []
    for folder in _folders():
        with or_left_out(), suppress(FileNotFoundError):
            failed.append(records.read(folder / "failed.json", records.FAILURE))
    matching = [
        one for one in failed if fnmatch.fnmatchcase(one["experiment"], pattern) and scale in (None, one["scale"])
    ]
    return pd.DataFrame(matching, columns=columns)


def describe_runs(runs: Iterable[Run]) -> str:
    """Say in a sentence, for a caption, the scale, width, length and text of trainings, and how many seeds there are.

    It names runs that ended early or are not done.

    Raises:
        UsageError: There is no run.

    >>> import nlstm_lab as lab
    >>> lab.runs.describe_runs(lab.runs.recorded("ptb_char_nlstm", "small"))
    "Small scale: 150 units a layer, 3,136 updates; the Penn Treebank in Mikolov's version; 5 seeds."
    """
    runs = list(runs)
    if not runs:
        raise UsageError(NO_RUNS)
    tasks = [run.experiment.task for run in runs]
    texts = dict.fromkeys(task.corpus for task in tasks if hasattr(task, "corpus"))
    titles = [DATASETS[text].title if text in DATASETS else text for text in texts]
    words = {task.words for task in tasks if hasattr(task, "words")}
    sizes = [
        f"{_span({run.experiment.model.hidden_size for run in runs})} units a layer",
        *([f"{_span(words)} words"] if words else []),
        f"{_span({int(run.history['update'].max()) for run in runs})} updates",
    ]
    scales = " and ".join(dict.fromkeys(run.experiment.scale for run in runs)).capitalize()
    seeds = _span({*Counter((run.experiment.name, run.experiment.scale) for run in runs).values()})
    early = ended(run.state for run in runs if run.state != "done")
    said = [
        re.sub("(.*), by the rule", rf"{'one' if count == 1 else count} ended after \1 by early stopping", state)
        for state, count in early.items()
    ]
    seeds = "one seed" if seeds == "1" else f"{seeds} seeds"
    return f"{scales} scale: {'; '.join([', '.join(sizes), *titles, seeds, *said])}."


def _span(values: set[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def run_columns(run: Run) -> dict[str, Any]:
    """Which run a row is of: experiment, scale, model (as figures call it), start (of the output bias), seed."""
    model = run.experiment.model
    stacked = model.cell_type == "lstm" and model.num_layers > 1
    return {
        "experiment": run.experiment.name,
        "scale": run.experiment.scale,
        "model": "stacked_lstm" if stacked else model.cell_type,
        "start": model.output_bias,
        "seed": run.seed,
    }


def histories(runs: Iterable[Run] | Mapping[str, Iterable[Run]]) -> pd.DataFrame:
    """Put the histories of runs under each other, with `about` its run, its `state`, and which epoch is `best`.

    Args:
        runs: Recorded runs, or several lists of them by the name of a setting, which then is a column, too.

    Raises:
        UsageError: There is no run.

    >>> import nlstm_lab as lab
    >>> history = lab.runs.histories(lab.runs.recorded("ptb_char_nlstm", "small"))
    >>> sorted(history["seed"].unique().tolist())
    [0, 1, 2, 3, 4]
    """
    named = runs if isinstance(runs, Mapping) else {"": runs}
    frames = [
        run.history.assign(
            **run_columns(run), state=run.state, best=run.history["epoch"] == run.result["best_epoch"], setting=setting
        )
        for setting, some in named.items()
        for run in some
    ]
    if not frames:
        raise UsageError(NO_RUNS)
    table: pd.DataFrame = pd.concat(frames, ignore_index=True)
    return table if isinstance(runs, Mapping) else table.drop(columns="setting")


def curves(runs: Iterable[Run], metric: str = "nll_nats") -> pd.DataFrame:
    """Follow training and validation of runs over updates and time.

    Returns:
        About's columns, split, update, minutes, value, by the task's first evaluation. split: "train", in the first
        epoch since the early row before and later over the whole epoch, and "valid". minutes: of updates alone, at the
        run's mean rate; NaN where the task's config does not say how long its sequences are.

    Raises:
        UsageError: There is no run.

    >>> import nlstm_lab as lab
    >>> frames = lab.runs.curves(lab.runs.recorded("ptb_char_nlstm", "small"))
    >>> bool(frames.duplicated(["seed", "split", "update"]).any())
    False
    """
    frames = []
    for run in runs:
        history, rate = run.history, run.result["tokens_per_second"]
        rows: pd.DataFrame = history[(history["metric"] == metric) & history["split"].isin(["early", "train", "valid"])]
        rows = rows[rows["evaluation"] == history["evaluation"].iloc[0]]  # the others read once, at the end
        rows = rows[(rows["split"] != "train") | (rows["epoch"] > 1)]  # the first epoch's has the early rows
        minutes = rows["update"] * _read_by_an_update(run.experiment.task) / rate / 60
        shown = rows.assign(split=rows["split"].replace("early", "train"), minutes=minutes, **run_columns(run))
        frames.append(shown[[*run_columns(run), "split", "update", "minutes", "value"]])
    if not frames:
        raise UsageError(NO_RUNS)
    return pd.concat(frames, ignore_index=True)


def _read_by_an_update(task: Any) -> float:
    """How many symbols a full batch holds, as training counts them; NaN where the config has no length."""
    if not hasattr(task, "length"):
        return math.nan
    unread = getattr(task, "evaluation", None) == "blocks"  # the last symbol of a block is predicted alone
    return float(task.batch_size * (task.length - unread))


def dead_shares(history: pd.DataFrame, updates: Iterable[int] = ()) -> pd.DataFrame:
    """Count dead cells.

    Args:
        history: From `histories`.
        updates: After which updates of the first epoch (those that training logs); none for after the best epoch.

    Returns:
        One row a run, memory and update, with the shares `saturated`, `constant` (of which histories speak as latched
        and silent) and `dead` (both), on the first validation batch (see `training.liveness`).

    >>> import nlstm_lab as lab
    >>> dead = lab.runs.dead_shares(lab.runs.histories(lab.runs.recorded("ptb_char_nlstm", "small")))
    >>> bool(dead.loc[dead["memory"] == "inner", "dead"].mean() > 0.9)  # from zero biases the inner memory dies
    True
    """
    wanted = list(updates)
    early = (history["split"] == "early") & history["update"].isin(wanted)
    rows = history[early if wanted else (history["split"] == "valid") & history["best"]]
    kinds = rows["metric"].str.extract(SHARE).set_axis(["life", "memory"], axis=1)
    rows = rows.assign(**kinds).dropna(subset="life")
    keys = [name for name in KEYS if name in rows]
    saturated, constant = (
        rows.loc[rows["life"] == life, [*keys, "value"]].rename(columns={"value": name})
        for life, name in (("latched", "saturated"), ("silent", "constant"))
    )
    shares = saturated.merge(constant, on=keys, validate="one_to_one")
    return shares.assign(dead=shares["saturated"] + shares["constant"])


def outlook(runs: Sequence[Run], pattern: str, scale: str, seeds: Sequence[int]) -> pd.DataFrame:
    """List what lacks runs.

    Args:
        runs: All that are recorded here.

    Returns:
        One row an experiment, with the `seeds` that lack and the `command` that trains them.
    """
    done = {(run.experiment.name, run.experiment.scale, run.seed) for run in runs}
    rows = []
    for name in experiments.names(pattern):
        lacking = [str(seed) for seed in seeds if (name, scale, seed) not in done]
        if scale in experiments.scales(name) and lacking:
            missing = ",".join(lacking)
            command = f"nlstm-lab sweep {name} --scale {scale} --seeds {missing}"
            rows.append({"experiment": name, "seeds": missing, "command": command})
    return pd.DataFrame(rows, columns=["experiment", "seeds", "command"])
