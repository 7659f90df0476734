"""Records: what they say, when they are believed, and that every experiment can be trained."""

import json
import shlex
import subprocess
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import torch

from nlstm_lab import experiments, paths, probes, runs, sweep, training
from nlstm_lab.errors import MissingRun, StaleRun, UsageError
from nlstm_lab.runs import attempt, records
from nlstm_lab.runs.run import resolve

NAME = "ptb_char_lstm1"
# of blocks, streams, given boundaries, words
KINDS = ("ptb_char_nlstm", "ptb_char_hmlstm_annealed", "hrnn_words", "autocomplete_lstm")


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_experiment_is_trained_recorded_and_rebuilt(name, runs_folder):
    run = runs.ensure(name, 0, "smoke", progress=False)
    assert {row["split"] for row in run.result["metrics"]} == {"train", "valid", "test"}
    symbols = run.result["interface"]["out"]["Symbols"]["size"]
    assert run.model()(torch.ones(5, 2, dtype=torch.int64))[0].shape == (5, 2, symbols)
    # of validation: six updates tell less than how hard their own batches are, in another Python's text at that
    valid = run.history.query("split == 'valid' and metric == 'nll_nats'")
    losses = valid[valid.evaluation == run.history.evaluation.iloc[0]].value  # as it is trained to read
    assert len(losses) == run.experiment.training.epochs
    assert losses.iloc[-1] < losses.iloc[0]


@pytest.mark.slow
def test_a_run_on_words_knows_them_without_its_corpus(runs_folder, monkeypatch):
    run = runs.ensure("autocomplete_gru", 0, "smoke", progress=False)
    names = run.experiment.task.load().output.names
    monkeypatch.setattr(type(run.experiment.task), "load", None)
    assert run.model().words == names
    assert names[:3] == ("<eos>", "<unknown>", "the")
    assert "".join(run.model().vocabulary.symbols) == "\0 abcdefghijklmnopqrstuvwxyz"
    assert run.result["interface"]["vocabulary"] == "\0 abcdefghijklmnopqrstuvwxyz"


@pytest.mark.slow
def test_a_record_says_how_it_was_made(run):
    result = run.result
    assert run.name == "ptb_char_lstm1/smoke-seed3"
    assert (result["experiment"], result["scale"], result["seed"]) == (NAME, "smoke", 3)
    assert result["config_digest"] == run.experiment.digest()
    assert json.loads((run.folder / "config.json").read_text()) == run.experiment.config()
    assert result["precision"] == "fp32"
    assert result["device"].startswith("cpu")
    assert result["versions"]["torch"] == torch.__version__
    assert [one["threads"] for one in result["machines"]] == [result["threads"]]
    assert len(result["data_sha256"]) == 64
    assert result["seconds"] > 0
    assert result["tokens_per_second"] > 0
    assert result["parameters"] == sum(value.numel() for value in run.model().parameters())


def git(folder, *arguments):
    line = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_is_the_packages_own_or_unknown(tmp_path, monkeypatch):
    """Of an installed package and of an archive in another repository git knows nothing."""

    def commit(message, *files):
        for name in files:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-m", message)

    def found():
        outcome = records.provenance(torch.device("cpu"))
        return outcome["commit"], outcome["dirty"]

    git(tmp_path, "init")
    commit("first", "package/__init__.py")
    own = found()
    monkeypatch.setenv("NLSTM_LAB_ROOT", str(tmp_path))  # where runs go says nothing of the code
    assert found() == own != (git(tmp_path, "rev-parse", "HEAD"), False)
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "package")
    assert found() == ("unknown", None)
    (tmp_path / "pyproject.toml").write_text("")
    assert records.commit() == "unknown"  # not committed
    commit("second", "vendored/pyproject.toml", "vendored/package/__init__.py")
    assert found() == (git(tmp_path, "rev-parse", "HEAD"), False)
    (tmp_path / "copied").mkdir()  # beside their pyproject.toml, and not of their commit
    (tmp_path / "copied" / "__init__.py").write_text("")
    for name in ("vendored/package", "copied"):
        monkeypatch.setattr(paths, "PACKAGE", tmp_path / name)
        assert found() == ("unknown", None)


