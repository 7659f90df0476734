"""The errors that a user can cause or meet, each one sentence that says what to do; `--debug` shows more."""

from collections.abc import Iterable
from difflib import get_close_matches

WAY_OUT = "restore it with git, or train the run anew with --again"  # of a run's damaged file


class LabError(Exception):
    """Something failed: exit code 1."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(LabError, ValueError):
    """Something was asked for in a wrong way (a name, a type, a value): exit code 2."""

    exit_code = 2


class MissingData(LabError):
    """A data set is not where it was looked for."""


class DamagedFile(LabError):
    """A file is there, but is not what it claims to be (checksum, truncation, format)."""


class MissingRun(LabError, LookupError):
    """A run was asked for that is not recorded."""


class StaleRun(LabError):
    """A recorded run was made with another configuration than today's, or on another text."""


class FinishedRun(UsageError):
    """A recorded run has had its last epoch, so that no rule can end it any more."""


class TrainingFailed(LabError):
    """The loss or gradient (`what`) was not finite, seen after so many updates; the last good state is kept."""

    def __init__(self, message: str, what: str = "", update: int = 0) -> None:
        super().__init__(message)
        self.what, self.update = what, update


class Interrupted(LabError):
    """A signal asked to stop, and what was done is kept: exit code 130."""

    exit_code = 130


def hint(wanted: str, names: Iterable[str], otherwise: str = "") -> str:
    """The end of a sentence about a name that is not there: the one that is meant, `otherwise`, or those there are."""
    near = get_close_matches(wanted, names := list(names), n=1)
    return f"did you mean {near[0]}?" if near else otherwise or f"there are: {', '.join(names) or 'none'}"
