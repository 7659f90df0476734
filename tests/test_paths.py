"""Where things lie, and that a power cut takes nothing that was finished."""

import errno
import os

import pytest

from nlstm_lab import experiments, paths
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.runs.attempt import Attempt


@pytest.fixture
def flushed(monkeypatch):
    """What has been brought to the disk, each with the names that were in its folder, or in itself, at that moment."""
    found = []
    flush = paths.flush

    def noted(path):
        synced = []
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", synced.append)
            flush(path)
        assert len(synced) == 1
        found.append((path.stat(), os.listdir(path if path.is_dir() else path.parent)))

    monkeypatch.setattr(paths, "flush", noted)
    return found


def test_a_content_is_on_the_disk_before_it_takes_its_name_and_the_name_after(flushed, tmp_path):
    target = tmp_path / "result.json"
    with paths.atomic(target) as partial:
        partial.write_text("{}")
    (content, before), (folder, after) = flushed
    assert os.path.samestat(content, target.stat())
    assert target.name not in before
    assert os.path.samestat(folder, tmp_path.stat())
    assert after == [target.name]


def test_a_record_is_on_the_disk_before_its_checkpoint_goes(flushed, tmp_path, monkeypatch):
    attempt = Attempt(tmp_path / "ptb_char_lstm1" / "smoke-seed0")
    attempt.begin(experiments.get("ptb_char_lstm1", "smoke"), "a text", again=False)
    attempt.record.mkdir()
    attempt.checkpoint.touch()
    (attempt.record / "result.json").write_text("{}")
    attempt.publish()
    folder, names = flushed[-1]
    assert os.path.samestat(folder, attempt.folder.parent.stat())
    assert sorted(names) == [attempt.path.name, attempt.folder.name]  # the attempt still there
    assert os.listdir(attempt.folder) == ["result.json"]
    assert not attempt.path.exists()


def test_a_text_is_written_once(tmp_path):
    target = tmp_path / "pages" / "here.txt"
    assert paths.write(target, "größer")
    before = target.stat()
    assert not paths.write(target, "größer")
    assert target.stat() == before
    assert paths.write(target, "kleiner")
    assert target.read_text(encoding="utf-8") == "kleiner"
    assert os.listdir(target.parent) == [target.name]


def test_a_text_that_cannot_be_written_leaves_what_was_there_and_says_the_way_out(tmp_path, monkeypatch):
    target = tmp_path / "here.txt"
    target.write_text("before")
    with pytest.raises(LabError, match=r"here\.txt"):
        paths.write(target / "here.txt", "after")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LabError, match=r"here\.txt"):
        paths.write(target, "after")
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == [target.name]


def test_a_workspace_holds_runs_probes_and_figures(tmp_path, monkeypatch):
    monkeypatch.setenv("NLSTM_LAB_ROOT", str(tmp_path))
    for name in ("RUNS", "PROBES", "FIGURES"):
        monkeypatch.setenv(f"NLSTM_LAB_{name}", "before")  # and is restored afterwards
    assert paths.workspace("trial") == tmp_path / "workspaces" / "trial"
    assert {paths.runs().parent, paths.probes().parent, paths.figures().parent} == {paths.workspace("trial")}
    with pytest.raises(UsageError, match="elsewhere"):
        paths.workspace("../elsewhere")
