"""Files of a run are trusted only where they are right; anything else is a sentence that names the file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nlstm_lab import experiments, runs
from nlstm_lab.errors import DamagedFile, StaleRun, UsageError
from nlstm_lab.runs.run import folder_of

NAME = "ptb_char_lstm1"


@pytest.fixture
def run(recorded: Callable[..., runs.Run]) -> runs.Run:
    return recorded(NAME, 3)


def test_a_flipped_bit_in_the_weights_is_detected(run: runs.Run) -> None:
    run.model()
    file = run.folder / "weights.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedFile, match=file.name):
        run.model()


@pytest.mark.slow
def test_every_committed_weight_is_that_of_its_record() -> None:
    checked = [run.model() for run in runs.recorded() if run.has_weights]
    assert len(checked) > 20


RESULTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a list": lambda result: [],
    "null": lambda result: None,
    "no metrics": lambda result: {**result, "metrics": None},
    "no seed": lambda result: {**result, "seed": True},
    "a metric that is null": lambda result: {**result, "metrics": [{**result["metrics"][0], "value": None}]},
    "a metric that is NaN": lambda result: {**result, "metrics": [{**result["metrics"][0], "value": float("nan")}]},
    "a metric that is true": lambda result: {**result, "metrics": [{**result["metrics"][0], "value": True}]},
    "a metric that is text": lambda result: {**result, "metrics": [*result["metrics"], "bpc"]},
}


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_a_result_of_another_shape_is_never_judged(make: Callable[[Any], Any], run: runs.Run) -> None:
    file = run.folder / "result.json"
    recorded = json.loads(file.read_text())
    file.write_text(json.dumps(make(recorded)))
    for read in (lambda: runs.load(NAME, 3, "smoke"), lambda: runs.table(NAME), lambda: runs.recorded(NAME)):
        with pytest.raises(DamagedFile, match=file.name):
            read()


@pytest.mark.parametrize("content", ["[]", "null", '{"name": 3}', '"'])
def test_a_configuration_of_another_shape_is_named(content: str, run: runs.Run) -> None:
    (run.folder / "config.json").write_text(content)
    with pytest.raises(DamagedFile, match=r"config\.json"):
        runs.load(NAME, 3, "smoke")


def test_a_failure_of_another_shape_is_named(runs_folder: Path) -> None:
    folder = runs_folder / NAME / "smoke-seed0"
    folder.mkdir(parents=True)
    (folder / "failed.json").write_text("[]")
    with pytest.raises(DamagedFile, match=r"failed\.json"):
        runs.failures()


HISTORIES: dict[str, Callable[[Path, str], Any]] = {
    "empty": lambda file, text: file.write_text(""),
    "a header alone": lambda file, text: file.write_text(text.splitlines(keepends=True)[0]),
    "cut in mid-line": lambda file, text: file.write_text(text[: len(text) // 2]),
    "cut in its last number": lambda file, text: file.write_text(text[:-3]),
    "cut between two lines": lambda file, text: file.write_text("".join(text.splitlines(keepends=True)[:-1])),
    "cut between two epochs": lambda file, text: file.write_text(text[: text.index("\n2,") + 1]),
    "missing": lambda file, text: file.unlink(),
    "no file": lambda file, text: (file.unlink(), file.mkdir()),
    "no text": lambda file, text: file.write_bytes(b"\xff\x00" * 100),
    "not a number": lambda file, text: file.write_text(text + "1,2,valid,blocks,bpc,NaN\n"),
    "true": lambda file, text: file.write_text(text + "1,2,valid,blocks,bpc,True\n"),
}


@pytest.mark.parametrize("damage", HISTORIES.values(), ids=HISTORIES)
def test_a_damaged_history_is_named(damage: Callable[[Path, str], Any], run: runs.Run) -> None:
    file = run.folder / "history.csv"
    damage(file, file.read_text())
    with pytest.raises(DamagedFile, match=file.name):
        _ = runs.load(NAME, 3, "smoke").history


@pytest.mark.slow
@pytest.mark.parametrize("content", ["", "[]", '{"name": "ptb_char_lstm1"}'])
def test_an_attempt_that_does_not_say_what_it_trains_is_begun_anew_on_demand(content: str, runs_folder: Path) -> None:
    attempt = runs_folder / NAME / ".attempt-smoke-seed0"
    attempt.mkdir(parents=True)
    (attempt / "config.json").write_text(content)
    with pytest.warns(UserWarning, match=r"config\.json"):
        assert runs.unfinished() == []
    with pytest.raises(StaleRun, match=r"config\.json.*--again"):
        runs.ensure(NAME, 0, "smoke", progress=False)
    assert runs.ensure(NAME, 0, "smoke", progress=False, again=True).result["seed"] == 0


@pytest.mark.parametrize("path", ["/小说/" + "红楼梦" * 30 + ".txt", "/a/" + "long/" * 60 + "novel.txt"])
def test_a_long_path_has_a_short_folder_of_its_own(path: str, runs_folder: Path) -> None:
    own, other = (experiments.variant(NAME, "smoke", corpus=f"{start}{path}") for start in ("/one", "/another"))
    folders = [folder_of(one, 0).parent for one in (own, other)]
    assert folders[0] != folders[1]
    for folder in folders:
        assert folder.parent == runs_folder
        assert folder.name.startswith(NAME)
        assert Path(path).stem[:3] in folder.name
        assert len(folder.name.encode()) < 150


def test_every_record_lies_where_its_name_says() -> None:
    for run in runs.recorded():
        assert (run.folder / "result.json").exists()


@pytest.mark.parametrize("name", ["", "..", ".hidden", "../escape", "\0", "a\nb", 3])
def test_a_name_that_no_folder_may_have_is_refused(name: Any) -> None:
    known = experiments.get(NAME, "smoke")
    with pytest.raises(UsageError, match="name"):
        experiments.Experiment(name, "smoke", known.task, known.model, known.training)


@pytest.mark.parametrize("scale", ["../../x", "", "large", None])
def test_a_scale_that_is_none_is_refused(scale: Any) -> None:
    known = experiments.get(NAME, "smoke")
    with pytest.raises(UsageError, match="scale"):
        experiments.Experiment("mine", scale, known.task, known.model, known.training)