def test_the_result_is_taken_where_validation_is_best_whatever_the_test_says():
    rows = [
        (epoch, 0, split, "blocks", metric, value)
        for epoch, values in enumerate([(3.0, 9.0, 60.0), (2.0, 5.0, 50.0), (2.5, 1.0, 70.0)], 1)
        for split, metric, value in (
            ("valid", "bpc", values[0]),
            ("test", "bpc", values[1]),
            ("valid", "top1_accuracy_pct", values[2]),
            ("valid", "log_likelihood_nats", -values[0]),
            ("valid", "latched_share/inner", 0.0),
        )
    ]
    outcome = records.summary(pd.DataFrame(rows, columns=["epoch", "update", "split", "evaluation", "metric", "value"]))
    assert {(row["metric"], row["split"]): (row["epoch"], row["value"]) for row in outcome} == {
        ("bpc", "valid"): (2, 2.0),
        ("bpc", "test"): (2, 5.0),
        ("top1_accuracy_pct", "valid"): (3, 70.0),
        ("log_likelihood_nats", "valid"): (2, -2.0),
    }


def test_a_record_is_loaded_and_not_trained_again(run, monkeypatch):
    monkeypatch.setattr(attempt, "_train", None)
    assert runs.ensure(NAME, 3, "smoke").result == run.result
    assert runs.load(NAME, 3).result == run.result  # the only scale that is recorded


def test_without_a_scale_the_largest_that_is_recorded_is_meant(runs_folder):
    for scale in ("smoke", "small"):
        (runs_folder / NAME / f"{scale}-seed0").mkdir(parents=True)
        (runs_folder / NAME / f"{scale}-seed0" / "result.json").write_text("{}")
    assert resolve(NAME, None).scale == "small"
    assert resolve(NAME, None, 0).scale == "small"
    (runs_folder / NAME / "smoke-seed1").mkdir()
    (runs_folder / NAME / "smoke-seed1" / "result.json").write_text("{}")
    assert resolve(NAME, None, 1).scale == "smoke"  # the only one of that seed


def test_a_run_that_nobody_recorded_names_the_command(runs_folder):
    with pytest.raises(MissingRun, match="`nlstm-lab train ptb_char_nlstm --scale small --seed 7`"):
        runs.load("ptb_char_nlstm", 7)
    assert runs.table().empty


@pytest.mark.slow
def test_a_record_of_another_configuration_is_refused_by_the_field(run):
    config = run.experiment.config()
    then = {**config, "model": {**config["model"], "unit": "gru"}}
    (run.folder / "config.json").write_text(json.dumps(then))
    for refused in (lambda: runs.load(NAME, 3, "smoke"), lambda: runs.ensure(NAME, 3, "smoke")):
        with pytest.raises(StaleRun, match=r"model\.unit"):
            refused()
    for listing in (runs.table, runs.recorded):
        with pytest.warns(UserWarning, match=r"left out: .*model\.unit"):
            assert len(listing("ptb_char_*")) == 0
    assert runs.ensure(NAME, 3, "smoke", again=True, progress=False).result["metrics"] == run.result["metrics"]
    assert runs.load(NAME, 3, "smoke")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda config: config["training"].update(warmup=10), "training.warmup was 10 and is absent"),
        (lambda config: config["training"].pop("epochs"), "training.epochs was absent and is 2"),
        (lambda config: config["model"]["flags"].update(depth=3), "model.flags.depth was 3 and is absent"),
        (lambda config: config.update(scale="small"), "scale was 'small' and is 'smoke'"),
    ],
)
def test_the_first_field_that_is_another_is_named(change, said):
    experiment = experiments.get(NAME, "smoke")
    recorded = experiment.config()
    change(recorded)
    assert records.difference(recorded, experiment) == said


