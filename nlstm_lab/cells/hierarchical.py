"""Layers of different timescales (HM-RNN, equation 1), and the hierarchical RNN with given boundaries (figure 1 a)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from nlstm_lab.cells import fast
from nlstm_lab.cells.base import Cell, GatedCell, Hook, State, gates, hooked, product
from nlstm_lab.cells.recurrent import Recurrent


class MultiscaleCell(GatedCell):
    """Computes a layer's step, an LSTM's that its boundaries interrupt. Rows of the matrices hold i, f, g, o (, z).

    Parameters: weight_ih from the layer below (W of the paper), weight_hh from the layer itself (U), weight_th from the
    layer above (U too; none in the top layer), bias. State: h and c [B, hidden_size], z [B], 1 where a segment ended.
    """

    state_names = ("h", "c", "z")
    gates = ("i", "f", "g", "o")

    def __init__(self, *sizes: Any, top: bool = False, top_down: bool = True, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.top = top
        self.weight_th = nn.Parameter(torch.empty_like(self.weight_hh)) if top_down and not top else None

    def initial_state(self, batch_size: int) -> State:
        zeros = self.like.new_zeros(batch_size, self.hidden_size)
        return zeros, zeros, self.like.new_zeros(batch_size)

    def project(self, x: Tensor) -> Tensor:
        return product(x, self.weight_ih)  # without the bias, which z of the layer below does not gate


class Multiscale(Recurrent):
    """Unrolls layers that step through time together; h and c [num_layers, B, hidden_size], z [num_layers, B]."""

    def make_cell(self, k: int, input_size: int, **options: Any) -> Cell:
        return super().make_cell(k, input_size, top=k == self.num_layers - 1, **options)

    def run(
        self,
        x: Tensor,
        states: list[State],
        hooks: Sequence[Hook] | None = None,
        boundaries: Tensor | None = None,
    ) -> tuple[Tensor, list[State]]:
        if hooks is None and (done := fast.unroll(self, x, states)) is not None:
            return done[0], done[1]
        cells: list[Any] = self.cells
        projected = cells[0].project(x).unbind()
        always = states[0][2].new_ones(x.shape[1])  # z of layer 0: "the input should not be omitted"
        output = []
        for t in range(x.shape[0]):
            above = [h for h, _c, _z in states[1:]]  # of step t - 1
            states, share, z_below = [*states], projected[t], always
            for k, cell in enumerate(cells):
                hook = None if hooks is None else hooks[k]
                h_above = None if cell.top else above[k]
                given = () if cell.top or boundaries is None else (boundaries[t, :, k],)
                if k:
                    h_below = states[k - 1][0]
                    share = cell.project(F.dropout(h_below, self.dropout, self.training) if self.dropout else h_below)
                states[k] = cell.recur(share, states[k], hook, z_below, h_above, *given)
                z_below = z_below * given[0] if given else states[k][2]
            output.append(torch.cat([h for h, _c, _z in states], -1) if self.all_layers else states[-1][0])
        return torch.stack(output), states


class HierarchicalRNNCell(MultiscaleCell):
    """Computes one step of one layer, an LSTM's, only where the layer below ends a segment.

    The first step after the layer's own segment has ended starts anew: no old cell, and in the place of the layer's own
    h that of the layer above, through weight_th. The top layer never starts anew. z stays 1 until that step.

    Shapes: input [B, input_size], h and c [B, hidden_size], z [B]; z_below and boundary [B], h_above [B, hidden_size].
    `forget_bias` as in `HierarchicalRNN`.
    """

    shown = ("active",)

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, forget_bias: float = 1.0, **options: Any
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"f": forget_bias}, **options)
        self.reset_parameters()

    def recur(
        self,
        projected: Tensor,
        state: State,
        hook: Hook | None = None,
        z_below: Tensor | None = None,
        h_above: Tensor | None = None,
        boundary: Tensor | None = None,
    ) -> State:
        h, c, z = state
        anew = z.unsqueeze(-1) > 0
        recurrent = h @ self.weight_hh.t()
        if self.weight_th is not None and h_above is not None:
            recurrent = torch.where(anew, h_above @ self.weight_th.t(), recurrent)
        summed = projected + recurrent if self.bias is None else projected + recurrent + self.bias
        i, f, g, o = gates(hooked(hook, "preactivation", summed), hook)
        active = torch.ones_like(z) > 0 if z_below is None else z_below > 0
        acts = active.unsqueeze(-1)
        c = hooked(hook, "c", torch.where(acts, torch.where(anew, i * g, f * c + i * g), c))
        h = hooked(hook, "h", torch.where(acts, o * torch.tanh(c), h))
        ended = torch.zeros_like(z) if boundary is None else boundary.to(z.dtype)
        z = hooked(hook, "z", torch.where(active, ended, z))
        hooked(hook, "active", active)
        return h, c, z


class HierarchicalRNN(Multiscale):
    """Unrolls LSTM layers between given boundaries: `output, (h_n, c_n, z_n) = hrnn(input, boundaries, hx)`.

    `boundaries` [T, B, num_layers - 1], laid out and if need be packed as the input, say where layer 1 (words), 2
    (phrases), ... end a segment; a segment ends only where one of the layer below does. Further shapes as in
    `Recurrent`; h_n, c_n [num_layers, B, hidden_size], z_n [num_layers, B].

    Args:
        forget_bias: Added to the forget gate's initial bias.

    >>> import torch, nlstm_lab as lab
    >>> ends = torch.tensor([0, 0, 1, 0, 1]).float().view(5, 1, 1)  # of the words, in one text
    >>> output, (h_n, c_n, z_n) = lab.cells.HierarchicalRNN(10, 20, num_layers=2)(torch.randn(5, 1, 10), ends)
    >>> output.shape, h_n.shape
    (torch.Size([5, 1, 20]), torch.Size([2, 1, 20]))
    """

    cell_class = HierarchicalRNNCell

    def forward(  # type: ignore[override]
        self, input: Tensor | PackedSequence, boundaries: Tensor | PackedSequence, hx: Any = None
    ) -> Any:
        """Read as `Recurrent.forward` does, with the boundaries laid out, and if need be packed, as the input."""
        if isinstance(input, PackedSequence):
            if not isinstance(boundaries, PackedSequence):
                raise TypeError(f"boundaries must be packed as the input, not {type(boundaries).__name__}")
            return self._forward_packed(input, hx, boundaries=self._checked(boundaries.data, input.data))
        return self._forward_padded(input, hx, boundaries=self._checked(boundaries, input))

    def trace(  # type: ignore[override]
        self, input: Tensor, boundaries: Tensor, hx: Any = None, hooks: Sequence[Hook] | None = None
    ) -> tuple[Tensor, Any, list[dict[str, Any]]]:
        """Read as `Recurrent.trace` does."""
        return super().trace(input, hx, hooks, boundaries=self._checked(boundaries, input))

    def _checked(self, boundaries: Any, input: Tensor) -> Tensor:
        if not isinstance(boundaries, Tensor):
            raise TypeError(f"boundaries must be a tensor, not {type(boundaries).__name__}")
        wanted = [*input.shape[: input.dim() - input.is_floating_point()], self.num_layers - 1]
        if list(boundaries.shape) != wanted:
            raise ValueError(f"boundaries must be {wanted}, as the input is, not {list(boundaries.shape)}")
        return boundaries
