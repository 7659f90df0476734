"""Files of a run are trusted only where they are right; anything else is a sentence that names the file."""

import errno
import gzip
import io
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file, save_file

from nlstm_lab import experiments, paths, probes, runs, targets
from nlstm_lab.errors import DamagedFile, StaleRun, UsageError
from nlstm_lab.models import digest
from nlstm_lab.probes.records import damaged
from nlstm_lab.runs.run import folder_of
from nlstm_lab.runs.tables import audit

NAME = "ptb_char_lstm1"


def test_a_flipped_bit_in_the_weights_is_detected(run):
    run.model()
    file = run.folder / "weights.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedFile, match=file.name):
        run.model()


@pytest.mark.slow
def test_every_committed_weight_is_that_of_its_record():
    checked = [run.model() for run in runs.recorded() if run.has_weights]
    assert len(checked) > 20


RESULTS = {
    "null": lambda result: None,
    "no metrics": lambda result: {**result, "metrics": None},
    "no seed": lambda result: {**result, "seed": True},
    "a metric that is null": lambda result: {**result, "metrics": [{**result["metrics"][0], "value": None}]},
    "a metric that is NaN": lambda result: {**result, "metrics": [{**result["metrics"][0], "value": float("nan")}]},
    "a metric that is text": lambda result: {**result, "metrics": [*result["metrics"], "bpc"]},
    "a best epoch that is none": lambda result: {**result, "best_epoch": 999},
    "no interface": lambda result: {**result, "interface": None},
    "no device": lambda result: {name: value for name, value in result.items() if name != "device"},
    "another seed's": lambda result: {**result, "seed": 4},
    "another experiment's": lambda result: {**result, "experiment": "ptb_char_lstm2"},
    "another scale's": lambda result: {**result, "scale": "small"},
}

CONFIGS = {"a config that is a list": lambda config: []}


@pytest.mark.parametrize("what", [*RESULTS, *CONFIGS])
def test_a_damaged_file_is_refused_by_name_and_hides_no_other(what, run, recorded):
    other = recorded("ptb_char_lstm2")
    file = run.folder / ("config.json" if what in CONFIGS else "result.json")
    make = (RESULTS | CONFIGS)[what]
    file.write_text(json.dumps(make(json.loads(file.read_text()))))
    with pytest.raises(DamagedFile, match=file.name):
        runs.load(NAME, 3, "smoke")
    with pytest.warns(UserWarning, match=f"left out: .*{file}"):
        assert set(runs.table()["experiment"]) == {other.experiment.name}
    with pytest.warns(UserWarning, match=f"left out: .*{file}"):
        assert [one.name for one in runs.recorded()] == [other.name]


FAILED = {"experiment": NAME, "scale": "smoke", "seed": 0, "what": "loss", "update": 3}


def copied(run, seed):
    folder = run.folder.with_name(f"smoke-seed{seed}")
    shutil.copytree(run.folder, folder)
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps({**result, "seed": seed}, indent=1))
    return folder


def test_a_seed_that_was_copied_is_refused(run):
    copied(run, 9)
    with pytest.raises(DamagedFile, match=r"smoke-seed9 has the history of smoke-seed3"):
        runs.load(NAME, 9, "smoke")
    with pytest.warns(UserWarning, match="left out: .*smoke-seed9"):
        assert set(runs.table()["seed"]) == {3}
    assert runs.load(NAME, 3, "smoke").result == run.result


@pytest.mark.parametrize("seed", [-1, 2**63 + 1])
def test_a_record_whose_seed_is_none_hides_no_other(seed, run):
    copied(run, seed)  # as an earlier version could write it
    with pytest.warns(UserWarning, match=rf"left out: .*smoke-seed{seed}"):
        assert set(runs.table()["seed"]) == {3}


@pytest.mark.parametrize("where", [".", NAME, f"{NAME}/smoke-seed3"])
def test_a_folder_that_cannot_be_read_is_said_and_hides_no_other(where, run, recorded, monkeypatch):
    """As where its mode is 000, which root reads nevertheless."""
    recorded(NAME, 4)
    closed, listdir, open_ = (run.folder.parent.parent / where).resolve(), os.listdir, io.open

    def refusing(real):
        def guarded(path, *arguments, **options):
            if isinstance(path, str | Path) and closed in (Path(path), *Path(path).parents):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return real(path, *arguments, **options)

        return guarded

    monkeypatch.setattr(os, "listdir", refusing(listdir))
    monkeypatch.setattr(io, "open", refusing(open_))
    for listing in (runs.table, runs.recorded, runs.failures, runs.unfinished):
        if where == "." and listing is not runs.recorded:
            with pytest.raises(DamagedFile, match=f"the folder {closed} cannot be read"):
                listing()
        elif listing in (runs.table, runs.recorded):
            with pytest.warns(UserWarning, match=f"left out: .*{closed}.* cannot be read"):
                found = listing()
            seeds = {one.seed for one in found} if isinstance(found, list) else set(found["seed"])
            assert seeds == ({4} if where.endswith("seed3") else set())


