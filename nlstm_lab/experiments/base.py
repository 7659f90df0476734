"""What an experiment is: a row of a table as literal values, each with its source; how many values it trains."""

import fnmatch
import hashlib
import inspect
import json
import os
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from typing import Any, NamedTuple

import torch

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import Mixture, Symbols, Vectors
from nlstm_lab.datasets.corpora import PUBLISHED, only_beginning
from nlstm_lab.datasets.items import CLASSES, PIXELS, ChinesePoetry, Handwriting, MNISTGlimpses
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.datasets.words import ALPHABET, Autocomplete, TextGeneration
from nlstm_lab.errors import UsageError, hint
from nlstm_lab.models import CELL_TYPES, Interface, ModelConfig, build, parameter_count
from nlstm_lab.settings import CURRENT, SCALES, Scale, check, held, plain
from nlstm_lab.training import TrainingConfig


def _plain(value: Any) -> Any:
    """What JSON lacks, a path or a value of NumPy, as it has it."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value.tolist()


@dataclass(frozen=True)
class Experiment:
    """One row of one table at one scale, as literal values.

    Args:
        name: Of the row, with its variations.
        scale: smoke, small or paper.
        task: A frozen config of `nlstm_lab.datasets` with `load()`.
        model, training: How the network is made, and trained.
        sources: Where each value comes from, by its path, such as "training.clip"; no part of the digest.

    >>> import nlstm_lab as lab
    >>> row = lab.experiments.get("ptb_char_nlstm", "small")
    >>> row.model.hidden_size, row.sources["training.learning_rate"]
    (150, 'section 4.2: 0.002')
    """

    name: str
    scale: Scale
    task: Any
    model: ModelConfig
    training: TrainingConfig
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isprintable() or self.name[:1] in ("", "."):
            raise UsageError(f"the name of an experiment is printable text that begins with no dot, not {self.name!r}")
        check(self)

    def load(self) -> Any:
        """Load the task; at smoke scale, of a text of one's own its beginning alone."""
        with held(only_beginning, self.scale == "smoke"):
            return self.task.load()

    def config(self) -> dict[str, Any]:
        """Collect everything that decides the numbers, as plain JSON values.

        A field that came after runs were recorded (`settings.ADDED`) is left out while it holds its default.
        """
        parts = {"task": {"kind": type(self.task).__name__, **plain(self.task)}, "model": self.model.record()}
        values = {"name": self.name, "scale": self.scale, **parts, "training": plain(self.training)}
        return dict(json.loads(json.dumps(values, default=_plain)))

    def digest(self) -> str:
        """Return the first 16 hexadecimal digits of the sha256 of `config()`."""
        return hashlib.sha256(json.dumps(self.config(), sort_keys=True).encode()).hexdigest()[:16]


Rows = Mapping[str, Mapping[str, Any]]  # fields of the models, by the names of a table's rows
WIRING = {"input_size", "batch_first", "all_layers", "device", "dtype", "memory"}  # what builds a network decides
WIDEST = 1 << 20  # hidden units that a network is tried with
SOURCES = tomllib.loads(resources.files(__package__).joinpath("sources.toml").read_text("utf-8"))


class At(NamedTuple):
    """What the rows of a table share at one scale: the task, fields of the model, and how they are trained."""

    task: Any
    model: Mapping[str, Any]
    training: TrainingConfig
    widths: Sequence[int] = ()  # the rows' hidden sizes in their order, where they differ


def table(names: str, rows: Rows, scales: Mapping[Scale, At], sources: Iterable[str]) -> list[Experiment]:
    """The rows of a table at every scale.

    Args:
        names: A format string that makes an experiment's name of a row's.
        rows: The fields of each row's model, beside (or instead of) those of the scale.
        sources: Tables of `sources.toml`, of which a later one replaces what an earlier one says.
    """
    parts = [(part, said) for name in sources for part, said in SOURCES[name].items()]
    known = {f"{part}.{field}": source for part, said in parts for field, source in said.items()}
    made = []
    for k, (row, own) in enumerate(rows.items()):
        for scale, at in scales.items():
            wide = {"hidden_size": at.widths[k]} if at.widths else {}
            model = ModelConfig(**{**at.model, **wide, **own})
            made.append(Experiment(names.format(row), scale, at.task, model, at.training, known))
    return made


KNOWN: dict[tuple[str, str], Experiment] = {}  # by name and scale, in the documents' order


def names(pattern: str = "*") -> list[str]:
    """List the names that match a shell pattern, in the order of the documents; a variation's name matches itself."""
    if "+" in pattern and scales(pattern):
        return [pattern]
    return fnmatch.filter(dict.fromkeys(name for name, _ in KNOWN), pattern)


def scales(name: str) -> list[Scale]:
    """List the scales that an experiment, or a variation of it, has; none for an unknown name."""
    return [scale for scale in SCALES if (name.split("+")[0], scale) in KNOWN]


def get(name: str, scale: str = "paper") -> Experiment:
    """Look up the experiment of that name at that scale; a name may hold variations, as `name+flag=value`.

    Raises:
        UsageError: There is none, and the message lists what there is; or a variation sets no known flag.
    """
    base, *variations = name.split("+")
    if not (known := scales(base)):
        there = hint(base, names(), "`nlstm-lab experiments` lists them")
        raise UsageError(f"there is no experiment {base!r}; {there} (one of your own is given as it is, not by name)")
    if scale not in known:
        raise UsageError(f"{base!r} has no scale {scale!r}; it has {', '.join(known)}")
    experiment, flags = KNOWN[base, scale], set[str]()
    for variation in variations:
        flag, separator, value = variation.partition("=")
        if not separator or CURRENT.get(flag, flag) in flags:
            raise UsageError(f"a variation is written name+flag=value, and each flag once, not {name!r}")
        flags.add(CURRENT.get(flag, flag))
        experiment = vary(experiment, flag, _parse(value))
    return experiment


