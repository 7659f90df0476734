"""`nlstm-lab doctor`: every lack is named with its cost; only what is essential fails the command."""

from nlstm_lab.cli import data


def test_a_machine_without_data_is_healthy(say, elsewhere):
    code, output, _ = say("doctor")
    assert code == 0, output
    for said in ("Everything essential works", "nlstm-lab data fetch NAME", "ptb (absent)", "none in this folder"):
        assert said in output


def test_a_folder_that_cannot_be_written_fails(say, elsewhere):
    (elsewhere / "data").write_text("a file in the folder's place")
    code, output, _ = say("doctor")
    assert code == 1
    assert "Fix first: folder" in output


def test_a_compiler_that_lacks_something_is_named(monkeypatch):
    monkeypatch.setattr("nlstm_lab.cells.fast.lacking", lambda device_type: "no g++")
    assert "no g++: long trainings run uncompiled" in data.accelerator()
