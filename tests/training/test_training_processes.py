"""One training by several processes under torchrun ends where one process does, and survives the loss of one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nlstm_lab.datasets.base import Batch
from nlstm_lab.training import Group

# a state that is carried, a mask at the end of the streams, batches that two processes cannot share evenly
NAMES = ("ptb_char_nlstm+batch_size=33", "ptb_char_hmlstm_step+batch_size=31")

DRIVER = """
import os, signal, sys
import torch
torch.set_num_threads(1)
from nlstm_lab import runs, training
from nlstm_lab.training import loop
name, double, marker = sys.argv[1:]
loop.fit.__kwdefaults__["save_every"] = 0.0
if double:
    build = runs.models.build
    runs.models.build = lambda *a, **k: build(*a, **k).double()
if marker and os.environ["RANK"] == "1":
    update = loop._Trainer.update
    def dying(self, batch):
        if self.state.progress.update == 4 and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        update(self, batch)
    loop._Trainer.update = dying
weights = []
fit = training.fit
def kept(*a, **k):
    found = fit(*a, **k)
    torch.save(found.weights, os.environ["NLSTM_LAB_RUNS"] + f"/weights{os.environ.get('RANK', '0')}.pt")
    return found
training.fit = kept
runs.ensure(name, 0, "smoke", device="cpu", progress=False)
"""

# batches of two rows and of one; Adam's second step tells a gradient that is scaled otherwise than the first
UNEVEN = """
import os
import torch
torch.set_num_threads(1)
from nlstm_lab import models, training
from nlstm_lab.datasets.synthetic import CopyTask
task = CopyTask(symbols=4, width=2, lag=3, sequences=3, evaluated=1, batch_size=2).load()
network = models.build(models.ModelConfig("lstm", hidden_size=5), models.Interface.of(task), seed=0).double()
config = training.TrainingConfig(epochs=1, learning_rate=0.01, clip_norm=None)
with training.joined(torch.device("cpu")) as (group, device):
    weights = training.fit(network, task, config, seed=0, device=device, group=group, progress=False).weights
torch.save(weights, os.environ["NLSTM_LAB_RUNS"] + f"/weights{os.environ.get('RANK', '0')}.pt")
"""


def driven(folder: Path, name: str, processes: int, double: bool, marker: Path | None = None, restarts: int = 0) -> str:
    """Train with a driver that keeps the weights unrounded; returns what was said."""
    return launched(folder, DRIVER, [name, "double" if double else "", str(marker or "")], processes, restarts)


def launched(folder: Path, driver: str, arguments: list[str], processes: int, restarts: int = 0) -> str:
    """Run a driver in so many processes; returns what was said."""
    folder.mkdir(exist_ok=True)
    script = folder / "driver.py"
    script.write_text(driver)
    arguments = [str(script), *arguments]
    if processes > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        arguments = [*torchrun, f"--max-restarts={restarts}", *arguments]
    environment = {**os.environ, "NLSTM_LAB_RUNS": str(folder)}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr


def weights(folder: Path, rank: int = 0) -> dict[str, torch.Tensor]:
    return torch.load(folder / f"weights{rank}.pt", weights_only=True)  # type: ignore[no-any-return]


def close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(other[name], value, rtol=0, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_two_processes_end_at_the_weights_of_one(name: str, runs_folder: Path, tmp_path: Path) -> None:
    driven(tmp_path / "one", name, 1, double=True)
    driven(tmp_path / "two", name, 2, double=True)
    close(weights(tmp_path / "one"), weights(tmp_path / "two"), 1e-6)
    close(weights(tmp_path / "two", 1), weights(tmp_path / "two"), 0.0)
    (one,), (two,) = ([*(tmp_path / folder).glob("*/*/result.json")] for folder in ("one", "two"))
    first, second = json.loads(one.read_text()), json.loads(two.read_text())
    assert (first["processes"], second["processes"]) == (1, 2)
    for alone, shared in zip(first["metrics"], second["metrics"], strict=True):
        assert shared == {**alone, "value": pytest.approx(alone["value"], abs=1e-6)}


@pytest.mark.slow
def test_a_process_without_a_row_changes_no_step(runs_folder: Path, tmp_path: Path) -> None:
    launched(tmp_path / "one", UNEVEN, [], 1)
    launched(tmp_path / "two", UNEVEN, [], 2)
    close(weights(tmp_path / "one"), weights(tmp_path / "two"), 1e-9)


@pytest.mark.slow
def test_after_a_killed_process_the_others_start_again_where_they_were(runs_folder: Path, tmp_path: Path) -> None:
    name = "ptb_char_lstm1"
    driven(tmp_path / "one", name, 1, double=False)
    driven(tmp_path / "two", name, 2, double=False, marker=tmp_path / "killed", restarts=1)
    assert (tmp_path / "killed").exists()
    close(weights(tmp_path / "one"), weights(tmp_path / "two"), 1e-6)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_processes_share_every_row_once(size: int) -> None:
    batch = Batch(torch.arange(12).view(4, 3), torch.arange(12).view(4, 3), torch.ones(4, 3, dtype=torch.bool))
    shares = [Group(rank, size).rows(batch) for rank in range(size)]
    assert torch.equal(torch.cat([rows.inputs for rows, weight in shares if weight], 1), batch.inputs)
    assert sum(weight * rows.mask.sum() for rows, weight in shares) == 12  # type: ignore[union-attr]
    assert all(rows.inputs.shape[1] for rows, _ in shares)
    classes = Batch(torch.zeros(4, 3, 49), torch.tensor([5, 6, 7]))
    shares = [Group(rank, size).rows(classes) for rank in range(size)]
    assert torch.cat([rows.targets for rows, weight in shares if weight]).tolist() == [5, 6, 7]


def test_a_training_by_one_process_is_not_gone_on_with_by_two(runs_folder: Path, tmp_path: Path) -> None:
    from nlstm_lab import errors, experiments, models, training
    from nlstm_lab.training.state import State

    experiment = experiments.get("ptb_char_lstm1", "smoke")
    task = experiment.task.load()
    network = models.build(experiment.model, models.Interface.of(task), seed=0)
    file = tmp_path / "checkpoint.pt"
    training.fit(network, task, experiment.training, seed=0, checkpoint=file, progress=False)
    optimizer = experiment.training.make_optimizer(network)

    class Two(Group):
        def broadcast(self, value: object) -> object:
            return value

    state = State(network, optimizer, file, torch.device("cpu"), "fp32", Two(0, 2))
    with pytest.raises(errors.UsageError, match=r"begun in fp32 by 1 process\(es\) and would go on in fp32 by 2"):
        state.restore()
