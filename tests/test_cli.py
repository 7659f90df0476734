"""The command line as a person meets it: one sentence for every mistake, the right exit code, nothing half-written."""

import re
import subprocess
import sys

import pytest

import nlstm_lab
from nlstm_lab import cli, runs

TRAIN = ("train", "ptb_char_lstm1", "--scale", "smoke", "--device", "cpu")


def sentence(err):
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1, err
    return err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("train", "ptb_char_nlstn"), "did you mean ptb_char_nlstm?"),
        (("train", "nothing"), "'nothing'"),
        (("data", "check", "text9"), "did you mean text8?"),
        (("figures", "12_cell_activation"), "did you mean 12_cell_activations?"),
        (("figures", "77"), "12_cell_activations"),
        (("figures", "12", "-p", "sede=1"), "did you mean seeds?"),
        (("figures", "12", "-p", "seeds=several"), "seeds"),
        (("figures", "12", "-p", "scale"), "name=value"),
        (("train", "ptb_char_nlstm", "--scale", "huge"), "smoke"),
        (("train", "mnist_nlstm", "--corpus", "mine.txt"), "corpus"),
        ((*TRAIN, "--seed", "99999999999999999999"), "seed"),
        (("train", "ptb_char_lstm2", "--device", "toaster"), "cpu"),
        (("experiments", "zzz*"), "'zzz*'"),
    ],
)
def test_what_is_not_there_is_answered_in_one_sentence(say, words, answer):
    code, out, err = say(*words)
    assert (code, out) == (2, "")
    assert answer in sentence(err)


def test_a_cell_may_not_take_half_a_second(say):
    code, _, err = say("figures", "12", "--timeout", "0.5")
    assert code == 2
    assert "--timeout" in err
    assert "Traceback" not in err


def test_with_debug_an_error_is_a_traceback(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["nlstm-lab", "train", "--debug", "nothing"])
    with pytest.raises(Exception, match="'nothing'"):
        cli.main()


def test_what_is_unexpected_is_one_sentence_too(say, runs_folder, monkeypatch):
    monkeypatch.setattr(runs, "ensure", lambda *_, **__: {}["nothing"])
    code, _, err = say(*TRAIN)
    assert (code, err) == (1, "nlstm-lab: KeyError: 'nothing' (unexpected: --debug shows where)\n")


def test_text_is_printed_as_it_is(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "400")
    text = "see [1] and [/2], [bold]not[/bold] :smile: [link=x]"
    cli.tables.show((text, "b"), [(text, "c")])
    assert capsys.readouterr().out.count(text) == 2


def test_the_version_is_that_of_the_package(say):
    assert say("--version") == (0, f"nlstm-lab {nlstm_lab.__version__}\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "status"), [(["figures", "77"], 2), (["--help"], 0)])
def test_a_wrong_notebook_number_and_the_help_are_answered_before_anything_slow_is_imported(typed, status):
    asked = f"import sys; from nlstm_lab import cli; sys.argv[1:] = {typed}\ntry:\n    cli.main()\nfinally:\n"
    asked += "    print({'nbformat', 'papermill', 'torch', 'pandas', 'matplotlib', 'distributed'} & sys.modules.keys())"
    answer = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout.splitlines()[-1]) == (status, "set()")


def test_a_missing_data_set_says_how_to_get_it(say, elsewhere):
    code, _, err = say("train", "ptb_char_lstm2", "--scale", "small")
    assert code == 1
    for way_out in ("nlstm-lab data fetch ptb", "nlstm-lab data import ptb", "NLSTM_LAB_DATA"):
        assert way_out in sentence(err)


@pytest.mark.slow
def test_the_table_shows_every_document(say):
    code, out, _ = say("table")
    assert code == 0
    for title in ("Nested LSTMs", "Hierarchical Multiscale", "Madsen", "not run"):
        assert title in out


def test_data_sets_are_listed_with_their_state(say, elsewhere):
    code, out, _ = say("data")
    assert code == 0
    assert {line.split()[0]: line.split()[1] for line in out.splitlines()}["ptb"] == "absent"


@pytest.mark.slow
def test_experiments_are_listed_with_exact_parameters_without_any_data(say, elsewhere):
    row = next(line for line in say("experiments")[1].splitlines() if "ptb_char_nlstm " in line)
    shown = "CharacterModelling ptb|nlstm|1 x 600|4,474,850|smoke small paper"
    assert re.split(r"  +", row.strip()) == ["ptb_char_nlstm", *shown.split("|")]


@pytest.mark.slow
def test_train_records_and_prints_what_was_measured(say, runs_folder, caplog):
    """The seed may be a date."""
    code, output, error = say(*TRAIN, "--seed", "20261126073000")
    assert (code, error) == (0, "")
    assert re.search(r"epoch 2 of 2: validation loss \d\.\d{4} nats, best epoch 2", caplog.text)
    assert re.search(r"^valid blocks   bpc +\d\.\d{4}$", output, re.MULTILINE)
    assert re.search(
        r"^recorded as ptb_char_lstm1/smoke-seed20261126073000: \d+ s, best epoch 2$", output, re.MULTILINE
    )
    code, again, error = say(*TRAIN, "--seed", "20261126073000")
    assert (code, error) == (0, "")
    assert again.splitlines()[:-1] == output.splitlines()[:-1]
    assert "already recorded" in again
    assert "--again" in again


@pytest.mark.slow
def test_a_record_of_another_configuration_is_refused_and_replaced_with_again(say, run):
    words = (*TRAIN, "--seed", "3")
    path = run.folder / "config.json"
    path.write_text(path.read_text().replace('"hidden_size": 20', '"hidden_size": 21'))
    code, output, error = say(*words)
    assert (code, output) == (1, "")
    assert "hidden_size" in error
    assert "--again" in error
    (path.parent / "result.json").write_text("{")  # damaged, too
    assert say(*words)[0] == 1
    code, output, error = say(*words, "--again")
    assert (code, error) == (0, "")
    assert "already recorded" not in output
    assert say(*words)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("--device", "tpu"), ("--device", "cuda"), ("--precision", "fp8")])
def test_what_this_machine_lacks_is_refused_also_where_there_is_a_record(say, flags, recorded, monkeypatch):
    recorded("ptb_char_lstm1")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    for words in (("train", "ptb_char_lstm1"), ("sweep", "ptb_char_lstm1")):
        code, output, error = say(*words, "--scale", "smoke", *flags)
        assert (code, output) == (2, "")
        assert flags[1] in error


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_a_sweep_says_how_it_stands_and_fails_where_a_run_does(say, runs_folder):
    line = ("sweep", *TRAIN[1:], "--seeds", "0-1", "--workers", "1")
    code, _, error = say(*line)
    assert code == 0, error
    assert error.startswith("2 runs: looking")
    assert "2 recorded, 0 running, 0 failed of 2" in error
    config = runs_folder / "ptb_char_lstm1" / "smoke-seed1" / "config.json"
    config.write_text(config.read_text().replace('"epochs": 2', '"epochs": 9'))
    code, _, error = say(*line)
    assert code == 1
    assert "1 recorded, 0 running, 1 failed of 2" in error
    assert "training.epochs" in error
