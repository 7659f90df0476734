"""Trainings that are killed, by SIGKILL, at a chosen moment."""

import os
import shutil
import signal
import time
from pathlib import Path

from forking import command_line

from nlstm_lab import runs, training
from nlstm_lab.training import TrainingConfig, loop


def train(name, moment=None):
    """Train at smoke scale, with a checkpoint after every update, until `moment`."""
    loop.SAVE_EVERY = 0.0
    if moment is not None:
        MOMENTS[moment]()
    runs.ensure(name, 0, "smoke", device="cpu", progress=False)


def train_and_say(trained, name):
    """`train`, which adds a line to the file `trained` when a training begins."""
    fit = training.fit

    def said(*arguments, **named):
        with trained.open("a") as file:
            file.write(f"{name}\n")
        return fit(*arguments, **named)

    training.fit = said
    train(name)


def signalled(number, moment, *arguments):
    """`nlstm-lab` with these arguments, which sends itself a signal before its fifth update, or evaluation."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as in a terminal: under nohup it is ignored
    owner, name = {"update": (TrainingConfig, "step"), "evaluation": (loop, "evaluate")}[moment]
    _before(owner, name, 5, then=lambda: signal.raise_signal(number))
    command_line(*arguments)


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # the signal is on its way


def _before(owner, name, call, condition=lambda *_: True, then=die):
    """Die, or do another thing, when `owner.name` is called for the `call`-th time with arguments that are meant."""
    original, calls = getattr(owner, name), [0]

    def wrapped(*arguments, **named):
        if condition(*arguments):
            calls[0] += 1
            if calls[0] == call:
                then()
        return original(*arguments, **named)

    setattr(owner, name, wrapped)


def _half_a_checkpoint():
    original = Path.write_bytes
    written = [0]

    def write_bytes(path, content):
        if path.name.startswith(".checkpoint.pt."):
            written[0] += 1
            if written[0] == 5:
                original(path, bytes(content)[: len(content) // 2])
                die()
        return original(path, content)

    Path.write_bytes = write_bytes


MOMENTS = {
    "at the second update": lambda: _before(TrainingConfig, "step", 2),
    "in the second epoch": lambda: _before(TrainingConfig, "step", 6),
    "in an evaluation": lambda: _before(loop, "evaluate", 2),
    "in the last evaluation": lambda: _before(loop, "evaluate", 6),
    "half a checkpoint": _half_a_checkpoint,
    "between the renames of a checkpoint": lambda: _before(
        Path, "replace", 5, lambda path, target: target.name == "checkpoint.pt"
    ),
    "writing the record": lambda: _before(runs, "save_file", 1),
    "between record and rename": lambda: _before(Path, "rename", 1),
    "between rename and result": lambda: _before(
        runs.records, "write_json", 1, lambda file, content: file.name == "result.json"
    ),
    "after the result": lambda: _before(shutil, "rmtree", 1, lambda path, *_: path.name.startswith(".attempt")),
}