def variant(name: str, /, scale: str = "paper", **flags: Any) -> Experiment:
    """Turn one or more decisions of an experiment the other way, which gives it a name and runs of its own.

    Args:
        flags: Fields of its task, model or training, or flags of its cell type, with their new values.

    Raises:
        UsageError: There is no such experiment, scale or flag.

    >>> import nlstm_lab as lab
    >>> lab.experiments.variant("ptb_char_nlstm", forget_bias=0.0).name
    'ptb_char_nlstm+forget_bias=0.0'
    """
    return get("+".join([name, *(f"{flag}={_format(value)}" for flag, value in flags.items())]), scale)


def vary(experiment: Experiment, flag: str, value: Any) -> Experiment:
    """Set a field of an experiment's task, model or training, or a flag of its cell type. UsageError: there is none."""
    flag = CURRENT.get(flag, flag)
    name = f"{experiment.name}+{flag}={_format(value)}"
    for section in ("task", "model", "training"):
        config = getattr(experiment, section)
        if flag in {known.name for known in fields(config)}:
            return replace(experiment, name=name, **{section: replace(config, **{flag: value})})
    model = experiment.model
    if (recurrent := CELL_TYPES.get(model.cell_type)) is None:
        raise UsageError(f"{model.cell_type!r} is none of {', '.join(CELL_TYPES)}, nor imported by models.cell_type")
    signatures = map(inspect.signature, (recurrent, recurrent.cell_class))
    known = [each for signature in signatures for each in signature.parameters.values()]
    accepted = {each.name for each in known if each.kind is not each.VAR_KEYWORD} - WIRING | {"initialization"}
    if flag not in accepted:
        names = {one.name for config in (experiment.task, model, experiment.training) for one in fields(config)}
        way = (
            f"its cell type has {', '.join(sorted(accepted))}; its task, model and training {', '.join(sorted(names))}"
        )
        raise UsageError(f"{experiment.name!r} has no flag {flag!r}; {hint(flag, sorted(accepted | names), way)}")
    if any(each.name == flag and isinstance(each.default, bool) for each in known) and not isinstance(value, bool):
        raise UsageError(f"{flag} must be true or false, not {value!r}")  # a text such as "False" would count as true
    return replace(experiment, name=name, model=replace(model, flags={**model.flags, flag: value}))


def _parse(value: str) -> Any:
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def _format(value: Any) -> str:
    """The value as `_parse` reads it back, without a +, which separates variations: as JSON where text is not enough.

    >>> print(_format("novel.txt"), _format("1984"), _format("a+b.txt"), _format(1e36))
    novel.txt "1984" "a\\u002bb.txt" 1e36
    """
    value = os.fspath(value) if isinstance(value, os.PathLike) else getattr(value, "tolist", lambda: value)()  # NumPy's
    if isinstance(value, str) and "+" not in value and _parse(value) == value:
        return value
    return json.dumps(value, default=_plain).replace("+", "" if isinstance(value, float) else "\\u002b")


def ends(task: Any) -> tuple[Symbols | Vectors, Symbols | Mixture]:
    """What a task's config puts into a network and asks of it: by published counts, or else by opening the text."""
    match task:
        case MNISTGlimpses():
            return Vectors(PIXELS), Symbols(CLASSES)
        case Handwriting():
            return Vectors(3), Mixture(task.components)
        case Autocomplete():
            return Symbols(len(task.special) + len(ALPHABET), padded=True), Symbols(task.words + 2)
        case TextGeneration():
            symbols = Symbols(len(task.special) + len(ALPHABET), padded=True)
        case ChinesePoetry():
            symbols = Symbols(registry.get("poetry").counts["symbols"])
        case CharacterModelling(normalization="none") if task.corpus in PUBLISHED:
            symbols = Symbols(registry.get(task.corpus).counts["symbols"])
        case _:
            loaded = task.load()
            return loaded.input, loaded.output
    return symbols, symbols


def parameters(experiment: Experiment) -> int:
    """Count the trained values of an experiment exactly, on a device that holds none.

    >>> import nlstm_lab as lab
    >>> lab.experiments.parameters(lab.experiments.get("ptb_char_nlstm"))  # table 1 prints 4.47M
    4474850
    """
    config = replace(experiment.model, boundaries=())  # given boundaries are no parameters, and ask for the symbols
    with torch.device("meta"), held(only_beginning, experiment.scale == "smoke"):
        return parameter_count(build(config, Interface(*ends(experiment.task)), seed=0))


def width_for_parameters(experiment: Experiment, budget: int) -> int:
    """Find the widest `hidden_size` with which the experiment trains at most `budget` values: for a fair comparison.

    Hand it to `variant(name, hidden_size=...)`. UsageError: even a single unit is too much, or not every width is one.

    >>> import nlstm_lab as lab
    >>> nested = lab.experiments.parameters(lab.experiments.get("ptb_char_nlstm"))
    >>> width_for_parameters(lab.experiments.get("ptb_char_lstm1"), nested)
    1026
    """

    def count(width: int) -> int:
        model = replace(experiment.model, hidden_size=width, output_weight="glorot")  # tiles take long, and add nothing
        try:
            return parameters(replace(experiment, model=model))
        except ValueError as error:
            raise UsageError(f"{experiment.name!r} cannot be tried at every width: {error}") from error

    if width := bisect_right(range(1, WIDEST), budget, key=count):
        return width
    raise UsageError(f"no width of {experiment.name!r} has {budget:,} parameters or fewer")
