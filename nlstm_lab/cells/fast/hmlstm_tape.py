"""What a layer of the HM-LSTM leaves on the way forward, and what it hands on and sums up on the way back."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from nlstm_lab.cells.fast import memory
from nlstm_lab.cells.fast.hmlstm_pointwise import Kind, Named, Tensors
from nlstm_lab.cells.fast.nested import WEIGHED_STEPS, add_product
from nlstm_lab.cells.precision import times

NAMES = ("weight", "bias", "gamma", "gamma_c", "bias_c", "weight_z", "slope")  # a layer's parameters
SUMMED = {"bias": "total_bias", "gamma": "total_gamma", "gamma_c": "total_gamma_c", "bias_c": "total_bias_c"}
DETECTOR = ("weight_z", "slope")

Columns = dict[str, Sequence[Tensor]]  # by name a tensor for every step


class Options(NamedTuple):
    """The layers, lowest first, the output's form, the type of the products' factors, and two choices."""

    kinds: tuple[Kind, ...]
    all_layers: bool
    dtype: torch.dtype
    compile: bool
    keep: bool  # for the backward

    def layers(self, tensors: Sequence[Tensor | None]) -> list[Named]:
        """The first states and the parameters of every layer by their names, those that are there."""
        count = len(self.kinds)
        found = []
        for k in range(count):
            parts = tensors[3 * count + len(NAMES) * k :]
            pairs = (*zip("hcz", tensors[3 * k :], strict=False), *zip(NAMES, parts, strict=False))
            found.append({name: part for name, part in pairs if part is not None})
        return found


class Tape:
    """What one layer leaves for the backward; of h, c, z and `factors` place t is before step t, and T the last."""

    def __init__(self, kind: Kind, gamma: int, buffers: Sequence[Tensor]) -> None:
        self.kind, self.gamma, self.buffers = kind, gamma, tuple(buffers)
        first, self.block, self.factors, self.scalars = buffers
        self.T, self.size = len(self.scalars) - 1, first.shape[1]
        shapes = _shapes(self.T, first, gamma)
        parts = self.block.split([math.prod(shape) for shape in shapes])
        self.c, self.gates, self.normed = (part.view(shape) for part, shape in zip(parts, shapes, strict=True))

    @classmethod
    def empty(cls, kind: Kind, steps: int, first: Tensor, widths: tuple[int, int], dtype: torch.dtype) -> "Tape":
        """A tape to write, for factors and a norm of the gates of so many columns."""
        block = memory.take(first, sum(map(math.prod, _shapes(steps, first, widths[1]))))
        factors = memory.take(first, steps + 1, len(first), widths[0], dtype=dtype)
        scalars = first.new_zeros(steps + 1, 4, len(first), 1)  # z before step t; score, z~ and the norm's scale of it
        return cls(kind, widths[1], (first, block, factors, scalars))

    def see(self, hidden: Tensor) -> None:
        """Take h of every step [T, B, size]."""
        self.hidden, self.h = hidden, [self.buffers[0], *hidden.unbind()]

    def start(self, h: Tensor, c: Tensor, z: Tensor) -> None:
        self.h[0].copy_(h)
        self.c[0], self.scalars[0, 0] = c, z[:, None]
        self.factors[0, :, : self.size] = h

    def section(self, name: str) -> Tensor:
        """Of the factors those that belong to the layer "own", "below" or "above"."""
        return self.factors[..., _section(name, self.kind, self.size)]

    @property
    def saved(self) -> Columns:
        """Every step's buffers by the names of `act`."""
        return self._kept | {"h": self.h[: self.T], "h_new": self.h[1:]}

    @cached_property
    def _kept(self) -> Columns:
        z, score, z_tilde, scale = (part.unbind() for part in self.scalars.unbind(1))
        c, T = self.c.unbind(), self.T
        columns = dict(zip("ifgo", (part.unbind() for part in self.gates.unbind(1)), strict=True))
        columns |= {"c": c[:T], "flush": z[:T], "c_new": c[1:]}
        if self.kind.epsilon is not None:
            columns |= {"normed": self.normed.unbind(), "scale": scale[:T]}
        if not self.kind.top:
            columns |= {"score": score[:T], "z_tilde": z_tilde[:T], "z": z[1:]}
        return columns

    def give(self) -> None:
        memory.give(self.block, self.factors)


def _shapes(T: int, first: Tensor, gamma: int) -> list[tuple[int, ...]]:
    """Of c before every step and after the last, the gates, and their normalized pre-activations."""
    B, H = first.shape
    return [(T + 1, B, H), (T, 4, B, H), (T, B, gamma)]


