"""`nlstm-lab bench`, `bench hmlstm` and `bench trainings`: how fast networks train on this machine."""

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
    record: Annotated[str | None, typer.Option(help="A word for this machine: keeps it for notebook 92.")] = None,
) -> None:
    """Train a step with every variant in turn, and read a text with an HM-LSTM."""
    if context.invoked_subcommand is None:
        from nlstm_lab import bench

        if rounds < 1:
            raise UsageError(f"--rounds must be at least 1, not {rounds}")
        if record:
            paths.writable(paths.bench())
        frame = bench.bench(rounds=rounds)
        readings = [bench.read(rates=rates, rounds=rounds) for rates in bench.RATES]
        typer.echo(f"{bench.table(frame)}\n\n{bench.report(readings)}")
        if record:
            bench.save(frame, readings, paths.bench() / f"{record}.json", rounds)


@app.command()
def hmlstm(
    rounds: Annotated[
        int, typer.Option(min=1, help="Times that every variant is run, in turn; medians are shown.")
    ] = 5,
    record: Annotated[str | None, typer.Option(help="A word for this machine: keeps it for notebook 92.")] = None,
) -> None:
    """How many times as fast as a loop over its steps an HM-LSTM trains, at four widths."""
    from nlstm_lab.bench.hmlstm import measured, record_steps

    if record:
        paths.writable(paths.bench())
    rows = []
    for row in measured(rounds):
        rows.append(row)
        typer.echo(
            f"{row['network']} of {row['hidden_size']} units, {row['variant']}: {row['times_loop']:.2f} times as fast, "
            f"{row['ms']:.0f} ms, {row['of_peak']:.0%} of the peak, {row['memory_vs_loop']:.2f} of the memory"
        )
    if record:
        record_steps(rows, record)


@app.command()
def trainings(
    pattern: Annotated[str, typer.Argument(help="Experiments by a shell pattern in quotes.")] = "*",
    record: Annotated[str | None, typer.Option(help="A word for this machine: the notebooks show its hours.")] = None,
) -> None:
    """Hours that each training takes at paper scale, by a few of its updates on random input; no data is needed."""
    from nlstm_lab.bench.trainings import measured, record_hours

    if record:
        paths.writable(paths.bench())
    for name, hours in measured(pattern):
        typer.echo(f"{hours:10,.1f} h  {name}")
        if record:
            record_hours(name, hours, paths.bench() / f"trainings-{record}.csv")
