"""`nlstm-lab train`, `sweep` and `experiments`: what they print, and with which exit code."""

import json
import re
import sys

import pytest

from nlstm_lab import cli


def run_command(capsys, monkeypatch, *arguments):
    """Exit code, standard output and standard error of `nlstm-lab` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["nlstm-lab", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    output, error = capsys.readouterr()
    return int(ended.value.code or 0), output, error


@pytest.mark.slow
def test_train_records_and_prints_what_was_measured(runs_folder, capsys, monkeypatch):
    line = ("train", "ptb_char_lstm1", "--scale", "smoke", "--seed", "2", "--device", "cpu")
    code, output, error = run_command(capsys, monkeypatch, *line)
    assert (code, error) == (0, "")
    assert re.search(r"^valid blocks   bpc +\d\.\d{4}$", output, re.MULTILINE)
    assert re.search(r"^recorded as ptb_char_lstm1/smoke-seed2: \d+ s, best epoch 2$", output, re.MULTILINE)
    code, again, error = run_command(capsys, monkeypatch, *line)
    assert (code, error) == (0, "")
    assert again.splitlines()[:-1] == output.splitlines()[:-1]
    assert "already recorded" in again
    assert "--again" in again


@pytest.mark.slow
def test_a_record_of_another_configuration_is_refused_and_replaced_with_again(runs_folder, capsys, monkeypatch):
    line = ("train", "ptb_char_lstm1", "--scale", "smoke", "--device", "cpu")
    assert run_command(capsys, monkeypatch, *line)[0] == 0
    path = runs_folder / "ptb_char_lstm1" / "smoke-seed0" / "config.json"
    config = json.loads(path.read_text())
    config["model"]["hidden_size"] += 1
    path.write_text(json.dumps(config))
    code, output, error = run_command(capsys, monkeypatch, *line)
    assert (code, output) == (1, "")
    assert "hidden_size" in error
    assert "--again" in error
    (path.parent / "result.json").write_text("{")  # damaged, too
    assert run_command(capsys, monkeypatch, *line)[0] == 1
    code, output, error = run_command(capsys, monkeypatch, *line, "--again")
    assert (code, error) == (0, "")
    assert "already recorded" not in output
    assert run_command(capsys, monkeypatch, *line)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("given", [("--device", "tpu"), ("--device", "cuda"), ("--precision", "fp8")])
def test_what_this_machine_lacks_is_refused_also_where_there_is_a_record(given, recorded, capsys, monkeypatch):
    recorded("ptb_char_lstm1")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    for words in (("train", "ptb_char_lstm1"), ("sweep", "ptb_char_lstm1")):
        code, output, error = run_command(capsys, monkeypatch, *words, "--scale", "smoke", *given)
        assert (code, output) == (2, "")
        assert given[1] in error


@pytest.mark.parametrize("where", [0, 1, 2])
def test_an_error_is_a_sentence_and_with_debug_a_traceback(where, runs_folder, capsys, monkeypatch):
    line = ["train", "nothing"]
    code, output, error = run_command(capsys, monkeypatch, *line)
    assert (code, output) == (2, "")
    assert error.startswith("nlstm-lab: there is no experiment 'nothing'; `nlstm-lab experiments` lists them")
    assert error.count("\n") == 1
    line.insert(where, "--debug")
    monkeypatch.setattr(sys, "argv", ["nlstm-lab", *line])
    with pytest.raises(Exception, match="'nothing'"):
        cli.main()


def test_what_is_unexpected_is_one_sentence_too(runs_folder, capsys, monkeypatch):
    from nlstm_lab import runs

    monkeypatch.setattr(runs, "ensure", lambda *_, **__: {}["nothing"])
    code, _, error = run_command(capsys, monkeypatch, "train", "ptb_char_lstm1")
    assert (code, error) == (1, "nlstm-lab: KeyError: 'nothing' (unexpected: --debug shows where)\n")


@pytest.mark.slow
def test_experiments_are_listed_with_exact_parameters_without_any_data(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NLSTM_LAB_DATA", str(tmp_path))
    monkeypatch.setenv("NLSTM_LAB_CACHE", str(tmp_path / "cache"))
    line = next(
        line for line in run_command(capsys, monkeypatch, "experiments")[1].splitlines() if "ptb_char_nlstm " in line
    )
    assert re.split(r"  +", line.strip()) == [
        "ptb_char_nlstm",
        "CharacterModelling ptb",
        "nlstm",
        "1 x 600",
        "4,474,850",
        "4.47M",
        "smoke small paper",
        "nested_lstm.table1",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_a_sweep_says_how_it_stands_and_fails_where_a_run_does(runs_folder, capsys, monkeypatch):
    line = ("sweep", "ptb_char_lstm1", "--seeds", "0-1", "--scale", "smoke", "--workers", "1", "--device", "cpu")
    code, _, error = run_command(capsys, monkeypatch, *line)
    assert code == 0, error
    assert error.startswith("2 runs: looking")
    assert "2 recorded, 0 running, 0 failed of 2" in error
    config = runs_folder / "ptb_char_lstm1" / "smoke-seed1" / "config.json"
    config.write_text(config.read_text().replace('"epochs": 2', '"epochs": 9'))
    code, _, error = run_command(capsys, monkeypatch, *line)
    assert code == 1
    assert "1 recorded, 0 running, 1 failed of 2" in error
    assert "training.epochs" in error
