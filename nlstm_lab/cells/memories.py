"""The names of the memories of a recurrent network, and what was traced of each."""

from collections.abc import Sequence
from typing import Any


def memory_names(num_layers: int, depth: int) -> list[str]:
    """Name the memories of a network, layer by layer, outermost first.

    Args:
        num_layers: Number of layers.
        depth: Memories of a layer.

    >>> memory_names(1, 1), memory_names(2, 1), memory_names(1, 3)
    (['cell'], ['layer 1', 'layer 2'], ['outer', 'middle', 'inner'])
    >>> memory_names(2, 2), memory_names(1, 4)[1:]
    (['layer 1 outer', 'layer 1 inner', 'layer 2 outer', 'layer 2 inner'], ['inner 1', 'inner 2', 'inner 3'])
    """
    if depth == 1:
        return ["cell"] if num_layers == 1 else [f"layer {k + 1}" for k in range(num_layers)]
    known = {2: ["outer", "inner"], 3: ["outer", "middle", "inner"]}
    names = known.get(depth) or ["outer", *(f"inner {k}" for k in range(1, depth))]
    return names if num_layers == 1 else [f"layer {k + 1} {name}" for k in range(num_layers) for name in names]


def memories(layers: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What was traced of the layers, flattened into one for each memory that has a state `c`, by name."""
    nested: list[dict[str, Any]] = []
    depth = 0
    for layer in layers:
        inside: Any = layer
        depth = 0
        while inside and "c" in inside:
            nested.append(inside)
            depth += 1
            inside = inside.get("memory")
    return dict(zip(memory_names(len(layers), depth), nested, strict=True)) if depth else {}
