"""What is committed is replaced only by what was made with the same parameters; else it goes to a workspace."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nlstm_lab import paths


def parameters() -> dict[str, Any]:
    """The parameters of the notebook that runs in this process, as plain values by name; none outside notebooks."""
    main = sys.modules["__main__"]
    named = {name: getattr(main, name, None) for name in getattr(main, "__annotations__", {})}
    known: dict[str, Any] = json.loads(json.dumps(named, default=lambda value: type(value).__name__))
    return known


def changed(made_with: Mapping[str, Any]) -> dict[str, Any]:
    """Today's parameters that are not those of `made_with`; none where it may be replaced, as by $NLSTM_LAB_REPLACE."""
    if not made_with or os.environ.get("NLSTM_LAB_REPLACE"):
        return {}
    now = parameters()
    names = [name for name in {**made_with, **now} if made_with.get(name) != now.get(name)]
    return {name: now.get(name) for name in names}


def place(target: Path, made_with: Mapping[str, Any]) -> Path:
    """Where to write: `target`, or `workspaces/figures`, which is said, where other parameters made what is there."""
    other = changed(made_with)
    if not other or target.is_relative_to(paths.workspaces()):
        return target
    elsewhere = paths.trials() / target.name
    names, shown = ", ".join(other), elsewhere.relative_to(paths.root())
    print(f"{target.name} stays as it is, since {names} is another here: what is new is {shown}")
    return elsewhere
