"""The numbers of the prose: each is computed from committed records, or read from what a notebook noted of a claim.

Templates call these functions by name. What a sentence rests on is said with `sure`, which stops the build where it no
longer is so.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import nlstm_lab as lab
from nlstm_lab.statistics import Interval, compare, holm, p_value, t_interval

PTB = {"nlstm": "ptb_char_nlstm", "lstm2": "ptb_char_lstm2"}
INITIALIZATIONS = {"zero": "", "log_frequencies": "_logfreq"}
INNER, OUTER = ({"model": "nlstm", "memory": memory} for memory in ("inner", "outer"))
UPPER, LOWER = ({"model": "stacked_lstm", "memory": f"layer {layer}"} for layer in (2, 1))
# the seeds by which the protocol chooses a reading of a table of Nested LSTMs
DECIDED = {"nested_lstm.table1": (0,), "nested_lstm.table2": (0, 1, 2), "nested_lstm.table3": (0, 1, 2)}
ADOPTED = lab.experiments.ADOPTED
PAIR = {"ptb_char_nlstm" + ADOPTED: [0, 1, 2], "ptb_char_lstm2" + ADOPTED: [1, 2]}  # the seeds that were probed
INNER_LOGFREQ, OUTER_LOGFREQ = (memory | {"start": "log_frequencies"} for memory in (INNER, OUTER))


class Untrue(Exception):
    """A sentence of the prose is no longer what the records say."""


def sure(*facts: bool) -> str:
    """Nothing, where all of these hold; else Untrue."""
    if not all(facts):
        raise Untrue("the records no longer say so: write the sentence anew")
    return ""


def d(value: float, digits: int = 2) -> str:
    """A number with so many digits after the point."""
    return f"{round(value, digits) + 0.0:,.{digits}f}"  # + 0.0, or what rounds to zero could be -0.00


def pct(share: float) -> str:
    """A share in whole percent."""
    return f"{share:.0%}".replace("%", " %")


def ci(interval: Interval, digits: int = 2) -> str:
    """A mean with its interval: 0.04 [0.02, 0.06]; the mean alone of fewer than three seeds."""
    if math.isnan(interval.low):
        return d(interval.mean, digits)
    return f"{d(interval.mean, digits)} {ends(interval, digits)}"


def ends(interval: Interval, digits: int = 2) -> str:
    """The ends of an interval alone."""
    return f"[{d(interval.low, digits)}, {d(interval.high, digits)}]"


def minus(interval: Interval) -> Interval:
    """The same difference, the other way round."""
    return Interval(-interval.mean, -interval.high, -interval.low)


def above(interval: Interval) -> bool:
    return interval.low > 0


def apart(interval: Interval) -> bool:
    """Whether the interval leaves out zero."""
    return interval.low > 0 or interval.high < 0


@cache
def verdicts() -> pd.DataFrame:
    """Every entry of every document with its verdict."""
    return lab.targets.verdicts(table(), lab.probes.measured_claims())


def of(target: str) -> pd.DataFrame:
    """The verdicts of `document.place`."""
    frame = verdicts()
    return frame[(frame["document"] + "." + frame["place"]) == target]


@cache
def table() -> pd.DataFrame:
    return lab.runs.table()


@cache
def claim(name: str) -> Interval:
    """What was measured of a claim, by its whole name."""
    row = lab.probes.measured_claims().set_index("claim").loc[name]
    return Interval(row["value"], row["low"], row["high"])


@cache
def values(
    experiment: str, scale: str = "small", metric: str = "bpc", split: str = "valid", evaluation: str = ""
) -> "pd.Series[float]":
    """One number a seed, in the evaluation that the document's table has, or that one."""
    evaluation = evaluation or getattr(lab.experiments.get(experiment, scale).task, "evaluation", "blocks")
    wanted = {"experiment": experiment, "scale": scale, "metric": metric, "split": split, "evaluation": evaluation}
    return _where(table(), **wanted).set_index("seed")["value"]


