"""The typed parameters cell of a notebook, and values that are checked against it."""

import ast
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, get_args, get_origin

from nbformat import NotebookNode

from nlstm_lab.errors import LabError, UsageError

TYPES = {"bool": bool, "int": int, "float": float, "str": str, "list": list, "Literal": Literal}
TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell, `name: annotation = default`."""

    name: str
    annotation: str
    kind: Any  # what the annotation means: int, list[int], Literal["small", "paper"], int | None, ...
    default: Any


def declared(notebook: NotebookNode) -> dict[str, Parameter]:
    """What can be set: the typed assignments of the cell that is tagged `parameters`.

    LabError: that cell holds anything else, or no Python, an unknown type, or a default that is not of its type.
    """
    cells = [cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    found = {}
    try:
        statements = ast.parse("\n".join(cells)).body
    except SyntaxError as error:
        raise LabError(
            f"the parameters cell is not Python ({error.msg}, line {error.lineno}): it may hold only `name: type = value`"
        ) from error
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
        found[name] = Parameter(name, annotation, kind, value)
    return found


def convert(value: Any, parameter: Parameter) -> Any:
    """`value`, or what it says as text (`0,1` or `[0, 1]` for a list), in the parameter's type.

    UsageError: it is nothing of the kind.
    """
    try:
        return _converted(value, parameter.kind)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{parameter.name} must be {parameter.annotation}, not {value!r}") from error


def _converted(value: Any, kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        matching = [option for option in inner if str(option) == str(value)]
        return matching[0] if matching else _refuse(value)
    if origin is UnionType:
        return _first(value, sorted(inner, key=lambda option: option is str))  # any text is a str: asked last
    if origin is list:
        items = value.strip("[] ").split(",") if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            _refuse(value)
        items = [item.strip(" '\"") if isinstance(item, str) else item for item in items]
        return [_converted(item, inner[0]) for item in items if item != ""]
    if isinstance(value, str) and kind is not str:
        return _from_text(value, kind)
    if kind is float and type(value) is int:
        return float(value)
    return value if type(value) is kind else _refuse(value)


def _from_text(text: str, kind: Any) -> Any:
    if kind is bool and text.lower() in TRUTH:
        return TRUTH[text.lower()]
    if kind is NoneType and text.lower() == "none":
        return None
    return kind(text) if kind in (int, float) else _refuse(text)


def _first(value: Any, kinds: list[Any]) -> Any:
    for kind in kinds:
        try:
            return _converted(value, kind)
        except (ValueError, TypeError):
            continue
    _refuse(value)


def _refuse(value: Any) -> NoReturn:
    raise ValueError(f"{value!r} is not of the type")
