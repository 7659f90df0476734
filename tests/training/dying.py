"""Trainings that are killed, by SIGKILL, at a chosen moment."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forking import command_line


def train(name: str, moment: str | None = None, save_every: float = 0.0) -> None:
    """Train at smoke scale, with a checkpoint after every update, until `moment`."""
    from nlstm_lab import runs
    from nlstm_lab.training import loop

    loop.fit.__kwdefaults__["save_every"] = save_every
    if moment is not None:
        MOMENTS[moment]()
    runs.ensure(name, 0, "smoke", device="cpu", progress=False)


def train_and_say(trained: Path, name: str) -> None:
    """`train`, which adds a line to the file `trained` when a training begins."""
    from nlstm_lab import training

    fit = training.fit

    def said(*arguments: Any, **named: Any) -> Any:
        with trained.open("a") as file:
            file.write(f"{name}\n")
        return fit(*arguments, **named)

    training.fit = said
    train(name)


def signalled(number: int, moment: str, *arguments: str) -> None:
    """`nlstm-lab` with these arguments, which sends itself a signal before its fifth update, or evaluation."""
    from nlstm_lab.training import TrainingConfig, loop

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as in a terminal: under nohup it is ignored
    owner, name = {"update": (TrainingConfig, "step"), "evaluation": (loop, "evaluate")}[moment]
    _before(owner, name, 5, then=lambda: signal.raise_signal(number))
    command_line(*arguments)


def die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # the signal is on its way


def _before(
    owner: Any,
    name: str,
    call: int,
    condition: Callable[..., bool] = lambda *_: True,
    then: Callable[[], None] = die,
) -> None:
    """Die, or do another thing, when `owner.name` is called for the `call`-th time with arguments that are meant."""
    original, calls = getattr(owner, name), [0]

    def wrapped(*arguments: Any, **named: Any) -> Any:
        if condition(*arguments):
            calls[0] += 1
            if calls[0] == call:
                then()
        return original(*arguments, **named)

    setattr(owner, name, wrapped)


def _at_the_second_update() -> None:
    from nlstm_lab.training import TrainingConfig

    _before(TrainingConfig, "step", 2)


def _in_the_second_epoch() -> None:
    from nlstm_lab.training import TrainingConfig

    _before(TrainingConfig, "step", 6)


def _in_an_evaluation() -> None:
    from nlstm_lab.training import loop

    _before(loop, "evaluate", 2)


def _in_the_last_evaluation() -> None:
    from nlstm_lab.training import loop

    _before(loop, "evaluate", 6)


def _half_a_checkpoint() -> None:
    original = Path.write_bytes
    written = [0]

    def write_bytes(path: Path, content: Any) -> int:
        if path.name.startswith(".checkpoint.pt."):
            written[0] += 1
            if written[0] == 5:
                original(path, bytes(content)[: len(content) // 2])
                die()
        return original(path, content)

    Path.write_bytes = write_bytes  # type: ignore[method-assign, assignment]


def _between_the_renames_of_a_checkpoint() -> None:
    _before(Path, "replace", 5, lambda path, target: target.name == "checkpoint.pt")


def _writing_the_record() -> None:
    from nlstm_lab import runs

    _before(runs, "save_file", 1)


def _between_record_and_rename() -> None:
    _before(Path, "rename", 1)


def _between_rename_and_result() -> None:
    from nlstm_lab.runs import records

    _before(records, "write_json", 1, lambda file, content: file.name == "result.json")


def _after_the_result() -> None:
    import shutil

    _before(shutil, "rmtree", 1, lambda path, *_: path.name.startswith(".attempt"))


MOMENTS: dict[str, Callable[[], None]] = {
    "at the second update": _at_the_second_update,
    "in the second epoch": _in_the_second_epoch,
    "in an evaluation": _in_an_evaluation,
    "in the last evaluation": _in_the_last_evaluation,
    "half a checkpoint": _half_a_checkpoint,
    "between the renames of a checkpoint": _between_the_renames_of_a_checkpoint,
    "writing the record": _writing_the_record,
    "between record and rename": _between_record_and_rename,
    "between rename and result": _between_rename_and_result,
    "after the result": _after_the_result,
}