def _where(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The rows with these values."""
    return frame[(frame[[*wanted]] == pd.Series(wanted, dtype=object)).all(axis=1)]


def mean(experiment: str, **which: str) -> float:
    return float(values(experiment, **which).mean())


def over(experiment: str, **which: str) -> Interval:
    """The mean over seeds with its interval."""
    return t_interval(values(experiment, **which))


def gap(first: str, second: str, **which: str) -> Interval:
    """By how much the first network's value is larger, with Welch's interval."""
    return compare(dict(values(first, **which)), dict(values(second, **which))).difference


def remain(second: str, firsts: Iterable[str], **which: str) -> list[str]:
    """Of several networks, those whose gap to another remains after Holm's correction over these gaps."""
    firsts = [*firsts]
    found = [compare(dict(values(first, **which)), dict(values(second, **which))) for first in firsts]
    kept = holm([p_value(one.difference, one.df) for one in found])
    return [first for first, keeps in zip(firsts, kept, strict=True) if keeps]


def bpc_after(experiment: str, epoch: int, split: str = "valid", seed: int = 0) -> float:
    """BPC of a seed's run at the paper's scale after an epoch, in blocks."""
    history = lab.runs.load(experiment, seed, "paper").history
    return float(_where(history, metric="bpc", split=split, evaluation="blocks", epoch=epoch)["value"].item())


def at_lowest_error(experiment: str, split: str = "valid") -> float:
    """BPC of the first seed's run at the paper's scale, in blocks, at the epoch of the lowest validation error rate."""
    run = {"experiment": experiment, "scale": "paper", "seed": 0, "evaluation": "blocks"}
    best = _where(table(), **run, metric="top1_accuracy_pct", split="valid")  # a table has each metric's own best epoch
    return bpc_after(experiment, best["epoch"].item(), split=split)


def cold_minus_streamed(experiment: str) -> float:
    """Validation BPC in blocks minus test BPC as one stream, at the paper's size."""
    bpc = table().query("experiment == @experiment and scale == 'paper' and metric == 'bpc'")
    bpc = bpc.set_index(["evaluation", "split"])["value"]
    return float(bpc["blocks", "valid"] - bpc["streams", "test"])


def scatter(experiment: str) -> float:
    """The standard deviation of validation BPC over the seeds at small scale."""
    return float(values(experiment).std())


def row(target: str, subject: str, metric: str = "", split: str = "", kind: str = "number") -> Any:
    """A row of the verdicts: of the place `document.place`, on validation where it is printed and no split is named."""
    rows = of(target)
    rows = rows[rows["subject"].eq(subject) & rows["kind"].eq(kind)]
    rows = rows[rows["metric"].eq(metric) | (not metric)]
    rows = rows[rows["setting"].ne("log-frequencies")]
    rows = rows[rows["split"].eq(split or rows["split"].iloc[0])]
    if len(rows) != 1:
        raise Untrue(f"{target}, {subject!r}, {metric} {split}: {len(rows)} rows")
    found = rows.iloc[0]
    return found.to_dict() | {"over": Interval(found["ours"], found["low"], found["high"])}


def rows(target: str, **which: Any) -> pd.DataFrame:
    """Those rows of a place of the verdicts that count, of some values of its columns."""
    return _where(of(target), anchor=True, **which)


def count(target: str, *wanted: str, kind: str = "number", **which: Any) -> int:
    """How many of a place's rows have one of these verdicts; how many there are where none is named."""
    found = rows(target, kind=kind, **which)["verdict"]
    return int(found.isin(wanted).sum()) if wanted else len(found)


@cache
def remaining() -> "pd.Series[bool]":
    """Which verdicts remain after Holm's correction, as in VERDICTS.md."""
    return lab.targets.remaining(verdicts())


def survives(target: str, **which: str) -> bool:
    """Whether the claim, or the comparison of a table with these values of columns, remains after Holm's correction."""
    found = _where(of(target), **which)
    if found.empty:
        raise Untrue(f"{target}: no row has {which}")
    return bool(remaining()[found.index].any())


def distance(target: str, metric: str, setting: str, subjects: str = "LSTM.*") -> float:
    """How far the LSTMs of a table of Nested LSTMs lie from the printed validation values in a setting of theirs."""
    printed = rows(target, kind="number", metric=metric, split="valid")
    printed = printed[printed["subject"].str.fullmatch(subjects)]
    ours = _where(table(), scale="paper", metric=metric, split="valid", evaluation="blocks")
    ours = ours[ours["seed"].isin(DECIDED[target])]
    ours = ours.groupby("experiment")["value"].mean().reindex(printed["experiment"].str.partition("+")[0] + setting)
    return float((np.log(ours.to_numpy() / printed["printed"].to_numpy()) ** 2).mean())


def word(number: int) -> str:
    """A small number as it is read."""
    words = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return words[number] if number < len(words) else str(number)


@cache
def dead(experiment: str, memory: str, scale: str = "small") -> float:
    """The share of dead cells at the best validation epoch, its mean over seeds."""
    return float(_dead(experiment, scale).query("memory == @memory")["dead"].mean())


def dead_after(experiment: str, memory: str, epoch: int) -> float:
    """The share of dead cells after an epoch at the paper's scale, its mean over seeds."""
    return float(_dead_by_epoch(experiment, memory)[epoch])


def most_dead(experiment: str, memory: str) -> float:
    """The largest share of dead cells after any epoch at the paper's scale, of the means over seeds."""
    return float(_dead_by_epoch(experiment, memory).max())


@cache
def _dead_by_epoch(experiment: str, memory: str) -> "pd.Series[float]":
    history = lab.runs.histories(_trained(experiment, "paper")).query("split == 'valid'")
    shares = history[history["metric"].isin([f"{life}_share/{memory}" for life in ("latched", "silent")])]
    return shares.groupby(["epoch", "seed"])["value"].sum().groupby("epoch").mean()


def epochs(experiment: str, seed: int = 0) -> tuple[int, int]:
    """The best epoch and the last one of a run at the paper's scale."""
    (run,) = [run for run in _trained(experiment, "paper") if run.seed == seed]
    return run.result["best_epoch"], run.result["epochs_run"]


@cache
def _dead(experiment: str, scale: str) -> pd.DataFrame:
    return lab.runs.dead_shares(lab.runs.histories(_trained(experiment, scale)))


def _trained(experiment: str, scale: str) -> list[lab.runs.Run]:
    """The runs of registered names that match; a variation is found by its seeds."""
    some = lab.runs.recorded(experiment, scale)
    return some or [lab.runs.load(experiment, int(seed), scale) for seed in values(experiment, scale).index]


def any_dead(pattern: str, scale: str) -> bool:
    return bool(_dead(pattern, scale)["dead"].gt(0).any())


@cache
def of_both(study: Callable[..., pd.DataFrame], start: int = 0, **how: Any) -> pd.DataFrame:
    """A study of the Nested LSTM and the stack of its size on the Penn Treebank: all seeds, both initializations."""
    names = [f"{name}{start}" for name in PTB.values() for start in INITIALIZATIONS.values()]
    networks = [(run, run.model()) for name in names for run in lab.runs.recorded(name, "small")]
    return lab.probes.gather(networks, study, lab.datasets.Excerpt("ptb", "valid", 30000, start), **how)


@cache
def of_paper_size(study: Callable[..., pd.DataFrame], start: int = 0, **how: Any) -> pd.DataFrame:
    """A study of the same two at the paper's scale (adopted reading), and of the Nested LSTM at the log-frequencies."""
    networks = _loaded(PAIR | {f"{PTB['nlstm']}_logfreq": [0]}, "paper")
    return lab.probes.gather(networks, study, lab.datasets.Excerpt("ptb", "valid", 30000, start), **how)


def _loaded(seeds: dict[str, list[int]], scale: str) -> list[tuple[lab.runs.Run, lab.models.Network]]:
    runs = [lab.runs.load(name, seed, scale) for name, some in seeds.items() for seed in some]
    return [(run, run.model()) for run in runs]


def at_paper_size(memory: dict[str, str], value: str = "raw", condition: str = "trained") -> float:
    """The mean over seeds of a memory's median timescale at the paper's scale."""
    return _mean(_medians(of_paper_size, condition), "median", memory | {"value": value})


def seeds_at_paper_size(memory: dict[str, str], value: str = "raw") -> str:
    """The median of each seed."""
    return ", ".join(map(d, _over_seeds(_medians(of_paper_size), "median", memory | {"value": value})))


def slower_at_paper_size(
    first: dict[str, str], second: dict[str, str], value: str = "raw", condition: str = "trained"
) -> Interval:
    """By how many characters the first memory's median timescale is longer at the paper's scale, adopted reading."""
    medians = _medians(of_paper_size, condition).query("value == @value and start == 'zero'")
    return _pair(medians, "median", first, second)


def slower_than(memory: dict[str, str], characters: float) -> float:
    """The share of a memory's living cells at the paper's scale whose timescale through tanh is longer than that."""
    cells = _where(of_paper_size(lab.probes.timescales), **{"start": "zero", "value": "tanh", "life": "alive"} | memory)
    too_slow = cells["reason"].astype(str).str.startswith("too short")  # the text; the others without a number are fast
    return float((too_slow | (cells["timescale"] > characters)).mean())


def missed_at_paper_size(memory: dict[str, str], column: str = "lag") -> float:
    """The mean delay of the divergence after a resample ablation at paper scale, or its `kl` or `loss_increase`."""
    return _mean(_resampled(of_paper_size), column, memory)


def delays_at_paper_size(memory: dict[str, str]) -> str:
    """The mean delay of each seed."""
    return ", ".join(d(delay, 1) for delay in _over_seeds(_resampled(of_paper_size), "lag", memory))


def later_at_paper_size(first: dict[str, str], second: dict[str, str]) -> Interval:
    """By how many predictions the mean delay after an ablation of the first memory is longer, at the paper's scale."""
    return _pair(_resampled(of_paper_size).query("start == 'zero'"), "lag", first, second)


def missed_in_first_reading(memory: dict[str, str], column: str = "lag") -> float:
    """The same in the networks of our first reading, seed 0."""
    return _mean(_resampled(of_first_reading), column, memory)


def in_first_reading(memory: dict[str, str], value: str = "raw") -> float:
    """A memory's median timescale in the networks of our first reading, seed 0."""
    return _mean(_medians(of_first_reading), "median", memory | {"value": value})


@cache
def of_first_reading(study: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """A study of the same two in our first reading, at the paper's scale, from records: no weights are kept."""
    text = lab.datasets.Excerpt("ptb", "valid", 30000)
    return lab.probes.gather(_loaded({name: [0] for name in PTB.values()}, "paper"), study, text)


def accuracy_at_paper_size(memory: dict[str, str], condition: str = "trained") -> float:
    """How well a probe tells the class of the last complete word from a memory at the paper's scale."""
    return _mean(_word_classes(condition), "score", memory)


def better_at_paper_size(first: dict[str, str], second: dict[str, str]) -> Interval:
    """By how much the probe scores higher on the first memory at the paper's scale, in the adopted reading."""
    return _pair(_word_classes("trained").query("start == 'zero'"), "score", first, second)


def _word_classes(condition: str) -> pd.DataFrame:
    scores = of_paper_size(lab.probes.contents, start=30000, trained=condition == "trained")
    return scores.query("label == 'word_class'")


def carriers_at_paper_size(memory: dict[str, str]) -> list[int]:
    """The fewest cells whose single ablations cost half of what those of all cells do, at paper scale: each seed's."""
    cells = _where(of_paper_size(lab.probes.cell_cuts), **{"start": "zero"} | memory)
    ordered = (kl.sort_values(ascending=False).cumsum() for _, kl in cells.groupby("seed")["kl"])
    return [1 + int((total < total.iloc[-1] / 2).sum()) for total in ordered]


def _mean(frame: pd.DataFrame, column: str, which: dict[str, str]) -> float:
    return float(_over_seeds(frame, column, which).mean())


def _over_seeds(frame: pd.DataFrame, column: str, which: dict[str, str]) -> pd.Series:
    """The value of each seed, one a seed."""
    rows = _where(frame, **{"start": "zero"} | which).sort_values("seed")
    if rows.empty or rows["seed"].duplicated().any():
        raise Untrue(f"{which}: {len(rows)} rows")
    return rows[column]


@cache
def _medians(gathered: Callable[..., pd.DataFrame], condition: str = "trained") -> pd.DataFrame:
    order, shuffled, _ = condition.partition(" shuffled")  # "words shuffled"
    how = {"order": order} if shuffled else {} if condition == "trained" else {"trained": False}
    return lab.probes.medians(gathered(lab.probes.timescales, **how))


def _pair(frame: pd.DataFrame, column: str, first: dict[str, str], second: dict[str, str]) -> Interval:
    row = lab.probes.comparisons(frame, column, {"": (first, second)}).iloc[0]
    return Interval(*map(float, row[["difference", "low", "high"]]))


def _of_notebook_90(model: Any, text: lab.datasets.Excerpt, burn_in: int = 1000) -> pd.DataFrame:
    raise Untrue("notebook 90 records this: execute it first")


@cache
def slow_parts() -> tuple[float, float]:
    """The smallest and the largest share of a small network's living cells, raw, that have a slow part (seed 0)."""
    shares = _parts("small").query("value == 'raw'").groupby(["experiment", "memory"])["slow_part"].mean()
    return float(shares.min()), float(shares.max())


def by_spectrum(memory: dict[str, str], value: str = "raw") -> float:
    """The median timescale of a memory's living cells at the paper's scale by the spectrum, as the mean over seeds."""
    return float(_where(_parts("paper"), value=value, **memory).groupby("seed")["spectral"].median().mean())


@cache
def _parts(scale: str) -> pd.DataFrame:
    """Both estimates of the timescales of living cells with a number: of small networks (seed 0), or of the pair."""
    small = {name + start: [0] for name in PTB.values() for start in INITIALIZATIONS.values()}
    networks = _loaded(PAIR if scale == "paper" else small, scale)
    measure = lab.probes.recorded("slow_parts", by=["burn_in"])(_of_notebook_90)
    frame = lab.probes.gather(networks, measure, lab.datasets.Excerpt("ptb", "valid", 30_000))
    return frame.query("life == 'alive'").dropna(subset="timescale")


def living(memory: str, start: str) -> tuple[int, int]:
    """The fewest and the most living cells that a run's median of a memory of the Nested LSTM rests on."""
    medians = _medians(of_both).query("value == 'raw' and start == @start")
    measured = medians.query("model == 'nlstm' and memory == @memory")["measured"]
    return int(measured.min()), int(measured.max())


def drawn(start: str) -> Interval:
    """By how many characters the inner memory is slower as figure 3 draws the two: through tanh, and raw outside."""
    medians = _medians(of_both).query("start == @start")
    return _pair(medians, "median", INNER | {"value": "tanh"}, OUTER | {"value": "raw"})


def boundaries(measure: str, runs: Sequence[lab.runs.Run] = (), layer: int = 1) -> pd.DataFrame:
    """A measurement of a layer's boundaries, a row a seed and truth; without runs of the annealed HM-LSTM."""
    runs = runs or lab.runs.recorded("ptb_char_hmlstm_annealed", "small")
    networks = [(run, run.model()) for run in runs]
    text = lab.datasets.Excerpt(corpus_of(runs), "valid", 10_000)
    return lab.probes.gather(networks, getattr(lab.probes, measure), text).query("layer == @layer")


def fires(truth: str, runs: Sequence[lab.runs.Run] = ()) -> "pd.Series[float]":
    """The share of a truth's places at which each seed's first layer fires; who fires at spaces most comes first."""
    exact = boundaries("segment_scores", runs).query("within == '0' and detector == 'network'")
    shares = exact.pivot(index="seed", columns="truth", values="recall").sort_values("spaces", ascending=False)
    return shares[truth]


def at_lifted_pen() -> pd.DataFrame:
    """Of every HM-LSTM on handwriting the first layer's rate, and its recall at the lifted pen, at the point itself."""
    networks = [(run, run.model()) for run in lab.runs.recorded("handwriting_hmlstm*", "small")]
    scores = lab.probes.gather(networks, lab.probes.segment_scores, lab.datasets.Lines("valid", 40))
    return scores.query("layer == 1 and within == '0' and detector == 'network'")


def at_spaces(runs: Sequence[lab.runs.Run] = (), layer: int = 1) -> pd.DataFrame:
    """A layer's scores at a space or the character after it, a row a seed and detector."""
    return boundaries("segment_scores", runs, layer).query("truth == 'spaces' and within == 'or one after'")


def f1_at_spaces(runs: Sequence[lab.runs.Run], layer: int) -> pd.DataFrame:
    """F1 there of a layer and of detectors that fire as often, a row a seed."""
    return at_spaces(runs, layer).pivot(index="seed", columns="detector", values="f1")


def second_layer_above_random(runs: Sequence[lab.runs.Run]) -> Interval:
    """By how much F1 of the second layer there exceeds that of random boundaries."""
    f1 = f1_at_spaces(runs, 2)
    return t_interval(f1["network"] - f1["random"])


def above_chance(runs: Sequence[lab.runs.Run] = ()) -> pd.DataFrame:
    """F1 at a space or the character after it, a row a seed: above chance, best of that rate, the ratio; and recall."""
    judged = at_spaces(runs).set_index("seed")
    network, chance = (judged[judged["detector"] == name] for name in ("network", "random"))
    best = 2 * network[["rate", "base"]].min(axis=1) / (network["rate"] + network["base"]) - chance["f1"]
    above = network["f1"] - chance["f1"]
    return pd.DataFrame({"above": above, "best": best, "corrected": above / best, "recall": network["recall"]})


@cache
def ladder(quantity: str, text: str = "a generated language") -> dict[str, Interval]:
    """Every setting's `quantity` over seeds, as notebook 21 draws it for that text."""
    drawn = pd.read_csv(lab.paths.figures() / "lab_boundary_ladder.csv")
    chosen = drawn[(drawn["text"] == text) & (drawn["quantity"] == quantity)]
    return {str(setting): t_interval(rows["value"]) for setting, rows in chosen.groupby("setting", sort=False)}


def best_of(settings: dict[str, Interval]) -> str:
    """The setting with the highest mean."""
    return max(settings, key=lambda name: settings[name].mean)


def clamped(setting: str) -> float:
    """The share of steps at which a setting's first layer ends with no gradient of z, the mean over seeds."""
    shares = pd.read_csv(lab.paths.figures() / "lab_detector_training.csv").query("quantity == 'clamped_share'")
    return float(shares.loc[shares["setting"] == setting].filter(like="update").iloc[:, -1].mean())


def on_penn_treebank(**flags: object) -> list[lab.runs.Run]:
    """The three seeds of a setting that notebook 21 trains on the Penn Treebank."""
    one = lab.experiments.variant("ptb_char_hmlstm_step", scale="small", epochs=8, updates_per_epoch=640, **flags)
    return [lab.runs.load(one, seed) for seed in range(3)]


def longer(text: str, **flags: object) -> list[lab.runs.Run]:
    """A setting that notebook 22 trains for longer; at the printed size seed 0 raised a question that others answer."""
    sizes = {"hidden_size": 256, "embedding_size": 128, "output_embedding_size": 256}
    name, scale, how, seeds = {
        "ptb": ("ptb_char_hmlstm_step", "small", {"epochs": 10, "updates_per_epoch": None} | sizes, [0]),
        "printed size": ("ptb_char_hmlstm_step", "paper", {"epochs": 3}, [0]),
        "printed size, again": ("ptb_char_hmlstm_step", "paper", {"epochs": 3}, [2, 3, 5]),
        "wikipedia": ("text8_hmlstm_layernorm", "small", {"epochs": 8, "updates_per_epoch": 640}, [0, 1, 2]),
    }[text]
    one = lab.experiments.variant(name, scale, **how | flags)
    return [lab.runs.load(one, seed) for seed in seeds]


def operations(run: lab.runs.Run) -> pd.DataFrame:
    """How often each layer has COPY, UPDATE and FLUSH in the text of figure 4 of the HM-RNN paper."""
    read = lab.probes.boundaries(run.model(), lab.datasets.Excerpt("ptb", "valid", 270))
    steps = read["operation"].to_series().reset_index()
    return pd.crosstab(steps["layer"], steps["operation"])


def upper_boundaries(seeds: Sequence[int]) -> pd.DataFrame:
    """F1 of the second layer's boundaries on Wikipedia at ends of words or one step later, and their rate, by seed."""
    one = longer("wikipedia")[0].experiment
    scores = boundaries("segment_scores", [lab.runs.load(one, seed) for seed in seeds], layer=2)
    judged = scores.query("truth == 'word ends' and within == 'or one after'")
    by_detector = judged.pivot(index="seed", columns="detector", values="f1")
    return by_detector.assign(rate=judged.groupby("seed")["rate"].first())


def aligned(runs: Sequence[lab.runs.Run]) -> dict[str, Interval]:
    """What notebook 21 judges of networks on their text: "rate", "f1" above chance and "bits" above shuffled."""
    networks = [(run, run.model()) for run in runs]
    text = lab.datasets.Excerpt(corpus_of(runs), "valid", 50_000)
    found = lab.probes.gather(networks, lab.probes.word_alignment, text)
    each = {"rate": found["rate"], "f1": found["f1"] - found["chance"], "bits": found["bits"] - found["shuffled"]}
    return {quantity: t_interval(values) for quantity, values in each.items()}


def corpus_of(runs: Sequence[lab.runs.Run]) -> str:
    """The text that networks are trained on."""
    return str(runs[0].experiment.task.corpus)


def at_end(quantity: str, **flags: object) -> float:
    """Layer 1's share of that name after the last epoch of such a setting, the mean over seeds."""
    history = lab.runs.histories(on_penn_treebank(**flags))
    return float(history.query(f"metric == '{quantity}_share/layer 1' and epoch == 8")["value"].mean())


def slowness(value: str, start: str) -> dict[str, float]:
    """The median timescale of each memory of both networks, "model memory" to characters: means over seeds."""
    medians = _medians(of_both).query("value == @value and start == @start")
    means = medians.groupby(["model", "memory"])["median"].mean()
    return {" ".join(key): float(value) for key, value in means.items()}


def slower(
    first: dict[str, str], second: dict[str, str], start: str, value: str = "raw", condition: str = "trained"
) -> Interval:
    """By how many characters the first memory's median timescale is longer; condition: of a baseline."""
    medians = _medians(of_both, condition).query("value == @value and start == @start")
    return _pair(medians, "median", first, second)


def missed(first: dict[str, str], second: dict[str, str], start: str) -> Interval:
    """By how many predictions the mean delay of the divergence is longer after an ablation of the first memory."""
    return _pair(_resampled(of_both).query("start == @start"), "lag", first, second)


def resampling_costs(which: dict[str, str], start: str) -> Interval:
    """What a resample ablation of a memory adds to the loss, nats over a hundred predictions."""
    return t_interval(_where(_resampled(of_both), start=start, **which)["loss_increase"])


@cache
def _resampled(gathered: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """What every resample ablation changes in all, and when, as notebook 91 computes it."""
    rows = gathered(lab.probes.ablations).query("kind == 'swap'")
    rows = rows.assign(lag=rows["kl"] * (rows["distance"] + 1), late=rows["kl"].where(rows["distance"] >= 50, 0))
    keys = [*lab.probes.seeds.RUN, "memory"]
    sums = rows.groupby(keys, sort=False)[["kl", "late", "loss_increase", "lag"]].sum()
    return sums.assign(lag=sums["lag"] / sums["kl"]).reset_index()


@cache
def accuracies(condition: str) -> "pd.Series[float]":
    """How well a probe tells the class of the last complete word, by initialization and memory (no hidden states)."""
    found = of_both(lab.probes.contents, start=30000, trained=condition == "trained").query("label == 'word_class'")
    means = found.groupby(["start", "memory"])["score"].mean()
    return means[[not memory.endswith("h") for _, memory in means.index]]


@cache
def _autocomplete(measure: str, unit: str, texts: int) -> pd.DataFrame:
    networks = [(run, run.model()) for run in lab.runs.recorded(f"autocomplete_{unit}", "small")]
    excerpts = lab.datasets.Sequences(networks[0][0].experiment.task, "test", texts)  # type: ignore[arg-type]
    return lab.probes.gather(networks, getattr(lab.probes, measure), excerpts)


def reaches_back(unit: str) -> Interval:
    """How many characters back those lie that a prediction of autocomplete depends on: the mean lag."""
    lags = _autocomplete("connectivity_lags", unit, 200).query("quantity == 'mean_lag' and where == 'all'")
    return t_interval(lags["value"])


def vanishes(unit: str, condition: str = "trained") -> Interval:
    """Powers of ten that the gradient by the input loses over thirty characters."""
    return t_interval(_vanished(unit, condition))


def vanishes_more(first: str, second: str, condition: str) -> bool:
    return above(compare(dict(_vanished(first, condition)), dict(_vanished(second, condition))).difference)


def _vanished(unit: str, condition: str) -> "pd.Series[float]":
    found = _autocomplete("gradients", unit, 20).query("where == 'input' and condition == @condition")
    left = found.set_index(["seed", "lag"])["value"].unstack()
    return left[0] - left[30]


def ahead_at(update: int, first: str, seconds: Iterable[str]) -> bool:
    """Whether a network of autocomplete has the lower validation loss at an update."""
    units = (first, *seconds)
    runs = [run for unit in units for run in lab.runs.recorded(f"autocomplete_{unit}", "small")]
    valid = lab.runs.histories(runs).query("split == 'valid' and metric == 'nll_nats' and update == @update")
    sides = [{"experiment": f"autocomplete_{unit}"} for unit in units]
    return all(_pair(valid, "value", sides[0], other).high < 0 for other in sides[1:])


def failures(experiment: str, scale: str = "small") -> int:
    """How many seeds of an experiment ended in numbers that are not finite."""
    return len(lab.runs.failures(experiment, scale))


def seeds(experiment: str, **which: str) -> int:
    return len(values(experiment, **which))
