"""What was measured at length, committed: small tables that are read where they exist and measured where not.

A record is a compressed CSV file, `data/probes/<name>-<digest>.csv.gz`, whose first line says in JSON what it was
measured with (`zcat` shows it). The digest is of all that, so a record is found only for the same weights, text and
parameters.
"""

import functools
import gzip
import hashlib
import inspect
import io
import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import pandas as pd
from torch import nn

from nlstm_lab import models, paths
from nlstm_lab.datasets import Excerpt, Lines, Sequences
from nlstm_lab.errors import DamagedFile, UsageError
from nlstm_lab.models import Network
from nlstm_lab.models.network import computation
from nlstm_lab.settings import check_seed

LONG = 64  # a longer string is known by its digest: a text, most often
Place = (Excerpt, Lines, Sequences)  # texts that are known by where they stand in a corpus
KEYS = {"model": "weights", "models": "weights", "burn_in": "skip"}  # as committed records know them


class Measurement(Protocol):
    """A measurement that is recorded; `find` returns its record, or None where it would have to be measured."""

    __name__: str
    find: Callable[..., pd.DataFrame | None]

    def __call__(self, *args: Any, **kwargs: Any) -> pd.DataFrame: ...


def digest(value: str | nn.Module) -> str:
    """Take the sha256 of a text, or of a network's weights: the recorded one where only that is kept of them."""
    if isinstance(value, str):
        return hashlib.sha256(value.encode()).hexdigest()
    if isinstance(value, Network) and value.missing_weights:
        return value.missing_weights[0]
    return models.digest(value.state_dict())


def ensure(name: str, measure: Callable[[], pd.DataFrame], /, **measured_with: Any) -> pd.DataFrame:
    """Read the record called `name` of a measurement with these parameters, or else record `measure()`.

    What comes back has been through the file both times, so that both times it is the same; the frame's index is
    dropped.

    Args:
        name: What the measurement's records are called, a word of letters, digits and underscores.
        measure: Called without arguments where there is no record; returns a frame.
        measured_with: All that the result depends on: networks (known by their weights and by how they compute), texts,
            numbers, strings, and lists of them.

    Raises:
        LabError: It could not be recorded; raised before anything is measured.
    """
    key, path = _place(name, measured_with)
    if not path.is_file():
        paths.writable(path.parent)  # or what was measured at length would be lost
        table = paths.as_csv(measure(), na_rep="NaN", float_format="%.7g")
        paths.write(path, gzip.compress(f"# {key}\n{table}".encode(), mtime=0))
    return _read(path)


def recorded(
    name: str, by: Sequence[str] = (), **constants: Any
) -> Callable[[Callable[..., pd.DataFrame]], Measurement]:
    """Decorate a measurement `(model, text, ...)`: on a place in a corpus it reads its record, or makes one.

    On any other text (a string, codes), nothing is recorded.

    Args:
        name: Of the records.
        by: Parameters that are always part of the key; any other is where it differs from its default.
        constants: What else it is measured with, as the key names it.
    """

    def decorate(measure: Callable[..., pd.DataFrame]) -> Measurement:
        signature = inspect.signature(measure)
        subject, text = list(signature.parameters)[:2]
        defaults = {name: parameter.default for name, parameter in signature.parameters.items()}

        def bound(*args: Any, **kwargs: Any) -> dict[str, Any]:
            arguments = signature.bind(*args, **kwargs)
            arguments.apply_defaults()
            return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in arguments.arguments.items()}

        def key(given: dict[str, Any]) -> dict[str, Any]:
            known_by = {subject: given.pop(subject), "text": str(given.pop(text))} | constants
            known_by |= {name: value for name, value in given.items() if name in by or value != defaults[name]}
            return {KEYS.get(name, name): value for name, value in known_by.items()}

        @functools.wraps(measure)
        def measured(*args: Any, **kwargs: Any) -> pd.DataFrame:
            given = bound(*args, **kwargs)
            check_seed(given.get("seed", 0))
            if not isinstance(given[text], Place):
                if text == "texts" and isinstance(given[text], int | str | None):
                    raise UsageError(f"texts must be a list of strings, not {given[text]!r}"[:100])
                return measure(*args, **kwargs)
            return ensure(name, lambda: measure(*args, **kwargs), **key(given))

        def find(*args: Any, **kwargs: Any) -> pd.DataFrame | None:
            path = _place(name, key(bound(*args, **kwargs)))[1]
            return _read(path) if path.is_file() else None

        measured.find = find  # type: ignore[attr-defined]
        return cast(Measurement, measured)

    return decorate


def read(text: Any) -> Any:
    """Return the text that stands at a place in a corpus, and any other text as it is."""
    return text.read() if isinstance(text, Place) else text


def _place(name: str, measured_with: dict[str, Any]) -> tuple[str, Path]:
    """What a record is known by, and where it lies."""
    if not name.isidentifier():
        raise UsageError(f"a probe record is called by a word of letters, digits and underscores, not {name!r}")
    key = json.dumps({k: _known(k, value) for k, value in sorted(measured_with.items())})
    return key, paths.probes() / f"{name}-{digest(key)[:16]}.csv.gz"


def _read(path: Path) -> pd.DataFrame:
    try:
        first, _, table = gzip.decompress(path.read_bytes()).decode().partition("\n")
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError):
        first = table = ""
    if f"-{digest(first.removeprefix('# '))[:16]}." not in path.name:
        raise DamagedFile(f"{path.name} is not a record of what its name says; delete it to have it measured anew")
    return pd.read_csv(io.StringIO(table), keep_default_na=False, na_values=["NaN"])


def damaged() -> list[str]:
    """What is wrong with the records that are here: those that are cut, or not of what their names say."""
    wrong = []
    for path in sorted(paths.probes().glob("*.csv.gz")):
        try:
            _read(path)
        except (DamagedFile, OSError, ValueError):
            wrong.append(f"{path.name} is not a record of what its name says")
    return wrong


def _known(name: str, value: Any) -> Any:
    """A parameter as it is written into the record."""
    if isinstance(value, list) and all(isinstance(each, nn.Module) for each in value):
        return [_known(name, each) for each in value]
    if isinstance(value, nn.Module):
        own = computation(value)
        if isinstance(value, Network):
            if value.name and own == value.as_built:  # a run's: known by its weights
                return digest(value)
            value.require_weights()
        return f"{digest(value)} {digest(own)} {models.digest(dict(value.named_buffers()))}"
    if isinstance(value, str) and len(value) > LONG:
        return digest(value)
    try:
        return json.loads(json.dumps(value, default=lambda one: one.tolist()))  # of NumPy
    except (TypeError, AttributeError):
        raise UsageError(f"{name} of a probe record must be a network, a number, a string or a list of them") from None
