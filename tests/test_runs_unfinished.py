"""A run that is not done, or that early stopping has ended, says so everywhere, and is never taken for one that is."""

import math
import shutil
import signal
from unittest.mock import Mock

import pandas as pd
import pytest
import torch

from nlstm_lab import experiments, runs, settings, targets, training, widgets
from nlstm_lab.errors import LabError, MissingRun, UsageError
from nlstm_lab.training import loop
from nlstm_lab.training.state import peek

NAME = "ptb_char_lstm1+epochs=4"
OPTIONS = {"seed": 0, "scale": "smoke", "progress": False}


@pytest.fixture
def train(runs_folder, monkeypatch):
    """Go on with the run, which has three updates an epoch, and stop it after so many updates; returns its attempt."""
    sync_and_log = loop._Trainer.sync_and_log

    def trained(updates, name=NAME, **options):
        def synced(trainer):
            sync_and_log(trainer)
            if trainer.progress.update == updates:
                trainer.save()
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
    partial.progress.seconds, partial.progress.updates = 7200.0, 32  # of twelve updates eight are done
    assert partial.hours_left == pytest.approx(6.0)
    whole = runs.ensure(NAME, **OPTIONS)
    assert not runs.unfinished()
    length = len(partial.history)
    assert partial.history["epoch"].max() == 2
    pd.testing.assert_frame_equal(partial.history, whole.history.iloc[:length])
    assert partial.result["parameters"] == whole.result["parameters"]


@pytest.mark.slow
def test_looking_at_it_says_how_far_it_is_and_touches_nothing(train):
    attempt = train(7)
    before = {path.name: path.read_bytes() for path in attempt.iterdir()}
    assert runs.table().empty
    assert not runs.recorded()
    assert not runs.unfinished("mnist_*")
    found = runs.unfinished(NAME)
    assert runs.describe_runs(found).endswith("one seed; 2 of 4 epochs, under way.")
    assert set(runs.histories(found)["state"]) == {"2 of 4 epochs, under way"}
    with pytest.raises(MissingRun, match=r"2 of 4.*`nlstm-lab train "):
        found[0].model()
    with pytest.raises(MissingRun, match="`nlstm-lab runs`"):
        runs.load(NAME, 0, "smoke")
    assert {path.name: path.read_bytes() for path in attempt.iterdir()} == before
    assert peek(attempt / "nothing.pt") is None


@pytest.mark.slow
def test_a_record_counts_before_what_goes_on_from_it(train):
    ended = runs.ensure(STOPPED, 1, "smoke", patience=1, progress=False)
    assert ended.state == state(ended)
    gone_on = ends(ended) + 1
    train(3 * gone_on + 2, name=STOPPED, seed=1, finish=True)
    assert [run.state for run in runs.unfinished()] == [f"{gone_on} of 8 epochs, under way"]
    assert set(runs.table()["state"]) == {ended.state}
    assert [row["state"] for row in widgets.RunBrowser(STOPPED).rows] == [ended.state]


def test_before_its_first_checkpoint_it_has_no_history_yet(train, say):
    for file in train(1).glob("checkpoint.pt*"):
        file.unlink()
    (partial,) = runs.unfinished()
    assert partial.history.empty
    assert math.isnan(partial.hours_left)
    assert "no history yet" in say("runs")[1]


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
    with pytest.raises(MissingRun, match="failed"):
        runs.load(NAME, 0, "smoke")


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"epoch": -1}, {"unknown": 1}, {"history": [1, 2]}])
def test_a_checkpoint_of_another_version_is_left_out_and_hides_no_other(train, change):
    attempt = train(7)
    state = torch.load(attempt / "checkpoint.pt", weights_only=True)
    state["progress"] |= change
    torch.save(state, attempt / "checkpoint.pt")
    train(7, name=f"{NAME}+length=20")
    with pytest.warns(UserWarning, match=r"left out: .*checkpoint\.pt"):
        assert [run.experiment.name for run in runs.unfinished()] == [f"{NAME}+length=20"]


@pytest.mark.slow
def test_the_command_lists_what_is_recorded_under_way_and_failed(train, say):
    assert say("runs")[1] == "recorded: none\nunder way: none\nfailed: none\n"
    train(7)
    one = runs.ensure("ptb_char_lstm2", **OPTIONS)
    broken = experiments.variant("ptb_char_lstm1", "smoke", learning_rate=1e36, clip_norm=None)
    with pytest.raises(Exception, match="loss"):
        runs.ensure(broken, 0, progress=False)
    code, output, _ = say("runs")
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert code == 0
    bpc = next(row["value"] for row in one.result["metrics"] if (row["metric"], row["split"]) == ("bpc", "valid"))
    assert lines[:2] == ["recorded: 1", f"ptb_char_lstm2 smoke seed 0 bpc {bpc:.4g}"]
    assert lines[2] == "under way: 1"
    assert lines[3].startswith(f"{NAME} smoke seed 0 2 of 4 epochs bpc ")
    assert " h gone " in lines[3]
    assert lines[4] == "failed: 1"
    assert lines[5].startswith(f"{broken.name} smoke seed 0 the loss was not finite by update")
    assert say("runs", "mnist_*")[1].count("none") == 3


