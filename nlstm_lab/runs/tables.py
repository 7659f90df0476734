"""Several runs as one list or frame: what figures draw, what is compared over seeds, what can be recomputed."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from nlstm_lab import experiments, paths
from nlstm_lab.datasets.registry import DATASETS
from nlstm_lab.errors import DamagedFile, MissingData, UsageError
from nlstm_lab.runs import records
from nlstm_lab.runs.run import Run, check_place, each, is_known, load, matches, or_left_out, result_of, run_of, seeds_of
from nlstm_lab.settings import SCALES, choice, ended, span
from nlstm_lab.training import evaluate
from nlstm_lab.training.liveness import shares

SHARE = re.compile(r"(latched|silent)_share/(.+)")  # what a history calls the shares of training.liveness
NO_RUNS = "there are no runs to read; train some with `nlstm-lab train NAME`, or choose another pattern or scale"
RECORD = rf"({'|'.join(SCALES)})-seed.*"  # the folder of a run, recorded or failed
RUN = ["experiment", "scale", "seed", "parameters", "best_epoch", "state"]  # of a result, in every row of a table
KEYS = ("setting", "experiment", "scale", "model", "start", "seed", "memory", "update")
SAME = "_logfreq"  # behind the names of rows that differ in the output bias alone, and take as long
SCORE = ["evaluation", "metric", "split"]
# what the half precision of weights may change: a share of a score; points of accuracy, by a few predictions near a
# tie; a share of the cells
ROUNDING, POINTS, CELLS = 5e-4, 0.05, 0.02


def recorded(pattern: str = "*", scale: str | None = None) -> list[Run]:
    """List every recorded run of the documents' experiments that match, in the documents' order; trains nothing.

    A variation's runs are listed by its whole name. What is damaged, or was trained with another configuration than
    today's, is left out with a warning.
    """
    choice(scale, "scale", (None, *SCALES))
    done: list[Run] = []
    for name, one in product(experiments.names(pattern), SCALES):
        if scale in (None, one) and one in experiments.scales(name):
            with or_left_out():
                for seed in seeds_of(experiments.get(name, one)):
                    with or_left_out():
                        done.append(load(name, seed, one))
    return done


def table(pattern: str = "*", scale: str | None = None) -> pd.DataFrame:
    """Gather recorded runs, variations among them, in a tidy frame.

    What is damaged, or was trained with another configuration than today's, is left out with a warning.

    Returns:
        One row a run, split, evaluation and metric.

    >>> import nlstm_lab as lab
    >>> table = lab.runs.table("ptb_char_*", scale="small")
    >>> valid = table.query("metric == 'bpc' and split == 'valid' and evaluation == 'blocks'")
    >>> means = valid.groupby("experiment").value.mean()
    >>> bool(means["ptb_char_nlstm_logfreq"] < means["ptb_char_nlstm"])
    True
    """

    def read(folder: Path) -> dict[str, Any] | None:
        result = result_of(folder)
        name, at = result["experiment"], result["scale"]
        if not matches(name, at, pattern, scale):
            return None
        if is_known(name):
            run_of(experiments.get(name, at), result["seed"], result)
        return {**result, "state": records.state(result)}

    found = each(RECORD, scale, read)
    rows = [{**{key: one[key] for key in RUN}, **row} for one in found for row in one["metrics"]]
    return pd.DataFrame(rows, columns=[*RUN, *SCORE, "epoch", "value"])


def failures(pattern: str = "*", scale: str | None = None) -> pd.DataFrame:
    """List runs that failed: experiment, scale, seed, `what` was not finite, and after which `update`."""

    def read(folder: Path) -> dict[str, Any] | None:
        failure = records.read(folder / "failed.json", records.FAILURE)
        check_place(folder / "failed.json", failure)
        return failure if matches(failure["experiment"], failure["scale"], pattern, scale) else None

    return pd.DataFrame(each(RECORD, scale, read), columns=list(records.FAILURE))


def describe_runs(runs: Iterable[Run]) -> str:
    """Say in a sentence, for a caption, scale, width, length, text and seeds of trainings, and which ended early.

    Raises:
        UsageError: There is no run.

    >>> import nlstm_lab as lab
    >>> lab.runs.describe_runs(lab.runs.recorded("ptb_char_nlstm", "small"))
    "Small scale: 150 units per layer, 3,136 updates; the Penn Treebank in Mikolov's version; 5 seeds."
    """
    if not (runs := list(runs)):
        raise UsageError(NO_RUNS)
    tasks = [run.experiment.task for run in runs]
    texts = dict.fromkeys(task.corpus for task in tasks if hasattr(task, "corpus"))
    words = {task.words for task in tasks if hasattr(task, "words")}
    sizes = f"{span([run.experiment.model.hidden_size for run in runs])} units per layer, "
    sizes += f"{span(words)} words, " if words else ""
    sizes += f"{span([int(run.history['update'].max()) for run in runs])} updates"
    seeds = span(Counter((run.experiment.name, run.experiment.scale) for run in runs).values())
    parts = [sizes, *(DATASETS[text].title if text in DATASETS else text for text in texts)]
    parts.append("one seed" if seeds == "1" else f"{seeds} seeds")
    for state, count in ended(run.state for run in runs if run.state != "done").items():
        some = "one" if count == 1 else str(count)
        parts.append(re.sub("(.*), by early stopping", rf"{some} stopped early after \1", state))
    scales = " and ".join(dict.fromkeys(run.experiment.scale for run in runs)).capitalize()
    return f"{scales} scale: {'; '.join(parts)}."


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
    """Put the histories of runs under each other, with the run of each row, its `state`, and which epoch is `best`.

    Args:
        runs: Recorded runs, or several lists of them by the name of a setting, which then is a column, too.

    Raises:
        UsageError: There is no run.
    """
    frames = [
        run.history.assign(
            **run_columns(run), state=run.state, best=run.history["epoch"] == run.result["best_epoch"], setting=setting
        )
        for setting, some in (runs if isinstance(runs, Mapping) else {"": runs}).items()
        for run in some
    ]
    if not frames:
        raise UsageError(NO_RUNS)
    together: pd.DataFrame = pd.concat(frames, ignore_index=True)
    return together if isinstance(runs, Mapping) else together.drop(columns="setting")


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
    rows = rows.assign(**rows["metric"].str.extract(SHARE).set_axis(["kind", "memory"], axis=1)).dropna(subset="kind")
    keys = [name for name in KEYS if name in rows]
    saturated, constant = (rows[rows["kind"] == kind].set_index(keys)["value"] for kind in ("latched", "silent"))
    dead = {"saturated": saturated, "constant": constant, "dead": saturated + constant}
    return pd.DataFrame(dead).reset_index()


def outlook(pattern: str, seeds: Sequence[int]) -> pd.DataFrame:
    """List what lacks runs at paper scale: a row an experiment, with the `seeds` that lack, and the training `command`.

    A column for each machine on which `benchmarks/trainings.py` measured it has the hours of one run.
    """
    done = {(run.experiment.name, run.seed) for run in recorded(pattern, "paper")}
    rows = []
    for name in experiments.names(pattern):
        missing = ",".join(str(seed) for seed in seeds if (name, seed) not in done)
        if "paper" in experiments.scales(name) and missing:
            rows.append((name, missing, f"nlstm-lab sweep {name} --scale paper --seeds {missing}"))
    frame = pd.DataFrame(rows, columns=["experiment", "seeds", "command"])
    for path in sorted(paths.bench().glob("trainings-*.csv")):
        hours = pd.read_csv(path, index_col="experiment")["hours"]
        machine = path.stem.removeprefix("trainings-").replace("_", " ")
        frame[machine] = frame["experiment"].str.removesuffix(SAME).map(hours)
    return frame


def benchmark(name: str) -> Any:
    """Load what a script of `benchmarks/` recorded, such as "two_cores": a frame, or plain values and frames.

    UsageError: there is none of that name; the message lists those that there are.
    """
    files = {path.stem: path for path in sorted(paths.bench().glob("*.*"))}
    if name not in files:
        raise UsageError(f"no benchmark is recorded as {name!r}; there are: {', '.join(files) or 'none'}")
    if files[name].suffix == ".csv":
        return pd.read_csv(files[name], keep_default_na=False)
    content = json.loads(files[name].read_text(encoding="utf-8"))
    return {key: pd.DataFrame(value) if isinstance(value, list) else value for key, value in content.items()}


class Audited(NamedTuple):
    """What became of a run's record."""

    recomputed: int  # scores
    lacking: str  # why none was recomputed
    wrong: list[str]  # what does not agree


