"""The executor refuses what papermill lets through, and leaves nothing that looks finished but is not."""

import os
import re
import sys

import nbformat
import pytest

from nlstm_lab import notebooks, paths
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.notebooks import inputs


def outputs(job: notebooks.Job) -> str:
    cells = nbformat.read(job.output, as_version=4).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def left_behind() -> list[str]:
    return sorted(os.listdir(paths.executed())) if paths.executed().is_dir() else []


@pytest.mark.slow
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
    "given",
    [
        {"seeds": "a"},
        {"seeds": [0.5]},
        {"rate": "fast"},
        {"rate": True},
        {"quick": "yes"},
        {"limit": "x"},
        {"scale": 3},
    ],
)
def test_a_wrong_parameter_is_refused_by_its_name_and_value(write, given):
    write("10_a")
    ((name, value),) = given.items()
    with pytest.raises(UsageError, match=rf"{name}.*{re.escape(repr(value))}"):
        notebooks.plan([], given)


def test_an_unknown_parameter_is_answered_with_the_nearest(write):
    write("10_a")
    with pytest.raises(UsageError, match=r"'sede'.*seeds"):
        notebooks.plan([], {"sede": "1"})


def test_a_choice_is_checked_against_its_options(write):
    write("10_a", parameters='scale: Literal["smoke", "small"] = "small"')
    assert notebooks.plan([], {"scale": "smoke"})[0].parameters == {"scale": "smoke"}
    with pytest.raises(UsageError, match="scale"):
        notebooks.plan([], {"scale": "huge"})


@pytest.mark.parametrize("line", ["x = 1", "x: int", "x: complex = 1", "x: int = 'a'", "print(1)"])
def test_an_untyped_parameters_cell_is_refused(write, line):
    write("10_a", parameters=line)
    with pytest.raises(LabError, match="parameters"):
        notebooks.plan()


def test_an_unknown_notebook_is_refused(write):
    write("10_a")
    with pytest.raises(UsageError, match=r"'11'.*10_a"):
        notebooks.plan(["11"])


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
def test_a_failure_is_one_sentence_and_leaves_the_earlier_copy(write, cell, named, timeout):
    job = write("10_a", cell, "print('last')")
    paths.executed().mkdir()
    job.output.write_text("an earlier copy")
    with pytest.raises(LabError, match=named):
        notebooks.execute(job, timeout=timeout)
    assert left_behind() == ["10_a.ipynb"]
    assert job.output.read_text() == "an earlier copy"


@pytest.mark.slow
@pytest.mark.usefixtures("forked_kernels")
def test_a_folder_that_cannot_be_written_is_one_sentence(write):
    job = write("10_a")
    paths.executed().write_text("a file where the folder should be")
    with pytest.raises(LabError, match=r"10_a\.ipynb"):
        notebooks.execute(job)


def test_a_broken_notebook_file_is_one_sentence(write):
    job = write("10_a")
    job.source.write_text('{"cells": [')
    with pytest.raises(LabError, match="10_a"):
        notebooks.plan()


def test_a_broken_parameters_cell_is_one_sentence(write):
    write("10_a", parameters="seeds: list[int] = [0,\nscale =")
    with pytest.raises(LabError, match="parameters"):
        notebooks.plan()


def test_a_magic_ends_no_finished_notebook(write):
    job = write("10_a", "%matplotlib inline\n!true", "%%time\nprint('lab_a_cell')", "name = 'lab_a_figure'")
    paths.figures().mkdir(exist_ok=True)
    (paths.figures() / "lab_a_figure.csv").write_text("x\n")
    assert list(inputs.left(job)) == ["lab_a_figure.csv"]
