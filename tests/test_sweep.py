"""Many runs over many workers: a killed worker loses nothing, and a second start does what is missing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import distributed
import pytest
from test_runs_unfinished import STOPPED, state

from nlstm_lab import experiments, runs, sweep
from nlstm_lab.errors import Interrupted, LabError, UsageError

NAME = "ptb_char_lstm1"
pytestmark = pytest.mark.usefixtures("forked_workers")


def swept(name, seeds, patience=None, **how):
    """How a sweep at smoke scale ended, and what it said."""
    said = []
    how = {"workers": 1, "watch": lambda counts, event: said.append(event), **how}
    rows = sweep.matching(name, "smoke", patience)
    return sweep.sweep(rows, sweep.parse_seeds(seeds), device="cpu", patience=patience, **how), said


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(runs_folder, tmp_path, monkeypatch):
    """Both workers wait in their second epoch, after a checkpoint; there one of them is killed."""
    there, gone = tmp_path / "there", tmp_path / "gone"
    there.mkdir()

    def wait_in_the_second_epoch():
        from nlstm_lab.training import loop

        sync_and_log = loop._Trainer.sync_and_log

        def waiting(trainer):
            if trainer.progress.epoch == 1 and not gone.exists():
                (there / str(os.getpid())).touch()
                while not gone.exists():
                    time.sleep(0.05)
            sync_and_log(trainer)

        loop._Trainer.sync_and_log = waiting

    def kill_one(counts, event):
        processes = [int(path.name) for path in there.iterdir()]
        if (counts.running, counts.recorded) == (2, 0) and len(processes) == 2 and not gone.exists():
            os.kill(processes[0], signal.SIGKILL)
            gone.touch()

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(wait_in_the_second_epoch)
        counts, _ = swept(NAME, "0-2", scheduler=cluster.scheduler_address, watch=kill_one)
    assert gone.exists()
    assert (counts.recorded, counts.running, counts.failed) == (3, 0, 0)
    histories = [runs.load(NAME, seed, "smoke").history for seed in range(3)]
    monkeypatch.setenv("NLSTM_LAB_RUNS", str(tmp_path / "unstopped"))
    for seed, history in enumerate(histories):
        assert history.equals(runs.ensure(NAME, seed, "smoke", device="cpu", progress=False).history)


@pytest.mark.slow
def test_a_second_start_does_only_what_is_missing_and_a_failed_run_stops_no_other(runs_folder, recorded, monkeypatch):
    recorded(NAME, 0)
    times = {path: path.stat().st_mtime_ns for path in runs_folder.rglob("*.json")}
    rows = [experiments.get(f"{NAME}+learning_rate=1e36+clip_norm=null", "smoke"), experiments.get(NAME, "smoke")]
    said = []
    counts = sweep.sweep(rows, [0, 1], None, 2, lambda counts, event: said.append(event), device="cpu")
    assert (counts.total, counts.recorded, counts.failed) == (4, 2, 2)
    assert sum("loss" in event for event in said) == 2
    assert {path: path.stat().st_mtime_ns for path in times} == times
    monkeypatch.setattr(distributed, "Client", None)  # nothing is missing: no worker is started
    assert swept(NAME, "0-1")[0].recorded == 2


@pytest.mark.slow
def test_early_stopping_ends_runs_and_without_it_they_go_on(runs_folder):
    swept(STOPPED, "1", patience=1)
    ended = runs.load(STOPPED, 1, "smoke")
    assert ended.state == state(ended)
    assert swept(STOPPED, "1", patience=1)[0].recorded == 1
    swept(STOPPED, "1")
    assert runs.load(STOPPED, 1, "smoke").state == "done"
    assert swept(STOPPED, "1", patience=1)[0].recorded == 1  # the rule comes too late
    with pytest.raises(UsageError, match=r"patience.*8"):
        swept(STOPPED, "2", patience=9)


def test_experiments_that_match_and_have_the_scale():
    having = [name for name in experiments.names("autocomplete_*") if "small" in experiments.scales(name)]
    assert [row.name for row in sweep.matching("autocomplete_*", "small")] == having
    lacking = next(name for name in experiments.names("autocomplete_*") if name not in having)
    for pattern, scale, said in (
        (lacking, "small", rf"'{lacking}'.*'small'"),
        ("autocomplete_*", "large", r"'large'.*smoke, small, paper"),
        ("nothing_*", "small", "nothing_"),
    ):
        with pytest.raises(UsageError, match=said):
            sweep.matching(pattern, scale)


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "0..4", "1,,2", str(2**63 + 1), "0-99999999"])
def test_seeds_that_are_none_are_refused(text):
    with pytest.raises(UsageError, match="seed"):
        sweep.parse_seeds(text)


@pytest.mark.slow
def test_a_scheduler_without_workers_is_waited_for_and_one_that_is_gone_is_an_error(runs_folder, tmp_path):
    file = tmp_path / "scheduler.json"
    line = ["-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    process = subprocess.Popen([sys.executable, *line], stderr=subprocess.DEVNULL)
    seen = []

    def watch(counts, event):
        seen.append(counts.workers)
        if len(seen) > 4:
            process.kill()

    try:
        while not file.exists():
            assert process.poll() is None
            time.sleep(0.1)
        with pytest.raises(LabError, match="the scheduler is gone"):
            swept(NAME, "0", scheduler=json.loads(file.read_text())["address"], watch=watch)
    finally:
        process.kill()
        process.wait()
    assert seen[-1] == 0


@pytest.mark.slow
def test_an_interrupt_ends_the_workers_whatever_they_do(runs_folder, monkeypatch):
    workers = []
    before = signal.getsignal(signal.SIGINT)

    def interrupted(counts, event):
        if counts.running:
            workers.extend(distributed.default_client().run(os.getpid).values())
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"SIGINT.*goes on"):
        swept(f"{NAME}+epochs=5000", "0", watch=interrupted)
    while Path(f"/proc/{workers[0]}").exists():  # until its parent has taken note of its end
        time.sleep(0.1)
    assert signal.getsignal(signal.SIGINT) == before


def test_without_a_scheduler_a_sweep_is_one_sentence(runs_folder, monkeypatch):
    monkeypatch.setattr(sweep, "TIMEOUT", 0.5)
    with pytest.raises(LabError, match=r"no scheduler answers at tcp://127.0.0.1:9"):
        swept(NAME, "0", scheduler="tcp://127.0.0.1:9")
    monkeypatch.setattr(distributed, "Client", Mock(side_effect=OSError("too many open files")))
    with pytest.raises(LabError, match=r"no worker process starts here .too many open files"):
        swept(NAME, "0")
