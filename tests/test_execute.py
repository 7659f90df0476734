"""The runner in real processes, really killed; parameters of their declared types under papermill and in JupyterLab,
too; what is committed stays where it was made with others."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import build
import nbformat
import pytest
from click.testing import CliRunner as Click
from forking import kernelspec
from nbformat.v4 import new_code_cell, new_notebook
from papermill.cli import papermill
from typer.testing import CliRunner

from nlstm_lab import cli, execute, paths, probes
from nlstm_lab.errors import LabError, UsageError

DRAWN = "import nlstm_lab as lab\nlab.figures.save(lab.figures.nested_architecture(), 'nlstm_fig1_architecture')"


def left_behind():
    folder = paths.executed()
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def until(condition, process=None):
    """Wait as long as it takes, or until the process that should bring it about has ended."""
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


def runs(process):
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def processes(path):
    """The kernel's process and its parent's, once a cell of `write_processes` has written them."""
    text = path.read_text() if path.is_file() else ""
    return [int(process) for process in text.split()] if text.endswith("\n") else []


def write_processes(path):
    """A cell that writes its kernel's process and its parent's."""
    return f"import os, pathlib\npathlib.Path({str(path)!r}).write_text(f'{{os.getpid()}} {{os.getppid()}}\\n')"


def command(*words):
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


def pretend(job):
    """An executed copy, without executing."""
    executed = job.read()
    executed.metadata[execute.KEY] = {"inputs": job.inputs(execute.shared_inputs()), "left": job.left()}
    paths.executed().mkdir(exist_ok=True)
    nbformat.write(executed, job.output)


@pytest.mark.slow
def test_parameters_arrive_typed_in_this_interpreter_with_this_package_that_shows_a_figure(write, tmp_path):
    write(
        "10_a",
        "import sys, os, nlstm_lab as lab",
        "print(sys.executable, lab.__file__, os.environ['OMP_NUM_THREADS'], os.getcwd())",
        "print(repr((seeds, scale, rate, quick, limit)))\nlab.figures.subplots()[0]",
    )
    (job,) = execute.plan(["10"], {"seeds": "[3,4]", "rate": "1e-3", "quick": "true", "limit": "7"})
    execute.execute(job)
    outputs = [one for cell in nbformat.read(job.output, as_version=4).cells for one in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", ()) for output in outputs)
    said = "".join(output.get("text", "") for output in outputs)
    assert f"{sys.executable} {paths.PACKAGE / '__init__.py'} 1 {paths.notebooks()}" in said
    assert "([3, 4], 'small', 0.001, True, 7)" in said
    assert left_behind() == ["10_a.ipynb"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("seeds=0,1", [0, 1]), ("seeds=[]", []), ("seeds=5", [5]), ("rate=2", 2.0), ("limit=none", None),
     ("quick=False", False), ("scale=1", "1")],
)  # fmt: skip
def test_text_is_converted(write, text, expected):
    write("10_a")
    name, value = text.split("=")
    (job,) = execute.plan(["10_a"], {name: value})
    assert (job.parameters[name], type(job.parameters[name])) == (expected, type(expected))


@pytest.mark.parametrize(
    ("names", "given", "said"),
    [
        ([], {"seeds": "a"}, "seeds.*'a'"),
        ([], {"seeds": [0.5]}, r"seeds.*\[0.5\]"),
        ([], {"rate": "fast"}, "rate.*'fast'"),
        ([], {"rate": True}, "rate.*True"),
        ([], {"quick": "yes"}, "quick.*'yes'"),
        ([], {"limit": "x"}, "limit.*'x'"),
        ([], {"sede": "1"}, "'sede'.*seeds"),
        (["11"], {}, "'11'.*10_a"),
    ],
)
def test_a_wrong_parameter_or_notebook_is_refused_by_its_name(write, names, given, said):
    write("10_a")
    with pytest.raises(UsageError, match=said):
        execute.plan(names, given)


@pytest.mark.parametrize("line", ["x = 1", "x: complex = 1", "print(1)", "x: list[int] = [0,\ny =", None])
def test_a_parameters_cell_holds_only_typed_literals_and_a_file_a_notebook(write, line):
    job = write("10_a", parameters=line or "")
    if line is None:
        job.source.write_text('{"cells": [')
    with pytest.raises(LabError, match="10_a" if line is None else "parameters") as refused:
        execute.plan()
    assert "\n" not in str(refused.value)


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
        execute.execute(job, timeout=timeout)
    assert left_behind() == ["10_a.ipynb"]
    assert job.output.read_text() == "an earlier copy"


@pytest.mark.parametrize(
    "change", ["nothing", "source", "parameters", "run", "probe", "target", "figure", "missing", "copy", "claim"]
)
def test_what_changed_is_executed_again(write, change):
    job = write("10_a", DRAWN)
    for folder in (paths.runs() / "some", paths.probes(), paths.figures()):
        folder.mkdir(parents=True)
    figure = paths.figures() / "nlstm_fig1_architecture.pdf"
    figure.write_text("a figure")
    pretend(job)
    if change == "source":
        job = write("10_a", DRAWN, "1 + 1")
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


def test_a_notebook_that_reads_all_claims_depends_on_them(write):
    job = write("00_a", "import nlstm_lab as lab", "lab.probes.measured_claims()")
    pretend(job)
    assert job.unchanged(execute.shared_inputs())
    paths.probes().mkdir(parents=True)
    (paths.probes() / "claims.csv").write_text("claim")
    assert not job.unchanged(execute.shared_inputs())


@pytest.mark.slow
def test_what_fails_stops_nobody_else(write, monkeypatch, capsys):
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
def test_ctrl_c_ends_its_kernels_and_keeps_what_was_finished(write, tmp_path):
    write("12_c", "1 + 1")
    write("11_b", write_processes(tmp_path / "processes"), "import time", "time.sleep(3600)")
    write("10_a", "'its turn never comes'")
    process = command("--workers", "1")
    until(lambda: (paths.executed() / "12_c.ipynb").is_file() and processes(tmp_path / "processes"), process)
    for _ in range(3):  # an impatient hand
        os.killpg(process.pid, signal.SIGINT)
    said = process.communicate()[0]
    assert process.returncode == 130, said
    assert not {"failed", "Traceback"} & set(re.findall(r"\w+", said))
    assert left_behind() == ["12_c.ipynb"]
    until(lambda: not any(map(runs, processes(tmp_path / "processes"))))


TYPED = "seeds: list[int] = [5]\nscale: str = 'small'\nrate: float = 0.5\nquick: bool = False\nlimit: int | None = 3"
CHECK = "import nlstm_lab as lab\nlab.check_parameters()"

PARAMETERS = 'text: str = "to be"\nseeds: list[int] = [0, 1]'
FIGURE, TABLE, CLAIM = "nlstm_fig1_architecture", "nested_lstm_table1", "nested_lstm.inner_slower_than_outer"
CELLS = [
    "import nlstm_lab as lab",
    f'figure = lab.figures.nested_architecture()\nlab.figures.save(figure, "{FIGURE}", caption="A cell in a cell.")',
    'lab.targets.compare("nested_lstm.table1", lab.runs.table()).save()',
    "from nlstm_lab.statistics import Compared, Interval\nmeasured = Compared(Interval(len(text), 0, 9), 3, '', 2.0)",
    f'lab.probes.record_claims("nested_lstm", "small", {{"{CLAIM.removeprefix("nested_lstm.")}": measured}})',
]


def run(shell, *cells):
    for cell in cells:
        shell.run_cell(cell, store_history=True).raise_error()


def test_what_is_set_gets_its_declared_type(shell):
    given = "# Parameters\nseeds = '[0,1]'\nscale = 1984\nrate = 1\nquick = 'true'\nlimit = 'none'\n"
    run(shell, TYPED, given, CHECK)  # as papermill guesses types
    found = [shell.user_ns[name] for name in ("seeds", "scale", "rate", "quick", "limit")]
    assert found == [[0, 1], "1984", 1, True, None]
    assert type(found[2]) is float
    run(shell, TYPED, "# Parameters\nseeds = 7", CHECK)
    assert shell.user_ns["seeds"] == [7]
    run(shell, TYPED, "# Parameters\nrate = '12.7 mm'", CHECK)  # as a width may be given
    assert shell.user_ns["rate"] == 0.5
    run(shell, TYPED, CHECK)
    assert [shell.user_ns[name] for name in ("seeds", "scale", "limit")] == [[5], "small", 3]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ((TYPED, "# Parameters\nseeds = 'several'"), r"seeds.*list\[int\]"),
        ((TYPED, "seeds: list[int] = ['several']"), r"seeds.*list\[int\]"),
        ((TYPED, "# Parameters\nsede = 1"), "'sede'.*seeds"),
        ((TYPED, "sede = 1"), None),  # a name of the reader's own: papermill did not inject it
    ],
)
def test_what_is_nothing_of_the_kind_or_not_declared_is_refused(shell, cells, said):
    with pytest.raises(UsageError, match=said) if said else contextlib.nullcontext():
        run(shell, *cells, CHECK)


@pytest.mark.slow
def test_papermill_itself(kernel_address, tmp_path, monkeypatch):
    cells = [new_code_cell(TYPED, metadata={"tags": ["parameters"]}), new_code_cell(CHECK),
             new_code_cell("assert (seeds, scale) == ([5], '1984'), (seeds, scale)")]  # fmt: skip
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "Python 3"}
    nbformat.write(notebook, tmp_path / "in.ipynb")
    kernelspec(tmp_path / "share", kernel_address)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    done = Click().invoke(papermill, ["in.ipynb", "out.ipynb", "-p", "seeds", "5", "-p", "scale", "1984"])
    assert done.exit_code == 0, done.output


@pytest.mark.slow
@pytest.mark.parametrize(("chosen", "first"), [(None, "torch"), ("2", "nlstm_lab")])
def test_in_a_kernel_torch_has_one_thread_where_none_are_chosen(chosen, first):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {"OMP_NUM_THREADS": chosen} if chosen else {}

    def threads(*imports):
        code = "from ipykernel.kernelapp import IPKernelApp; IPKernelApp.instance(); "
        code += f"import {', '.join(imports)}, torch; print(torch.get_num_threads())"
        return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip()

    # MKL may give torch fewer than were chosen, where it counts one core: then the lab leaves it there
    assert threads(first, "torch", "nlstm_lab") == ("1" if chosen is None else threads("torch"))


def test_an_error_of_the_lab_is_one_sentence_in_a_notebook(shell, capsys):
    shell.run_cell("import nlstm_lab as lab\nlab.runs.load('nobody', scale='small')")
    shown = capsys.readouterr().out.strip()
    assert "'nobody'" in shown
    assert shown.startswith("UsageError: ")
    assert len(shown.splitlines()) == 1


def contents():
    """All that git would know of."""
    folders = (paths.figures(), paths.probes())
    return {path.name: path.read_bytes() for folder in folders for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def drawn(forked_kernels, write, once, tmp_path):
    """What a notebook with its own parameters leaves, executed once in a session."""
    write("10_a", *CELLS, parameters=PARAMETERS)

    def make(folder):
        shutil.copytree(tmp_path, folder, dirs_exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NLSTM_LAB_ROOT", str(folder))
            execute.execute(execute.Job("10_a"))

    shutil.copytree(once("drawn", make), tmp_path, dirs_exist_ok=True)
    assert {f"{FIGURE}.png", f"{TABLE}.tex", "claims.csv", "manifest.json"} <= contents().keys()
    return contents()


def trials():
    return {path.name for path in paths.trials().glob("*")}


def is_elsewhere(drawn, text):
    assert contents() == drawn
    assert {f"{FIGURE}.{suffix}" for suffix in ("pdf", "svg", "png", "csv", "json")} <= trials()
    assert {f"{TABLE}.csv", f"{TABLE}.tex", "manifest.json"} <= trials()
    record = json.loads((paths.trials() / f"{FIGURE}.json").read_text())
    assert record["parameters"] == {"text": text, "seeds": [0, 1]}
    assert text in record["caption"]


@pytest.mark.slow
def test_an_edited_parameter_draws_elsewhere_and_says_where(drawn, shell, capsys):
    run(shell, PARAMETERS.replace("to be", "not to be"), *CELLS)
    is_elsewhere(drawn, "not to be")
    said = capsys.readouterr().out
    for part in (f"{FIGURE}.pdf kept (text differs)", f"workspaces/figures/{TABLE}.tex", CLAIM):
        assert part in said
    assert probes.measured_claims()["value"].tolist() == [len("to be")]


@pytest.mark.slow
def test_a_given_parameter_draws_elsewhere_as_the_command_says_and_on_request_in_place(drawn):
    say = CliRunner()
    given = ["figures", "10", "-p", "text=not to be", "--workers", "1"]
    result = say.invoke(cli.app, given)
    assert result.exit_code == 0
    assert str(paths.trials()) in result.output
    is_elsewhere(drawn, "not to be")
    (job,) = execute.plan(["10"], {"text": "not to be"})
    left = job.left()
    assert str(paths.trials() / f"{FIGURE}.png") in left
    (paths.trials() / f"{FIGURE}.png").unlink()
    assert job.left() != left
    assert say.invoke(cli.app, [*given, "--replace"]).exit_code == 0
    record = json.loads((paths.figures() / f"{FIGURE}.json").read_text())
    assert record["parameters"]["text"] == "not to be"
    assert probes.measured_claims()["value"].tolist() == [len("not to be")]


@pytest.mark.slow
def test_in_a_workspace_everything_is_replaced(drawn, shell, monkeypatch):
    for name in ("RUNS", "PROBES", "FIGURES"):
        monkeypatch.setenv(f"NLSTM_LAB_{name}", "")  # so that they are put back
    for text in ("to be", "not to be"):
        run(shell, f'text: str = "{text}"', CELLS[0], 'lab.workspace("own")', CELLS[1])
        record = json.loads((paths.figures() / f"{FIGURE}.json").read_text())
        assert record["parameters"] == {"text": text}
    assert not trials()


def test_the_gallerys_command_reaches_the_runner_through_a_shell(write, tmp_path):
    values = {"seeds": [0, 1], "scale": " it's $HOME", "rate": 0.5, "quick": False, "limit": None}
    write("10_a")
    (tmp_path / "seeds=0").touch()  # what a bare [0,1] would match
    typed = build._command("10_a", values)
    said = subprocess.check_output(["sh", "-c", f"printf '%s\\n' {typed}"], cwd=tmp_path, text=True).splitlines()
    (job,) = execute.plan(said[2:3], dict(one.split("=", 1) for one in said[4::2]))
    assert (said[:2], job.parameters) == (["nlstm-lab", "figures"], values)
