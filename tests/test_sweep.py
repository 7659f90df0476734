"""Many runs over many workers: a killed worker loses nothing, and a second start does what is missing."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import distributed
import pytest
import stopping

from nlstm_lab import cluster, experiments, runs, sweep
from nlstm_lab.errors import LabError, UsageError

NAME = "ptb_char_lstm1"
pytestmark = pytest.mark.usefixtures("forked_workers")


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(runs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both workers wait in their second epoch, after a checkpoint; there one of them is killed."""
    there, gone = tmp_path / "there", tmp_path / "gone"
    there.mkdir()
    seen: set[tuple[str, ...]] = set()

    def wait_in_the_second_epoch() -> None:
        from nlstm_lab.training import loop

        update = loop._Trainer.update

        def waiting(trainer: Any, batch: Any) -> None:
            if trainer.state.progress.epoch == 1 and not gone.exists():
                (there / str(os.getpid())).touch()
                while not gone.exists():
                    time.sleep(0.05)
            update(trainer, batch)

        loop._Trainer.update = waiting  # type: ignore[method-assign]

    def kill_one(jobs: list[sweep.Job]) -> None:
        statuses = tuple(job.status for job in jobs)
        seen.add(statuses)
        processes = [int(path.name) for path in there.iterdir()]
        if sorted(statuses) == ["runs", "runs", "waits"] and len(processes) == 2 and not gone.exists():
            os.kill(processes[0], signal.SIGKILL)
            gone.touch()

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(wait_in_the_second_epoch)
        jobs = sweep.plan(NAME, [0, 1, 2], "smoke")
        sweep.run(jobs, scheduler=cluster.scheduler_address, device="cpu", watch=kill_one)
    assert gone.exists()
    assert [(job.status, job.reason) for job in jobs] == [("recorded", "")] * 3
    assert ("waits", "waits", "waits") in seen
    histories = [runs.load(NAME, seed, "smoke").history for seed in range(3)]
    monkeypatch.setenv("NLSTM_LAB_RUNS", str(tmp_path / "unstopped"))
    for seed, history in enumerate(histories):
        assert history.equals(runs.ensure(NAME, seed, "smoke", device="cpu", progress=False).history)


@pytest.mark.slow
def test_a_second_start_does_only_what_is_missing_and_a_failed_run_stops_no_other(
    runs_folder: Path, recorded: Callable[..., runs.Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(NAME, 0)
    times = {path: path.stat().st_mtime_ns for path in runs_folder.rglob("*.json")}
    jobs = sweep.plan(f"{NAME}+learning_rate=1e36+clip_norm=null", [0], "smoke") + sweep.plan(NAME, [0, 1], "smoke")
    sweep.run(jobs, workers=2, device="cpu")
    assert [(job.seed, job.status) for job in jobs] == [(0, "failed"), (0, "recorded"), (1, "recorded")]
    assert "loss" in jobs[0].reason
    assert {path: path.stat().st_mtime_ns for path in times} == times
    monkeypatch.setattr(distributed, "Client", None)  # nothing is missing: no worker is started
    assert [job.status for job in sweep.run(sweep.plan(NAME, [0, 1], "smoke"))] == ["recorded"] * 2


@pytest.mark.slow
def test_a_record_of_another_configuration_fails_in_the_plan(recorded: Callable[..., runs.Run]) -> None:
    run = recorded(NAME)
    config = run.folder / "config.json"
    config.write_text(config.read_text().replace('"epochs": 2', '"epochs": 9'))
    (job,) = sweep.plan("ptb_char_lstm1", [0], "smoke")
    assert job.status == "failed"
    assert "training.epochs was 9 and is 2" in job.reason


def test_a_plan_names_every_experiment_and_seed(runs_folder: Path) -> None:
    jobs = sweep.plan("ptb_char_lstm[12]", [0, 1], "small")
    assert [job.key for job in jobs] == [
        f"ptb_char_lstm{layers}/small-seed{seed}" for seed in (0, 1) for layers in (1, 2)
    ]
    assert {job.status for job in jobs} == {"waits"}


@pytest.mark.slow
def test_a_rule_leaves_what_is_recorded_and_without_it_a_run_goes_on(runs_folder: Path) -> None:
    name = stopping.NAME
    runs.ensure(name, 0, "smoke", progress=False)
    ended = runs.ensure(name, 1, "smoke", patience=1, progress=False)
    assert ended.state == stopping.state(ended)
    for patience, statuses in ((1, ["recorded"] * 2), (2, ["recorded", "waits"]), (None, ["recorded", "waits"])):
        jobs = sweep.plan(name, [0, 1], "smoke", patience)
        assert [job.status for job in jobs] == statuses, patience
    (ended.folder / ".checkpoint.pt").unlink()
    (job,) = sweep.plan(name, [1], "smoke")
    assert job.status == "failed"
    assert "its checkpoint, which is not committed, is not here" in job.reason
    with pytest.raises(UsageError, match=r"patience.*8"):
        sweep.plan(name, [2], "smoke", 9)


@pytest.mark.slow
def test_a_sweep_ends_its_runs_by_a_rule(runs_folder: Path) -> None:
    name = stopping.NAME
    sweep.run(sweep.plan(name, [1], "smoke", 1), workers=1, device="cpu", patience=1)
    ended = runs.load(name, 1, "smoke")
    assert ended.state == stopping.state(ended)
    sweep.run(sweep.plan(name, [1], "smoke"), workers=1, device="cpu")
    assert runs.load(name, 1, "smoke").state == "done"


def test_experiments_without_the_scale_are_passed_over(runs_folder: Path) -> None:
    lacking = [name for name in experiments.names("autocomplete_*") if "small" not in experiments.scales(name)]
    planned = [job.experiment.name for job in sweep.plan("autocomplete_*", [0], "small")]
    assert lacking
    assert planned == [name for name in experiments.names("autocomplete_*") if name not in lacking]
    with pytest.raises(UsageError, match=rf"'{lacking[0]}'.*'small'"):
        sweep.plan(lacking[0], [0], "small")
    with pytest.raises(UsageError, match=r"'large'.*smoke, small, paper"):
        sweep.plan("autocomplete_*", [0], "large")


@pytest.mark.parametrize(("text", "seeds"), [("0", [0]), ("0-4", [0, 1, 2, 3, 4]), ("7,0-2,1", [7, 0, 1, 2])])
def test_seeds_are_read_as_typed(text: str, seeds: list[int]) -> None:
    assert sweep.parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "0..4", "1,,2"])
def test_seeds_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="seed"):
        sweep.parse_seeds(text)


def test_a_pattern_that_matches_nothing_is_refused(runs_folder: Path) -> None:
    with pytest.raises(UsageError, match="nothing_"):
        sweep.plan("nothing_*", [0], "small")


def test_a_scheduler_that_does_not_answer_is_named(runs_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "TIMEOUT", 0.5)
    with pytest.raises(LabError, match=r"tcp://127.0.0.1:9"):
        sweep.run(sweep.plan("ptb_char_lstm1", [0], "smoke"), scheduler="tcp://127.0.0.1:9")


def test_without_dask_a_sweep_is_one_sentence(runs_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setattr(cluster, "TIMEOUT", 0.5)
    with pytest.raises(LabError, match=r"dask.*`pip install distributed`"):
        sweep.run(sweep.plan("ptb_char_lstm1", [0], "smoke"), scheduler="tcp://127.0.0.1:9")
