"""Which notebooks there are, and what executing some of them means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlstm_lab import paths
from nlstm_lab.errors import LabError, UsageError, hint
from nlstm_lab.parameters import convert, declared, known

if TYPE_CHECKING:
    from nbformat import NotebookNode


@dataclass(frozen=True)
class Job:
    """One notebook, with checked values for those of its parameters that differ from its own."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    replace: bool = False  # what is committed, also where other parameters made it

    @property
    def source(self) -> Path:
        return paths.notebooks() / f"{self.name}.ipynb"

    @property
    def output(self) -> Path:
        return paths.executed() / f"{self.name}.ipynb"

    def read(self) -> "NotebookNode":
        """The notebook as it is stored. UsageError: not there; LabError: there, but no notebook."""
        import nbformat  # takes a second or more, which a wrong name does not wait for

        try:
            return nbformat.read(self.source, as_version=4)  # type: ignore[no-any-return, no-untyped-call]
        except OSError as error:
            raise UsageError(f"cannot read notebook {self.source}: {error.strerror}") from error
        except (ValueError, nbformat.ValidationError) as error:
            raise LabError(f"{self.source} is no notebook: restore it with `git checkout`") from error


def names() -> list[str]:
    """All notebooks, in their order, without the suffix."""
    return sorted(path.stem for path in paths.notebooks().glob("[0-9]*.ipynb"))


def resolve(wanted: str) -> str:
    """The notebook that is meant by a number ("12"), a name or a path. UsageError: there is none."""
    stem = Path(wanted).name.removesuffix(".ipynb")
    for name in names():
        if stem in (name, name.split("_")[0]):
            return name
    raise UsageError(f"there is no notebook {wanted!r}; {hint(stem, names())}")


def plan(wanted: Sequence[str] = (), given: Mapping[str, Any] | None = None, replace: bool = False) -> list[Job]:
    """The notebooks to execute (all, or by number, name or path), each with those of `given` that it knows.

    Values may be text, as on the command line. replace: as `Job` has it. UsageError: a notebook or a parameter that
    nobody knows, or a value that is not of the parameter's type.
    """
    given = given or {}
    chosen = list(dict.fromkeys(map(resolve, wanted))) or names()
    if not chosen:
        raise UsageError(f"there is no notebook in {paths.notebooks()}: they come with a clone of the repository")
    typed = {name: declared(Job(name).read()) for name in chosen}
    everything = sorted({parameter for each in typed.values() for parameter in each})
    for parameter in given:
        known(parameter, everything, ", ".join(chosen))
    return [
        Job(
            name,
            {key: convert(value, typed[name][key]) for key, value in given.items() if key in typed[name]},
            replace,
        )
        for name in chosen
    ]