@pytest.mark.slow
def test_again_keeps_the_record_until_the_new_one_takes_its_place(run, monkeypatch):
    for stopped, left in ((KeyboardInterrupt(), 1), (UsageError("refused"), 0)):
        with monkeypatch.context() as patch:
            patch.setattr(training, "fit", Mock(side_effect=stopped))
            with pytest.raises(type(stopped)):
                runs.ensure(NAME, 3, "smoke", again=True, progress=False)
        assert len([*run.folder.parent.glob(".attempt*")]) == left  # nothing where training was refused
        assert runs.load(NAME, 3, "smoke").result == run.result
    (run.folder / "weights.safetensors").unlink()
    with pytest.raises(MissingRun, match="--seed 3 --again`"):
        run.model()(torch.zeros(2, 1, dtype=torch.int64))
    renewed = runs.ensure(NAME, 3, "smoke", again=True, progress=False)
    assert renewed.model()
    assert sorted(path.name for path in run.folder.parent.iterdir()) == [".smoke-seed3.lock", "smoke-seed3"]


@pytest.mark.slow
def test_weights_beyond_half_precision_are_recorded_as_they_are(runs_folder):
    run = runs.ensure(f"{NAME}+learning_rate=30000.0", 0, "smoke", progress=False)
    largest = max(weight.abs().max() for weight in run.model().parameters())
    assert torch.finfo(torch.half).max < largest < torch.inf


def test_without_weights_only_recorded_measurements_are_returned(run, probes_folder):
    outcome = pd.DataFrame({"loss": [1.5]})
    probes.ensure("losses", lambda: outcome, weights=run.model(), skip=0)
    (run.folder / "weights.safetensors").unlink()
    forgotten = run.model()
    assert probes.ensure("losses", lambda: 1 / 0, weights=forgotten, skip=0).equals(outcome)
    text = torch.zeros(5, dtype=torch.int64)
    for measure in (
        lambda: probes.trace(forgotten, text),
        lambda: probes.trace(probes.untrained(forgotten), text),
        lambda: probes.loss_by_context(forgotten, text, positions=1),
    ):
        with pytest.raises(MissingRun, match=r"--seed 3 --again`"):
            measure()


@pytest.mark.slow
def test_the_table_has_a_row_for_each_run_split_reader_and_metric(run):
    runs.ensure(f"{NAME}+forget_bias=0.0", 0, "smoke", progress=False)
    table = runs.table("ptb_char_lstm1*")
    assert not table.duplicated(["experiment", "scale", "seed", "split", "evaluation", "metric"]).any()
    assert set(table.experiment) == {NAME, f"{NAME}+forget_bias=0.0"}
    assert set(runs.table(NAME).seed) == {3}
    assert [run.experiment.name for run in runs.recorded(f"{NAME}+forget_bias=0.0")] == [f"{NAME}+forget_bias=0.0"]
    assert runs.table(scale="paper").empty
    own = experiments.get(NAME, "small")
    for listing in (runs.table, runs.recorded, runs.failures, runs.unfinished, lambda scale: runs.load(own, 0, scale)):
        with pytest.raises(UsageError, match="'tiny'"):
            listing(scale="tiny")


@pytest.mark.parametrize("file", ["my text.txt", "a+b.txt", "a [1].txt"])
def test_a_variation_may_hold_a_path(file, runs_folder, tmp_path):
    (tmp_path / file).write_text("a text of one's own, again and again. " * 200)
    own = experiments.variant(NAME, "smoke", corpus=f"{tmp_path}/{file}", length=20, batch_size=4)
    with pytest.raises(MissingRun) as missing:
        runs.load(own)
    typed = str(missing.value).split("`")[1]
    assert shlex.split(typed)[2] == own.name
    run = runs.ensure(own, progress=False)
    assert run.folder.parent.parent == runs_folder
    assert set(runs.table(own.name).experiment) == {own.name}
    assert runs.load(own.name).result == run.result


@pytest.fixture
def own(runs_folder, tmp_path):
    """A text file, of which a run is begun by its path."""
    text = tmp_path / "novel.txt"
    text.write_text("a text of one's own, again and again. " * 200)
    return text


