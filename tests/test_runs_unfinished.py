"""A run that is not done is seen as far as it is, and is never taken for one that is."""

import math

import pandas as pd
import pytest
import stopping
import torch


from nlstm_lab import experiments, runs, targets, widgets
from nlstm_lab.errors import MissingRun, UsageError
from nlstm_lab.training import loop, state

NAME = "ptb_char_lstm1+epochs=4"
OPTIONS = {"seed": 0, "scale": "smoke", "progress": False}


@pytest.fixture
def train(runs_folder, monkeypatch):
    """Go on with the run, which has three updates an epoch, and stop it after so many updates; returns its attempt."""
    sync_and_log = loop._Trainer.sync_and_log

    def trained(updates, name=NAME, **options):
        def synced(trainer):
            sync_and_log(trainer)
            if trainer.state.progress.update == updates:
                trainer.state.save()
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(loop._Trainer, "sync_and_log", synced)
            with pytest.raises(KeyboardInterrupt):
                runs.ensure(name, **{**OPTIONS, **options})
        return runs_folder / name / ".attempt-smoke-seed0"

    return trained


@pytest.mark.slow
def test_its_history_is_the_beginning_of_that_of_the_whole_run(train):
    train(8)  # in the third epoch
    (partial,) = runs.unfinished()
    assert (partial.name, partial.state) == (f"{NAME}/smoke-seed0", "2 of 4 epochs, under way")
    whole = runs.ensure(NAME, **OPTIONS)
    assert not runs.unfinished()
    length = len(partial.history)
    assert partial.history["epoch"].max() == 2
    pd.testing.assert_frame_equal(partial.history, whole.history.iloc[:length])
    assert partial.result["parameters"] == whole.result["parameters"]


@pytest.mark.slow
def test_tables_and_histories_have_it_where_they_are_asked_for_it(train):
    train(2)
    assert runs.table(partial=True).empty  # no epoch is done
    train(7)
    assert runs.table().empty
    assert not runs.recorded()
    table = runs.table("ptb_*", "smoke", partial=True)
    assert set(table["state"]) == {"2 of 4 epochs, under way"}
    assert runs.table("mnist_*", partial=True).empty
    found = runs.recorded(NAME, partial=True)
    assert runs.describe_runs(found).endswith("one seed; 2 of 4 epochs, under way.")
    assert set(runs.histories(found)["state"]) == {"2 of 4 epochs, under way"}


@pytest.mark.slow
def test_it_is_not_taken_for_one_that_is_done(train):
    train(7)
    (partial,) = runs.unfinished()
    with pytest.raises(MissingRun, match=r"2 of 4.*`nlstm-lab train "):
        partial.model()
    with pytest.raises(MissingRun, match="`nlstm-lab runs`"):
        runs.load(NAME, 0, "smoke")
    with pytest.raises(UsageError, match="seed 0"):
        targets.verdicts(runs.table(partial=True))


@pytest.mark.slow
def test_a_record_counts_before_what_goes_on_from_it(train):
    ended = runs.ensure(stopping.NAME, 1, "smoke", patience=1, progress=False)
    assert ended.state == stopping.state(ended)
    gone_on = stopping.ends(ended) + 1
    train(3 * gone_on + 2, name=stopping.NAME, seed=1, finish=True)
    assert [run.state for run in runs.unfinished()] == [f"{gone_on} of 8 epochs, under way"]
    assert set(runs.table(partial=True)["state"]) == {ended.state}
    assert [run.state for run in runs.recorded(stopping.NAME, partial=True)] == []  # a variation, whose record counts


def test_before_its_first_checkpoint_it_has_no_history_yet(train, capsys, monkeypatch):
    for file in train(1).glob("checkpoint.pt*"):
        file.unlink()
    (partial,) = runs.unfinished()
    assert partial.history.empty
    assert math.isnan(partial.hours_left)
    assert "no history yet" in run_command(capsys, monkeypatch, "runs")[1]


@pytest.mark.slow
def test_looking_touches_nothing_and_reads_what_was_written_before(train):
    attempt = train(7)
    saved = torch.load(attempt / "checkpoint.pt", weights_only=True)
    saved["processes"] = [{name: saved.pop(name) for name in ("carried", "random")}]  # as older ones are
    torch.save(saved, attempt / "checkpoint.pt.previous")
    (attempt / "checkpoint.pt").write_bytes(b"half of it")
    before = {path.name: path.read_bytes() for path in attempt.iterdir()}
    (partial,) = runs.unfinished()
    assert partial.progress.epoch == 2
    assert {path.name: path.read_bytes() for path in attempt.iterdir()} == before
    assert state.peek(attempt / "nothing.pt") is None


