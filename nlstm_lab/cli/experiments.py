"""`nlstm-lab experiments`: every row of every table that can be trained here."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlstm_lab.cli import tables
from nlstm_lab.errors import UsageError

if TYPE_CHECKING:
    from nlstm_lab.experiments import Experiment


def experiments(
    pattern: Annotated[str, typer.Argument(help="A shell pattern in quotes, such as 'ptb_char_*'.")] = "*",
    as_json: Annotated[bool, typer.Option("--json", help="Sizes and parameters of every scale, for programs.")] = False,
) -> None:
    """List the experiments: task, cell type, sizes, parameters beside the printed ones, scales, printed table."""
    from nlstm_lab.experiments import get, names, scales

    matching = names(pattern)
    if not matching:
        raise UsageError(f"no experiment matches {pattern!r}: see nlstm-lab experiments for those there are")
    rows = [_row([get(name, scale) for scale in scales(name)]) for name in matching]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    shown = [_line(row) for row in rows]
    heads = ("name", "task", "cell type", "layers x units", "parameters", "printed", "scales", "row of")
    tables.show(heads, shown)


def _row(at_scales: "list[Experiment]") -> dict[str, Any]:
    """Everything about one name; sizes and parameters by scale."""
    from nlstm_lab.experiments.sizes import parameters

    largest = at_scales[-1]
    return {
        "name": largest.name,
        "task": {"kind": type(largest.task).__name__, **vars(largest.task)},
        "cell_type": largest.model.cell_type,
        "layers": largest.model.num_layers,
        "units": {one.scale: one.model.hidden_size for one in at_scales},
        "parameters": {one.scale: parameters(one) for one in at_scales},
        "printed_parameters": largest.printed_parameters,
        "printed": largest.printed,
    }


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    """A row as shown: the sizes of the largest scale."""
    scales = list(row["units"])
    corpus = row["task"].get("corpus")
    return (
        row["name"],
        row["task"]["kind"] + (f" {corpus}" if corpus else ""),
        row["cell_type"],
        f"{row['layers']} x {row['units'][scales[-1]]}",
        f"{row['parameters'][scales[-1]]:,}",
        row["printed_parameters"] or "",
        " ".join(scales),
        row["printed"] or "",
    )
