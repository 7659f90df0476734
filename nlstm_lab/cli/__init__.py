"""The command line: `nlstm-lab data | train | experiments | figures | ...`.

Commands import what they need when they run, so that `nlstm-lab --help` answers at once.
"""

import sys
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Train, probe and draw recurrent networks with nested and hierarchical memory."""


@app.command()
def train(
    name: Annotated[str, typer.Argument(help="An experiment, such as ptb_char_nlstm (see `nlstm-lab experiments`).")],
    seed: Annotated[int, typer.Option(help="Of the initial weights and of the order of the data.")] = 0,
    scale: Annotated[str, typer.Option(help="smoke, small or paper.")] = "small",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Train one experiment, or resume it where it was stopped, and record it."""
    from nlstm_lab import runs

    run = runs.ensure(name, seed=seed, scale=scale, device=device)
    for row in run.result["metrics"]:
        if row["split"] != "train":
            typer.echo(f"{row['split']:6}{row['reader']:9}{row['metric']:28}{row['value']:.4f}")
    typer.echo(f"recorded as {run.name}: {run.result['seconds']:.0f} s, best epoch {run.result['best_epoch']}")


def main() -> None:
    """Run the command line; an error is one sentence on standard error, exit code 2 for misuse and 1 for failure."""
    from nlstm_lab.errors import LabError

    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(args=["--debug", *arguments] if len(arguments) < len(sys.argv) - 1 else arguments)
    except LabError as error:
        if "--debug" in sys.argv:
            raise
        typer.echo(f"nlstm-lab: {error}", err=True)
        sys.exit(error.exit_code)
