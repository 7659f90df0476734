"""What README, REPLICATING and CONTRIBUTING show runs; generated pages are what the records say."""

import doctest
import itertools
import math
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import catalogue
import numbers_of
import numpy as np
import pytest
import torch
import typer
import written
from distributed.cli.dask_scheduler import main as dask_scheduler
from distributed.cli.dask_worker import main as dask_worker
from forking import command_line, started

import nlstm_lab as lab
from nlstm_lab import cli, paths, probes
from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import SPLITS

README = (paths.root() / "README.md").read_text(encoding="utf-8")
REPLICATING = (paths.root() / "REPLICATING.md").read_text(encoding="utf-8")
SHOWING = README + REPLICATING
CONTRIBUTING = (paths.root() / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINES = [
    line.split(" #")[0].split("   #")[0].strip().removeprefix(".venv/bin/")
    for block in re.findall(r"^```sh\n(.*?)^```", SHOWING, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
BLOCKS = [dedent(block) for block in re.findall(r"^   ```python\n(.*?)^   ```", CONTRIBUTING, re.MULTILINE | re.DOTALL)]
NAMED = re.compile(r"^(?:class|def) \w+|^\w+ = .*ensure", re.MULTILINE)
SHOWN = {what: block for block in BLOCKS for what in NAMED.findall(block)}
PYTHON = re.findall(r"^```python\n(.*?)^```", SHOWING, re.MULTILINE | re.DOTALL)
# What needs the network, a browser or a cluster is checked without it, by the tests below. Sweeps and figures run in
# test_cli.py and test_execute.py.
CLUSTER = ("nlstm-lab sweep ", "nlstm-lab figures ")
CHECKED_OTHERWISE = ("make ", "python benchmarks/", "nlstm-lab data fetch ", "srun ", "dask scheduler ", *CLUSTER)
RUN = [line for line in dict.fromkeys(LINES) if not line.startswith(CHECKED_OTHERWISE)]
NOVEL = "It was a dark and stormy night; the rain fell in torrents, except at occasional intervals.\n" * 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkout as far as the blocks can tell: its own runs and figures, a text, no data sets."""
    folder = tmp_path_factory.mktemp("checkout")
    for recorded in paths.runs().glob("ptb_char_*"):
        shutil.copytree(recorded, folder / "runs" / recorded.name)
    (folder / "my_novel.txt").write_text(NOVEL)
    return folder


@pytest.fixture
def at(folder, monkeypatch):
    """That folder, for all processes that start here."""
    monkeypatch.delenv("NLSTM_LAB_DATA", raising=False)
    for name in ("RUNS", "FIGURES", "CACHE"):
        monkeypatch.setenv(f"NLSTM_LAB_{name}", str(folder / name.lower()))
    monkeypatch.chdir(folder)
    return folder


def ended_well(target, *arguments):
    """Run it in a process of its own."""
    with tempfile.NamedTemporaryFile() as said:
        process = started(target, *arguments, output=Path(said.name))
        process.join()
        assert process.exitcode == 0, Path(said.name).read_text()


def quick(text):
    """The same at smoke scale and with one seed, or of what takes least, so that a test may run it."""
    text = re.sub(r"--seeds [0-9-]+", "--seeds 0", re.sub(r"--scale (small|paper)", "--scale smoke", text))
    text = text.replace("figures 12", "figures 10").replace("trainings 'ptb_char_*'", "trainings mnist_lstm1")
    return text.replace("'ptb_char_*2'", "'ptb_char_lstm2'")


@pytest.mark.slow
@pytest.mark.xdist_group("checkout")
@pytest.mark.parametrize("line", RUN)
def test_a_command_runs(line, at):
    program, *words = shlex.split(quick(line))
    assert program == "nlstm-lab", "a command that this test does not know how to check"
    ended_well(command_line, *words)


def execute(block):
    exec(block, {"__name__": "__main__"})


@pytest.mark.slow
@pytest.mark.xdist_group("checkout")
@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.splitlines()[-1][:40])
def test_python_runs_as_it_stands(block, at):
    """After the command that trains on a text of one's own, which the last block goes on from."""
    if "my_novel" in block:
        training = next(line for line in RUN if "my_novel" in line)
        ended_well(command_line, *shlex.split(quick(training))[1:])
        block = block.replace('scale="small"', 'scale="smoke"')
    ended_well(execute, block)
    for name in re.findall(r'save\(.*"(my_\w+)"', block):
        (saved,) = at.rglob(f"figures/{name}.pdf")
        assert saved.stat().st_size > 1000


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("make ")])
def test_make_knows_the_target(line):
    done = subprocess.run(["make", "-n", *line.split()[1:]], cwd=paths.root(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_fetched_can_be_fetched():
    names = [line.split()[-1] for line in LINES if "data fetch" in line]
    assert names
    for name in names:
        assert all(file.urls and (file.sha256 or file.md5) for file in registry.get(name).files)


@pytest.mark.slow
def test_the_unit_that_contributing_shows_trains_and_is_probed(runs_folder, monkeypatch, tmp_path):
    """As it stands there, in a file beside a notebook."""
    (tmp_path / "mine.py").write_text(SHOWN["class Minimal"])
    monkeypatch.syspath_prepend(tmp_path)
    unit = lab.models.cell_type("mine:Minimal")
    run = lab.runs.ensure(lab.experiments.variant("ptb_char_nlstm", "smoke", cell_type=unit), progress=False)
    trace = lab.probes.trace(run.model(), "the name is bound to the value")
    assert set(lab.probes.classes(trace).life) <= {"alive", "silent", "latched"}
    assert not lab.probes.run(run.model(), "the name", edits={"cell f": lab.probes.zero}).trace.f.any()
    assert len(lab.figures.data(lab.figures.cell_activations(trace, units=2))) == 2 * trace.sizes["time"]
    gates = np.frombuffer(lab.widgets.CellExplorer([run], "the name").gates, "<f2").reshape(4, -1)  # it has no o
    assert [bool(np.isnan(gate).all()) for gate in gates] == [False, False, False, True]


@pytest.mark.slow
def test_the_task_that_contributing_shows_is_learned(runs_folder, monkeypatch, tmp_path):
    """As it stands there: a network learns what is asked of its memory, which chance is 2 bits away from."""
    (tmp_path / "mine.py").write_text(SHOWN["class Echo"])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.setattr(paths, "workspaces", lambda: tmp_path)
    for kind in ("RUNS", "PROBES", "FIGURES"):
        monkeypatch.setenv(f"NLSTM_LAB_{kind}", "")  # what `workspace` sets is undone with it
    names: dict[str, Any] = {}
    exec(SHOWN["run = lab.runs.ensure"], names)
    found = lab.runs.table("echo_*").query("metric == 'nll_nats' and split == 'test'")
    assert float(found["value"].iloc[0]) < 0.5 * math.log(4)
    assert names["trace"].sizes["time"] == 100
    task = names["Echo"]().load()
    trained = [next(task.train(torch.Generator().manual_seed(epoch))).inputs for epoch in range(5)]
    read = [next(task.evaluate(split, "blocks")).inputs for split in SPLITS]
    assert not any(torch.equal(one, other) for one, other in itertools.combinations([*trained, *read], 2))


def test_the_probe_that_contributing_shows_finds_what_its_example_says(probes_folder):
    """As it stands there, with its example, and recorded."""
    module = ModuleType("shown")
    exec(SHOWN["def saturation"], vars(module))
    assert doctest.testmod(module) == (0, 4)
    names = {**vars(module), "lab": lab, "model": lab.runs.load("ptb_char_nlstm", scale="small").model()}
    exec(SHOWN["shares = lab.probes.ensure"], names)
    assert len(names["shares"]) == 2 * 150
    assert list(probes_folder.glob("saturation-*.csv.gz"))


@pytest.mark.slow
def test_the_figure_that_contributing_shows_is_drawn_and_saved(monkeypatch, tmp_path):
    monkeypatch.setenv("NLSTM_LAB_FIGURES", str(tmp_path))
    (shown,) = (block for block in BLOCKS if "lab_seeds" in block)
    table = lab.runs.table("ptb_char_lstm2*", scale="small").query("metric == 'bpc' and split == 'valid'")
    table = table[table["evaluation"] == "blocks"]
    exec(shown, {"lab": lab, "table": table, "runs": lab.runs.recorded("ptb_char_lstm2*", "small"), "width": 3.25})
    assert (tmp_path / "lab_seeds.pdf").stat().st_size > 1000


def test_options_of_what_needs_a_cluster_are_there():
    scheduled = next(line for line in LINES if line.startswith("nlstm-lab sweep 'mnist_*'"))
    sweep = typer.main.get_command(cli.app).commands["sweep"]  # type: ignore[attr-defined]
    known = {option for parameter in sweep.params for option in parameter.opts}
    assert set(re.findall(r"--[a-z]+", scheduled)) <= known
    assert lab.experiments.names("mnist_*")
    for program in (dask_worker, dask_scheduler):
        assert "--scheduler-file" in {option for parameter in program.params for option in parameter.opts}


PAGES = [*paths.root().glob("*.md"), *paths.root().glob("[dn]*/README.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_no_link_leads_nowhere(page):
    text = page.read_text(encoding="utf-8")
    for target in [*re.findall(r"\]\(([^)#]+)\)", text), *re.findall(r'(?:src|href)="([^"]+)"', text)]:
        assert (page.parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.xdist_group("pages")
def test_pages_and_heads_of_notebooks_are_what_the_records_say_today():
    """`make pages` renews them."""
    stale = [str(path) for path, text in written.pages().items() if path.read_text(encoding="utf-8") != text]
    assert stale == []


@pytest.mark.slow
@pytest.mark.xdist_group("pages")
def test_every_ordering_and_claim_is_on_one_finding():
    frame = numbers_of.verdicts()
    stated = frame[frame["kind"].eq("claim") | (frame["kind"].eq("ordering") & frame["anchor"])]
    places = dict.fromkeys(stated["document"] + "." + stated["place"])
    said = [one for finding in catalogue.findings() for one in finding.statements]
    assert Counter(said) == Counter(one for place in places for one in catalogue.statements(place))


@pytest.mark.slow
def test_a_sentence_that_is_no_longer_true_stops_the_pages():
    with pytest.raises(numbers_of.Untrue):
        catalogue.rendered("{{ sure(gap('ptb_char_nlstm', 'ptb_char_lstm2').mean < 0) }}")


PROBES = paths.root() / "docs/site/reference/probes.md"


@pytest.mark.slow
def test_the_tasks_and_the_way_to_captum_run():
    found: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PROBES.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, found)
    assert not np.allclose(found["ablated"][50:], found["patched"][50:])
    assert found["characters"].attrs["missing"] < 0.01
    assert len(found["passages"]) == 6


def test_every_call_of_the_table_is_a_probe():
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|", PROBES.read_text(encoding="utf-8"), re.MULTILINE)
    calls = {name for row in rows for name in re.findall(r"`([a-z_]+)\(", row)}
    assert len(calls) > 12
    assert calls <= set(probes.__all__)
