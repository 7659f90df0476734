"""A run that a rule has ended says so everywhere, and goes on as if it had never been ended."""

import shutil
import signal

import pytest
from stopping import NAME, ends, state


from nlstm_lab import runs, settings, targets
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.training import loop

OPTIONS = {"seed": 1, "scale": "smoke", "progress": False}
LINE = ("train", NAME, "--scale", "smoke", "--seed", "1")


def contents(run):
    """Everything of a record that must not depend on how it was made."""
    kept = {
        name: run.result[name] for name in ("metrics", "best_epoch", "weights_sha256", "config_digest", "epochs_run")
    }
    return {**kept, "history": (run.folder / "history.csv").read_text()}


@pytest.fixture
def trained(runs_folder, once):
    """A folder of runs that holds this one, with this patience; trained once in a session."""

    def folder(patience):
        def train(folder):
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("NLSTM_LAB_RUNS", str(folder))
                runs.ensure(NAME, patience=patience, device="cpu", **OPTIONS)

        return once(f"patience-{patience}", train)

    return folder


@pytest.fixture
def unended(trained):
    """What the run records that no rule has ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLSTM_LAB_RUNS", str(trained(None)))
        return contents(runs.load(NAME, 1, "smoke"))


@pytest.fixture
def ended(trained, runs_folder):
    shutil.copytree(trained(1), runs_folder)
    return runs.load(NAME, 1, "smoke")


@pytest.mark.slow
def test_the_record_says_how_it_was_ended(unended, ended):
    stops = ends(ended)
    assert ended.state == state(ended)
    assert {name: ended.result[name] for name in ("patience", "epochs_run", "epochs")} == {
        "patience": 1,
        "epochs_run": stops,
        "epochs": 8,
    }
    assert ended.result["config_digest"] == unended["config_digest"]
    assert ended.history["epoch"].max() == stops < 8
    assert ended.result["best_epoch"] == stops - 1
    lines = (ended.folder / "history.csv").read_text().splitlines()
    read = [line for line in lines if ",blocks," in line]  # streams are read once, at the best epoch
    assert unended["history"].startswith("\n".join([lines[0], *read]))
    assert runs.describe_runs([ended]).endswith(
        f"one seed; one ended after {ends(ended)} of 8 epochs by early stopping."
    )
    assert set(runs.table()["state"]) == {state(ended)}


@pytest.mark.slow
def test_without_the_rule_it_goes_on_to_where_no_rule_would_have_ended_it(unended, ended):
    assert runs.ensure(NAME, **OPTIONS).state == state(ended)  # what reads records trains nothing
    went_on = runs.ensure(NAME, finish=True, **OPTIONS)
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
            runs.ensure(NAME, finish=True, **OPTIONS)
    assert runs.load(NAME, 1, "smoke").state == state(ended)  # nothing is lost
    assert contents(runs.ensure(NAME, finish=True, **OPTIONS)) == unended


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
            runs.ensure(NAME, patience=1, **OPTIONS)
    assert contents(runs.ensure(NAME, **OPTIONS)) == unended


@pytest.mark.slow
def test_a_longer_patience_goes_on_and_a_shorter_one_changes_nothing(ended):
    went_on = runs.ensure(NAME, patience=2, **OPTIONS)
    assert (went_on.state, went_on.result["patience"]) == ("done", 2)
    assert runs.ensure(NAME, patience=2, **OPTIONS).result == went_on.result
    with pytest.raises(UsageError, match="patience"):
        runs.ensure(NAME, patience=1, **OPTIONS)
    assert runs.load(NAME, 1, "smoke").result == went_on.result


@pytest.mark.parametrize("patience", [0, -1, 9, 1.5, True, "2"])
def test_a_patience_that_is_none_is_refused(patience, runs_folder):
    with pytest.raises(UsageError, match=r"patience.*8"):
        runs.ensure(NAME, patience=patience, **OPTIONS)
    assert not runs_folder.exists()


@pytest.mark.slow
def test_where_the_checkpoint_is_gone_the_record_stays_and_says_so(ended):
    (ended.folder / ".checkpoint.pt").unlink()
    with pytest.raises(LabError, match=r"--again.*--patience 1"):
        runs.ensure(NAME, finish=True, **OPTIONS)
    assert runs.ensure(NAME, patience=1, **OPTIONS).result == ended.result
    assert runs.ensure(NAME, finish=True, again=True, **OPTIONS).state == "done"


@pytest.mark.slow
def test_the_command_line_says_it_and_goes_on_without_the_option(runs_folder, capsys, monkeypatch):
    code, output, _ = run_command(capsys, monkeypatch, *LINE, "--patience", "1")
    assert code == 0
    ended = runs.load(NAME, 1, "smoke")
    said = f"best epoch {ends(ended) - 1}, {state(ended)}"
    assert output.endswith(f"{said}\n")
    code, repeated, _ = run_command(capsys, monkeypatch, *LINE, "--patience", "1")
    assert code == 0
    assert repeated.splitlines()[:-1] == output.splitlines()[:-1]
    assert "already recorded" in repeated
    assert said in repeated
    assert "--again" in repeated
    code, output, _ = run_command(capsys, monkeypatch, *LINE)
    assert code == 0
    assert output.endswith("best epoch 8\n")
    code, output, error = run_command(capsys, monkeypatch, *LINE, "--patience", "0")
    assert (code, output, error.count("\n")) == (2, "", 1)


def test_runs_that_a_rule_has_ended_are_told_of_together():
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
