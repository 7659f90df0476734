"""A training that is stopped anywhere and started again ends as if it had never been stopped."""

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from forking import command_line, started
from torch import load

from nlstm_lab import runs
from nlstm_lab.training import TrainingConfig, loop, state

# dropout draws from torch's random state at every update; streams carry the unit's state from one update to the next
NAME = "ptb_char_lstm2+evaluation=streams+dropout=0.5+divide_on_plateau=2.0"
LONG = "ptb_char_lstm1+epochs=10"

FILES = ["config.json", "history.csv", "result.json", "weights.safetensors"]


def train(name, moment=None):
    """Train at smoke scale, with a checkpoint after every update, until `moment`."""
    loop.SAVE_EVERY = 0.0
    if moment is not None:
        MOMENTS[moment]()
    runs.ensure(name, 0, "smoke", device="cpu", progress=False)


def signalled(number, moment, *arguments):
    """`nlstm-lab` with these arguments, which sends itself a signal before its fifth update, or evaluation."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as in a terminal: under nohup it is ignored
    owner, name = {"update": (TrainingConfig, "step"), "evaluation": (loop, "evaluate")}[moment]
    before(owner, name, 5, then=lambda *_: signal.raise_signal(number))
    command_line(*arguments)


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # the signal is on its way


def before(owner, name, call, condition=lambda *_: True, then=die):
    """Die, or do another thing, when `owner.name` is called for the `call`-th time with arguments that are meant."""
    original, calls = getattr(owner, name), [0]

    def wrapped(*arguments, **named):
        if condition(*arguments):
            calls[0] += 1
            if calls[0] == call:
                then(*arguments)
        return original(*arguments, **named)

    setattr(owner, name, wrapped)


def write_half(path, content):
    path.open("wb").write(bytes(content)[: len(content) // 2])
    die()


MOMENTS = {
    "at the second update": lambda: before(TrainingConfig, "step", 2),
    "in the second epoch": lambda: before(TrainingConfig, "step", 6),
    "in an evaluation": lambda: before(loop, "evaluate", 2),
    "in the last evaluation": lambda: before(loop, "evaluate", 6),
    "half a checkpoint": lambda: before(
        Path, "write_bytes", 5, lambda path, _: path.name.startswith(".checkpoint.pt."), write_half
    ),
    "before a checkpoint takes its name": lambda: before(
        Path, "replace", 5, lambda path, target: target.name == "checkpoint.pt"
    ),
    "half the weights of the record": lambda: before(
        Path, "write_bytes", 1, lambda path, _: path.name.startswith(".weights.safetensors."), write_half
    ),
    "between record and rename": lambda: before(Path, "rename", 1),
    "before the result": lambda: before(
        runs.records, "write_json", 1, lambda file, content: file.name == "result.json"
    ),
    "after the result": lambda: before(shutil, "rmtree", 1, lambda path, *_: path.name.startswith(".attempt")),
}


def measured(folder):
    """Everything of a record that must not depend on how often its training was stopped."""
    result = json.loads((folder / "result.json").read_text())
    outcome = {key: result[key] for key in ("metrics", "best_epoch", "parameters", "data_sha256", "config_digest")}
    contents = {name: (folder / name).read_bytes() for name in FILES if name != "result.json"}
    return {**outcome, **contents}


@pytest.fixture(scope="session")
def unstopped(folders, once):
    """What trainings that nobody stops measure, by name."""

    def make(folder):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**folders, "NLSTM_LAB_RUNS": str(folder)}.items():
                patch.setenv(name, value)
            for process in [started(train, name) for name in (NAME, LONG)]:
                process.join()
                assert process.exitcode == 0

    folder = once("unstopped", make)
    return {name: measured(folder / name / "smoke-seed0") for name in (NAME, LONG)}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_ends_like_one_that_was_not(moment, runs_folder, unstopped):
    process = started(train, NAME, moment)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    finished = list(runs_folder.glob("*/*/result.json"))
    assert bool(finished) == (moment == "after the result")  # no record claims success before it has it
    again = started(train, NAME)
    again.join()
    assert again.exitcode == 0
    folder = runs.load(NAME, 0, "smoke").folder
    assert measured(folder) == unstopped[NAME]
    assert [path.name for path in folder.parent.iterdir() if not path.name.startswith(".")] == ["smoke-seed0"]
    assert sorted(path.name for path in folder.iterdir()) == FILES


@pytest.mark.slow
def test_killed_again_and_again_it_ends_all_the_same(runs_folder, unstopped):
    exits = []
    while 0 not in exits and len(exits) < 20:
        process = started(train, NAME, "at the second update")
        process.join()
        exits.append(process.exitcode)
    assert exits == [-signal.SIGKILL] * 5 + [0]  # six updates, one by each process
    assert measured(runs.load(NAME, 0, "smoke").folder) == unstopped[NAME]


@pytest.mark.soak
def test_killed_at_any_moment_it_ends_all_the_same(runs_folder, unstopped):
    """The processes do nothing but train, so that every kill meets a training."""
    moments, exits = random.Random(0), list[int | None]()
    while 0 not in exits:
        process = started(train, LONG)
        process.join(moments.uniform(0.05, 1.0 + 0.2 * len(exits)))  # longer and longer, so that it does end
        process.kill()
        process.join()
        exits.append(process.exitcode)
    assert set(exits) == {-signal.SIGKILL, 0}
    assert measured(runs.load(LONG, 0, "smoke").folder) == unstopped[LONG]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "moment"), [(signal.SIGINT, "update"), (signal.SIGTERM, "evaluation"), (signal.SIGHUP, "update")]
)
def test_a_signal_saves_and_says_how_to_go_on(number, moment, runs_folder, tmp_path, unstopped):
    line = ("train", LONG, "--scale", "smoke", "--device", "cpu")
    process = started(signalled, number, moment, *line, output=tmp_path / "said")
    process.join()
    assert process.exitcode == 130
    attempt = runs_folder / LONG / ".attempt-smoke-seed0" / "checkpoint.pt"
    begun, *epochs, said = (tmp_path / "said").read_text().splitlines(keepends=True)
    assert "updates, from update 0" in begun
    assert all(" epoch " in line for line in epochs)
    assert said.startswith(f"nlstm-lab: {number.name}: saved after ")
    assert said.endswith("the same command goes on\n")
    updates = int(said.split("saved after ")[1].split()[0])
    assert load(attempt, weights_only=True)["progress"]["update"] == updates
    assert not list(runs_folder.glob("*/*/result.json"))

    again = started(command_line, *line, output=tmp_path / "again")
    again.join()
    assert again.exitcode == 0
    assert measured(runs.load(LONG, 0, "smoke").folder) == unstopped[LONG]


# Signals: the first asks, its echo is nothing, and a later one acts as it always does.

TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def usual():
    """Handlers as in a terminal: in the background SIGINT may be ignored, and under nohup SIGHUP is."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def handlers():
    return [signal.getsignal(number) for number in TAKEN]


def test_the_first_signal_asks_its_echo_is_nothing_and_a_later_one_acts_as_it_always_does(usual, monkeypatch):
    now, before = [100.0], handlers()
    monkeypatch.setattr(state.time, "monotonic", lambda: now[0])
    with state.listening() as asked:
        assert not asked
        assert handlers() != before
        signal.raise_signal(signal.SIGTERM)
        now[0] += 0.9 * state.ECHO
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert asked == ["SIGTERM"]
        now[0] += 0.2 * state.ECHO
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert asked == ["SIGTERM"]
    assert handlers() == before
    with pytest.raises(RuntimeError), state.listening():
        raise RuntimeError
    assert handlers() == before


def test_a_closed_terminal_asks_unless_nohup_ignores_it(usual):
    with state.listening() as asked:
        signal.raise_signal(signal.SIGHUP)
        assert asked == ["SIGHUP"]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with state.listening() as asked:
            signal.raise_signal(signal.SIGHUP)
            assert not asked
    finally:
        signal.signal(signal.SIGHUP, before)
