"""The typed parameters cell of a notebook, and values that are checked against it, by our executor or in a cell."""

import ast
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import TypeAdapter

from nlstm_lab.errors import LabError, UsageError, hint

if TYPE_CHECKING:
    from nbformat import NotebookNode

TYPES = {"bool": bool, "int": int, "float": float, "str": str, "list": list, "Literal": Literal}
INJECTED = "# Parameters\n"  # how the cell that papermill writes begins


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell, `name: annotation = default`."""

    name: str
    annotation: str
    kind: Any  # what the annotation means: int, list[int], Literal["small", "paper"], int | None, ...
    default: Any


def declared(notebook: "NotebookNode") -> dict[str, Parameter]:
    """What can be set: the typed assignments of the cell tagged `parameters`; LabError: it holds anything else."""
    cells = [cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    parameters = {}
    try:
        statements = ast.parse("\n".join(cells)).body
    except SyntaxError as error:
        where = f"({error.msg}, line {error.lineno})"
        raise LabError(f"the parameters cell is not Python {where}: it may hold only `name: type = value`") from error
    for statement in statements:
        line = ast.unparse(statement)
        if not isinstance(statement, ast.AnnAssign) or statement.value is None:
            raise LabError(f"a parameters cell may hold only `name: type = value`, not `{line}`")
        name, annotation = ast.unparse(statement.target), ast.unparse(statement.annotation)
        try:
            kind = eval(annotation, {"__builtins__": {}, **TYPES})
            value = _converted(ast.literal_eval(statement.value), kind)
        except (NameError, TypeError, ValueError) as error:
            types = ", ".join(TYPES)
            raise LabError(f"`{line}` in a parameters cell: types are {types}, and the value a literal") from error
        parameters[name] = Parameter(name, annotation, kind, value)
    return parameters


def convert(value: Any, parameter: Parameter) -> Any:
    """`value`, or what it says as text (`0,1` or `[0, 1]` for a list), in the parameter's type, or UsageError."""
    try:
        return _converted(value, parameter.kind)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{parameter.name} must be {parameter.annotation}, not {value!r}") from error


def check_parameters() -> None:
    """Give the parameters of the notebook that runs in this process the types that its parameters cell declares.

    Text becomes what it says, as on the command line (`"0,1"` a list of two).

    Raises:
        UsageError: A value is nothing of its type, or papermill injected a name that the cell does not declare.
    """
    main = sys.modules["__main__"]
    kinds = getattr(main, "__annotations__", {})
    cells = [cell for cell in getattr(main, "In", []) if cell.startswith(INJECTED)]
    for statement in ast.parse("\n".join(cells)).body:
        if isinstance(statement, ast.Assign):
            known(ast.unparse(statement.targets[0]), kinds, "this notebook")
    for name, kind in kinds.items():
        annotation = kind.__name__ if isinstance(kind, type) else str(kind)
        setattr(main, name, convert(getattr(main, name), Parameter(name, annotation, kind, None)))


def known(name: str, names: Iterable[str], where: str) -> None:
    """Refuse a name that is not one of `names`. UsageError: says which one may be meant."""
    if name not in names:
        raise UsageError(f"{where} has no parameter {name!r}; {hint(name, names)}")


def _converted(value: Any, kind: Any) -> Any:
    if get_origin(kind) is list:
        items = value.strip("[] ").split(",") if isinstance(value, str) else value
        items = items if isinstance(items, list | tuple) else [items]
        items = [item.strip(" '\"") if isinstance(item, str) else item for item in items]
        return [_converted(item, get_args(kind)[0]) for item in items if item != ""]
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    if isinstance(value, str):
        with suppress(
            ValueError, TypeError, SyntaxError
        ):  # what it says, where that is of the kind; else the text itself
            if not isinstance(said := ast.literal_eval(value.capitalize()), str):
                return adapter.validate_python(said, strict=True)
    return adapter.validate_python(value, strict=True)
