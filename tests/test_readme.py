"""What README and CONTRIBUTING show runs; `make soak` recomputes what README tells of results from the records."""

import doctest
import itertools
import math
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
import torch
import typer
from distributed.cli.dask_scheduler import main as dask_scheduler
from distributed.cli.dask_worker import main as dask_worker
from forking import command_line, started

import nlstm_lab as lab
from nlstm_lab import cli, notebooks, paths
from nlstm_lab.datasets import registry
from nlstm_lab.datasets.corpora import SPLITS

README = (paths.root() / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (paths.root() / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINES = [
    line.split(" #")[0].split("   #")[0].strip().removeprefix(".venv/bin/")
    for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
BLOCKS = [dedent(block) for block in re.findall(r"^   ```python\n(.*?)^   ```", CONTRIBUTING, re.MULTILINE | re.DOTALL)]
NAMED = re.compile(r"^(?:class|def) \w+|^\w+ = .*ensure", re.MULTILINE)
SHOWN = {what: block for block in BLOCKS for what in NAMED.findall(block)}
PYTHON = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
# What needs the network, a browser or a cluster is checked without it, by the tests below.
CHECKED_OTHERWISE = ("make ", "nlstm-lab data fetch ", "srun ", "dask scheduler ", "nlstm-lab sweep 'mnist_*' ")
RUN = [line for line in LINES if not line.startswith(CHECKED_OTHERWISE)]
NOVEL = "It was a dark and stormy night; the rain fell in torrents, except at occasional intervals.\n" * 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout as far as the blocks can tell: its own runs and figures, a text, no data sets."""
    folder = tmp_path_factory.mktemp("checkout")
    for recorded in paths.runs().glob("ptb_char_*"):
        shutil.copytree(recorded, folder / "runs" / recorded.name)
    (folder / "my_novel.txt").write_text(NOVEL)
    return folder


@pytest.fixture
def at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That folder, for all processes that start here."""
    monkeypatch.delenv("NLSTM_LAB_DATA", raising=False)
    for name in ("RUNS", "FIGURES", "CACHE"):
        monkeypatch.setenv(f"NLSTM_LAB_{name}", str(folder / name.lower()))
    monkeypatch.chdir(folder)
    return folder


def ended_well(target: Callable[..., None], *arguments: str) -> None:
    """Run it in a process of its own."""
    with tempfile.NamedTemporaryFile() as said:
        process = started(target, *arguments, output=Path(said.name))
        process.join()
        assert process.exitcode == 0, Path(said.name).read_text()


def quick(text: str) -> str:
    """The same at smoke scale and with one seed, or of what takes least, so that a test may run it."""
    text = re.sub(r"--seeds [0-9-]+", "--seeds 0", re.sub(r"--scale (small|paper)", "--scale smoke", text))
    return text.replace("figures 12", "figures 10").replace("trainings 'ptb_char_*'", "trainings mnist_lstm1")


@pytest.mark.slow
@pytest.mark.parametrize("line", RUN)
def test_a_command_runs(line: str, at: Path) -> None:
    program, *words = shlex.split(quick(line))
    assert program == "nlstm-lab", "a command that this test does not know how to check"
    ended_well(command_line, *words)


def execute(block: str) -> None:
    exec(block, {"__name__": "__main__"})


@pytest.mark.slow
@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.splitlines()[-1][:40])
def test_python_runs_as_it_stands(block: str, at: Path) -> None:
    """After the command that trains on a text of one's own, which the last block goes on from."""
    if "my_novel" in block:
        training = next(line for line in RUN if "my_novel" in line)
        ended_well(command_line, *shlex.split(quick(training))[1:])
        block = block.replace('scale="small"', 'scale="smoke"')
    ended_well(execute, block)
    for name in re.findall(r'save\(.*"(my_\w+)"', block):
        assert (at / "figures" / f"{name}.pdf").stat().st_size > 1000


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("make ")])
def test_make_knows_the_target(line: str) -> None:
    done = subprocess.run(["make", "-n", *line.split()[1:]], cwd=paths.root(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_fetched_can_be_fetched() -> None:
    names = [line.split()[-1] for line in LINES if "data fetch" in line]
    assert names
    for name in names:
        assert all(file.urls and (file.sha256 or file.md5) for file in registry.get(name).files)


def test_the_unit_that_contributing_shows_trains_and_is_probed(runs_folder: Path, monkeypatch, tmp_path: Path) -> None:
    """As it stands there, in a file beside a notebook."""
    (tmp_path / "mine.py").write_text(SHOWN["class Minimal"])
    monkeypatch.syspath_prepend(tmp_path)
    unit = lab.models.cell_type("mine:Minimal")
    run = lab.runs.ensure(lab.experiments.variant("ptb_char_nlstm", "smoke", cell_type=unit), progress=False)
    trace = lab.probes.trace(run.model(), "the name is bound to the value")
    assert set(lab.probes.classes(trace).life) <= {"alive", "silent", "latched"}
    assert len(lab.figures.data(lab.figures.cell_activations(trace, units=2))) == 2 * trace.sizes["time"]


def test_the_task_that_contributing_shows_is_learned(runs_folder: Path, monkeypatch, tmp_path: Path) -> None:
    """As it stands there: a network learns what is asked of its memory, which chance is 2 bits away from."""
    (tmp_path / "mine.py").write_text(SHOWN["class Echo"])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    names: dict[str, Any] = {}
    exec(SHOWN["run = lab.runs.ensure"], names)
    found = lab.runs.table("echo_*").query("metric == 'nll_nats' and split == 'test'")
    assert float(found["value"].iloc[0]) < 0.5 * math.log(4)
    assert names["trace"].sizes["time"] == 100
    task = names["Echo"]().load()
    trained = [next(task.train(torch.Generator().manual_seed(epoch))).inputs for epoch in range(5)]
    read = [next(task.evaluate(split, "blocks")).inputs for split in SPLITS]
    assert not any(torch.equal(one, other) for one, other in itertools.combinations([*trained, *read], 2))


def test_the_probe_that_contributing_shows_finds_what_its_example_says(monkeypatch, tmp_path: Path) -> None:
    """As it stands there, with its example, and recorded."""
    monkeypatch.setenv("NLSTM_LAB_PROBES", str(tmp_path))
    module = ModuleType("shown")
    exec(SHOWN["def saturation"], vars(module))
    assert doctest.testmod(module) == (0, 4)
    names = {**vars(module), "lab": lab, "model": lab.runs.load("ptb_char_nlstm", scale="small").model()}
    exec(SHOWN["found = lab.probes.ensure"], names)
    assert len(names["found"]) == 2 * 150
    assert list(tmp_path.glob("saturation-*.csv"))


def test_the_figure_that_contributing_shows_is_drawn_and_saved(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NLSTM_LAB_FIGURES", str(tmp_path))
    names: dict[str, Any] = {}
    exec(SHOWN["def seeds"], names)
    table = lab.runs.table("ptb_char_lstm2*", scale="small").query("metric == 'bpc' and split == 'valid'")
    assert lab.figures.save(names["seeds"](table), "lab_seeds").stat().st_size > 1000


def test_options_of_what_needs_a_cluster_are_there() -> None:
    scheduled = next(line for line in LINES if line.startswith("nlstm-lab sweep 'mnist_*'"))
    sweep = typer.main.get_command(cli.app).commands["sweep"]  # type: ignore[attr-defined]
    known = {option for parameter in sweep.params for option in parameter.opts}
    assert set(re.findall(r"--[a-z]+", scheduled)) <= known
    assert lab.experiments.names("mnist_*")
    for program in (dask_worker, dask_scheduler):
        assert "--scheduler-file" in {option for parameter in program.params for option in parameter.opts}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "notebooks/README.md", "data/README.md"])
def test_no_link_leads_nowhere(page: str) -> None:
    path = paths.root() / page
    text = path.read_text(encoding="utf-8")
    for target in [*re.findall(r"\]\(([^)#]+)\)", text), *re.findall(r'(?:src|href)="([^"]+)"', text)]:
        assert (path.parent / target).exists(), target


def test_notebooks_are_listed_with_todays_verdicts() -> None:
    """`nlstm-lab table --readme` renews the page."""
    assert notebooks.listing_is_fresh(lab.targets.verdicts(lab.runs.table(), lab.probes.measured_claims()))


def test_notebooks_that_it_names_are_there() -> None:
    for name in re.findall(r"`(\d\d_\w+\.ipynb)`", README):
        assert (paths.notebooks() / name).is_file()


def opening_of() -> str:
    """What the README says it found, without its lines' ends."""
    return " ".join(README[: README.index("## Two commands")].split())


@pytest.mark.soak
def test_what_it_found_is_what_the_records_say() -> None:
    """The numbers of the opening, each computed anew from committed runs."""
    opening = opening_of()
    table = lab.runs.table("ptb_char_*", scale="small").query(
        "metric == 'bpc' and split == 'valid' and evaluation == 'blocks'"
    )
    seeds = {name: rows.set_index("seed").value for name, rows in table.groupby("experiment")}
    nested, stacked = seeds["ptb_char_nlstm"], seeds["ptb_char_lstm2"]
    saved, treated = seeds["ptb_char_nlstm_logfreq"], seeds["ptb_char_lstm2_logfreq"]
    margin = lab.probes.t_interval(saved - treated)
    assert f"{(nested - saved).mean():.2f} BPC better" in opening
    assert f"by {(nested - stacked).mean():.2f} BPC as printed" in opening
    assert f"by {margin.mean:.3f} [{margin.low:.3f}, {margin.high:.3f}] when both" in opening
    assert "With either start the Nested LSTM comes last of table 1's five rows" in opening
    for start in ("", "_logfreq"):
        rows = [f"ptb_char_{row}{start}" for row in ("lstm1", "lstm1_large", "lstm2", "lstm3")]
        assert max(seeds[row].mean() for row in rows) < seeds[f"ptb_char_nlstm{start}"].mean()
    starts = {"zero": "ptb_char_nlstm", "log": "ptb_char_nlstm_logfreq"}
    runs = {start: [lab.runs.load(name, seed, "small") for seed in range(5)] for start, name in starts.items()}
    assert f"The stacked LSTM gains {(stacked - treated).mean():.2f}" in opening
    dead = lab.runs.dead_shares(lab.runs.histories(runs)).groupby(["memory", "setting"]).dead.mean()
    assert f"{100 * dead['inner', 'zero']:.0f} % of its cells" in opening
    assert f"{100 * dead['inner', 'log']:.0f} % dead" in opening
    stack = [lab.runs.load("ptb_char_lstm2", seed, "small") for seed in range(5)]
    upper = lab.runs.dead_shares(lab.runs.histories(stack)).query("memory == 'layer 2'").dead.mean()
    assert f"({100 * dead['outer', 'zero']:.0f} %) falls silent with it, and half of a stack's upper layer" in opening
    assert abs(upper - 0.5) < 0.03


@pytest.mark.soak
def test_what_it_found_of_timescales_is_what_the_claims_and_cuts_say() -> None:
    opening = opening_of()
    claims = lab.probes.measured_claims().set_index("claim")
    slower = [claims.loc[f"nested_lstm.inner_slower_than_outer{start}"] for start in ("", "_logfreq")]
    assert (
        "**The inner memory is slower than the outer one**, by {:.1f} to {:.1f} characters".format(
            *(one.value for one in slower)
        )
        in opening
    )
    assert all(one.low > 0 for one in slower)
    printed, saved = (claims.loc[f"nested_lstm.inner_slower_than_stack_upper{start}"] for start in ("", "_logfreq"))
    assert f"faster than a stack's upper layer, by {-printed.value:.1f} characters" in opening
    assert printed.high < 0, "as printed, the stack's upper layer is slower"
    assert saved.low < 0 < saved.high, "and started at the log-frequencies neither"


def of_both_starts(study: Callable[..., pd.DataFrame], start: int = 0) -> pd.DataFrame:
    """A study of the Nested LSTM and the stack of its size, of all seeds and both starts."""
    names = [f"ptb_char_{unit}{start}" for unit in ("nlstm", "lstm2") for start in ("", "_logfreq")]
    networks = [(run, run.model()) for name in names for run in lab.runs.recorded(name, "small")]
    return lab.probes.gather(networks, study, lab.datasets.Excerpt("ptb", "valid", 30000, start))


@pytest.mark.soak
def test_how_slow_it_says_they_are_is_what_the_probes_say() -> None:
    medians = lab.probes.medians(of_both_starts(lab.probes.timescales))
    nested = medians.query("model == 'nlstm' and value == 'raw'").groupby(["start", "memory"])["median"].mean()
    assert f"between {nested.min():.1f} and {nested.max():.1f} characters, where noise has 0.5" in opening_of()
    tanh = medians.query("value == 'tanh' and start == 'zero'")
    stack = {"model": "stacked_lstm", "memory": "layer 2"}
    faster = lab.probes.paired(tanh, "median", stack, {"model": "nlstm", "memory": "inner"}).difference
    assert f"({faster.mean:.1f} through tanh)" in opening_of()
    assert faster.low > 0
    deeper = lab.probes.paired(tanh, "median", stack, stack | {"memory": "layer 1"}).difference
    assert deeper.high < 0, "through tanh the claim that the upper layer is slower fails, as the verdicts' notes say"


@pytest.mark.soak
def test_the_inner_memory_is_slower_once_trained_and_no_less_so_on_shuffled_words() -> None:
    medians = lab.probes.medians(of_both_starts(lab.probes.baseline_timescales)).query(
        "model == 'nlstm' and value == 'raw'"
    )
    slower = {
        place: lab.probes.paired(part, "median", {"memory": "inner"}, {"memory": "outer"}).difference
        for place, part in medians.groupby(["start", "condition"])
    }
    for start in ("zero", "log_frequencies"):
        before, shuffled = slower[start, "untrained"], slower[start, "words shuffled"]
        assert f"(untrained, {before.mean:.2f} [{before.low:.2f}, {before.high:.2f}])" in opening_of()
        assert shuffled.low > 0
        assert shuffled.mean == pytest.approx(slower[start, "trained"].mean, abs=0.02)


@pytest.mark.soak
def test_what_it_says_is_missed_is_what_the_cuts_say() -> None:
    swaps = lab.probes.lost(of_both_starts(lab.probes.cuts)).query("kind == 'swap'")
    upper, later = {"model": "stacked_lstm", "memory": "layer 2"}, {}
    for start, part in swaps.groupby("start"):
        inner, outer = ({"model": "nlstm", "memory": memory} for memory in ("inner", "outer"))
        later[start] = lab.probes.paired(part, "lag", inner, upper).difference
        assert later[start].low > 0
        assert lab.probes.paired(part, "lag", outer, upper).difference.low > 0
        apart = lab.probes.paired(part, "lag", inner, outer).difference
        assert apart.low < 0 < apart.high
    assert f"by {later['zero'].mean:.1f} predictions as printed" in opening_of()
    assert f"by {later['log_frequencies'].mean:.1f} when started at the log-frequencies" in opening_of()
    costs = swaps.query("model == 'nlstm' and memory == 'inner' and start == 'zero'")["loss_increase"]
    assert lab.probes.t_interval(costs).high < 0.05, "nats over a hundred predictions"


@pytest.mark.soak
def test_what_it_found_on_the_poems_is_what_the_records_say() -> None:
    opening = opening_of()
    table = lab.runs.table("poetry_nlstm*", scale="paper").query("metric == 'perplexity' and split == 'valid'")
    seeds = {name: rows.set_index("seed").value for name, rows in table.groupby("experiment")}
    printed, worse = (
        lab.probes.t_interval(values)
        for values in (seeds["poetry_nlstm"], (seeds["poetry_nlstm_logfreq"] - seeds["poetry_nlstm"]).dropna())
    )
    assert len(seeds["poetry_nlstm_logfreq"]) == 3
    assert f"{printed.mean:.0f} [{printed.low:.0f}, {printed.high:.0f}], 629.71 in the paper" in opening
    assert f"worse there, by {worse.mean:.0f} [{worse.low:.0f}, {worse.high:.0f}] (three seeds)" in opening
    runs = {name: [lab.runs.load(name, seed, "paper") for seed in seeds[name].index] for name in seeds}
    dead = lab.runs.dead_shares(lab.runs.histories(runs)).groupby(["setting", "memory"]).dead.mean()
    inner, outer = (100 * dead["poetry_nlstm", memory] for memory in ("inner", "outer"))
    assert f"without {inner:.0f} % of its inner memory**, and without {outer:.0f} % of the outer" in opening
    assert dead["poetry_nlstm_logfreq"].eq(0).all()


@pytest.mark.soak
def test_table_2_is_reproduced_as_far_as_the_opening_says() -> None:
    opening = opening_of()
    compared = lab.targets.compare("nested_lstm.table2", lab.runs.table("poetry_*", scale="paper")).frame
    told = compared.query("anchor")
    count = told.groupby("kind").verdict.value_counts()
    assert dict(count["number"]) == {"match": 3, "close": 1, "differs": 1}
    assert "of its five numbers three match, one is close and one differs" in opening
    tested = compared.query("kind == 'ordering' and split == 'test' and verdict == 'holds'")
    assert len(tested) == count["ordering", "holds"] == 7
    assert "of its eight orderings seven hold, on validation and on the test set" in opening
    orderings = told.query("kind == 'ordering'").set_index("subject")
    assert list(orderings.query("verdict != 'holds'").index) == ["NLSTM 2 × 32 better than LSTM 1 × 40"]
    margin = orderings.loc["NLSTM 2 × 32 better than LSTM 1 × 32"]
    assert f"one layer of its width by {margin.ours:.0f} [{margin.low:.0f}, {margin.high:.0f}]" in opening
    wider = orderings.loc["NLSTM 2 × 32 better than LSTM 1 × 40"]
    assert f"cannot be told: by {wider.ours:.0f} [{wider.low:.0f}, {wider.high:.0f}]" in opening
    assert set(told.query("kind == 'number'").seeds) == {5}
    assert "five seeds a row" in opening


@pytest.mark.soak
def test_mnist_is_as_the_opening_says() -> None:
    opening = opening_of()
    table = lab.runs.table("mnist_*", scale="paper")
    told = lab.targets.compare("nested_lstm.table3", table).frame.query("metric == 'nll_nats'")
    numbers = told.query("kind == 'number' and anchor").set_index("experiment")
    assert set(numbers.seeds) == {5}
    nested, others = numbers.loc["mnist_nlstm"], numbers.drop("mnist_nlstm")
    assert f"on validation {nested.ours:.3f} [{nested.low:.3f}, {nested.high:.3f}] in the Nested LSTM" in opening
    assert f"({nested.as_printed} in the paper), {others.ours.min():.3f} to {others.ours.max():.3f}" in opening
    printed = f"{others.printed.min():.4f} to {others.printed.max():.4f}"
    assert f"in the other rows ({printed}; five seeds a row)" in opening
    losses = table.query("metric == 'nll_nats' and split == 'valid'")
    assert (losses.value < losses.experiment.map(numbers.printed)).all()
    orderings = told.query("kind == 'ordering' and anchor").set_index("subject")
    for row, words in {"LSTM 1 × 100": "one layer of 100 units by", "LSTM 3 × 75": "three layers by"}.items():
        margin = orderings.loc[f"NLSTM 2 × 75 better than {row}"]
        assert f"{words} {margin.ours:.3f} [{margin.low:.3f}, {margin.high:.3f}]" in opening
        assert margin.verdict == "holds"
    for row in ("LSTM 1 × 130", "LSTM 2 × 75"):
        assert orderings.verdict[f"NLSTM 2 × 75 better than {row}"] == "undecided"
    assert set(told.query("kind == 'ordering' and not anchor").verdict) == {"undecided"}
    dead = lab.runs.dead_shares(lab.runs.histories(lab.runs.recorded("mnist_*", "paper")))
    assert dead.dead.eq(0).all()
    single = lab.runs.table("mnist_lstm1*", scale="small").query("metric == 'nll_nats' and split == 'valid'")
    flags = ("reading=phases", "forget_bias=0.0", "batch_size=20", "output_weight=orthogonal", "initialization=torch")
    otherwise = {
        flag: lab.probes.paired(single, "value", {"experiment": f"mnist_lstm1+{flag}"}, {"experiment": "mnist_lstm1"})
        for flag in flags
    }
    assert {(one.seeds, one.ordering) for one in otherwise.values()} == {(3, "undecided")}
    furthest = otherwise["batch_size=20"].difference
    assert f"by {furthest.mean:.3f} [{furthest.low:.3f}, {furthest.high:.3f}]" in opening
    assert furthest.mean == max(one.difference.mean for one in otherwise.values())


@pytest.mark.soak
def test_what_it_says_can_be_told_is_what_the_probes_say() -> None:
    claims = lab.probes.measured_claims().set_index("claim")
    found = {
        (other, start): claims.loc[f"nested_lstm.inner_tells_word_class_better_than_{other}{start}"]
        for other in ("outer", "stack_upper") for start in ("", "_logfreq")
    }  # fmt: skip
    assert all(found[other, ""].high < 0 for other in ("outer", "stack_upper"))
    outer, upper = (found[other, "_logfreq"] for other in ("outer", "stack_upper"))
    assert f"by {outer.value:.2f} [{outer.low:.2f}, {outer.high:.2f}] in balanced accuracy" in opening_of()
    assert outer.low > 0
    assert upper.low < 0 < upper.high
    told = of_both_starts(lab.probes.contents, start=30000).query("label == 'word_class'")
    before, after = (
        told[told["condition"] == condition].set_index(["start", "memory", "seed"])["score"]
        for condition in ("untrained", "trained")
    )
    means = after.groupby(["start", "memory"]).mean()
    cells = [memory for memory in means.index.get_level_values("memory").unique() if not memory.endswith("h")]
    for start in ("zero", "log_frequencies"):
        assert means[start][cells].idxmax() == "layer 1"
    assert (after < before).all()


@pytest.mark.soak
def test_what_it_found_of_the_other_documents_is_what_the_records_say() -> None:
    opening = opening_of()
    said = {
        "nlstm": "{} back on average {} in the Nested",
        "lstm": "{} {} in the stacked LSTM",
        "gru": "{} {} in the GRU",
    }
    for name, words in ((f"autocomplete_{unit}", words) for unit, words in said.items()):
        runs = [lab.runs.load(name, seed, "small") for seed in range(3)]
        texts = lab.datasets.Sequences(runs[0].experiment.task, "test", 200)  # type: ignore[arg-type]
        lags = lab.probes.gather([(run, run.model()) for run in runs], lab.probes.connectivity_lags, texts)
        found = lab.probes.t_interval(lags.query("quantity == 'mean_lag' and where == 'all'").value)
        assert words.format(f"{found.mean:.1f}", f"[{found.low:.1f}, {found.high:.1f}]") in opening
    table = lab.runs.table("ptb_char_hmlstm_step*", scale="small").query(
        "metric == 'bpc' and split == 'valid' and evaluation == 'streams'"
    )
    told = {
        ("+layer_norm=false", ""): "{:.2f} BPC worse on validation [{:.2f}, {:.2f}]",
        ("", "+normalize_cell=true"): "the HM-LSTM is {:.2f} BPC better on validation [{:.2f}, {:.2f}]",
    }
    for turned, words in told.items():
        sides = [{"experiment": f"ptb_char_hmlstm_step{flag}"} for flag in turned]
        one = lab.probes.paired(table, "value", *sides).difference
        assert words.format(one.mean, one.low, one.high) in opening
    tested = lab.targets.compare("hm_rnn.table1_ptb", lab.runs.table("ptb_char_*", scale="small")).frame
    behind = tested[tested.subject.str.contains("better than LayerNorm LSTM")]
    assert len(behind) == 4
    assert behind.high.lt(0).all()
    least, most = -behind.ours.max(), -behind.ours.min()
    assert (
        f"an LSTM with layer normalization (of its cell, too), by {least:.2f} to {most:.2f} BPC on the first" in opening
    )
    chance = lab.probes.measured_claims().set_index("claim").loc["hm_rnn.boundaries_on_words"]
    assert f"random detector's: {chance.value:.2f} [{chance.low:.2f}, {chance.high:.2f}]" in opening
    failed = lab.runs.failures("ptb_char_hmlstm_step+straight_through=identity", "small")
    assert list(failed["seed"]) == [0, 1, 2]


@pytest.mark.soak
def test_a_classic_rnn_is_ahead_as_the_opening_says() -> None:
    table = lab.runs.table("autocomplete_*", scale="small").query("metric == 'nll_nats' and split == 'valid'")
    classic = {"experiment": "autocomplete_rnn"}
    ahead = {
        unit: lab.probes.paired(table, "value", {"experiment": f"autocomplete_{unit}"}, classic).difference
        for unit in ("gru", "lstm", "nlstm")
    }
    assert all(one.low > 0 for one in ahead.values())
    gru = ahead["gru"]
    assert f"the GRU by {gru.mean:.2f} nats on validation [{gru.low:.2f}, {gru.high:.2f}]" in opening_of()
    networks = [(run, run.model()) for run in lab.runs.recorded("autocomplete_rnn", "small")]
    texts = lab.datasets.Sequences(networks[0][0].experiment.task, "test", 20)  # type: ignore[arg-type]
    found = lab.probes.gather(networks, lab.probes.gradients, texts)
    left = found.query("where == 'input' and condition == 'trained'").groupby("lag")["value"].mean()
    assert f"a classic RNN, whose gradient loses {left[0] - left[30]:.1f}, beats all three" in opening_of()


@pytest.mark.soak
def test_what_is_said_beside_the_verdicts_is_what_the_records_say() -> None:
    beside = " ".join(README[README.index("## Verdicts") : README.index("<!-- verdicts:begin -->")].split())
    verdicts = lab.targets.verdicts(lab.runs.table(), lab.probes.measured_claims())
    holds = verdicts.query("document == 'hm_rnn' and anchor and verdict == 'holds'")
    weak = holds.subject.str.contains("CW-RNN") | holds.place.isin(
        ["layer2_slower_than_layer1", "layer3_slower_than_layer2"]
    )
    assert len(holds) == 6
    assert weak.all(), "the opening says that all of these have a caveat"
    runs = lab.runs.recorded("ptb_char_nlstm", "small")
    living = 1 - lab.runs.dead_shares(lab.runs.histories(runs)).query("memory == 'inner'").dead.mean()
    assert f"holds, as printed, for the {living:.0%} of inner cells".replace("%", " %") in beside
    table = lab.runs.table("textgen_*", scale="small").query("metric == 'nll_nats' and split == 'valid'")
    loss = table.groupby("experiment").value.mean()
    by = [
        loss[f"textgen_{worse}"] - loss[f"textgen_{better}"] for better, worse in (("gru", "lstm"), ("lstm", "nlstm"))
    ]
    assert "stacked LSTM by {:.2f} nats on validation, and that of the Nested LSTM by {:.2f}".format(*by) in beside


@pytest.mark.soak
def test_what_it_says_of_gradients_and_of_the_article_is_what_the_probes_say() -> None:
    units = ("nlstm", "lstm", "gru")
    runs = [lab.runs.load(f"autocomplete_{unit}", seed, "small") for unit in units for seed in range(3)]
    dead = lab.runs.dead_shares(lab.runs.histories(runs)).groupby("memory").dead.mean()
    assert f"{100 * dead['inner']:.0f} % of its inner memory is dead there, too" in opening_of()
    assert f"{100 * dead['layer 2']:.0f} % of the stack's upper layer" in opening_of()
    networks = [(run, run.model()) for run in runs]
    texts = lab.datasets.Sequences(runs[0].experiment.task, "test", 20)  # type: ignore[arg-type]
    found = lab.probes.gather(networks, lab.probes.gradients, texts).query("where == 'input'")
    left = found.set_index(["condition", "experiment", "seed", "lag"])["value"].unstack()
    lost = (left[0] - left[30]).rename("lost").reset_index()
    nested, stacked, gru = ({"experiment": f"autocomplete_{unit}"} for unit in units)
    for condition, words in (
        ("as initialized", "{}, {} and {} powers of ten as initialized"),
        ("trained", "{}, {} and {} trained"),
    ):
        here = lost[lost["condition"] == condition]
        means = here.groupby("experiment")["lost"].mean()
        assert words.format(*(f"{means[f'autocomplete_{unit}']:.1f}" for unit in units)) in opening_of()
        assert lab.probes.paired(here, "lost", nested, stacked).difference.low > 0
        assert lab.probes.paired(here, "lost", stacked, gru).difference.low > 0
    curves = lab.runs.curves(runs)
    first = curves[(curves["split"] == "valid") & (curves["update"] == 100)]
    for rival in ("autocomplete_gru", "autocomplete_lstm"):
        assert lab.probes.paired(first, "value", nested, {"experiment": rival}).difference.high < 0, rival
