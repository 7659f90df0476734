"""What a layer of the HM-LSTM leaves on the way forward, and what it hands on and sums up on the way back."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nlstm_lab.cells.fast import memory
from nlstm_lab.cells.fast.hmlstm_pointwise import Kind, Tensors
from nlstm_lab.cells.fast.nested import WEIGHED_STEPS, add_product
from nlstm_lab.cells.precision import times

NAMES = ("weight", "bias", "gamma", "gamma_c", "bias_c", "weight_z", "slope")  # a layer's parameters
SUMMED = {"bias": "total_bias", "gamma": "total_gamma", "gamma_c": "total_gamma_c", "bias_c": "total_bias_c"}
DETECTOR = ("weight_z", "slope")


class Options(NamedTuple):
    """The layers, lowest first, the output's form, the type of the products' factors, and two choices."""

    kinds: tuple[Kind, ...]
    all_layers: bool
    dtype: torch.dtype
    compile: bool
    keep: bool  # for the backward

    def layers(self, tensors: Sequence[Tensor | None]) -> list[dict[str, Tensor]]:
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

    def __init__(
        self, kind: Kind, like: Tensor, first: Tensor, hidden: Tensor, widths: tuple[int, int], dtype: torch.dtype
    ) -> None:
        T, B, H = hidden.shape
        self.hidden, self.h = hidden, [first, *hidden.unbind()]
        shapes = [(T + 1, B, H), (T, 4, B, H), (T, B, widths[1])]
        self.block = memory.take(like, sum(map(math.prod, shapes)))
        parts = self.block.split([math.prod(shape) for shape in shapes])
        self.c, self.gates, self.normed = (part.view(shape) for part, shape in zip(parts, shapes, strict=True))
        self.factors = memory.take(like, T + 1, B, widths[0], dtype=dtype)
        self.scalars = like.new_zeros(T + 1, 4, B, 1)  # z before step t; score, z~ and the norm's scale of it
        self.size, self.kind, self.T = H, kind, T

    def start(self, h: Tensor, c: Tensor, z: Tensor) -> None:
        self.h[0].copy_(h)
        self.c[0], self.scalars[0, 0] = c, z[:, None]
        self.factors[0, :, : self.size] = h

    def section(self, name: str) -> Tensor:
        """Of the factors those that belong to the layer "own", "below" or "above"."""
        return self.factors[..., _section(name, self.kind, self.size)]

    def saved(self) -> list[dict[str, Tensor]]:
        """Every step's buffers by the names of `act`."""
        z, score, z_tilde, scale = (part.unbind() for part in self.scalars.unbind(1))
        h, c = self.h, self.c.unbind()
        gates, normed = self.gates.flatten(0, 1).unbind(), self.normed.unbind()
        steps = []
        for t in range(self.T):
            step = dict(zip("ifgo", gates[4 * t : 4 * t + 4], strict=True), h=h[t], c=c[t], flush=z[t])
            step |= {"h_new": h[t + 1], "c_new": c[t + 1]}
            if self.kind.epsilon is not None:
                step |= {"normed": normed[t], "scale": scale[t]}
            if not self.kind.top:
                step |= {"score": score[t], "z_tilde": z_tilde[t], "z": z[t + 1]}
            steps.append(step)
        return steps

    def give(self) -> None:
        memory.give(self.block, self.factors)


def _section(name: str, kind: Kind, size: int) -> slice:
    start = {"own": 0, "below": size, "above": size if kind.bottom else 2 * size}[name]
    return slice(start, start + size)


class Backward:
    """One layer on the way back: what it hands to the step before, its sums, and its part of the weights' gradient."""

    def __init__(
        self, tape: Tape, layer: dict[str, Tensor], last: Sequence[Tensor], rows: int | None, options: Options
    ) -> None:
        self.tape, self.layer, self.saved = tape, layer, tape.saved()
        T, c = tape.T, tape.c
        B, H = c.shape[1:]
        self.map = times(layer["weight"], options.dtype, B)
        self.steps = T if rows else min(T, WEIGHED_STEPS)
        self.d_summed = memory.take(c, self.steps, B, layer["weight"].shape[0], dtype=options.dtype)
        self.d_weight = torch.zeros_like(layer["weight"], memory_format=torch.contiguous_format)
        self.after = torch.zeros_like(tape.factors[0])  # the gradient of the factors of the step after
        d_h, d_c, d_z = last
        widths = {"bias": layer["weight"].shape[0], "gamma": tape.normed.shape[2], "gamma_c": H, "bias_c": H}
        sums = {total: c.new_zeros(B, widths[name]) for name, total in SUMMED.items() if name in layer}
        self.now = sums | {"d_kept": d_h.clone(memory_format=torch.contiguous_format), "d_c": d_c.contiguous().clone()}
        self.now["d_flush"] = d_z[:, None].clone()
        self.next = {name: torch.empty_like(part) for name, part in self.now.items()}
        self.d_under = c.new_zeros(B, 1)
        self.d_scores = c.new_empty(T, B, 1) if "weight_z" in layer else None
        self.starts = {name: _section(name, tape.kind, H).start for name in ("own", "below", "above")}
        self.shared = {name: part for name, part in layer.items() if name in ("gamma", "gamma_c", "bias_c", *DETECTOR)}

    def part(self, name: str, d_factors: Tensor | None = None) -> Tensor:
        """Of the gradient of the factors (of the step after) those that belong to one layer."""
        return (self.after if d_factors is None else d_factors).narrow(1, self.starts[name], self.tape.size)

    def takes(self, t: int) -> dict[str, Tensor]:
        return self.saved[t] | self.shared | self.now | {"d_own": self.part("own")}

    def gives(self, t: int) -> dict[str, Tensor]:
        gives = self.next | {"d_summed": self.d_summed[t % self.steps], "d_under": self.d_under}
        return gives if self.d_scores is None else gives | {"d_score": self.d_scores[t]}

    def step(self, t: int) -> Tensor:
        """The gradient of this step's factors; every so many steps, their product with the factors is added."""
        self.now, self.next = self.next, self.now
        if t % self.steps == 0:
            end = min(t + self.steps, self.tape.T)
            add_product(self.d_weight, self.d_summed[: end - t], self.tape.factors[t:end])
        return self.map(self.d_summed[t % self.steps])

    def first(self, lower: "Backward | None", above: list[Tape]) -> Tensors:
        """The gradients of h, c and z before the first step."""
        d_h, d_z = self.now["d_kept"] + self.part("own"), self.now["d_flush"]
        if lower is not None and lower.tape.kind.top_down:
            d_h = d_h + lower.tape.scalars[0, 0] * lower.part("above")
        if self.tape.kind.top_down:
            d_z = d_z + (self.part("above") * above[0].h[0]).sum(1, keepdim=True)
        return d_h, self.now["d_c"], d_z[:, 0]

    def parameters(self) -> list[Tensor | None]:
        """The gradients of the parameters, in the order of `NAMES`."""
        found = {name: self.now[total].sum(0) for name, total in SUMMED.items() if name in self.layer}
        if self.d_scores is not None:
            found["weight_z"] = self.d_scores.flatten(0, 1).t() @ self.tape.hidden.flatten(0, 1)
        return [self.d_weight, *(found.get(name) for name in NAMES[1:])]