def alternating(even: Tensor, odd: Tensor, steps: int, behind: int) -> Sequence[Tensor]:
    """For every step one of two, by whether the step `behind` steps later is even."""
    return [odd if (t + behind) % 2 else even for t in range(steps)]


def _section(name: str, kind: Kind, size: int) -> slice:
    start = {"own": 0, "below": size, "above": size if kind.bottom else 2 * size}[name]
    return slice(start, start + size)


class Backward:
    """One layer on the way back; of what every step hands on there are two, for even and for odd steps."""

    def __init__(self, tape: Tape, layer: Named, last: Sequence[Tensor], held: bool, options: Options) -> None:
        self.tape, self.layer = tape, layer
        T, c, rows = tape.T, tape.c, layer["weight"].shape[0]
        B, H = c.shape[1:]
        self.steps = T if held else min(T, WEIGHED_STEPS)
        self.d_summed = memory.take(c, self.steps, B, rows, dtype=options.dtype)
        self.d_weight = torch.zeros_like(layer["weight"], memory_format=torch.contiguous_format)
        self.d_factors = torch.zeros_like(tape.factors[:2])
        self.maps = [times(layer["weight"], options.dtype, B, out) for out in self.d_factors]
        d_h, d_c, d_z = last
        widths = {"bias": rows, "gamma": tape.normed.shape[2], "gamma_c": H, "bias_c": H}
        first = {total: c.new_zeros(B, widths[name]) for name, total in SUMMED.items() if name in layer}
        first |= {"d_kept": d_h.clone(memory_format=torch.contiguous_format), "d_c": d_c.contiguous().clone()}
        first["d_flush"] = d_z[:, None].clone()
        other = {name: torch.empty_like(part) for name, part in first.items()}
        self.carried = [first, other] if T % 2 == 0 else [other, first]
        self.d_under = c.new_zeros(B, 1)
        self.d_scores = c.new_empty(T, B, 1) if "weight_z" in layer else None

    def part(self, name: str, behind: int = 1) -> Sequence[Tensor]:
        """Step by step, of the gradient of the factors `behind` steps later those that belong to one layer."""
        even, odd = self.d_factors[..., _section(name, self.tape.kind, self.tape.size)]
        return alternating(even, odd, self.tape.T, behind)

    def takes(self) -> Columns:
        """What every step takes, but for what other layers give."""
        T, columns = self.tape.T, self.tape.saved | {"d_own": self.part("own")}
        columns |= {name: alternating(one, self.carried[1][name], T, 1) for name, one in self.carried[0].items()}
        shared = ("gamma", "gamma_c", "bias_c", *DETECTOR)
        return columns | {name: [part] * T for name, part in self.layer.items() if name in shared}

    def gives(self) -> Columns:
        """What every step gives."""
        T = self.tape.T
        columns: Columns = {
            name: alternating(one, self.carried[1][name], T, 0) for name, one in self.carried[0].items()
        }
        d_summed = self.d_summed.unbind()
        columns |= {"d_summed": [d_summed[t % self.steps] for t in range(T)], "d_under": [self.d_under] * T}
        return columns if self.d_scores is None else columns | {"d_score": self.d_scores.unbind()}

    def step(self, t: int) -> None:
        """The gradient of this step's factors; every so many steps, their product with the factors is added."""
        self.maps[t % 2](self.d_summed[t % self.steps])
        if t % self.steps == 0:
            end = min(t + self.steps, self.tape.T)
            add_product(self.d_weight, self.d_summed[: end - t], self.tape.factors[t:end])

    def first(self, lower: "Backward | None", above: list[Tape]) -> Tensors:
        """The gradients of h, c and z before the first step."""
        left = self.carried[0]
        d_h, d_z = left["d_kept"] + self.part("own", 0)[0], left["d_flush"]
        if lower is not None and lower.tape.kind.top_down:
            d_h = d_h + lower.tape.scalars[0, 0] * lower.part("above", 0)[0]
        if self.tape.kind.top_down:
            d_z = d_z + (self.part("above", 0)[0] * above[0].h[0]).sum(1, keepdim=True)
        return d_h, left["d_c"], d_z[:, 0]

    def parameters(self) -> list[Tensor | None]:
        """The gradients of the parameters, in the order of `NAMES`."""
        found = {name: self.carried[0][total].sum(0) for name, total in SUMMED.items() if name in self.layer}
        if self.d_scores is not None:
            found["weight_z"] = self.d_scores.flatten(0, 1).t() @ torch.cat(self.tape.h[1:])
        return [self.d_weight, *(found.get(name) for name in NAMES[1:])]