@pytest.mark.parametrize("content", ["[]", json.dumps(FAILED | {"seed": 1}), json.dumps(FAILED | {"seed": True})])
def test_a_failure_of_another_shape_or_run_is_left_out(content, runs_folder):
    folder = runs_folder / NAME / "smoke-seed0"
    folder.mkdir(parents=True)
    (folder / "failed.json").write_text(content)
    with pytest.warns(UserWarning, match=r"left out: .*failed\.json"):
        assert runs.failures().empty


@pytest.mark.parametrize("interface", [{}, {"in": 3, "out": 3, "vocabulary": None, "per_sequence": False}])
def test_an_interface_that_is_none_is_named(interface, run):
    with pytest.raises(DamagedFile, match=r"result\.json"):
        replace(run, result=run.result | {"interface": interface}).model()


HISTORIES = {
    "empty": lambda file, text: file.write_text(""),
    "a header alone": lambda file, text: file.write_text(text.splitlines(keepends=True)[0]),
    "cut in mid-line": lambda file, text: file.write_text(text[: len(text) // 2]),
    "cut in its last number": lambda file, text: file.write_text(text[:-3]),
    "cut between two lines": lambda file, text: file.write_text("".join(text.splitlines(keepends=True)[:-1])),
    "cut between two epochs": lambda file, text: file.write_text(text[: text.index("\n2,") + 1]),
    "a line lost": lambda file, text: file.write_text(re.sub(r"\n1,.*", "", text, count=1)),
    "an epoch lost": lambda file, text: file.write_text(re.sub(r"\n1,.*", "", text)),
    "missing": lambda file, text: file.unlink(),
    "no file": lambda file, text: (file.unlink(), file.mkdir()),
    "no text": lambda file, text: file.write_bytes(b"\xff\x00" * 100),
    "not a number": lambda file, text: file.write_text(text + "1,2,valid,blocks,bpc,NaN\n"),
    "true": lambda file, text: file.write_text(text + "1,2,valid,blocks,bpc,True\n"),
}


@pytest.mark.parametrize("damage", HISTORIES.values(), ids=HISTORIES)
def test_a_damaged_history_is_named(damage, run):
    file = run.folder / "history.csv"
    damage(file, file.read_text())
    with pytest.raises(DamagedFile, match=file.name):
        _ = runs.load(NAME, 3, "smoke").history


@pytest.mark.slow
@pytest.mark.parametrize("content", ["", "[]", '{"name": "ptb_char_lstm1"}'])
def test_an_attempt_that_does_not_say_what_it_trains_is_begun_anew_on_demand(content, runs_folder):
    attempt = runs_folder / NAME / ".attempt-smoke-seed0"
    attempt.mkdir(parents=True)
    (attempt / "config.json").write_text(content)
    with pytest.warns(UserWarning, match=r"config\.json"):
        assert runs.unfinished() == []
    with pytest.raises(StaleRun, match=r"config\.json.*--again"):
        runs.ensure(NAME, 0, "smoke", progress=False)
    assert runs.ensure(NAME, 0, "smoke", progress=False, again=True).result["seed"] == 0


@pytest.mark.parametrize("path", ["/小说/" + "红楼梦" * 30 + ".txt", "/a/" + "long/" * 60 + "novel.txt"])
def test_a_long_path_has_a_short_folder_of_its_own(path, runs_folder):
    own, other = (experiments.variant(NAME, "smoke", corpus=f"{start}{path}") for start in ("/one", "/another"))
    folders = [folder_of(one.name, one.scale, 0).parent for one in (own, other)]
    assert folders[0] != folders[1]
    for folder in folders:
        assert folder.parent == runs_folder
        assert folder.name.startswith(NAME)
        assert Path(path).stem[:3] in folder.name
        assert len(folder.name.encode()) < 150


@pytest.mark.parametrize(
    ("field", "value"),
    [*(("name", name) for name in ("", "..", ".hidden", "../escape", "\0", "a\nb", 3)), ("scale", "../../x")],
)
def test_a_name_that_no_folder_may_have_is_refused(field, value):
    with pytest.raises(UsageError, match=field):
        replace(experiments.get(NAME, "smoke"), **{field: value})


# What is recorded, recomputed: results from histories, scores from weights, verdicts from both.


@pytest.mark.slow
def test_a_record_agrees_with_its_history_and_its_weights(run):
    outcome = audit(run)
    assert (outcome.wrong, outcome.lacking) == ([], "")
    assert outcome.recomputed == 2 * 3 * 2  # blocks and streams; nats, accuracy and bits; validation and test
    assert audit(run, weights=False).lacking == "weights were left out"
    run.result["data_sha256"] = "another"
    assert (audit(run).wrong, audit(run).lacking) == ([], "data is another than the run's")


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "more"), [("silent_share/", 0.1), ("bpc", 0.01)])
def test_a_score_that_the_weights_do_not_have_is_named(metric, more, run):
    best = f"epoch == {run.result['best_epoch']} and split == 'valid' and evaluation == 'blocks'"
    rows = run.history.eval(best) & run.history["metric"].str.startswith(metric)
    assert rows.sum() == 1
    run.history.loc[rows, "value"] += more
    assert f"its weights give blocks valid {metric}" in audit(run).wrong[-1]


