"""Studies of several runs: medians over live cells, what an ablation costs, paired comparisons over seeds."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nlstm_lab import probes
from nlstm_lab.datasets.text import CharacterModelling, Excerpt
from nlstm_lab.errors import UsageError
from nlstm_lab.probes.seeds import RUN
from nlstm_lab.runs import dead_shares, histories
from nlstm_lab.statistics import t_interval


def run(seed=0, cell_type="nlstm", layers=1, start="zero", best=1):
    model = SimpleNamespace(cell_type=cell_type, num_layers=layers, output_bias=start)
    rows = [
        (0, 10, "early", 0.5, 0.25), (1, 30, "valid", 0.75, 0.125), (2, 100, "valid", 0.0, 0.0)
    ]  # fmt: skip
    history = pd.DataFrame(
        [(epoch, update, split, "blocks", f"{life}_share/inner", value + seed / 100)
         for epoch, update, split, *values in rows for life, value in zip(("latched", "silent"), values, strict=True)],
        columns=["epoch", "update", "split", "evaluation", "metric", "value"],
    )  # fmt: skip
    experiment = SimpleNamespace(name=f"ptb_{cell_type}{layers}", scale="small", model=model)
    recorded = {"history": history, "result": {"best_epoch": best}, "state": "recorded"}
    return SimpleNamespace(experiment=experiment, seed=seed, **recorded)


def test_dead_shares_are_those_of_the_best_epoch_or_of_an_early_update():
    history = histories([run(0), run(1), run(0, "lstm", 2)])
    assert set(history["model"]) == {"nlstm", "stacked_lstm"}
    after = dead_shares(history)
    assert after[["model", "seed", "update"]].values.tolist() == [
        ["nlstm", 0, 30], ["nlstm", 1, 30], ["stacked_lstm", 0, 30]
    ]  # fmt: skip
    assert after["dead"].tolist() == pytest.approx([0.875, 0.895, 0.875])
    early = dead_shares(histories({"ours": [run(3)]}), updates=(10, 30))
    assert early[["setting", "update", "saturated", "constant"]].values.tolist() == [["ours", 10, 0.53, 0.28]]


def test_a_study_of_each_network_gets_the_seed_of_its_run():
    def study(network, text, seed=0):
        return pd.DataFrame({"text": [text] * 2, "drawn": seed, "network": network})

    gathered = probes.gather([(run(3), "a"), (run(5, start="log_frequencies"), "b")], study, "the text")
    assert list(gathered.columns) == [*RUN, "text", "drawn", "network"]
    assert gathered["drawn"].tolist() == [3, 3, 5, 5]
    assert gathered["start"].tolist() == ["zero", "zero", "log_frequencies", "log_frequencies"]
    assert set(probes.gather([(run(3), "a")], study, "the text", seed=7)["drawn"]) == {7}


def test_an_excerpt_of_its_corpus_is_read_as_the_network_was_trained_to_read_it():
    networks = [(run(seed), "network") for seed in range(2)]
    for (one, _), kept in zip(networks, ("stripped", "trailing"), strict=True):
        one.experiment.task = CharacterModelling("ptb", line_ends=kept)
    for text, second in ((Excerpt("ptb", "valid", 9), "0:9, trailing blanks"), (Excerpt("text8", "valid", 9), "0:9")):
        read = probes.gather(networks, lambda _, a, b: pd.DataFrame({"text": [str(a)] * (a == b)}), text, b=text)
        assert read["text"].tolist() == [f"{text.corpus} valid 0:9", f"{text.corpus} valid {second}"]


def compared(frame, *sides):
    return probes.comparisons(frame, "median", {"first above second": sides}).iloc[0]


def test_pairs_leave_out_the_seeds_that_lack_one():
    rows = [(seed, name, value) for seed in range(5) for name, value in (("inner", 2.0 * seed + 3), ("outer", seed))]
    frame = pd.DataFrame(rows, columns=["seed", "memory", "median"]).assign(experiment="nlstm")
    frame.loc[(frame["seed"] == 2) & (frame["memory"] == "inner"), "median"] = np.nan
    comparison = compared(frame, {"memory": "inner"}, {"memory": "outer"})
    assert (comparison.difference, comparison.low, comparison.high) == t_interval([3.0, 4.0, 6.0, 7.0])
    assert (comparison.seeds, comparison.verdict) == (4, "holds")
    assert compared(frame, {"memory": "outer"}, {"memory": "inner"}).verdict == "fails"
    (inner, outer) = probes.intervals(frame, "median", by=["memory"]).itertuples()
    assert (inner.n, inner.mean, outer.n, outer.mean) == (4, 7.0, 5, 2.0)
    starts = [frame.assign(start="zero"), frame.assign(start="log", median=-frame["median"]), frame.assign(start=None)]
    many = pd.concat(starts)
    both = probes.comparisons(many, "median", {"longer": ({"memory": "inner"}, {"memory": "outer"})}, by="start")
    assert both["start"].fillna("none").tolist() == ["zero", "log", "none"]
    assert both["verdict"].tolist() == ["holds", "fails", "holds"]


def test_two_networks_are_not_paired_and_an_untrained_one_is_another():
    values = {("nlstm", "trained"): [1.0, 2.0, 3.0], ("lstm", "trained"): [0.5, 1.5, 2.5]}
    values |= {("nlstm", "untrained"): [0.5, 1.5, 2.5], ("nlstm", "words shuffled"): [0.5, 1.5, 2.5]}
    frame = pd.DataFrame(
        [{"experiment": name, "condition": condition, "seed": seed, "median": value}
         for (name, condition), seeds in values.items() for seed, value in enumerate(seeds)]
    )  # fmt: skip
    trained = {"experiment": "nlstm", "condition": "trained"}
    for other, verdict in (
        ({"experiment": "lstm", "condition": "trained"}, "inconclusive"),
        (trained | {"condition": "untrained"}, "inconclusive"),
        (trained | {"condition": "words shuffled"}, "holds"),  # the same network reads another text
    ):
        assert compared(frame, trained, other).verdict == verdict
    unnamed = frame[frame["condition"] == "trained"].rename(columns={"experiment": "cell"})  # no known column tells
    assert compared(unnamed, {"cell": "nlstm"}, {"cell": "lstm"}).verdict == "inconclusive"


def test_two_rows_of_a_seed_are_no_two_seeds():
    frame = pd.DataFrame({"memory": "inner", "seed": [0, 0, 1, 1], "quantity": ["raw", "tanh"] * 2, "dead": 0.5})
    with pytest.raises(UsageError, match="'inner'"):
        probes.intervals(frame, "dead", by=["memory"])
    assert probes.intervals(frame, "dead", by=["memory", "quantity"])["n"].tolist() == [2, 2]
