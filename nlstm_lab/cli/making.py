"""`nlstm-lab train`, `sweep` and `figures`: what makes records, and pictures of them."""

import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlstm_lab import paths
from nlstm_lab.cli import tables
from nlstm_lab.errors import LabError, UsageError

if TYPE_CHECKING:
    from nlstm_lab.execute import Job
    from nlstm_lab.sweep import Sweep

ScaleOption = Annotated[str, typer.Option(help="smoke (seconds), small (minutes on a laptop) or paper (its own size).")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Patience = Annotated[int | None, typer.Option(help="Stop a run this many epochs after its best one.")]
Precision = Annotated[str, typer.Option(help="Of products: fp32, or bf16 where machine and network have it.")]


def train(
    name: Annotated[str, typer.Argument(help="An experiment, such as ptb_char_nlstm (see `nlstm-lab experiments`).")],
    seed: Annotated[int, typer.Option(help="Of the initial weights and the order of the data.")] = 0,
    scale: ScaleOption = "small",
    device: Device = "auto",
    precision: Precision = "fp32",
    corpus: Annotated[str | None, typer.Option(help="A text file or named corpus, for the experiment's.")] = None,
    normalization: Annotated[str | None, typer.Option(help="Of your text: none, or text8 (a-z, spaces).")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of your text if not UTF-8, such as cp1252.")] = None,
    patience: Patience = None,
    again: Annotated[bool, typer.Option("--again", help="Train anew, and replace the record.")] = False,
) -> None:
    """Train one experiment, or resume it, and record it.

    A run stopped by --patience continues to its last epoch without it.
    """
    from nlstm_lab import experiments, runs

    given = {"corpus": corpus, "normalization": normalization, "encoding": encoding}
    own = {key: value for key, value in given.items() if value is not None}
    experiment = experiments.variant(name, scale=scale, **own) if own else name
    try:
        before = runs.load(experiment, seed, scale).result
    except LabError:  # `ensure` refuses what is stale or damaged, unless it is to be replaced
        before = {}
    how: Any = {"precision": precision, "again": again, "patience": patience, "finish": True}
    if not (bar := sys.stderr.isatty()):  # a log file gets a line an epoch
        logging.basicConfig(format="%(asctime)s %(message)s")
        logging.getLogger("nlstm_lab").setLevel(logging.INFO)
    run = runs.ensure(experiment, seed, scale, device, progress=bar, **how)
    for row in run.result["metrics"]:
        if row["split"] != "train":
            typer.echo(f"{row['split']:6}{row['evaluation']:9}{row['metric']:28}{row['value']:.4f}")
    ended = "" if run.state == "done" else f", {run.state}"
    recorded, hint = ("already recorded", " (--again trains anew)") if run.result == before else ("recorded", "")
    took = f"{run.result['seconds']:.0f} s, best epoch {run.result['best_epoch']}"
    typer.echo(f"{recorded} as {run.name}: {took}{ended}{hint}")


def sweep(
    pattern: tables.Pattern,
    seeds: Annotated[str, typer.Option(help="Such as 0-4 or 0,2,5.")] = "0",
    scale: ScaleOption = "small",
    scheduler: Annotated[str | None, typer.Option(help="Address of a dask scheduler; default: a local one.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes of the local scheduler; default: one per processor.")
    ] = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    patience: Patience = None,
) -> None:
    """Train every matching experiment with every seed that is not recorded yet, several at a time.

    Runs stopped by --patience continue to their last epoch without it.
    """
    from rich.progress import Progress

    from nlstm_lab import sweep as sweeps

    rows, wanted = sweeps.matching(pattern, scale, patience), sweeps.parse_seeds(seeds)
    how = {"device": device, "precision": precision, "patience": patience}
    with Progress(console=tables.console(stderr=True), refresh_per_second=2) as shown:
        bar = shown.add_task("")

        def watch(sweep: "Sweep", event: str) -> None:
            counts = f"{sweep.recorded:,} recorded, {sweep.running} running, {sweep.failed:,} failed"
            waiting = ", no workers: `dask worker ADDRESS` starts one" if sweep.workers == 0 else ""
            done = sweep.recorded + sweep.failed
            shown.update(bar, total=sweep.total, completed=done, description=f"{counts} of {sweep.total:,}{waiting}")
            if event:
                shown.console.print(event, soft_wrap=True)

        ended = sweeps.sweep(rows, wanted, scheduler, workers, watch, **how)
    if ended.failed:
        raise typer.Exit(1)


def figures(
    notebooks: Annotated[
        list[str] | None, typer.Argument(help="By number, name or path; all when none is named.")
    ] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="name=value, for the notebooks that have it.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also execute notebooks that have not changed.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Also replace figures of other parameters.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Notebooks at once; default: one per processor.")] = None,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds that one cell may take.")] = 600,
) -> None:
    """Execute the notebooks that changed; each draws its figures from committed records.

    A figure that is committed is replaced by one of the same parameters; others go to `workspaces/figures`.
    Exit code 0 when every notebook is executed or unchanged, 1 when one failed, 2 for misuse, 130 after Ctrl-C.
    """
    from tqdm import tqdm

    from nlstm_lab import execute

    if wrong := [one for one in parameters or [] if "=" not in one]:
        raise UsageError(f"a parameter is written name=value, not {wrong[0]!r}")
    jobs = execute.plan(notebooks or [], dict(one.split("=", 1) for one in parameters or []), replace)
    workers, began = min(workers or os.cpu_count() or 1, len(jobs)), time.time_ns()
    with tqdm(total=sum(len(job.code) for job in jobs), unit="cell", leave=False, disable=None) as bar:

        def tell(job: "Job") -> None:
            if job.status == "runs":
                bar.set_postfix_str(job.name, refresh=False)
                bar.update()
            else:
                values = "".join(f" {name}={value}" for name, value in job.parameters.items())
                took = f", {job.seconds:.0f} s" if job.seconds else ""
                bar.write(f"{job.name}: {job.status}{took}{values}", file=sys.stdout)
                bar.update(len(job.code) if job.status == "unchanged" else 0)

        bar.refresh()
        try:
            execute.execute_all(jobs, workers=workers, timeout=timeout, everything=everything, tell=tell)
        finally:
            bar.close()
            stand = [job.status for job in jobs]
            typer.echo(", ".join(f"{stand.count(status)} {status}" for status in dict.fromkeys(stand)))
    errors = [job.error for job in jobs if job.error]
    for error in errors:
        typer.echo(f"nlstm-lab: {error}", err=True)
    drawn = {path.stem for path in paths.trials().glob("[!.]*") if path.stat().st_mtime_ns >= began} - {"manifest"}
    if drawn:
        typer.echo(f"with other parameters than those committed: {', '.join(sorted(drawn))}, in {paths.trials()}")
    if errors:
        raise typer.Exit(1)
