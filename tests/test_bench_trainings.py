"""Hours of a training: measured on what the training would read, and found again by who asks for them."""

import math
import sys
from pathlib import Path

import pytest
import torch

from nlstm_lab import cli, experiments, paths, runs
from nlstm_lab.bench import recorded_hours
from nlstm_lab.bench.trainings import STEPS, Drawn, hours, record_hours
from nlstm_lab.models import Interface, build

KINDS = ("ptb_char_nlstm", "mnist_lstm1", "handwriting_hmlstm", "autocomplete_gru", "textgen_lstm")


@pytest.mark.parametrize("name", KINDS)
def test_what_is_drawn_is_what_a_recorded_network_was_made_for(name: str) -> None:
    run = runs.load(name, 0, "small")
    task, ends = Drawn(run.experiment, updates=1), Interface.from_record(run.result["interface"])
    assert (task.input, task.per_sequence) == (ends.input, ends.per_sequence)
    assert getattr(task.output, "size", None) == getattr(ends.output, "size", None)
    (batch,) = task.train(torch.Generator().manual_seed(0))
    assert batch.inputs.shape[:2] == (STEPS, run.experiment.task.batch_size)
    score, _ = build(run.experiment.model, ends, seed=0).score(batch, None)
    assert score.counted == math.prod(batch.inputs.shape[1:2] if task.per_sequence else batch.inputs.shape[:2])


def test_the_hours_are_those_of_as_many_symbols_at_the_rate_of_the_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = experiments.get("mnist_lstm1", "paper")
    monkeypatch.setattr("nlstm_lab.training.fit", lambda *_, **__: type("Fit", (), {"tokens_per_second": 1000.0}))
    assert hours(experiment) == pytest.approx(experiments.sizes.symbols_read(experiment) / 1000 / 3600)


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "bench", lambda: tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_measured_machine_is_a_column_of_the_hours(machines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["nlstm-lab", "bench", "trainings", "mnist_lstm1", "--record", "one_gpu"])
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    for name, told in (("mnist_lstm1", 3.0), ("mnist_lstm2", 12.5), ("mnist_lstm1", 1.25)):  # the last time counts
        record_hours(name, told, machines / "trainings-slow.csv")
    names = ["mnist_lstm1", "mnist_lstm2", "mnist_lstm2_logfreq"]
    known = recorded_hours(names)
    assert list(known) == ["one gpu", "slow"]
    assert list(known.index) == names
    assert known["slow"].tolist() == [1.25, 12.5, 12.5]  # another output bias takes no longer
    assert 0 < known["one gpu"].iloc[0] < 100
    assert known["one gpu"].isna().tolist() == [False, True, True]


def test_without_a_record_there_are_no_hours_and_without_a_row_no_record(
    machines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recorded_hours(["mnist_lstm1"]).shape == (1, 0)
    for pattern in ("zzz*", "*_logfreq"):
        monkeypatch.setattr(sys, "argv", ["nlstm-lab", "bench", "trainings", pattern, "--record", "here"])
        with pytest.raises(SystemExit, match="2"):
            cli.main()
    assert not list(machines.iterdir())
