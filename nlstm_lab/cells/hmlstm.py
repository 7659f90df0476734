"""The HM-LSTM: equations 1-9 of Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016)."""

from enum import IntEnum
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab.cells import fast
from nlstm_lab.cells.base import Cache, Device, Hook, Initialization, State, gates, hooked
from nlstm_lab.cells.checks import finite
from nlstm_lab.cells.hierarchical import Multiscale, MultiscaleCell
from nlstm_lab.settings import above_zero, choice

Boundary = Literal["step", "sample", "soft"]
StraightThrough = Literal["clamped", "identity"]
Selection = Literal["arithmetic", "hard"]
DetectFrom = Literal["preactivation", "hidden"]


class Operation(IntEnum):
    """What a layer does at a step (equation 2)."""

    COPY = 0
    UPDATE = 1
    FLUSH = 2


class Kind(NamedTuple):
    """A layer's place, and the choices of `HMLSTM` for its step."""

    top: bool
    boundary: Boundary
    straight_through: StraightThrough
    selection: Selection
    detect_on_copy: bool
    reset: bool
    threshold: float
    gradient_limit: float | None


def act(
    kind: Kind,
    summed: Tensor,
    h: Tensor,
    c: Tensor,
    flush: Tensor,
    below: Tensor,
    copy: Tensor,
    hook: Hook | None = None,
    *,
    slope: Any = None,
    bias: Tensor | None = None,
    gamma: Tensor | None = None,
    gamma_c: Tensor | None = None,
    bias_c: Tensor | None = None,
    weight_z: Tensor | None = None,
    chance: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A layer's step, given the sum of its products [i | f | g | o] and, where it is a row of them, the detector's.

    Takes h, c and z of the step before (`flush`), z of the layer below, `copy` (1 where both are 0), slope, parameters
    (`HMLSTMCell.pointwise`), and draws of sampled boundaries; gives h, c, z and z~. Boundaries and draws are [B, 1].
    """
    size, limit, hard = h.shape[-1], kind.gradient_limit, kind.selection == "hard"
    summed = biased(summed, bias, gamma)  # equation 4, and `gates`
    if limit is not None and summed.requires_grad:
        summed.register_hook(partial(torch.clamp, min=-limit, max=limit))
    summed = hooked(hook, "preactivation", summed)
    i, f, g, o = gates(summed[..., : 4 * size], hook)
    updated = f * c + i * g
    flushed = i * g if kind.reset else updated
    if hard:
        c = torch.where(flush > 0, flushed, torch.where(below > 0, updated, c))
    else:
        c = (1 - flush) * below * updated + copy * c + flush * flushed  # equation 2 (UPDATE, COPY, FLUSH)
    c = hooked(hook, "c", c)
    emitted = o * torch.tanh(c if gamma_c is None else F.layer_norm(c, (size,), gamma_c, bias_c))
    h = torch.where(copy > 0, h, emitted) if hard else copy * h + (1 - copy) * emitted  # equation 3
    h = hooked(hook, "h", h)
    if kind.top:
        return h, c, torch.zeros_like(flush), torch.zeros_like(flush)
    score = summed[..., -1:] if weight_z is None else (h * weight_z).sum(-1, keepdim=True)  # or footnote 2
    z = z_tilde = torch.clamp((slope * score + 1) / 2, 0, 1)  # equation 4, the hard sigmoid
    if kind.boundary != "soft":
        fires = z_tilde.detach() > (kind.threshold if chance is None else chance)  # equation 9
        carrier = z_tilde if kind.straight_through == "clamped" else score
        z = fires.to(h.dtype) + (carrier - carrier.detach())  # exactly 0 or 1; the carrier's gradient
    return h, c, z if kind.detect_on_copy else z * (1 - copy), z_tilde


def biased(summed: Tensor, bias: Tensor | None, gamma: Tensor | None) -> Tensor:
    """Pre-activations normalized, as many as `gamma` says, and with the bias."""
    if gamma is not None:
        normed = F.layer_norm(summed[..., : len(gamma)], (len(gamma),), gamma)
        summed = torch.cat([normed, summed[..., len(gamma) :]], dim=-1)
    return summed if bias is None else summed + bias


class HMLSTMCell(MultiscaleCell):
    """Computes one step of one layer. The slope of the hard sigmoid is a buffer, at first 1; at the top, z = 0.

    Shapes: input [B, input_size], h and c [B, hidden_size], z [B]; z_below [B], h_above [B, hidden_size]. `boundary`,
    `straight_through`, `selection`, `detect_from`, `detect_on_copy`, `threshold`, `layer_norm`, `normalize_boundary`,
    `normalize_cell`, `gradient_limit`, `top_down`, `reset`, `detector_scale` and `forget_bias` as in `HMLSTM`.
    """

    shown = ("z_tilde", "operation")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        top: bool = False,
        boundary: Boundary = "step",
        straight_through: StraightThrough = "clamped",
        selection: Selection = "arithmetic",
        detect_from: DetectFrom = "preactivation",
        detect_on_copy: bool = True,
        threshold: float = 0.5,
        layer_norm: bool = False,
        normalize_boundary: bool = False,
        normalize_cell: bool = False,
        gradient_limit: float | None = None,
        top_down: bool = True,
        reset: bool = True,
        detector_scale: float = 1.0,
        forget_bias: float = 1.0,
        **options: Any,
    ) -> None:
        if boundary == "soft" and selection == "hard":
            raise ValueError('selection must be "arithmetic" with soft boundaries, which choose no one operation')
        if normalize_boundary and not (layer_norm and detect_from == "preactivation"):
            raise ValueError("normalize_boundary needs layer_norm and a detector in the pre-activation")
        if not 0 <= finite(threshold, "threshold") < 1:
            raise ValueError(f"threshold must be from 0 to below 1, not {threshold!r}")
        if gradient_limit is not None:
            above_zero(gradient_limit, "gradient_limit")
        above_zero(detector_scale, "detector_scale")
        slice_rows = int(detect_from == "preactivation" and not top)
        options |= {"gate_bias": {"f": forget_bias}, "top": top, "top_down": top_down}
        super().__init__(input_size, hidden_size, bias, further_rows=slice_rows, **options)
        choice(detect_from, "detect_from", DetectFrom)
        self.boundary: Boundary = choice(boundary, "boundary", Boundary)
        self.straight_through = choice(straight_through, "straight_through", StraightThrough)
        self.selection, self.detect_on_copy = choice(selection, "selection", Selection), detect_on_copy
        self.threshold, self.gradient_limit = threshold, gradient_limit
        self.reset, self.detector_scale = reset, detector_scale
        own = detect_from == "hidden" and not top
        self.weight_z = nn.Parameter(self.like.new_empty(1, hidden_size)) if own else None
        normed = 4 * hidden_size + (slice_rows if normalize_boundary else 0)
        self.norm = self.layer_norm(normed, bias=False) if layer_norm else None
        self.norm_c = self.layer_norm(hidden_size) if normalize_cell else None
        self.register_buffer("slope", self.like.new_ones(()))
        self.slope: Tensor
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.slope.fill_(1)
        if self.weight_z is not None:
            self.weight_z.mul_(self.detector_scale)
        elif not self.top:  # the detector's rows
            for weight in (self.weight_ih, self.weight_hh, self.weight_th):
                if weight is not None:
                    weight[-1].mul_(self.detector_scale)

    def recur(
        self,
        projected: Tensor,
        state: State,
        hook: Hook | None = None,
        z_below: Tensor | None = None,
        h_above: Tensor | None = None,
    ) -> State:
        h, c, z_last = state
        z_below = torch.ones_like(z_last) if z_below is None else z_below
        flush, below = z_last.unsqueeze(-1), z_below.unsqueeze(-1)
        copy = (1 - flush) * (1 - below)
        summed = h @ self.weight_hh.t() + below * projected  # equations 5, 7
        if self.weight_th is not None and h_above is not None:
            summed = summed + flush * (h_above @ self.weight_th.t())  # equation 6
        chance = torch.rand_like(flush) if self.boundary == "sample" and not self.top else None
        further = {**self.pointwise(), "slope": self.slope, "chance": chance}
        h, c, *found = act(self.kind(), summed, h, c, flush, below, copy, hook, **further)
        z, z_tilde = (boundary[..., 0] for boundary in found)
        z = hooked(hook, "z", z)
        if hook is not None:
            hook("z_tilde", z_tilde)
            hook("operation", torch.where(z_last > self.threshold, Operation.FLUSH, (z_below > self.threshold).long()))
        return h, c, z

    def kind(self) -> Kind:
        """What `act` depends on beside tensors."""
        return Kind(*(getattr(self, name) for name in Kind._fields))

    def pointwise(self) -> dict[str, Tensor]:
        """The parameters that `act` takes, by its names."""
        own = {"bias": self.bias, "weight_z": self.weight_z, "gamma": None if self.norm is None else self.norm.weight}
        if self.norm_c is not None:
            own |= {"gamma_c": self.norm_c.weight, "bias_c": self.norm_c.bias}
        return {name: value for name, value in own.items() if value is not None}


class HMLSTM(Multiscale):
    """Unrolls layers that find the ends of their segments: `output, (h_n, c_n, z_n) = HMLSTM(size, size, 3)(x)`.

    Shapes as in `Recurrent`; h_n, c_n [num_layers, B, hidden_size], z_n [num_layers, B]. The paper's output module sees
    every layer: `all_layers=True`. `slope` may be set at any time, and is saved. What the paper (equations 1-9) leaves
    open, or offers in two forms, is an argument.

    Args:
        boundary: z by a step function ("step", equation 9), drawn from torch's global generator ("sample"), or z~
            itself ("soft").
        straight_through: z's gradient is the hard sigmoid's, zero where that is clamped ("clamped"), or 1 ("identity").
        selection: "arithmetic" on z chooses the operation and passes a gradient, or a "hard" choice that passes none.
        detect_from: z~ is a slice of the "preactivation" (equation 4), or weighs the new "hidden" state (footnote 2).
        detect_on_copy: Whether equations 4 and 8 hold at every step; if not ("whenever needed", section 3.2), z = 0
            where a layer copies.
        threshold: Of the step function, and of what `Operation` is noted where z is soft.
        layer_norm: Whether the gates' summed pre-activation is normalized, before the bias.
        normalize_boundary: Whether the detector's is taken into the same norm.
        normalize_cell: Whether c is normalized before the output's tanh.
        gradient_limit: On the size of every pre-activation's gradient (Graves 2013, section 2.1), which can overflow.
        top_down: Whether a layer reads the one above after a boundary (equation 6).
        reset: Whether FLUSH lets the old cell go; if not, it updates it. Kadar et al. (2018) leave out both.
        detector_scale: What the detector's initial weights are multiplied with.
        forget_bias: Added to the forget gate's initial bias.

    >>> import torch, nlstm_lab as lab
    >>> hmlstm = lab.HMLSTM(10, 20, num_layers=3, all_layers=True)
    >>> hmlstm.slope = 1.04
    >>> output, (h_n, c_n, z_n), layers = hmlstm.trace(torch.randn(5, 2, 10))
    >>> output.shape, z_n.shape, layers[0]["z"].shape  # likewise z_tilde and operation (`Operation`)
    (torch.Size([5, 2, 60]), torch.Size([3, 2]), torch.Size([5, 2]))
    """

    cell_class = HMLSTMCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        all_layers: bool = False,
        boundary: Boundary = "step",
        straight_through: StraightThrough = "clamped",
        selection: Selection = "arithmetic",
        detect_from: DetectFrom = "preactivation",
        detect_on_copy: bool = True,
        threshold: float = 0.5,
        layer_norm: bool = False,
        normalize_boundary: bool = False,
        normalize_cell: bool = False,
        gradient_limit: float | None = None,
        top_down: bool = True,
        reset: bool = True,
        detector_scale: float = 1.0,
        forget_bias: float = 1.0,
        initialization: Initialization = "nested_lstm",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        torchs = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size)
        options: Any = {"initialization": initialization, "device": device, "dtype": dtype, "forget_bias": forget_bias}
        options |= {"boundary": boundary, "straight_through": straight_through, "selection": selection}
        options |= {"detect_from": detect_from, "detect_on_copy": detect_on_copy, "threshold": threshold}
        options |= {"layer_norm": layer_norm, "normalize_boundary": normalize_boundary, "reset": reset}
        options |= {"normalize_cell": normalize_cell, "gradient_limit": gradient_limit, "top_down": top_down}
        super().__init__(*torchs, all_layers=all_layers, detector_scale=detector_scale, **options)

    def read_boundaries(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Any, Tensor, Tensor]:
        """Read as `forward` does; return output, last state, and every layer's z and z~ [T, num_layers, B], too.

        z and z~ have gradients, and lie time first however the input lies.
        """
        x, states, unbatched = self._prepared(input, hx)
        if (done := fast.unroll(self, x, states, True)) is None:
            caches = [Cache() for _ in self.cells]
            done = (
                *self.run(x, states, caches),
                *(torch.stack([torch.stack(one.values[key]) for one in caches], 1) for key in ("z", "z_tilde")),
            )
        output, last, z, z_tilde = done
        return self._returned(output, unbatched), self._pack(last, unbatched), z, z_tilde

    @property
    def slope(self) -> float:
        """a of the hard sigmoid, max(0, min(1, (a s + 1) / 2)), of every layer."""
        return float(cast(HMLSTMCell, self.cells[0]).slope)

    @slope.setter
    def slope(self, a: float) -> None:
        a = above_zero(a, "slope")
        for cell in cast(Any, self.cells):
            cell.slope = torch.full_like(cell.slope, a)
