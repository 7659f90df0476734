"""What `help` and completion show of a network's constructor: the arguments that it hands on to its cells, too."""

import inspect
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

ARGS = re.compile(r"^Args:\n((?:(?: {4}.*)?\n)*)", re.MULTILINE)
EXAMPLE = ">>>"  # begins one
ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def signature(constructor: Any, *handed_to: type, only: Container[str] | None = None) -> inspect.Signature:
    """The signature of a constructor, its `**options` those of the classes `handed_to`; `only`: those shown."""
    parameters = dict(inspect.signature(constructor).parameters)
    del parameters["self"]
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        parameters.popitem()
        for taker in reversed(handed_to):
            theirs = [one for one in inspect.signature(taker).parameters.values() if one.kind > one.VAR_POSITIONAL]
            parameters |= {one.name: one for one in theirs if only is None or one.name in only}
    return inspect.Signature(list(parameters.values()))


def entries(*classes: type) -> dict[str, str]:
    """What the docstrings of classes say below `Args:`, by argument; the first that names one counts."""
    known: dict[str, str] = {}
    for one in classes:
        section = ARGS.search(inspect.cleandoc(vars(one).get("__doc__") or "") + "\n")
        known = dict(ENTRY.findall(section[1]) if section else ()) | known
    return known


def document(one: type, names: Iterable[str], known: Mapping[str, str]) -> None:
    """Write below `Args:` of a class's docstring what is known of these arguments, in this order."""
    text = inspect.cleandoc(vars(one).get("__doc__") or one.__name__) + "\n"
    described = "Args:\n" + "".join(f"    {name}: {known[name]}\n" for name in names if name in known)
    before, example, after = ARGS.sub("", text).partition(EXAMPLE)
    one.__doc__ = f"{before.rstrip()}\n\n{described}" + (f"\n{example}{after}" if example else "")


class OfClass:
    """An attribute of a class that its instances do not have: their signature is that of `forward`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is not None:
            raise AttributeError("__signature__")
        return self.value
