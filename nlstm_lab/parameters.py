"""The typed parameters of a notebook, in its kernel and outside; what other parameters made stays committed.

Papermill and JupyterLab check no parameter: `lab.check_parameters()` does, in a cell of every notebook.
"""

import ast
import inspect
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from nlstm_lab import paths
from nlstm_lab.errors import LabError, UsageError, hint

if TYPE_CHECKING:
    from nbformat import NotebookNode

KINDS: tuple[Any, ...] = (bool, int, float, str, int | None, float | None, list[int], list[float], list[str])
TYPES = {inspect.formatannotation(kind): kind for kind in KINDS}
UNITS = {"mm": 25.4, "cm": 2.54, "in": 1}  # so many are an inch
WIDEST = 40  # inches


def declared(notebook: "NotebookNode") -> dict[str, Any]:
    """The types of a notebook's parameters by name; LabError: their cell holds more than `name: type = value`."""
    cell = "\n".join(cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    try:
        found = [(statement.target.id, ast.unparse(statement.annotation)) for statement in ast.parse(cell).body]  # type: ignore[attr-defined]
        return {name: TYPES[kind] for name, kind in found}
    except (SyntaxError, AttributeError, KeyError) as error:
        raise LabError(f"a parameters cell may hold only `name: type = value`, of {', '.join(TYPES)}") from error


def convert(name: str, kind: Any, value: Any) -> Any:
    """`value`, or what it says as text (`0,1` or `[0, 1]` for a list), in the declared type, or UsageError."""
    try:
        return TypeAdapter(kind).validate_python(_read(kind, value), strict=True)
    except ValidationError as error:
        raise UsageError(f"{name} must be {inspect.formatannotation(kind)}, not {value!r}") from error


def _read(kind: Any, value: Any) -> Any:
    if get_origin(kind) is list:
        items = value.strip("[] ").split(",") if isinstance(value, str) else value
        items = items if isinstance(items, list | tuple) else [items]
        items = [item.strip(" '\"") if isinstance(item, str) else item for item in items]
        return [_read(get_args(kind)[0], item) for item in items if item != ""]
    if kind is str:  # papermill takes 1984 for a number
        return str(value) if isinstance(value, bool | int | float) else value
    if kind is float and isinstance(value, str) and value.strip()[-2:] in UNITS:
        return inches(value.strip())
    if isinstance(value, str):
        with suppress(ValueError, SyntaxError):
            return ast.literal_eval(value.strip().capitalize())
    return value


def inches(width: float | str) -> float:
    """A width in inches, given as a number of them or as text such as "85 mm", "8.5 cm" or "3.25 in"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(mm|cm|in)?", str(width))
    if not found or not float(found[1]):
        raise UsageError(f"a width is a number of inches, or text such as '85 mm' or '8.5 cm', not {width!r}")
    if (result := float(found[1]) / UNITS[found[2] or "in"]) > WIDEST:
        raise UsageError(f"{width} is {result:g} inches, wider than any page: write millimetres as '85 mm'")
    return result


def refuse_unknown(name: str, names: Iterable[str], where: str) -> None:
    if name not in names:
        raise UsageError(f"{where} has no parameter {name!r}; {hint(name, names)}")


def check_parameters() -> None:
    """Give the parameters of the notebook that runs here the types that its parameters cell declares.

    Text becomes what it says, as on the command line (`"0,1"` a list of two), and a number where text is declared text.
    Outside notebooks nothing happens.

    Raises:
        UsageError: A value is nothing of its type, or papermill injected a name that the cell does not declare.
    """
    if (shell := _shell()) is None:
        return
    kinds, values = inspect.get_annotations(shell.user_module), shell.user_ns
    cells = [cell for cell in values.get("In", []) if cell.startswith("# Parameters\n")]  # as papermill begins its own
    for one in ast.parse("\n".join(cells)).body:
        if isinstance(one, ast.Assign):
            refuse_unknown(ast.unparse(one.targets[0]), kinds, "this notebook")
    for name, kind in kinds.items():
        if kind in KINDS:
            values[name] = convert(name, kind, values[name])


def _shell() -> Any:
    """IPython's shell, where this process is a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def current() -> dict[str, Any]:
    """The parameters of the notebook that runs in this process, as plain values by name; none outside notebooks."""
    if (shell := _shell()) is None:
        return {}
    named = {name: shell.user_ns.get(name) for name in inspect.get_annotations(shell.user_module)}
    return dict(json.loads(json.dumps(named, default=lambda value: type(value).__name__)))


def changed(target: Path, made_with: Mapping[str, Any]) -> dict[str, Any]:
    """The notebook's parameters whose values differ from those that made `target`; where any does, it is to be kept.

    No parameter does outside notebooks, in a workspace, where nothing was made, and with $NLSTM_LAB_REPLACE.
    """
    replaced = os.environ.get("NLSTM_LAB_REPLACE") or target.is_relative_to(paths.workspaces())
    if _shell() is None or not made_with or replaced:
        return {}
    now = current()
    return {name: now.get(name) for name in {**made_with, **now} if made_with.get(name) != now.get(name)}


def output_path(target: Path, made_with: Mapping[str, Any]) -> Path:
    """Where to write: `target`, or `workspaces/figures`, which is said, where other parameters made what is there."""
    if not (other := changed(target, made_with)):
        return target
    elsewhere, names = paths.trials() / target.name, ", ".join(other)
    differ = f"{names} differs" if len(other) == 1 and names[-1] != "s" else f"{names} differ"
    print(f"Committed {target.name} kept ({differ}); yours is {elsewhere.relative_to(paths.root())}")
    return elsewhere
