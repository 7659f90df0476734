"""What the arguments of cells and networks may be: each check names what is wrong, and returns what is right."""

import math
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor


def positive(value: Any, name: str) -> int:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < 1:
        kind = ValueError if whole else TypeError
        raise kind(f"{name} must be a positive integer, not {type(value).__name__} {value!r}")
    return int(value)


def finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return value  # type: ignore[return-value]


def autocasts(device: torch.device) -> bool:
    """Whether products there are cast in this block; not on a device that has no autocast, as meta."""
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def checked_input(input: Any, input_size: int, like: Tensor, *forms: str) -> Tensor:
    """`input` if it is of the type of `like`, or symbols, and in one of the `forms`: "TB" is [T, B, input_size]."""
    if not isinstance(input, Tensor):
        raise TypeError(f"input must be a tensor, not {type(input).__name__}")
    if input.dtype == torch.bool or input.is_complex():
        raise TypeError(f"input must be of type {like.dtype}, or integer symbols, not {input.dtype}")
    symbols = not input.is_floating_point()
    features = () if symbols else (input_size,)
    form = next((form for form in forms if len(form) == input.dim() - len(features)), None)
    if form is None or (features and input.shape[-1] != input_size):
        wanted = " or ".join(f"[{', '.join((*form, *map(str, features)))}]" for form in forms)
        raise ValueError(f"input must be {'integer symbols ' * symbols}{wanted}, not {list(input.shape)}")
    if "T" in form and input.shape[form.index("T")] == 0:
        raise ValueError(f"input must be at least one step long, not {list(input.shape)}")
    if not symbols and input.dtype != like.dtype and not autocasts(like.device):
        raise TypeError(f"input must be of the parameters' type {like.dtype}, not {input.dtype}")
    return input.long() if symbols and input.dtype != torch.int32 else input


def checked_state(state: Any, like: Any, names: tuple[str, ...]) -> tuple[Tensor, ...]:
    """The state that a user hands in, as a tuple, if it has the number, shapes and types of `like`."""
    given = state if isinstance(state, tuple | list) else (state,)
    wanted = like if isinstance(like, tuple) else (like,)
    if len(given) != len(wanted):
        raise ValueError(f"state must hold {', '.join(names)}: {len(wanted)} in all, not {len(given)}")
    for name, tensor, expected in zip(names, given, wanted, strict=True):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} of the state must be a tensor, not {type(tensor).__name__}")
        if tensor.shape != expected.shape:
            raise ValueError(f"{name} of the state must be {list(expected.shape)}, not {list(tensor.shape)}")
        if tensor.dtype != expected.dtype and not autocasts(tensor.device):
            raise TypeError(f"{name} of the state must be of type {expected.dtype}, not {tensor.dtype}")
    return tuple(given)