CHANGES = {
    "bpc": lambda result: result["metrics"][1].update(value=result["metrics"][1]["value"] * 1.00001),
    "another": lambda result: result["metrics"][1].update(epoch=1),
    "rows of its result": lambda result: result["metrics"].append(result["metrics"][0]),
    "best epoch": lambda result: result.update(best_epoch=1),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_result_that_its_history_does_not_have_is_named(what, run):
    result = json.loads(json.dumps(run.result))
    CHANGES[what](result)
    (wrong,) = audit(replace(run, result=result), weights=False).wrong
    assert f"{result['metrics'][1]['metric']}" in wrong if what == "bpc" else what in wrong


def test_the_best_epoch_is_that_of_what_selects(run):
    training = replace(run.experiment.training, select_by="error")
    for one in (run, replace(run, experiment=replace(run.experiment, training=training))):
        at_first = one.history.eval("epoch == 1 and split == 'valid' and metric == 'top1_accuracy_pct'")
        one.history.loc[at_first, "value"] = 100.0
        assert ("best epoch" in " ".join(audit(one, weights=False).wrong)) is (one is not run)


@pytest.mark.slow
def test_weights_that_give_other_scores_are_named(run):
    file = run.folder / "weights.safetensors"
    weights = load_file(file)
    other = {name: value if value.dim() < 2 else value + 0.05 for name, value in weights.items()}
    save_file(other, file)
    for evaluate in (True, False):
        audited = audit(run, evaluate)
        assert audited.lacking == "weights are damaged"
        assert len(audited.wrong) == 1
        assert file.name in audited.wrong[0]
    recorded = digest({name: value.float() for name, value in other.items()})
    wrong = audit(replace(run, result=run.result | {"weights_sha256": recorded})).wrong
    assert wrong
    assert all("its weights give" in sentence for sentence in wrong)
    file.unlink()
    assert audit(run).lacking == "weights are not kept"


@pytest.mark.slow
def test_the_committed_tables_follow_from_the_histories(say):
    """What needs no data: `nlstm-lab audit --no-weights`."""
    code, outcome, _ = say("audit", "--no-weights")
    assert code == 0, outcome
    assert len(outcome.splitlines()) == 1 + sum(len(targets.load(name).places) for name in targets.DOCUMENTS)
    assert outcome.splitlines()[-1].startswith("not checked: other epochs")


@pytest.mark.parametrize(
    "change", [lambda record: record[:-9], lambda record: gzip.compress(b'# {"text": "b"}\nx\n1\n')]
)
def test_a_probe_record_that_is_cut_or_of_something_else_is_named(change, probes_folder):
    probes.ensure("lengths", lambda: pd.DataFrame({"x": [1]}), text="a")
    assert damaged() == []
    (file,) = probes_folder.glob("*.gz")
    file.write_bytes(change(file.read_bytes()))
    assert [sentence.split()[0] for sentence in damaged()] == [file.name]


@pytest.mark.slow
def test_a_record_that_was_left_out_does_not_agree(run, say):
    shutil.copytree(run.folder, run.folder.with_name("smoke-seed9"))
    code, outcome, _ = say("audit", "--no-weights", "nested_lstm.table1")
    assert code == 1
    assert "left out: " in outcome
    assert "smoke-seed9" in outcome


@pytest.mark.slow
def test_a_verdict_that_the_histories_do_not_give_is_named(tmp_path, monkeypatch, say):
    table = pd.read_csv(paths.figures() / "nested_lstm_rescue.csv", keep_default_na=False)
    table.loc[0, "verdict"] = "fails" if table.loc[0, "verdict"] == "holds" else "holds"
    table.to_csv(tmp_path / "nested_lstm_rescue.csv", index=False)
    monkeypatch.setattr(paths, "figures", lambda: tmp_path)
    code, outcome, _ = say("audit", "--no-weights", "nested_lstm.rescue")
    assert code == 1
    assert "nested_lstm_rescue.csv says" in outcome
    assert say("audit", "--no-weights", "nested_lstm.table9")[0] == 2
