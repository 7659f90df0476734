"""Large buffers that are used again: a CPU's allocator would clear and map every page anew."""

import math
from collections import OrderedDict

import torch
from torch import Tensor

KEPT_BUFFERS = 12
LARGE = 1 << 18  # elements

Key = tuple[int, torch.dtype]
_free: OrderedDict[Key, list[Tensor]] = OrderedDict()  # the key last used stands last


def take(like: Tensor, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
    """An uninitialized buffer, of the type (unless given) and on the device of `like`."""
    dtype = dtype or like.dtype
    size = math.prod(shape)
    free = _free.get((size, dtype)) if like.device.type == "cpu" else None
    with torch.inference_mode(False):  # or a training could not write what an evaluation has made
        return free.pop().view(shape) if free else torch.empty(shape, dtype=dtype, device=like.device)


def give(*buffers: Tensor) -> None:
    """Give back what `take` gave and nobody will read again; those unused for longest are dropped."""
    for buffer in buffers:
        if buffer.device.type == "cpu" and buffer.numel() >= LARGE:
            key = buffer.numel(), buffer.dtype
            _free.setdefault(key, []).append(buffer)
            _free.move_to_end(key)
    while sum(map(len, _free.values())) > KEPT_BUFFERS:
        oldest, group = next(iter(_free.items()))
        group.pop(0) if group else _free.pop(oldest)


def forget() -> None:
    """Let go of every buffer."""
    _free.clear()
