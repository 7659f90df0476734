"""The hierarchical RNN with given boundaries, the oracle of learned ones (Chung, Ahn & Bengio 2016, figure 1 a)."""

from collections.abc import Sequence
from typing import Any, Unpack

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from nlstm_lab.cells.base import Record, Records, Start, State, noted
from nlstm_lab.cells.multiscale import Multiscale, MultiscaleCell


class HierarchicalRNNCell(MultiscaleCell):
    """Computes one step of one layer, an LSTM's, only where the layer below ends a segment.

    The first step after the layer's own segment has ended starts anew: no old cell, and in the place of the layer's own
    h that of the layer above, through weight_th. The top layer never starts anew. z stays 1 until that step.

    Shapes: input [B, input_size], h and c [B, hidden_size], z [B]; z_below and boundary [B], h_above [B, hidden_size].
    """

    detects = False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        forget_bias: float = 1.0,
        **start: Unpack[Start],
    ) -> None:
        super().__init__(input_size, hidden_size, bias, forget_bias, **start)
        self.reset_parameters()

    def recur(
        self,
        projected: Tensor,
        state: State,
        record: Record | None = None,
        z_below: Tensor | None = None,
        h_above: Tensor | None = None,
        boundary: Tensor | None = None,
    ) -> State:
        h, c, z = state
        anew = z.unsqueeze(-1) > 0
        recurrent = h @ self.weight_hh.t()
        if self.weight_th is not None and h_above is not None:
            recurrent = torch.where(anew, h_above @ self.weight_th.t(), recurrent)
        summed = projected + recurrent
        (summed,) = noted(record, preactivation=summed if self.bias is None else summed + self.bias)
        i, f, g, o = summed.chunk(4, dim=-1)
        i, f, g, o = noted(record, i=torch.sigmoid(i), f=torch.sigmoid(f), g=torch.tanh(g), o=torch.sigmoid(o))
        active = torch.ones_like(z) > 0 if z_below is None else z_below > 0
        acts = active.unsqueeze(-1)
        (c,) = noted(record, c=torch.where(acts, torch.where(anew, i * g, f * c + i * g), c))
        (h,) = noted(record, h=torch.where(acts, o * torch.tanh(c), h))
        ended = torch.zeros_like(z) if boundary is None else boundary.to(z.dtype)
        z, _ = noted(record, z=torch.where(active, ended, z), active=active)
        return h, c, z


class HierarchicalRNN(Multiscale):
    """Unrolls LSTM layers between given boundaries: `output, (h_n, c_n, z_n) = hrnn(input, boundaries, hx)`.

    `boundaries` [T, B, num_layers - 1], laid out and if need be packed as the input, say where layer 1 (words), 2
    (phrases), ... end a segment; a segment ends only where one of the layer below does. Further shapes as in
    `Recurrent`; h_n, c_n [num_layers, B, hidden_size], z_n [num_layers, B]. Boundaries that are not 0 or 1, or not
    nested, are refused on a CPU alone.

    Args:
        forget_bias: What is added to where the forget gate's bias starts.

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
        self, input: Tensor, boundaries: Tensor, hx: Any = None, steps: Sequence[Records] | None = None
    ) -> tuple[Tensor, Any, list[Record]]:
        """Read as `Recurrent.trace` does."""
        return self._trace(input, hx, steps, boundaries=self._checked(boundaries, input))

    def _checked(self, boundaries: Any, input: Tensor) -> Tensor:
        if not isinstance(boundaries, Tensor):
            raise TypeError(f"boundaries must be a tensor, not {type(boundaries).__name__}")
        wanted = [*input.shape[: input.dim() - input.is_floating_point()], self.num_layers - 1]
        if list(boundaries.shape) != wanted:
            raise ValueError(f"boundaries must be {wanted}, as the input is, not {list(boundaries.shape)}")
        # a look at values, which fake tensors have not, and for which a GPU would have to be waited for
        if boundaries.device.type == "cpu" and type(boundaries) is Tensor and not torch.compiler.is_compiling():
            if not ((boundaries == 0) | (boundaries == 1)).all():
                raise ValueError("boundaries must be 0 or 1, not anything between or beyond")
            if (boundaries[..., 1:] > boundaries[..., :-1]).any():
                raise ValueError("boundaries must be nested: a segment ends only where one of the layer below does")
        return boundaries
