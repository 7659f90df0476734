"""What is recorded, recomputed: results from histories, scores from weights, verdicts from both."""

import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest
from safetensors.torch import load_file, save_file

from nlstm_lab import paths, runs
from nlstm_lab.models import digest
from nlstm_lab.runs.tables import audit, from_histories


@pytest.mark.slow
def test_a_record_agrees_with_its_history_and_its_weights(run):
    outcome = audit(run)
    assert (outcome.wrong, outcome.lacking) == ([], "")
    assert outcome.recomputed == 2 * 3 * 2  # blocks and streams; nats, accuracy and bits; validation and test
    assert audit(run, weights=False).lacking == "weights were left out"


@pytest.mark.slow
def test_dead_cells_that_the_weights_do_not_have_are_named(run):
    rows = run.history["metric"].str.startswith("silent_share/") & (run.history["epoch"] == run.result["best_epoch"])
    assert rows.sum() == 1
    run.history.loc[rows, "value"] += 0.1
    (wrong,) = audit(run).wrong
    assert "its weights give ('blocks', 'silent_share/" in wrong


RESULTS = {
    "bpc": lambda result: result["metrics"][1].update(value=result["metrics"][1]["value"] * 1.00001),
    "the epoch of": lambda result: result["metrics"][1].update(epoch=1),
    "rows of its result": lambda result: result["metrics"].append(result["metrics"][0]),
    "best epoch": lambda result: result.update(best_epoch=1),
}


@pytest.mark.parametrize("what", RESULTS)
def test_a_result_that_its_history_does_not_have_is_named(what, run):
    result = json.loads(json.dumps(run.result))
    RESULTS[what](result)
    (wrong,) = audit(replace(run, result=result), weights=False).wrong
    assert f"{result['metrics'][1]['metric']}" in wrong if what == "bpc" else what in wrong


def test_a_damaged_history_is_named_and_hides_no_other(run):
    (run.folder / "history.csv").write_text("")
    damaged = runs.load("ptb_char_lstm1", 3, "smoke")
    outcome = audit(damaged)
    assert outcome.lacking == "history is damaged"
    assert "history.csv" in outcome.wrong[0]
    assert from_histories([damaged]).empty


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
    assert len(outcome.splitlines()) == 14
    assert outcome.splitlines()[-1].startswith("not checked: other epochs")


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
