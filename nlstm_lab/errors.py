"""The errors that a user can cause or meet, each one sentence that says what to do.

The command line prints the sentence alone and exits with `exit_code`; `--debug` adds the traceback.
"""


class LabError(Exception):
    """Something failed: exit code 1."""

    exit_code = 1


class UsageError(LabError, ValueError):
    """Something was asked for in a wrong way (a name, a type, a value): exit code 2."""

    exit_code = 2


class MissingData(LabError, FileNotFoundError):
    """A data set is not where it was looked for."""

    def __str__(self) -> str:  # FileNotFoundError would print an errno tuple
        return str(self.args[0])


class DamagedFile(LabError):
    """A file is there, but is not what it claims to be (checksum, truncation, format)."""


class MissingRun(LabError, LookupError):
    """A run was asked for that nobody has recorded."""


class StaleRun(LabError):
    """A recorded run was made with another configuration than today's, or on another text."""


class TrainingFailed(LabError):
    """Training cannot go on (NaN loss, exploding gradient); the last good state is kept.

    what, update: the "loss" or "gradient" that was not finite, and after how many updates that was seen.
    """

    def __init__(self, message: str, what: str = "", update: int = 0) -> None:
        super().__init__(message)
        self.what, self.update = what, update


class Interrupted(LabError):
    """A signal asked to stop, and what was done is kept: exit code 130."""

    exit_code = 130
