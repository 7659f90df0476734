"""Parameters as plain papermill injects them: `-p seeds '[0,1]'` arrives as text, and becomes what its cell declares.

Our own executor converts before it starts; this is for `papermill notebook.ipynb out.ipynb -p name value`.
"""

import ast
from typing import Any

MARK = "# Parameters"  # the first line of the cell that papermill writes


def listen() -> None:
    """Let the running IPython, if there is one, read an injected cell by the types of the parameters cell."""
    from IPython import get_ipython

    shell: Any = get_ipython()
    if shell is not None and not any(isinstance(one, Typed) for one in shell.input_transformers_post):
        shell.input_transformers_post.append(Typed(shell))


class Typed:
    """An input transformer of IPython: lines in, lines out. UsageError, and with it a failed cell: a wrong value."""

    has_side_effects = True  # so that IPython does not try it on unfinished lines

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        if not lines or lines[0].strip() != MARK:
            return lines
        from nlstm_lab.notebooks.parameters import Parameter, convert

        kinds = self.shell.user_ns.get("__annotations__", {})
        found = []
        for statement in ast.parse("".join(lines)).body:
            line = ast.unparse(statement)
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                name, value = ast.unparse(statement.targets[0]), statement.value.value
                if name in kinds and isinstance(value, str):
                    annotation = getattr(kinds[name], "__name__", "") or str(kinds[name])
                    line = f"{name} = {convert(value, Parameter(name, annotation, kinds[name], None))!r}"
            found.append(f"{line}\n")
        return [f"{MARK}\n", *found]