@pytest.mark.slow
def test_the_browser_shows_it(train):
    train(4)
    (row,) = widgets.RunBrowser("ptb_char_*").rows
    assert (row["state"], len(row["curves"]["bpc"]["valid"])) == ("1 of 4 epochs, under way", 1)
    runs.ensure(NAME, **OPTIONS)
    browser = widgets.RunBrowser("ptb_char_*")
    (row,) = browser.rows
    assert (row["state"], row["weights"], row["epochs"]) == ("done", True, 4)
    assert browser.figure()
    assert browser.chosen()[0].model()


# Early stopping

# Patience 1 ends it; after which epoch hangs on this Python's text.
STOPPED = "ptb_char_lstm1+learning_rate=0.5+epochs=8"
ONCE = {"seed": 1, "scale": "smoke", "progress": False}


def ends(run):
    """The first epoch whose validation loss is not below all before."""
    chosen = run.history.query("split == 'valid' and evaluation == 'blocks' and metric == 'nll_nats'")
    losses = chosen.set_index("epoch")["value"]
    return int((losses >= losses.cummin().shift()).idxmax())


def state(run):
    """What is said of a run that ended there."""
    return f"{ends(run)} of 8 epochs, by early stopping"


def contents(run):
    """Everything of a record that must not depend on how it was made."""
    names = ("metrics", "best_epoch", "weights_sha256", "config_digest", "epochs_run")
    return {**{name: run.result[name] for name in names}, "history": (run.folder / "history.csv").read_text()}


@pytest.fixture
def unended(recorded, runs_folder):
    """What the run records that early stopping has not ended."""
    whole = contents(recorded(STOPPED, 1))
    shutil.rmtree(runs_folder)
    return whole


@pytest.fixture
def ended(recorded):
    return recorded(STOPPED, 1, patience=1)


@pytest.mark.slow
def test_the_record_says_how_it_was_ended(unended, ended):
    stops = ends(ended)
    assert ended.state == state(ended)
    assert [ended.result[name] for name in ("patience", "epochs_run", "epochs")] == [1, stops, 8]
    assert ended.result["config_digest"] == unended["config_digest"]
    assert ended.history["epoch"].max() == stops < 8
    assert ended.result["best_epoch"] == stops - 1
    lines = (ended.folder / "history.csv").read_text().splitlines()
    read = [line for line in lines if ",blocks," in line]  # streams are read once, at the best epoch
    assert unended["history"].startswith("\n".join([lines[0], *read]))
    assert runs.describe_runs([ended]).endswith(f"one seed; one stopped early after {stops} of 8 epochs.")
    assert set(runs.table()["state"]) == {state(ended)}


@pytest.mark.slow
def test_without_the_rule_it_goes_on_to_where_no_rule_would_have_ended_it(unended, ended):
    assert runs.ensure(STOPPED, **ONCE).state == state(ended)  # what reads records trains nothing
    went_on = runs.ensure(STOPPED, finish=True, **ONCE)
    assert went_on.state == "done"
    assert went_on.result["patience"] is None
    assert contents(went_on) == unended
    assert sorted(path.name for path in ended.folder.parent.iterdir()) == [".smoke-seed1.lock", "smoke-seed1"]
    assert not (went_on.folder / ".checkpoint.pt").exists()


