"""How the command line shows a table: as wide as the terminal; in a pipe or a file, a line for each row."""

import os
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

UNBROKEN = 10_000  # characters: what a program reads is not folded


def console(stderr: bool = False) -> Console:
    """Standard output, as wide as the terminal or `$COLUMNS` says, or standard error; no text in it is markup."""
    known = stderr or sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=None if known else UNBROKEN)


def show(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; cells that are too wide are folded. Rows may be shorter than the heads."""
    table = Table(box=None, pad_edge=False, show_header=any(heads))
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)
