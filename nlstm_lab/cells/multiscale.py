"""Layers of different timescales: equation 1 of Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016)."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab.cells import fast
from nlstm_lab.cells import initialization as init
from nlstm_lab.cells.base import GatedCell, Record, Records, State, product
from nlstm_lab.cells.recurrent import Recurrent


class MultiscaleCell(GatedCell):
    """Computes a layer's step, an LSTM's that its boundaries interrupt. Rows of the matrices hold i, f, g, o (, z).

    Parameters: weight_ih from the layer below (W of the paper), weight_hh from the layer itself (U), weight_th from the
    layer above (U too; none in the top layer), bias. State: h and c [B, hidden_size], z [B], 1 where a segment ended.
    """

    state_names = ("h", "c", "z")
    gates = ("i", "f", "g", "o")
    top = False  # whether no layer is above it
    detects = True  # whether it finds z, and needs no `boundary`

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, forget_bias: float, top_down: bool = True, **start: Any
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"f": forget_bias}, **start)
        reads_above = top_down and not self.top
        self.weight_th = nn.Parameter(torch.empty_like(self.weight_hh)) if reads_above else None

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.weight_th is not None:
            init.fill(self.weight_th, self.initialization, takes_input=False, hidden_size=self.hidden_size)

    def initial_state(self, batch_size: int) -> State:
        zeros = self.like.new_zeros(batch_size, self.hidden_size)
        return zeros, zeros, self.like.new_zeros(batch_size)

    def project(self, x: Tensor) -> Tensor:
        return product(x, self.weight_ih)  # without the bias, which z of the layer below does not gate

    def forward(
        self,
        input: Tensor,
        hx: Any = None,
        z_below: Tensor | None = None,
        h_above: Tensor | None = None,
        boundary: Tensor | None = None,
    ) -> Any:
        """One step: the new state, given `hx`, the last one, and what `recur` takes besides."""
        beside = {"z_below": z_below, "h_above": h_above, "boundary": boundary}
        return self.forward_beside(input, hx, **{k: tensor for k, tensor in beside.items() if tensor is not None})

    @abstractmethod
    def recur(
        self,
        projected: Tensor,
        state: State,
        record: Record | None = None,
        z_below: Tensor | None = None,
        h_above: Tensor | None = None,
        boundary: Tensor | None = None,
    ) -> State:
        """The step, given z_t of the layer below (1 if None), h_{t-1} of the one above, and z_t of its own if known."""

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}{', top' if self.top else ''}"


class Multiscale(Recurrent):
    """Unrolls layers that step through time together; h and c [num_layers, B, hidden_size], z [num_layers, B]."""

    def wiring(self, k: int) -> dict[str, Any]:
        return {**super().wiring(k), "top": k == self.num_layers - 1}

    def run(
        self,
        x: Tensor,
        states: list[State],
        steps: Sequence[Records] | None = None,
        boundaries: Tensor | None = None,
    ) -> tuple[Tensor, list[State]]:
        notes = fast.detected()
        plain = steps is None and boundaries is None and not torch.compiler.is_compiling()
        done = fast.read(self, x, states) if plain else None
        if done is not None:
            return done
        if notes is not None and steps is None:
            steps = [Records() for _ in self.layers]
        cells = cast(list[MultiscaleCell], self.cells)
        projected = cells[0].project(x).unbind()
        always = states[0][2].new_ones(x.shape[1])  # z of layer 0: "the input should not be omitted"
        output = []
        for t in range(x.shape[0]):
            above = [h for h, _c, _z in states[1:]]  # of step t - 1
            states, below = [*states], (projected[t], always)
            for k, cell in enumerate(cells):
                record = None if steps is None else steps[k].begin()
                h_above = None if cell.top else above[k]
                boundary = None if cell.top or boundaries is None else boundaries[t, :, k]
                share, z_below = below if k == 0 else (cell.project(self._dropped(below[0])), below[1])
                states[k] = cell.recur(share, states[k], record, z_below, h_above, boundary)
                below = states[k][0], states[k][2] if boundary is None or cell.detects else boundary
            output.append(torch.cat([h for h, _c, _z in states], -1) if self.all_layers else states[-1][0])
        if notes is not None and steps is not None:
            notes.append(tuple(_stacked(steps, name) for name in ("z", "z_tilde")))
        return torch.stack(output), states

    def _dropped(self, h: Tensor) -> Tensor:
        return F.dropout(h, self.dropout, self.training) if self.dropout else h


def _stacked(steps: Sequence[Records], name: str) -> Tensor:
    """What the layers recorded under a name, [T, layers, B]."""
    return torch.stack([torch.stack([record[name] for record in layer]) for layer in steps], 1)
