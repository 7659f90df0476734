"""A training that is stopped anywhere and started again ends as if it had never been stopped."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from dying import MOMENTS, command_line, started, train
from torch import load

from nlstm_lab import runs

# dropout draws from torch's random state at every update; streams carry the unit's state from one update to the next
NAME = "ptb_char_lstm2+reader=streams+dropout=0.5+divide_on_plateau=2.0"
LONG = "ptb_char_lstm1+epochs=40"


def measured(folder: Path) -> dict[str, object]:
    """Everything of a record that must not depend on how often its training was stopped."""
    result = json.loads((folder / "result.json").read_text())
    told = {key: result[key] for key in ("metrics", "best_epoch", "parameters", "data_sha256", "config_digest")}
    contents = {name: (folder / name).read_bytes() for name in ("history.csv", "weights.safetensors", "config.json")}
    return {**told, **contents}


@pytest.fixture(scope="module")
def unstopped(tiny_ptb: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("unstopped")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**tiny_ptb, "NLSTM_LAB_RUNS": str(folder), "OMP_NUM_THREADS": "1"}.items():
            patch.setenv(name, value)
        process = started(train, NAME)
        process.join()
        return measured(runs.load(NAME, 0, "smoke").folder)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_ends_like_one_that_was_not(
    moment: str, runs_folder: Path, unstopped: dict[str, object]
) -> None:
    process = started(train, NAME, moment)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    finished = list(runs_folder.glob("*/*/result.json"))
    assert bool(finished) == (moment == "after the result")  # no record claims success before it has it
    again = started(train, NAME)
    again.join()
    assert again.exitcode == 0
    folder = runs.load(NAME, 0, "smoke").folder
    assert measured(folder) == unstopped
    left = {path.name for path in folder.parent.iterdir()} - {".attempt-smoke-seed0"}
    assert left == {"smoke-seed0"}
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "history.csv",
        "result.json",
        "weights.safetensors",
    }


def test_killed_again_and_again_it_ends_all_the_same(runs_folder: Path, unstopped: dict[str, object]) -> None:
    exits = []
    while 0 not in exits and len(exits) < 20:
        process = started(train, NAME, "at the second update")
        process.join()
        exits.append(process.exitcode)
    assert exits == [-signal.SIGKILL] * 5 + [0]  # six updates, one by each process
    assert measured(runs.load(NAME, 0, "smoke").folder) == unstopped


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_says_how_to_go_on(number: signal.Signals, runs_folder: Path, tmp_path: Path) -> None:
    line = ("train", LONG, "--scale", "smoke", "--device", "cpu")
    reference = started(command_line, tmp_path / "reference", *line, "--seed", "1")
    reference.join()
    assert reference.exitcode == 0
    wanted = measured(runs.load(LONG, 1, "smoke").folder)
    runs.load(LONG, 1, "smoke").folder.rename(tmp_path / "moved")

    process = started(command_line, tmp_path / "said", *line, "--seed", "1")
    attempt = next(wait_for(runs_folder, f"{LONG}/.attempt-smoke-seed1/checkpoint.pt"))
    time.sleep(0.3)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join()
    assert process.exitcode == 130
    said = (tmp_path / "said").read_text()
    assert said.startswith(f"nlstm-lab: {number.name}: saved after ")
    assert "the same command goes on" in said
    assert said.count("\n") == 1
    updates = int(said.split("saved after ")[1].split()[0])
    assert load(attempt, weights_only=True)["progress"]["update"] == updates
    assert not list(runs_folder.glob("*/*/result.json"))

    again = started(command_line, tmp_path / "again", *line, "--seed", "1")
    again.join()
    assert again.exitcode == 0
    assert measured(runs.load(LONG, 1, "smoke").folder) == wanted


def wait_for(folder: Path, pattern: str):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if found := list(folder.glob(pattern)):
            yield found[0]
        time.sleep(0.02)
    raise AssertionError(f"{pattern} never came")


def test_the_same_seed_gives_the_same_history_and_another_seed_another(runs_folder: Path) -> None:
    first = runs.ensure(NAME, 0, "smoke", device="cpu", progress=False)
    before = measured(first.folder)
    second = runs.ensure(NAME, 0, "smoke", device="cpu", progress=False, again=True)
    assert measured(second.folder) == before
    other = runs.ensure(NAME, 1, "smoke", device="cpu", progress=False)
    assert measured(other.folder)["history.csv"] != before["history.csv"]
