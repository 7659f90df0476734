"""What goes wrong ends in one sentence, keeps the last good state, and never leaves a record that claims success."""

import itertools
import os
import resource
import time
from pathlib import Path

import pytest
import torch
from forking import command_line, started

from nlstm_lab import experiments, models, paths, runs, training
from nlstm_lab.errors import LabError, TrainingFailed, UsageError
from nlstm_lab.runs import attempt
from nlstm_lab.training import loop
from nlstm_lab.training import state as checkpoint
from nlstm_lab.training.updating import device_faults

NAME = "ptb_char_lstm1"


def records(folder):
    return list(folder.glob("*/*/result.json"))


def fit(file, name=NAME, network=None, **options):
    experiment = experiments.get(name, "smoke")
    task = experiment.task.load()
    network = network or models.build(experiment.model, models.Interface.of(task), seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "SAVE_EVERY", 0.0)
        return training.fit(network, task, experiment.training, seed=0, checkpoint=file, progress=False, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name", "call"), [(loop, "save", 3), (attempt, "_record", 1)])
def test_a_disk_that_fills_keeps_what_was_trained(module, name, call, runs_folder, monkeypatch):
    """A limit on the size of files, which the third checkpoint, or the record's weights, exceed."""
    original, calls = getattr(module, name), itertools.count(1)

    def limited(*arguments):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000 if next(calls) == call else before[0], before[1]))
        try:
            original(*arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, limited)
        patch.setattr(loop, "SAVE_EVERY", 1e9)
        with pytest.raises(LabError, match="file too large"):
            runs.ensure(NAME, 0, "smoke", progress=False)
    assert not records(runs_folder)
    kept = checkpoint.load(runs_folder / NAME / ".attempt-smoke-seed0" / "checkpoint.pt")
    assert kept["progress"]["epoch"] == (1 if name == "save" else 2)
    if name == "_record":
        monkeypatch.setattr(training.TrainingConfig, "step", None)  # nothing is trained again
    assert runs.ensure(NAME, 0, "smoke", progress=False).result["best_epoch"] == 2


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_trained(runs_folder, monkeypatch, tmp_path):
    """A file in the folder's place, which stops even root."""
    monkeypatch.setattr(training.TrainingConfig, "step", None)
    runs_folder.mkdir()
    (runs_folder / NAME).write_text("")
    with pytest.raises(LabError, match=NAME):
        runs.ensure(NAME, 0, "smoke", progress=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NLSTM_LAB_RUNS", str(tmp_path / "file" / "runs"))
    with pytest.raises(LabError, match=NAME):
        runs.ensure(NAME, 0, "smoke", progress=False)


@pytest.fixture
def finished(runs_folder, tmp_path):
    """The checkpoint of a training that is done."""
    fit(tmp_path / "checkpoint.pt")
    return tmp_path / "checkpoint.pt"


@pytest.mark.slow
def test_a_damaged_checkpoint_is_refused_and_stays(finished, monkeypatch):
    content = finished.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    monkeypatch.setattr(training.TrainingConfig, "step", None)  # nothing is trained
    for damaged in (content[: len(content) // 2], b"", b"hello", bytes(flipped)):
        finished.write_bytes(damaged)
        with pytest.raises(LabError, match=r"checkpoint\.pt cannot be read.*move it away"):
            fit(finished)
        assert finished.read_bytes() == damaged


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.update(format=2),
        lambda state: state["progress"].update(colour=1),
        lambda state: state["progress"].update(epoch=-1),
        lambda state: state["progress"].update(update=True),
        lambda state: state["progress"]["history"].append((1, 2, "valid")),
        lambda state: state.pop("optimizer"),
    ],
)
def test_another_versions_checkpoint_is_refused_and_stays(change, finished, monkeypatch):
    state = torch.load(finished, weights_only=True)
    change(state)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "FORMAT", state.pop("format"))
        checkpoint.save(finished, state)
    before = finished.read_bytes()
    monkeypatch.setattr(training.TrainingConfig, "step", None)  # nothing is trained
    with pytest.raises(UsageError, match=r"of another version of this package, and nothing was trained") as caught:
        fit(finished)
    assert "\n" not in str(caught.value)
    assert finished.read_bytes() == before


