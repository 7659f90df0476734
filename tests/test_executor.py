"""The executor refuses what papermill lets through, and leaves nothing that looks finished but is not."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nlstm_lab import notebooks, paths
from nlstm_lab.errors import LabError, UsageError

PARAMETERS = (
    'seeds: list[int] = [0, 1]\nscale: str = "small"\nrate: float = 0.5\nquick: bool = False\nlimit: int | None = None'
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write notebooks into a folder of their own: write("10_name", "cell", "cell", ...)."""
    for place in ("notebooks", "executed", "figures"):
        monkeypatch.setattr(paths, place, lambda place=place: tmp_path / place)
    (tmp_path / "notebooks").mkdir()

    def written(name: str, *cells: str, parameters: str = PARAMETERS) -> notebooks.Job:
        code = [new_code_cell(parameters, metadata={"tags": ["parameters"]}), *map(new_code_cell, cells)]
        notebook = new_notebook(cells=[new_markdown_cell("# A title"), *code])
        notebook.metadata.kernelspec = {
            "name": "of-another-machine",
            "language": "python",
            "display_name": "gone",
        }
        nbformat.write(notebook, paths.notebooks() / f"{name}.ipynb")
        return notebooks.Job(name)

    return written


def outputs(job: notebooks.Job) -> str:
    cells = nbformat.read(job.output, as_version=4).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def left_behind() -> list[str]:
    return sorted(os.listdir(paths.executed())) if paths.executed().is_dir() else []


def test_parameters_arrive_typed_in_this_interpreter_with_this_package(write):
    write(
        "10_a",
        "import sys, os, nlstm_lab",
        "print(sys.executable, nlstm_lab.__file__, os.environ['OMP_NUM_THREADS'])",
        "print(repr((seeds, scale, rate, quick, limit)))",
    )
    (job,) = notebooks.plan(["10"], {"seeds": "[3,4]", "rate": "1e-3", "quick": "true", "limit": "7"})
    notebooks.execute(job, threads=1)
    assert f"{sys.executable} {paths.PACKAGE / '__init__.py'} 1" in outputs(job)
    assert "([3, 4], 'small', 0.001, True, 7)" in outputs(job)
    assert left_behind() == ["10_a.ipynb"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("seeds=0,1", [0, 1]), ("seeds=[]", []), ("seeds=5", [5]), ("rate=2", 2.0), ("limit=none", None),
     ("quick=False", False), ("scale=1", "1")],
)  # fmt: skip
def test_text_is_converted(write, text, expected):
    write("10_a")
    name, value = text.split("=")
    (job,) = notebooks.plan(["10_a"], {name: value})
    assert job.parameters[name] == expected
    assert type(job.parameters[name]) is type(expected)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sede": "1"}, "no parameter 'sede'; did you mean seeds?"),
        ({"seeds": "a"}, r"seeds must be list\[int\], not 'a'"),
        ({"seeds": [0.5]}, r"seeds must be list\[int\]"),
        ({"rate": "fast"}, "rate must be float, not 'fast'"),
        ({"rate": True}, "rate must be float"),
        ({"quick": "yes"}, "quick must be bool, not 'yes'"),
        ({"limit": "x"}, r"limit must be int \| None"),
        ({"scale": 3}, "scale must be str, not 3"),
    ],
)
def test_a_wrong_parameter_is_refused(write, given, sentence):
    write("10_a")
    with pytest.raises(UsageError, match=sentence):
        notebooks.plan([], given)


def test_a_choice_is_checked_against_its_options(write):
    write("10_a", parameters='scale: Literal["smoke", "small"] = "small"')
    assert notebooks.plan([], {"scale": "smoke"})[0].parameters == {"scale": "smoke"}
    with pytest.raises(UsageError, match="scale must be Literal"):
        notebooks.plan([], {"scale": "huge"})


@pytest.mark.parametrize("line", ["x = 1", "x: int", "x: complex = 1", "x: int = 'a'", "print(1)"])
def test_an_untyped_parameters_cell_is_refused(write, line):
    write("10_a", parameters=line)
    with pytest.raises(LabError, match="parameters cell"):
        notebooks.plan()


def test_an_unknown_notebook_is_refused(write):
    write("10_a")
    with pytest.raises(UsageError, match="no notebook '11'; there are: 10_a"):
        notebooks.plan(["11"])


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("1 / 0", "failed at `1 / 0`: ZeroDivisionError: division by zero"),
        ("import os; os._exit(0)", "kernel of notebook 10_a died"),
        ("import sys; sys.exit(0)", "stopped before its last cell"),
        ("import time; time.sleep(60)", "time limit"),
    ],
)
def test_a_failure_is_one_sentence_and_leaves_no_output(write, cell, sentence):
    job = write("10_a", cell, "print('last')")
    with pytest.raises(LabError, match=sentence):
        notebooks.execute(job, timeout=2)
    assert left_behind() == []


def test_a_folder_that_cannot_be_written_is_one_sentence(write):
    job = write("10_a")
    paths.executed().write_text("a file where the folder should be")
    with pytest.raises(LabError, match=r"cannot write .*10_a\.ipynb"):
        notebooks.execute(job)


def test_a_broken_notebook_file_is_one_sentence(write):
    job = write("10_a")
    job.source.write_text('{"cells": [')
    with pytest.raises(LabError, match="is no notebook"):
        notebooks.plan()


def test_one_failure_does_not_stop_the_others(write):
    jobs = [write("10_a", "print(1)"), write("11_b", "1 / 0"), write("12_c", "print(3)")]
    outcomes = notebooks.execute_all(jobs, workers=3)
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert left_behind() == ["10_a.ipynb", "12_c.ipynb"]
    lines = notebooks.summary(outcomes).splitlines()
    assert "done" in lines[0]
    assert "ZeroDivisionError" in lines[1]
    assert (paths.figures() / "index.html").is_file()


INTERRUPTED = """
import sys, pathlib
from nlstm_lab import notebooks, paths
root = pathlib.Path(sys.argv[1])
for place in ("notebooks", "executed", "figures"):
    setattr(paths, place, lambda place=place: root / place)
notebooks.execute_all(notebooks.plan(), workers=2)
"""


@pytest.mark.slow
def test_ctrl_c_ends_the_kernels_and_keeps_what_was_finished(write, tmp_path):
    write("10_a", "print(1)")
    write("11_b", "import os, pathlib, time", f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))",
          "time.sleep(600)")  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent)}
    as_a_terminal_does = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background ignores it
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        env=environment,
        stderr=subprocess.PIPE,
        preexec_fn=as_a_terminal_does,
    )
    pid, finished = tmp_path / "pid", tmp_path / "executed" / "10_a.ipynb"
    _until(lambda: finished.is_file() and pid.is_file() and pid.read_text())
    process.send_signal(2)
    process.wait(timeout=20)
    assert left_behind() == ["10_a.ipynb"]
    _until(lambda: not _running(int(pid.read_text())))


def _until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def _running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
