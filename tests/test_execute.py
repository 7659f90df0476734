"""The runner in real processes, really killed: it refuses what papermill lets through, and an output has every cell."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import nbformat
import pytest

from nlstm_lab import cli, execute, paths
from nlstm_lab.errors import LabError, UsageError

Write = Callable[..., execute.Job]
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


def pretend(job: execute.Job) -> None:
    """An executed copy, without executing."""
    executed = job.read()
    executed.metadata[execute.KEY] = {"inputs": job.inputs(execute.shared_inputs()), "left": job.left(), "seconds": 1.0}
    paths.executed().mkdir(exist_ok=True)
    nbformat.write(executed, job.output)


@pytest.mark.slow
def test_parameters_arrive_typed_in_this_interpreter_with_this_package(write: Write, tmp_path: Path) -> None:
    write(
        "10_a",
        "import sys, os, nlstm_lab",
        "print(sys.executable, nlstm_lab.__file__, os.environ['OMP_NUM_THREADS'], os.getcwd())",
        "print(repr((seeds, scale, rate, quick, limit)))",
    )
    (job,) = execute.plan(["10"], {"seeds": "[3,4]", "rate": "1e-3", "quick": "true", "limit": "7"})
    execute.execute(job)
    cells = nbformat.read(job.output, as_version=4).cells
    said = "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))
    assert f"{sys.executable} {paths.PACKAGE / '__init__.py'} 1 {paths.notebooks()}" in said
    assert "([3, 4], 'small', 0.001, True, 7)" in said
    assert left_behind() == ["10_a.ipynb"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("seeds=0,1", [0, 1]), ("seeds=[]", []), ("seeds=5", [5]), ("rate=2", 2.0), ("limit=none", None),
     ("quick=False", False), ("scale=1", "1")],
)  # fmt: skip
def test_text_is_converted(write: Write, text: str, expected: object) -> None:
    write("10_a")
    name, value = text.split("=")
    (job,) = execute.plan(["10_a"], {name: value})
    assert job.parameters[name] == expected
    assert type(job.parameters[name]) is type(expected)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seeds", "a"), ("seeds", [0.5]), ("rate", "fast"), ("rate", True), ("quick", "yes"), ("limit", "x")],
)
def test_a_wrong_parameter_is_refused_by_its_name_and_value(write: Write, name: str, value: object) -> None:
    write("10_a")
    with pytest.raises(UsageError, match=rf"{name}.*{re.escape(repr(value))}"):
        execute.plan([], {name: value})


def test_an_unknown_name_is_answered_with_the_nearest(write: Write) -> None:
    write("10_a")
    with pytest.raises(UsageError, match=r"'sede'.*seeds"):
        execute.plan([], {"sede": "1"})
    with pytest.raises(UsageError, match=r"'11'.*10_a"):
        execute.plan(["11"])


@pytest.mark.parametrize("line", ["x = 1", "x: complex = 1", "print(1)", "x: list[int] = [0,\ny ="])
def test_a_parameters_cell_holds_typed_literals_alone(write: Write, line: str) -> None:
    write("10_a", parameters=line)
    with pytest.raises(LabError, match="parameters") as refused:
        execute.plan()
    assert "\n" not in str(refused.value)


def test_a_broken_notebook_file_is_one_sentence(write: Write) -> None:
    write("10_a").source.write_text('{"cells": [')
    with pytest.raises(LabError, match="10_a"):
        execute.plan()


@pytest.mark.slow
@pytest.mark.usefixtures("forked_kernels")
@pytest.mark.parametrize(
    ("cell", "named", "timeout"),
    [
        ("1 / 0", "10_a.*ZeroDivisionError", None),
        ("import os; os._exit(0)", "10_a", None),
        ("import sys; sys.exit(0)", "10_a", None),
        ("import time; time.sleep(3600)", "10_a.*--timeout", 2),
    ],
)
def test_a_failure_is_one_sentence_and_leaves_the_earlier_copy(
    write: Write, cell: str, named: str, timeout: float | None
) -> None:
    job = write("10_a", cell, "print('last')")
    paths.executed().mkdir()
    job.output.write_text("an earlier copy")
    with pytest.raises(LabError, match=named):
        execute.execute(job, timeout=timeout)
    assert left_behind() == ["10_a.ipynb"]
    assert job.output.read_text() == "an earlier copy"


@pytest.mark.slow
@pytest.mark.usefixtures("forked_kernels")
def test_a_folder_that_cannot_be_written_is_one_sentence(write: Write) -> None:
    job = write("10_a")
    paths.executed().write_text("a file where the folder should be")
    with pytest.raises(LabError, match=r"10_a\.ipynb"):
        execute.execute(job)


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
        job = execute.Job("10_a", {"rate": 0.25})
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
    assert job.unchanged(execute.shared_inputs()) == (change in ("nothing", "claim"))


def test_a_notebook_that_reads_all_claims_depends_on_them(write: Write) -> None:
    job = write("00_a", "import nlstm_lab as lab", "lab.probes.measured_claims()")
    pretend(job)
    assert job.unchanged(execute.shared_inputs())
    paths.probes().mkdir(parents=True)
    (paths.probes() / "claims.csv").write_text("claim")
    assert not job.unchanged(execute.shared_inputs())


def test_where_nothing_changed_nothing_is_started(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write("10_a", "1 + 1")
    pretend(job)
    monkeypatch.setattr(execute, "execute", None)
    execute.execute_all([job])
    assert job.status == "unchanged"


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
    assert "1 unchanged, 2 failed, 1 done" in output
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
