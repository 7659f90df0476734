"""`nlstm-lab experiments`: every row of every table that can be trained here."""

from typing import Annotated

import typer

from nlstm_lab.cli import tables
from nlstm_lab.errors import UsageError


def experiments(
    pattern: Annotated[str, typer.Argument(help="A shell pattern in quotes, such as 'ptb_char_*'.")] = "*",
) -> None:
    """List the experiments: task, cell type, sizes, parameters beside the printed ones, scales, printed table."""
    from nlstm_lab.experiments import get, names, parameters, scales

    if not (matching := names(pattern)):
        raise UsageError(f"no experiment matches {pattern!r}: see nlstm-lab experiments for those there are")
    rows = []
    for name in matching:
        largest = get(name, scales(name)[-1])
        corpus, size = getattr(largest.task, "corpus", ""), f"{largest.model.num_layers} x {largest.model.hidden_size}"
        task, count = f"{type(largest.task).__name__} {corpus}".rstrip(), f"{parameters(largest):,}"
        printed = largest.printed_parameters or "", " ".join(scales(name)), largest.printed or ""
        rows.append((name, task, largest.model.cell_type, size, count, *printed))
    tables.show(("name", "task", "cell type", "layers x units", "parameters", "printed", "scales", "row of"), rows)
