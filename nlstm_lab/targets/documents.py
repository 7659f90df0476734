"""Read `data/targets/*.toml`, strictly: a key that is unknown, missing or of the wrong kind is refused."""

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nlstm_lab import paths
from nlstm_lab.errors import DamagedFile, UsageError
from nlstm_lab.targets.entries import Document

DOCUMENTS = ("nested_lstm", "hm_rnn", "madsen")


def load(name: str, folder: Path | None = None) -> Document:
    """Read the entries of a document.

    Args:
        name: "nested_lstm", "hm_rnn" or "madsen".
        folder: Where the targets lie; None for the project's own.

    Raises:
        UsageError: There is no document of that name.
        DamagedFile: Its file is not what a document should be.

    >>> import nlstm_lab as lab
    >>> table = lab.targets.load("nested_lstm").places["table1"]
    >>> [(one.split, float(one.printed)) for one in table.numbers if one.experiment == "ptb_char_nlstm"][:2]
    [('valid', 1.437), ('test', 1.399)]
    """
    path = (folder or paths.targets()) / f"{name}.toml"
    if name not in DOCUMENTS:
        raise UsageError(f"there are no targets of {name!r}; there are those of {', '.join(DOCUMENTS)}")
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError as error:
        raise DamagedFile(f"{path} is missing: restore it with git, or work in a clone of the repository") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DamagedFile(f"{path} cannot be read as TOML ({error}); restore it from the repository") from error
    try:
        return Document.model_validate({**_resolved(read), "name": name})
    except ValidationError as error:
        first = error.errors()[0]
        where = " ".join(map(str, first["loc"]))
        raise DamagedFile(f"{path}: {where}: {first['msg']}; correct it, or restore it from the repository") from error


def _resolved(read: dict[str, Any]) -> dict[str, Any]:
    """The file's tables, each place with its name and each claim with the tolerance that it names."""
    places = {name: {**place, "name": name} for name, place in read.get("places", {}).items()}
    known = read.get("tolerances", {})
    claims = [
        {**claim, "tolerance": known.get(claim["tolerance"], claim["tolerance"])} if "tolerance" in claim else claim
        for claim in read.get("claims", ())
    ]
    return {**read, "places": places, "claims": claims}