@pytest.mark.slow
def test_stopped_on_its_way_on_it_still_ends_there(unended, ended, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(loop._Trainer, "end_epoch", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            runs.ensure(STOPPED, finish=True, **ONCE)
    assert runs.load(STOPPED, 1, "smoke").state == state(ended)  # nothing is lost
    assert contents(runs.ensure(STOPPED, finish=True, **ONCE)) == unended


@pytest.mark.slow
def test_a_signal_in_the_last_reading_leaves_a_checkpoint_from_which_it_can_go_on(unended, monkeypatch):
    """The last reading is of the best epoch's weights, and what goes on are the last epoch's."""
    finish = loop._Trainer.finish

    def interrupted(trainer):
        signal.raise_signal(signal.SIGTERM)
        return finish(trainer)

    with monkeypatch.context() as patch:
        patch.setattr(loop._Trainer, "finish", interrupted)
        with pytest.raises(LabError, match="SIGTERM"):
            runs.ensure(STOPPED, patience=1, **ONCE)
    assert contents(runs.ensure(STOPPED, **ONCE)) == unended


@pytest.mark.slow
def test_a_way_on_that_is_refused_leaves_no_attempt(ended, monkeypatch):
    monkeypatch.setattr(training, "fit", Mock(side_effect=UsageError("another precision")))
    with pytest.raises(UsageError):
        runs.ensure(STOPPED, finish=True, **ONCE)
    assert not [*ended.folder.parent.glob(".attempt*")]


def test_again_goes_on_only_with_what_was_begun_with_it(tmp_path):
    one, attempt = experiments.get(NAME, "smoke"), runs.attempt.Attempt(tmp_path / NAME / "smoke-seed0")
    for begun in (False, True):
        attempt.begin(one, "a text", again=begun)
        attempt.checkpoint.touch()
        attempt.begin(one, "a text", again=True)
        assert attempt.checkpoint.exists() == begun


@pytest.mark.slow
def test_a_longer_patience_goes_on_and_a_shorter_one_changes_nothing(ended):
    went_on = runs.ensure(STOPPED, patience=2, **ONCE)
    assert (went_on.state, went_on.result["patience"]) == ("done", 2)
    assert runs.ensure(STOPPED, patience=2, **ONCE).result == went_on.result
    with pytest.raises(UsageError, match="patience"):
        runs.ensure(STOPPED, patience=1, **ONCE)
    assert runs.load(STOPPED, 1, "smoke").result == went_on.result


@pytest.mark.parametrize("patience", [0, -1, 9, 1.5, True, "2"])
def test_a_patience_that_is_none_is_refused(patience, runs_folder):
    with pytest.raises(UsageError, match=r"patience.*8"):
        runs.ensure(STOPPED, patience=patience, **ONCE)
    assert not runs_folder.exists()


@pytest.mark.slow
def test_where_the_checkpoint_is_gone_the_record_stays_and_says_so(ended):
    (ended.folder / ".checkpoint.pt").unlink()
    with pytest.raises(LabError, match=r"--again.*--patience 1"):
        runs.ensure(STOPPED, finish=True, **ONCE)
    assert runs.ensure(STOPPED, patience=1, **ONCE).result == ended.result
    assert runs.ensure(STOPPED, finish=True, again=True, **ONCE).state == "done"


@pytest.mark.slow
def test_the_command_line_says_it_and_goes_on_without_the_option(ended, say):
    line = ("train", STOPPED, "--scale", "smoke", "--seed", "1")
    code, output, _ = say(*line, "--patience", "1")
    assert code == 0
    assert "already recorded" in output
    assert f"best epoch {ends(ended) - 1}, {state(ended)}" in output
    assert "--again" in output
    code, output, _ = say(*line)
    assert code == 0
    assert output.endswith("best epoch 8\n")
    code, output, error = say(*line, "--patience", "0")
    assert (code, output, error.count("\n")) == (2, "", 1)


def test_runs_that_stopped_early_are_counted_in_one():
    states = ["24 of 150 epochs, by early stopping", "2 of 4 epochs, under way", "21 of 150 epochs, by early stopping"]
    assert settings.ended(states) == {"21 to 24 of 150 epochs, by early stopping": 2, "2 of 4 epochs, under way": 1}
    assert not settings.ended([])
    table = runs.table("mnist_*+batch_order=fixed", "paper")
    orderings = targets.compare("nested_lstm.table3", table).frame.query("kind == 'ordering'")
    assert orderings["setting"].str.fullmatch(r"\d+ to \d+ of 150 epochs, by early stopping").all()


@pytest.mark.slow
def test_verdicts_and_tables_mark_what_a_rule_has_ended():
    table = runs.table("poetry_*", "paper")
    done = targets.compare("nested_lstm.table2", table)
    assert "by early stopping" not in done._repr_html_()
    mine = (table["experiment"] == "poetry_nlstm") & (table["seed"] == 1)
    marked = targets.compare(
        "nested_lstm.table2", table.assign(state=table["state"].mask(mine, "16 of 120 epochs, by early stopping"))
    )
    numbers, orderings = (marked.frame[marked.frame["kind"] == kind] for kind in ("number", "ordering"))
    about = numbers["note"].str.contains("16 of 120 epochs, by early stopping")
    assert set(numbers.loc[about, "experiment"]) == {"poetry_nlstm"}
    assert "16 of 120 epochs, by early stopping" in marked._repr_html_()
    assert orderings["setting"].str.contains("early stopping").sum() == orderings["subject"].str.contains("NLSTM").sum()
    assert marked.frame["verdict"].equals(done.frame["verdict"])
