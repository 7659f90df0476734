"""The collection in real processes, really killed: what was finished stays, and nothing else is left."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import nbformat
import pytest

from nlstm_lab import cli, notebooks, paths
from nlstm_lab.notebooks.inputs import Inputs, stamp, unchanged

Write = Callable[..., notebooks.Job]
DRAW = "import nlstm_lab as lab\nlab.figures.save(lab.figures.{}(), '{}')"
DRAWN = {
    "10_a": DRAW.format("nested_architecture", "nlstm_fig1_architecture"),
    "11_b": DRAW.format("computational_graphs", "nlstm_fig2_graphs"),
    "12_c": DRAW.format("unit_diagrams", "madsen_units_lstm_gru_nlstm"),
}


def left_behind(folder: Path | None = None) -> list[str]:
    folder = folder or paths.executed()
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("[!.]*")) if path.is_file()}


def until(condition: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Wait as long as it takes, or until the process that should bring it about has ended."""
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


def runs(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def processes(path: Path) -> list[int]:
    """The kernel's process and its parent's, once a cell of `tell_processes` has written them."""
    text = path.read_text() if path.is_file() else ""
    return [int(process) for process in text.split()] if text.endswith("\n") else []


def tell_processes(path: Path) -> str:
    """A cell that writes its kernel's process and its parent's."""
    return f"import os, pathlib\npathlib.Path({str(path)!r}).write_text(f'{{os.getpid()}} {{os.getppid()}}\\n')"


def wait_in_the_third_file(path: Path) -> str:
    """A cell after which the third file of a figure is written and not yet named: there `tell_processes`, and wait."""
    return f"""
import itertools, time
from nlstm_lab import paths
flush, brought = paths.flush, itertools.count(1)
def waiting(folder_or_file):
    if next(brought) == 5:  # of each file its content, then the folder with its name
        {tell_processes(path).replace(chr(10), "; ")}
        time.sleep(3600)
    flush(folder_or_file)
paths.flush = waiting
"""


def command(*words: str) -> subprocess.Popen[str]:
    """`nlstm-lab figures` in a process group of its own, as a terminal starts it."""
    environment = os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent)}
    as_a_terminal_does = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background ignores it
    return subprocess.Popen(
        [sys.executable, "-m", "nlstm_lab", "figures", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=as_a_terminal_does,
    )


def pretend(job: notebooks.Job) -> None:
    """An executed copy, without executing."""
    executed = job.read()
    stamp(executed, job, Inputs.now().of(job), 1.0)
    paths.executed().mkdir(exist_ok=True)
    nbformat.write(executed, job.output)


@pytest.mark.parametrize(
    "change", ["nothing", "source", "parameters", "run", "probe", "target", "figure", "missing", "copy", "claim"]
)
def test_what_changed_is_executed_again(write: Write, change: str) -> None:
    job = write("10_a", DRAWN["10_a"])
    for folder in (paths.runs() / "some", paths.probes(), paths.figures()):
        folder.mkdir(parents=True)
    figure = paths.figures() / "nlstm_fig1_architecture.pdf"
    figure.write_text("a figure")
    pretend(job)
    if change == "source":
        job = write("10_a", DRAWN["10_a"], "1 + 1")
    elif change == "parameters":
        job = notebooks.Job("10_a", {"rate": 0.25})
    elif change == "figure":
        figure.write_text("another")
    elif change == "missing":
        figure.unlink()
    elif change == "copy":
        job.output.write_text("{")
    elif change == "claim":
        (paths.probes() / "claims.csv").write_text("claim")  # what this notebook does not read
    elif change != "nothing":
        folder = {"run": paths.runs() / "some", "probe": paths.probes(), "target": paths.targets()}[change]
        (folder / "record").write_text("new")
    assert unchanged(job, Inputs.now().of(job)) == (change in ("nothing", "claim"))


def test_a_notebook_that_reads_all_claims_depends_on_them(write: Write) -> None:
    job = write("00_a", "import nlstm_lab as lab", "lab.probes.measured_claims()")
    pretend(job)
    assert unchanged(job, Inputs.now().of(job))
    paths.probes().mkdir(parents=True)
    (paths.probes() / "claims.csv").write_text("claim")
    assert not unchanged(job, Inputs.now().of(job))


def test_where_nothing_changed_nothing_is_started(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write("10_a", "1 + 1")
    pretend(job)
    monkeypatch.setattr("nlstm_lab.notebooks.collection.execute", None)
    assert [outcome.status for outcome in notebooks.execute_all([job])] == ["unchanged"]


def test_time_left_is_judged_by_the_last_time(write: Write) -> None:
    jobs = [write("10_a"), write("11_b"), write("12_c")]
    outcomes = [notebooks.Outcome(job, expected=seconds) for job, seconds in zip(jobs, (10, 20, 30), strict=True)]
    assert notebooks.time_left(outcomes, workers=1) == 60
    assert notebooks.time_left(outcomes, workers=3) == 30
    outcomes[2].status, outcomes[1].seconds = "done", 15
    assert notebooks.time_left(outcomes, workers=1) == 15


@pytest.mark.slow
def test_what_fails_stops_nobody_else(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(write("10_a", "1 + 1"))
    write("12_wrong", "1 / 0")
    write("13_killed", "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")
    write("14_good", "1 + 1")
    monkeypatch.setattr(sys, "argv", ["nlstm-lab", "figures", "--workers", "2"])
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    assert left_behind() == ["10_a.ipynb", "14_good.ipynb"]
    output, error = capsys.readouterr()
    assert "1 done, 1 unchanged, 2 failed" in output
    assert all(name in error for name in ("12_wrong", "13_killed", "ZeroDivisionError"))
    assert "Traceback" not in error


@pytest.mark.slow
def test_ctrl_c_ends_its_kernels_and_keeps_what_was_finished(write: Write, tmp_path: Path) -> None:
    write("10_a", "1 + 1")
    write("11_b", tell_processes(tmp_path / "processes"), "import time", "time.sleep(3600)")
    process = command("--workers", "1")
    until(lambda: (paths.executed() / "10_a.ipynb").is_file() and processes(tmp_path / "processes"), process)
    for _ in range(3):  # an impatient hand
        os.killpg(process.pid, signal.SIGINT)
    said = process.communicate()[0]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert left_behind() == ["10_a.ipynb"]
    until(lambda: not any(map(runs, processes(tmp_path / "processes"))))


@pytest.mark.slow
@pytest.mark.soak
def test_killed_in_the_middle_of_a_figure_it_ends_at_the_bytes_of_one_that_was_not(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at a time, after a start that was killed; against one notebook after the other."""
    drawn = {name: DRAWN[name] for name in ("10_a", "11_b")}
    monkeypatch.setenv("NLSTM_LAB_FIGURES", str(tmp_path / "alone"))
    for name, cell in drawn.items():
        notebooks.execute(write(name, cell), threads=1)
    expected = bytes_of(paths.figures())
    expected.pop("manifest.json", None)
    assert len(expected) == 2 * 5

    monkeypatch.setenv("NLSTM_LAB_FIGURES", str(tmp_path / "killed"))
    for path in paths.executed().glob("*"):
        path.unlink()
    write("11_b", wait_in_the_third_file(tmp_path / "processes"), drawn["11_b"])
    process = command("--workers", "1")
    until(lambda: processes(tmp_path / "processes"), process)
    process.kill()
    process.communicate()
    until(lambda: not any(map(runs, processes(tmp_path / "processes"))))  # kernels end by themselves
    assert left_behind() == ["10_a.ipynb"]
    assert [name for name in left_behind(paths.figures()) if name.startswith(".")]

    write("11_b", drawn["11_b"])
    process = command("--workers", "2")
    said = process.communicate()[0]
    assert process.returncode == 0, said
    assert left_behind() == ["10_a.ipynb", "11_b.ipynb"]
    found = bytes_of(paths.figures())
    assert {name: found[name] for name in expected} == expected
    assert sorted(found) == sorted([*expected, "manifest.json"])


@pytest.mark.soak
def test_killed_at_any_moment_it_ends_at_the_same_bytes(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, cell in DRAWN.items():
        write(name, cell)
    found, moments = {}, random.Random(0)
    for workers, kills in ((1, 0), (2, 0), (2, 20)):
        monkeypatch.setenv("NLSTM_LAB_FIGURES", str(tmp_path / f"figures-{workers}-{kills}"))
        for path in paths.executed().glob("*"):
            path.unlink()
        for _ in range(kills):
            process = command("--workers", str(workers))
            time.sleep(moments.uniform(1.0, 12.0))
            process.kill()
            process.communicate()
        process = command("--workers", str(workers))
        said = process.communicate()[0]
        assert process.returncode == 0, said
        found[workers, kills] = bytes_of(paths.figures())
    assert len(found[1, 0]) == 3 * 5 + 1
    assert found[2, 0] == found[1, 0]
    assert found[2, 20] == found[1, 0]
