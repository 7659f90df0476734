"""The command line as a person meets it: one sentence for every mistake, the right exit code, nothing half-written."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nlstm_lab
from nlstm_lab import cli, experiments, paths, runs
from nlstm_lab.errors import DamagedFile

Say = tuple[int, str, str]


@pytest.fixture
def say(monkeypatch, capsys):
    """Run `nlstm-lab` with these words: exit code, standard output, standard error."""

    def run(*words: str) -> Say:
        monkeypatch.setattr(sys, "argv", ["nlstm-lab", *words])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return run


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """Records, figures and data sets in an empty folder, with a copy of one recorded run."""
    recorded = paths.runs() / "ptb_char_nlstm" / "small-seed0"  # its weights are kept
    copy = tmp_path / "data" / "runs" / "ptb_char_nlstm" / recorded.name
    shutil.copytree(recorded, copy)
    monkeypatch.setattr(paths, "root", lambda: tmp_path)
    monkeypatch.delenv("NLSTM_LAB_DATA", raising=False)
    monkeypatch.setenv("NLSTM_LAB_CACHE", str(tmp_path / "cache"))
    return copy


def sentence(err: str) -> str:
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1, err
    return err


def test_an_unknown_experiment_is_answered_with_those_there_are(say):
    code, _, err = say("train", "ptb_char_nlstn")
    assert code == 2
    assert "ptb_char_nlstm" in sentence(err)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("train", "ptb_char_nlstn"), "ptb_char_nlstm"),
        (("data", "check", "text9"), "text8"),
        (("figures", "12_cell_activation"), "12_cell_activations"),
        (("figures", "12", "-p", "sede=1"), "seeds"),
    ],
)
def test_a_name_that_is_nearly_one_is_answered_with_it(say, words, meant):
    code, _, err = say(*words)
    assert code == 2
    assert f"did you mean {meant}?" in sentence(err)


def test_the_version_is_that_of_the_package(say):
    assert say("--version") == (0, f"nlstm-lab {nlstm_lab.__version__}\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("data",), ("experiments",), ("runs", "ptb_char_nlstm*")])
def test_a_table_is_as_wide_as_the_terminal(say, monkeypatch, tmp_path, words):
    monkeypatch.setenv("NLSTM_LAB_DATA", str(tmp_path))  # of data sets that are there all is read
    for width in (60, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        code, out, _ = say(*words)
        assert code == 0
        assert max(map(len, out.splitlines())) <= width


@pytest.mark.slow
def test_a_wrong_notebook_number_is_answered_before_papermill_is_imported():
    asked = "import sys; from nlstm_lab import cli; sys.argv[1:] = ['figures', '77']\ntry:\n    cli.main()\nfinally:\n"
    asked += "    print({'nbformat', 'papermill', 'torch', 'distributed'} & sys.modules.keys())"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert told.stdout == "set()\n"


def test_an_unknown_scale_is_answered_with_those_there_are(say):
    code, _, err = say("train", "ptb_char_nlstm", "--scale", "huge")
    assert code == 2
    assert "smoke" in sentence(err)
    assert "paper" in err


def test_a_negative_seed_and_an_unknown_device_are_refused(say, elsewhere):
    code, _, err = say("train", "ptb_char_lstm2", "--seed", "-1")
    assert (code, "seed" in sentence(err)) == (2, True)
    code, _, err = say("train", "ptb_char_lstm2", "--device", "toaster")
    assert (code, "cpu" in sentence(err)) == (2, True)
    assert not (paths.runs() / "ptb_char_lstm2").exists()


def test_a_missing_data_set_says_how_to_get_it(say, elsewhere):
    code, _, err = say("train", "ptb_char_lstm2", "--scale", "small")
    assert code == 1
    assert "nlstm-lab data fetch ptb" in sentence(err)
    assert "NLSTM_LAB_DATA" in err


@pytest.mark.parametrize(
    ("given", "told"),
    [("nonsense=1", "nonsense"), ("seeds=several", "seeds"), ("scale", "name=value")],
)
def test_wrong_notebook_parameters_are_refused(say, given, told):
    code, _, err = say("figures", "12", "-p", given)
    assert code == 2
    assert told in sentence(err)


def test_an_unknown_notebook_is_answered_with_those_there_are(say):
    code, _, err = say("figures", "77")
    assert code == 2
    assert "12_cell_activations" in sentence(err)


def test_a_truncated_weights_file_is_named(elsewhere):
    weights = elsewhere / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    run = runs.load("ptb_char_nlstm", seed=int(elsewhere.name[-1]), scale="small")
    with pytest.raises(DamagedFile, match=r"weights\.safetensors"):
        run.model()


def test_a_text_with_foreign_characters_is_refused_by_name(elsewhere):
    from nlstm_lab import probes
    from nlstm_lab.errors import UsageError

    model = runs.load("ptb_char_nlstm", seed=int(elsewhere.name[-1]), scale="small").model()
    with pytest.raises(UsageError, match="'É'"):
        probes.trace(model, "École")


@pytest.mark.slow
def test_figures_that_cannot_be_written_are_one_sentence(elsewhere, monkeypatch):
    """A file in the folder's place keeps even root from writing there."""
    import matplotlib.pyplot as plt

    from nlstm_lab import figures
    from nlstm_lab.errors import LabError

    (paths.root() / "figures").write_text("not a folder")
    figure = figures.nested_architecture()
    with pytest.raises(LabError, match="figures"):
        figures.save(figure, "nlstm_fig1_architecture")
    plt.close(figure)