def audit(run: Run, weights: bool = True) -> Audited:
    """Recompute a run's result from its history; its scores and dead cells from its `weights`, where asked for."""
    try:
        history, ours = run.history, pd.DataFrame(records.summary(run.history))
    except DamagedFile as error:
        return Audited(0, "history is damaged", [f"{run.name}: {error}"])
    was, best = pd.DataFrame(run.result["metrics"]), run.result["best_epoch"]
    both = was.merge(ours, "outer", SCORE, suffixes=("", "_ours"))
    agree = np.isclose(both["value"], both["value_ours"], 1e-6, 0) & (both["epoch"] == both["epoch_ours"])
    wrong = [f"{run.name}: its history has another {' '.join(row)}" for row in both.loc[~agree, SCORE].to_numpy()]
    if len(was) != len(ours):
        wrong.append(f"{run.name}: its history has {len(ours)} rows of its result, recorded are {len(was)}")
    by = "nll_nats" if run.experiment.training.select_by == "loss" else "top1_accuracy_pct"
    if (chosen := ours.loc[ours["metric"] == by, "epoch"].iloc[0]) != best:
        wrong.append(f"{run.name}: its history has the best epoch {chosen}, recorded is {best}")
    if not run.has_weights:
        return Audited(0, "weights are not kept", wrong)
    try:
        network = run.model()
    except DamagedFile as error:
        return Audited(0, "weights are damaged", [*wrong, f"{run.name}: {error}"])
    if not weights:
        return Audited(0, "weights were left out", wrong)
    try:
        task = run.experiment.load()
    except MissingData:
        return Audited(0, "data is not on this machine", wrong)
    if task.fingerprint != run.result["data_sha256"]:
        return Audited(0, "data is another than the run's", wrong)
    read = task.evaluations[0]
    dead = shares(network, next(iter(task.evaluate("valid", read))).inputs)
    found = {(read, "valid", metric): value for metric, value in dead.items()}
    for evaluation, split in product(task.evaluations, ("valid", "test")):
        batches = islice(task.evaluate(split, evaluation), run.experiment.training.batches_per_reading)
        scores = evaluate(network, batches, torch.device("cpu"), task.metric)
        found |= {(evaluation, split, metric): value for metric, value in scores.items()}
    recomputed = history["split"].isin(["valid", "test"]) & history["metric"].str.fullmatch(rf"[^/]+|{SHARE.pattern}")
    rows = history[recomputed & (history["epoch"] == best)]
    for row in rows.itertuples():
        value = found.get((row.evaluation, row.split, row.metric), np.nan)
        room = CELLS if "/" in row.metric else max(ROUNDING * abs(row.value), POINTS * ("accuracy" in row.metric))
        if not abs(value - row.value) <= room:
            what = f"{row.evaluation} {row.split} {row.metric}"
            wrong.append(f"{run.name}: its weights give {what} {value:.7g}, recorded is {row.value:.7g}")
    return Audited(int((~rows["metric"].str.contains("/")).sum()), "", wrong)


def from_histories(runs: Iterable[Run]) -> pd.DataFrame:
    """The table of these runs (`nlstm_lab.runs.table`), computed from their histories instead of their results."""
    rows = []
    for run in runs:
        which = {"experiment": run.experiment.name, "scale": run.experiment.scale, "seed": run.seed, "state": run.state}
        with suppress(DamagedFile):  # which `audit` names
            rows += [{**which, **row} for row in records.summary(run.history)]
    return pd.DataFrame(rows, columns=["experiment", "scale", "seed", "state", *SCORE, "epoch", "value"])
