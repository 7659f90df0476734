"""A scheduler that is gone or has nobody to work is said; what is interrupted ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nlstm_lab import cluster
from nlstm_lab.errors import LabError

pytestmark = pytest.mark.usefixtures("forked_workers")


@pytest.mark.slow
def test_no_workers_are_waited_for_and_a_scheduler_that_is_gone_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.0)
    file = tmp_path / "scheduler.json"
    line = ["-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    process = subprocess.Popen([sys.executable, *line], stderr=subprocess.DEVNULL)
    try:
        while not file.exists():
            assert process.poll() is None
            time.sleep(0.1)
        with cluster.client(json.loads(file.read_text())["address"], 1) as client:
            looks = cluster.looks(client)
            assert next(looks) == next(looks) == set()
            assert "waiting" in capsys.readouterr().err
            process.kill()
            with pytest.raises(LabError, match="scheduler"):
                list(looks)
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_an_interrupt_ends_the_workers_whatever_they_do() -> None:
    workers: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def interrupted() -> None:
        with cluster.client(None, 1) as client:
            workers.extend(client.run(os.getpid).values())
            _long = client.submit(time.sleep, 3600, key="long", pure=False)
            next(running for running in cluster.looks(client) if running)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    while alive(workers[0]):  # until its parent has taken note of its end
        time.sleep(0.1)
    assert signal.getsignal(signal.SIGINT) == before


def test_a_client_that_does_not_close_in_time_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As distributed's own does when it is collected, unless it counts as closed."""

    class Stuck:
        cluster, status = None, "running"

        def close(self, timeout: float) -> None:
            self.status = "closing"
            raise TimeoutError

    stuck = Stuck()
    monkeypatch.setattr(cluster, "_connected", lambda *_: stuck)
    with pytest.raises(KeyboardInterrupt), cluster.client(None, 1):
        raise KeyboardInterrupt
    assert stuck.status == "closed"


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