def test_debug_shows_the_traceback(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["nlstm-lab", "train", "nobody", "--debug"])
    with pytest.raises(experiments.base.UsageError):
        cli.main()


@pytest.mark.slow
def test_the_table_shows_every_document(say):
    code, out, _ = say("table")
    assert code == 0
    for title in ("Nested LSTMs", "Hierarchical Multiscale", "Madsen"):
        assert title in out
    assert "not run" in out


def test_data_sets_are_listed_with_their_state(say, elsewhere):
    code, out, _ = say("data")
    assert code == 0
    states = {line.split()[0]: line.split()[1] for line in out.splitlines()}
    assert states["ptb"] == "absent"


@pytest.mark.slow
def test_a_text_of_ones_own_trains_and_its_network_knows_its_symbols(elsewhere, monkeypatch, capsys):
    text = elsewhere.parents[3] / "mine.txt"
    text.write_text("the cat sat on the mat, and the bat sat on the hat.\n" * 400)
    words = ["train", "ptb_char_nlstm", "--scale", "smoke", "--corpus", str(text), "--normalization", "text8"]
    monkeypatch.setattr(sys, "argv", ["nlstm-lab", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    assert "recorded as" in capsys.readouterr().out
    experiment = experiments.variant("ptb_char_nlstm", "smoke", corpus=str(text), normalization="text8")
    vocabulary = runs.load(experiment, seed=0).model().vocabulary
    assert vocabulary is not None
    assert "".join(vocabulary.symbols) == " abcdehmnost"


def test_a_task_without_a_text_takes_no_corpus(say, elsewhere):
    code, _, err = say("train", "mnist_nlstm", "--corpus", "mine.txt")
    assert code == 2
    assert "corpus" in sentence(err)


def test_folders_named_where_they_are_anyway_are_no_trial(elsewhere, monkeypatch):
    monkeypatch.setenv("NLSTM_LAB_RUNS", str(paths.root() / "data" / "runs"))
    assert paths.redirected() == []


def test_a_pattern_without_experiments_is_refused(say):
    code, out, err = say("experiments", "zzz*")
    assert (code, out) == (2, "")
    assert "no experiment matches 'zzz*'" in sentence(err)
