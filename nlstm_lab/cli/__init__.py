"""The command line; commands import what they need when they run, so that `nlstm-lab --help` answers at once."""

import signal
import sys
import warnings
from importlib import metadata
from typing import Annotated, Any

import typer

from nlstm_lab.cli import data, making, tables
from nlstm_lab.errors import LabError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(data.app, name="data")
for command in (data.doctor, making.train, making.sweep, tables.runs, tables.experiments, tables.audit, making.figures):
    app.command()(command)
app.command()(tables.table)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"nlstm-lab {metadata.version('nlstm_lab')}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train, probe and draw recurrent networks with nested and hierarchical memory."""


def main() -> None:
    """Run the command line; an error is one sentence on standard error, and its exit code that of `LabError`."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # a job in the background ignores it
        signal.signal(signal.SIGINT, _once)
    warnings.formatwarning = lambda message, *_, **__: f"nlstm-lab: {message}\n"
    try:
        app(args=[argument for argument in sys.argv[1:] if argument != "--debug"])
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        known = isinstance(error, LabError)
        sentence = error if known else f"{type(error).__name__}: {error} (unexpected: --debug shows where)"
        typer.echo(f"nlstm-lab: {sentence}", err=True)
        sys.exit(getattr(error, "exit_code", 1))


def _once(number: int, frame: Any) -> None:
    """The first Ctrl-C ends what runs; those that follow would only disturb its end."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