@pytest.mark.slow
def test_what_cannot_go_on_is_passed_over(train):
    attempt = train(7)
    config = (attempt / "config.json").read_text()
    (attempt / "config.json").write_text(config.replace('"hidden_size": 20', '"hidden_size": 21'))
    assert not runs.unfinished()
    (attempt / "config.json").write_text(config.replace(NAME, "mine"))
    assert not runs.unfinished()
    (attempt / "config.json").write_text(config)
    assert runs.unfinished()
    (attempt.parent / "smoke-seed0").mkdir()
    (attempt.parent / "smoke-seed0" / "failed.json").write_text("{}")
    assert not runs.unfinished()


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        *({"progress": change} for change in ({"epoch": -1}, {"unknown": 1}, {"epoch": None}, {"history": [1, 2]})),
        *({"progress": {"seconds": "long"}}, {"setup": {"seed": 1}}),
        None,
    ],
)
def test_a_checkpoint_of_another_version_or_seed_is_left_out_and_hides_no_other(train, change):
    attempt = train(7)
    state = torch.load(attempt / "checkpoint.pt", weights_only=True)
    if change is None:
        del state["progress"]
    for part, values in (change or {}).items():
        state[part] |= values
    torch.save(state, attempt / "checkpoint.pt")
    train(7, name=f"{NAME}+length=20")
    with pytest.warns(UserWarning, match=r"left out: .*checkpoint\.pt"):
        assert [run.experiment.name for run in runs.unfinished()] == [f"{NAME}+length=20"]


@pytest.mark.slow
def test_the_hours_left_are_those_of_the_updates_that_are_left(train):
    train(7)
    (partial,) = runs.unfinished()
    assert (partial.progress.update, partial.progress.updates % 3) == (7, 0)
    partial.progress.seconds, partial.progress.updates = 7200.0, 28
    assert partial.hours_left == pytest.approx(6.0)
    partial.progress.update = 0
    assert math.isnan(partial.hours_left)


@pytest.mark.slow
def test_the_command_lists_what_is_recorded_under_way_and_failed(train, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # of a narrow terminal, where cells are folded
    assert run_command(capsys, monkeypatch, "runs")[1] == "recorded: none\nunder way: none\nfailed: none\n"
    train(7)
    one = runs.ensure("ptb_char_lstm2", **OPTIONS)
    broken = experiments.variant("ptb_char_lstm1", "smoke", learning_rate=1e36, clip_norm=None)
    with pytest.raises(Exception, match="loss"):
        runs.ensure(broken, 0, progress=False)
    code, output, _ = run_command(capsys, monkeypatch, "runs")
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert code == 0
    bpc = next(row["value"] for row in one.result["metrics"] if (row["metric"], row["split"]) == ("bpc", "valid"))
    assert lines[:2] == ["recorded: 1", f"ptb_char_lstm2 smoke seed 0 bpc {bpc:.4g}"]
    assert lines[2] == "under way: 1"
    assert lines[3].startswith(f"{NAME} smoke seed 0 2 of 4 epochs bpc ")
    assert " h gone " in lines[3]
    assert lines[4] == "failed: 1"
    assert lines[5].startswith(f"{broken.name} smoke seed 0 the loss was not finite by update")
    assert run_command(capsys, monkeypatch, "runs", "mnist_*")[1].count("none") == 3


@pytest.mark.slow
def test_the_browser_shows_it_as_it_goes_on(train):
    train(4)
    browser = widgets.RunBrowser("ptb_char_*")
    assert [row["state"] for row in browser.rows] == ["1 of 4 epochs, under way"]
    train(7)
    browser._on_message(None, "look", None)  # as the page asks
    (row,) = browser.rows
    assert (row["state"], len(row["curves"]["bpc"]["valid"])) == ("2 of 4 epochs, under way", 2)
    before = browser.rows
    browser.look()
    assert browser.rows is before  # nothing new, nothing sent
    assert browser.figure()
    runs.ensure(NAME, **OPTIONS)
    browser.look()
    (row,) = browser.rows
    assert (row["state"], row["weights"], row["epochs"]) == ("done", True, 4)
    assert browser.chosen()[0].model()
