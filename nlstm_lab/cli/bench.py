"""`nlstm-lab bench` and `bench trainings`: how fast networks train on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from nlstm_lab import paths
from nlstm_lab.errors import UsageError

app = typer.Typer(
    help="Speed on this machine, ratios first: one training step of each cell type; the trainings of the tables.",
    invoke_without_command=True,
)


@app.callback()
def steps(
    context: typer.Context,
    rounds: Annotated[int, typer.Option(help="Times that every variant is run, in turn; medians are shown.")] = 7,
    output: Annotated[Path | None, typer.Option(help="A JSON file for everything that was measured.")] = None,
    record: Annotated[str | None, typer.Option(help="A word for this machine: keeps it for notebook 92.")] = None,
) -> None:
    """Train a step with every variant in turn, and read a text with an HM-LSTM."""
    if context.invoked_subcommand is None:
        from nlstm_lab import bench

        if rounds < 1:
            raise UsageError(f"--rounds must be at least 1, not {rounds}")
        kept = [path for path in (output, paths.bench() / f"{record}.json" if record else None) if path is not None]
        for path in kept:
            if path.is_dir():
                raise UsageError(f"{path} is a folder: name a file in it, such as {path / 'bench.json'}")
            paths.writable(path.parent)
        frame = bench.bench(rounds=rounds)
        readings = [bench.read(rates=rates, rounds=rounds) for rates in bench.RATES]
        typer.echo(f"{bench.table(frame)}\n\n{bench.report(readings)}")
        for path in kept:
            bench.save(frame, readings, path, rounds)


@app.command()
def trainings(
    pattern: Annotated[str, typer.Argument(help="Experiments by a shell pattern in quotes.")] = "*",
    record: Annotated[str | None, typer.Option(help="A word for this machine: the notebooks show its hours.")] = None,
) -> None:
    """Hours that each training takes at paper scale, by a few of its updates on random input; no data is needed."""
    from nlstm_lab.bench.trainings import measured, record_hours

    path = paths.bench() / f"trainings-{record}.csv" if record else None
    if path is not None:
        paths.writable(path.parent)
    for name, hours in measured(pattern):
        typer.echo(f"{hours:10,.1f} h  {name}")
        if path is not None:
            record_hours(name, hours, path)
