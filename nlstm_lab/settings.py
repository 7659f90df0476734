"""What the fields of a config may hold, by their annotations; the scales, and which metrics are better high."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, fields
from numbers import Integral, Real
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from nlstm_lab.errors import UsageError

Scale = Literal["smoke", "small", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
# The metadata of a config's field that came after runs were recorded. While it holds its default it stays out of an
# experiment's config and digest, so that those of the recorded runs are what they were; the default is what was done
# before.
ADDED = {"added": True}
# Fields that have another name in records, which keep the bytes that they were written with.
RECORDED_AS = {"cell_type": "unit", "evaluation": "reader"}
CURRENT = {recorded: name for name, recorded in RECORDED_AS.items()}
# what documents report, and what a run is listed by: the first that it has
METRICS = ("bpc", "perplexity", "log_likelihood_nats", "top1_accuracy_pct", "nll_nats")
METRIC_LABELS = {"bpc": "BPC", "perplexity": "perplexity", "log_likelihood_nats": "log-likelihood (nats)",
                 "nll_nats": "NLL (nats)", "top1_accuracy_pct": "accuracy (%)",
                 "top1_accuracy_unmasked_pct": "accuracy (%, masked counted)"}  # fmt: skip
HIGHER_IS_BETTER = frozenset({"top1_accuracy_pct", "top1_accuracy_unmasked_pct", "log_likelihood_nats"})


def ended(states: Iterable[str]) -> dict[str, int]:
    """Count states alike but for the epochs, as {"16 to 21 of 35 epochs, by early stopping": 2}."""
    alike: dict[str, list[int]] = {}
    for state in states:
        epochs, _, rest = state.partition(" ")
        alike.setdefault(rest, []).append(int(epochs))
    return {f"{span(epochs)} {rest}": len(epochs) for rest, epochs in alike.items()}


def span(values: Collection[int]) -> str:
    """Say from where to where numbers go: "3,136", "16 to 21"."""
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


@contextmanager
def held(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Give a context variable a value while the block runs."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def plain(config: Any) -> dict[str, Any]:
    """The fields of a dataclass as records have them: plain values, `RECORDED_AS`, no `ADDED` one at its default."""
    values = asdict(config)
    for field in fields(config):
        if field.metadata == ADDED and getattr(config, field.name) == field.default:
            del values[field.name]
    return recorded_as(values)


def recorded_as(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with the names that records have."""
    return {RECORDED_AS.get(name, name): value for name, value in values.items()}


def counted(value: Any, name: str, least: int = 1, most: float = math.inf) -> int:
    """A whole number within these; UsageError where it is none."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        end = "on" if most == math.inf else f"to {most}"
        raise UsageError(f"{name} must be a whole number from {least} {end}, not {value!r}")
    return int(value)


def counts(values: Any, name: str, least: int = 1, most: float = math.inf) -> list[int]:
    """Whole numbers within these; UsageError where there is none, or anything else."""
    if isinstance(values, str) or not isinstance(values, Iterable) or not (found := list(values)):
        raise UsageError(f"{name} must be a list of whole numbers, at least one, not {values!r}")
    return [counted(value, name, least, most) for value in found]


def above_zero(value: Any, name: str, below: float = math.inf) -> float:
    """A number between zero and `below`, both excluded; UsageError where it is none."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < below:
        raise UsageError(f"{name} must be a number above 0 and below {below:g}, not {value!r}")
    return float(value)


def check_trace(trace: Any) -> None:
    """Raise UsageError unless this is a trace, which has coordinates."""
    if not hasattr(trace, "coords"):
        raise UsageError(f"trace must be lab.probes.trace(model, text), not {type(trace).__name__}")


def choice(value: Any, name: str, allowed: Any) -> Any:
    """One of `allowed`, a Literal or several values; UsageError where it is none."""
    if value not in (known := get_args(allowed) or tuple(allowed)):
        raise UsageError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}")
    return value


def check_seed(seed: Any) -> int:
    """A seed as a plain number; UsageError: it is no whole number from 0 to 2^63."""
    return counted(seed, "seed", 0, 2**63)


def check(config: Any, zero: Collection[str] = ("seed",)) -> None:
    """UsageError: a field is no choice, text or number above zero (of `zero`, at least zero), as it is declared."""
    for field in fields(config):
        value = getattr(config, field.name)
        kinds = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
        judged = [_judged(kind, value, 0 if field.name in zero else 1) for kind in kinds]
        if not any(right for right, _ in judged):
            raise UsageError(f"{field.name} must be {' or '.join(wanted for _, wanted in judged)}, not {value!r}")
        if hasattr(value, "tolist"):  # of NumPy: neither JSON nor a checkpoint takes it
            object.__setattr__(config, field.name, value.tolist())


def _judged(kind: Any, value: Any, least: int) -> tuple[bool, str]:
    """Whether a value is of that kind, and what one is."""
    number = not isinstance(value, bool)
    if get_origin(kind) is Literal:
        return value in get_args(kind), " or ".join(get_args(kind))
    if kind is int:
        return number and isinstance(value, Integral) and int(value) >= least, f"a whole number of {least} or more"
    if kind is float:
        return number and isinstance(value, Real) and 0 < float(value) < math.inf, "a number above zero"
    if kind is str:
        return isinstance(value, str | PathLike), "a text"
    if kind is NoneType:
        return value is None, "None"
    if get_origin(kind) is tuple:
        right = isinstance(value, tuple | list) and all(_judged(get_args(kind)[0], one, least)[0] for one in value)
        return right, f"a list, each of it {_judged(get_args(kind)[0], 0, least)[1]}"
    if isinstance(kind, type) and kind is not Any:
        return isinstance(value, kind), f"a {kind.__name__}"
    return True, ""
