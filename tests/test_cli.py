"""The command line as a person meets it: one sentence for every mistake, the right exit code, nothing half-written."""

import shutil
import subprocess
import sys

import pytest

import nlstm_lab
from nlstm_lab import cli, experiments, paths, runs


@pytest.fixture
def say(monkeypatch, capsys):
    """Run `nlstm-lab` with these words: exit code, standard output, standard error."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["nlstm-lab", *words])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return run


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Records, figures and data sets in an empty folder, with a copy of one recorded run."""
    recorded = paths.runs() / "ptb_char_nlstm" / "small-seed0"  # its weights are kept
    copy = tmp_path / "data" / "runs" / "ptb_char_nlstm" / recorded.name
    shutil.copytree(recorded, copy)
    monkeypatch.setattr(paths, "root", lambda: tmp_path)
    monkeypatch.delenv("NLSTM_LAB_DATA", raising=False)
    monkeypatch.setenv("NLSTM_LAB_CACHE", str(tmp_path / "cache"))
    return copy


def sentence(err):
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1, err
    return err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("train", "ptb_char_nlstn"), "did you mean ptb_char_nlstm?"),
        (("data", "check", "text9"), "did you mean text8?"),
        (("figures", "12_cell_activation"), "did you mean 12_cell_activations?"),
        (("figures", "77"), "12_cell_activations"),
        (("figures", "12", "-p", "sede=1"), "did you mean seeds?"),
        (("figures", "12", "-p", "seeds=several"), "seeds"),
        (("figures", "12", "-p", "scale"), "name=value"),
        (("train", "ptb_char_nlstm", "--scale", "huge"), "smoke"),
        (("train", "mnist_nlstm", "--corpus", "mine.txt"), "corpus"),
        (("experiments", "zzz*"), "no experiment matches 'zzz*'"),
    ],
)
def test_what_is_not_there_is_answered_in_one_sentence(say, words, told):
    code, out, err = say(*words)
    assert (code, out) == (2, "")
    assert told in sentence(err)


def test_a_cell_may_not_take_half_a_second(say):
    code, _, err = say("figures", "12", "--timeout", "0.5")
    assert code == 2
    assert "--timeout" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_seed_may_be_a_date_and_is_refused_above_what_torch_takes(say, elsewhere):
    words = ("train", "ptb_char_lstm1", "--scale", "smoke", "--device", "cpu", "--seed")
    assert say(*words, "20261126073000")[0] == 0
    assert runs.load("ptb_char_lstm1", 20261126073000, "smoke").seed == 20261126073000
    code, _, err = say(*words, "99999999999999999999")
    assert (code, "seed" in sentence(err)) == (2, True)


def test_text_is_printed_as_it_is(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "400")
    text = "see [1] and [/2], [bold]not[/bold] :smile: [link=x]"
    cli.tables.show((text, "b"), [(text, "c")])
    assert capsys.readouterr().out.count(text) == 2


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
    assert "".join(vocabulary.symbols) == " abcdehmnost"