@pytest.mark.parametrize(
    ("error", "device", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "cuda", "batches of 16.*no state was saved.*smaller batch_size"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "cpu", "memory of the cpu is full"),
        (RuntimeError("CUDA error: an illegal memory access\nmore"), "cuda", "GPU has failed.*illegal memory access"),
        (RuntimeError("a fault of ours"), "cpu", "^a fault of ours$"),
    ],
)
def test_a_device_that_is_full_or_fails_is_one_sentence(error, device, said):
    faults = device_faults(torch.device(device), None, 16)
    with pytest.raises((LabError, RuntimeError), match=said) as caught, faults:
        raise error
    assert isinstance(caught.value, LabError) == ("ours" not in said)


def test_a_checkpoint_never_runs_code(tmp_path):
    class Harm:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "harm",))

    checkpoint.save(tmp_path / "checkpoint.pt", {"network": Harm()})
    with pytest.raises(LabError, match="checkpoint"):
        checkpoint.load(tmp_path / "checkpoint.pt")
    assert not (tmp_path / "harm").exists()


@pytest.mark.slow
def test_an_exploding_gradient_stops_the_training_and_keeps_the_state_before_it(runs_folder, tmp_path):
    experiment = experiments.get(NAME, "smoke")
    network = models.build(experiment.model, models.Interface.of(experiment.task.load()), seed=0)
    calls = itertools.count(1)
    network.readout.bias.register_hook(lambda gradient: gradient * (1e39 if next(calls) == 5 else 1.0))
    file = tmp_path / "checkpoint.pt"
    with pytest.raises(TrainingFailed, match=r"gradient.*update 5"):
        fit(file, network=network)
    state = checkpoint.load(file)
    assert state["progress"]["update"] == 4
    assert all(value.isfinite().all() for value in state["network"].values())


@pytest.mark.slow
def test_a_run_that_explodes_is_recorded_as_failed_until_one_succeeds(runs_folder, monkeypatch):
    step = training.TrainingConfig.step
    with monkeypatch.context() as patch:
        calls = itertools.count(1)
        explode = lambda *given: step(*given) * (float("inf") if next(calls) == 4 else 1)  # noqa: E731
        patch.setattr(training.TrainingConfig, "step", explode)
        with pytest.raises(TrainingFailed):
            runs.ensure(NAME, 0, "smoke", progress=False)
    assert not records(runs_folder)
    (outcome,) = runs.failures("ptb_*", "smoke").to_dict("records")
    assert outcome == {"experiment": NAME, "scale": "smoke", "seed": 0, "what": "gradient", "update": 4}
    assert runs.table(NAME).empty
    assert runs.failures("poetry_*").empty
    runs.ensure(NAME, 0, "smoke", progress=False)
    assert runs.failures().empty
    assert sorted(path.name for path in (runs_folder / NAME).iterdir()) == [".smoke-seed0.lock", "smoke-seed0"]


def test_a_validation_loss_that_is_not_finite_stops_the_training(runs_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(training.loop, "evaluate", lambda *_: {"nll_nats": float("nan"), "bpc": float("nan")})
    with pytest.raises(TrainingFailed, match="valid loss"):
        fit(tmp_path / "checkpoint.pt")


def train_and_leave_a_file(folder):
    fit = training.fit
    training.fit = lambda *given, **named: (folder / str(os.getpid())).touch() or fit(*given, **named)
    command_line("train", NAME, "--scale", "smoke", "--device", "cpu")


@pytest.mark.slow
def test_many_processes_on_one_run_say_that_they_wait_and_train_it_once(runs_folder, tmp_path):
    (trained := tmp_path / "trained").mkdir()
    outputs = [tmp_path / name for name in "abc"]
    with paths.locked(runs_folder / NAME / "smoke-seed0", ""):
        processes = [started(train_and_leave_a_file, trained, output=output) for output in outputs]
        while not all(output.exists() and "waiting" in output.read_text() for output in outputs):
            assert all(process.is_alive() for process in processes)
            time.sleep(0.05)
        assert not records(runs_folder)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    waiting = f"another process is training {NAME}/smoke-seed0: waiting\n"
    assert all(output.read_text().startswith(waiting) for output in outputs)
    assert len(list(trained.iterdir())) == len(records(runs_folder)) == 1
    assert sorted(path.name for path in (runs_folder / NAME).iterdir()) == [".smoke-seed0.lock", "smoke-seed0"]