@pytest.mark.slow
def test_a_run_on_a_text_that_changed_is_not_taken_for_todays(own):
    name = f"{NAME}+corpus={own}+length=20+batch_size=4"
    run = runs.ensure(name, 0, "smoke", progress=False)
    assert runs.ensure(name, 0, "smoke").result == run.result
    own.write_text("another one, with fewer characters. " * 200)
    with pytest.raises(StaleRun, match=r"novel\.txt.*--again"):
        runs.ensure(name, 0, "smoke")
    said = []
    outcome = sweep.sweep(sweep.matching(name, "smoke"), [0], watch=lambda outcome, event: said.append(event))
    assert (outcome.failed, "another text" in said[-1]) == (1, True)
    content = own.read_bytes()
    own.write_bytes(b"\xff\x00" * 100)
    assert sweep.sweep(sweep.matching(name, "smoke", 1), [0], patience=1).failed == 1  # and no rule that comes too late
    own.write_bytes(content)
    assert runs.load(name, 0, "smoke").result == run.result  # what is read of it needs no text
    renewed = runs.ensure(name, 0, "smoke", again=True, progress=False)
    assert renewed.result["data_sha256"] != run.result["data_sha256"]
    own.unlink()
    assert runs.ensure(name, 0, "smoke").result == renewed.result


@pytest.mark.slow
def test_an_attempt_on_a_text_that_changed_is_not_gone_on_with(own, monkeypatch):
    name = f"{NAME}+corpus={own}+length=20+batch_size=4"
    with monkeypatch.context() as patch:
        patch.setattr(training.loop._Trainer, "finish", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            runs.ensure(name, 0, "smoke", progress=False)
    own.write_text("another one, with fewer characters. " * 200)
    with pytest.raises(StaleRun, match=r"'\w{64}'.*'\w{64}'.*--again"):
        runs.ensure(name, 0, "smoke", progress=False)
    run = runs.ensure(name, 0, "smoke", progress=False, again=True)
    assert run.result["data_sha256"] == run.experiment.task.load().fingerprint


@pytest.mark.parametrize(
    ("name", "given", "named"),
    [
        ("ptb_char", {}, "'ptb_char'"),
        (NAME, {"scale": "large"}, "'large'.*smoke, small, paper"),
        *((NAME, {"seed": seed}, f"seed.*{seed!r}") for seed in (-1, 0.5, True, "3", 2**63 + 1)),
        (NAME, {"device": "gpu"}, "device.*'gpu'"),
        (NAME, {"device": "meta"}, "device.*'meta'"),
        (NAME, {"precision": "fp8"}, "precision.*'fp8'"),
        (f"{NAME}+initialization=guess", {}, NAME),
        (f"{NAME}+unit=lsmt+forget_bias=0", {}, "'lsmt'"),
        (f"{NAME}+depth", {}, "flag=value"),
        (f"{NAME}+epochs=true", {}, "epochs.*True"),
    ],
)
def test_misuse_is_one_sentence_and_leaves_nothing(runs_folder, name, given, named):
    with pytest.raises(UsageError, match=named):
        runs.ensure(name, **{"scale": "smoke", **given}, progress=False)
    assert not list(runs_folder.glob("*/*"))


@pytest.mark.parametrize("seed", [2**63, np.int64(7)])
def test_large_seeds_and_those_of_numpy_are_trained(seed, runs_folder):
    run = runs.ensure(NAME, seed, "smoke", progress=False)
    assert json.loads((run.folder / "result.json").read_text())["seed"] == seed
    assert runs.table()["seed"].tolist()[0] == seed
    assert [one.seed for one in runs.recorded(NAME)] == [seed]
    assert not list(runs_folder.glob("*/.attempt*"))


def test_what_is_not_run_is_listed_with_its_command():
    outcome = runs.outlook("ptb_char_nlstm*", seeds=(0, 98, 99)).set_index("experiment")
    assert list(outcome.index) == ["ptb_char_nlstm", "ptb_char_nlstm_logfreq"]
    assert list(outcome["seeds"]) == ["98,99", "98,99"]
    assert outcome["command"].iloc[0] == "nlstm-lab sweep ptb_char_nlstm --scale paper --seeds 98,99"
    assert outcome["one thread"].gt(1).all()
    assert runs.outlook("ptb_char_nlstm", seeds=(0,)).empty
    assert len(runs.outlook("ptb_char_nlstm", seeds=(1,))) == 1  # recorded at another scale
