"""The layer-normalized LSTM (Ba, Kiros & Hinton 2016, arXiv 1607.06450), a baseline of the HM-RNN paper."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from nlstm_lab.cells.base import GatedCell, Hook, State, hooked, product
from nlstm_lab.cells.checks import choice
from nlstm_lab.cells.recurrent import Recurrent

Normalized = Literal["products", "sum"]


class LayerNormLSTMCell(GatedCell):
    """Computes one step of a layer-normalized LSTM (the equations in the supplementary material of Ba et al.).

    The one bias acts after the norm; all four gates share one mean and deviation.

    Shapes: input [B, input_size], h and c [B, hidden_size] each, returns the new (h, c). `normalized`,
    `normalize_cell` and `forget_bias` as in `LayerNormLSTM`.
    """

    state_names = ("h", "c")
    gates = ("i", "f", "g", "o")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        normalized: Normalized = "products",
        normalize_cell: bool = True,
        forget_bias: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"f": forget_bias}, **options)
        choice("normalized", normalized, get_args(Normalized))
        self.normalized = normalized
        new: Any = {"device": self.like.device, "dtype": self.like.dtype}
        rows = 4 * hidden_size
        self.norm = nn.LayerNorm(rows, bias=False, **new)
        self.norm_ih = nn.LayerNorm(rows, bias=False, **new) if normalized == "products" else None
        self.norm_c = nn.LayerNorm(hidden_size, **new) if normalize_cell else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for norm in (self.norm, self.norm_ih, self.norm_c):
            if norm is not None:
                norm.reset_parameters()

    def project(self, x: Tensor) -> Tensor:
        return product(x, self.weight_ih) if self.norm_ih is None else self.norm_ih(product(x, self.weight_ih))

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        h, c = state
        if self.norm_ih is None:
            summed = self.norm(projected + h @ self.weight_hh.t())
        else:
            summed = projected + self.norm(h @ self.weight_hh.t())  # their first equation
        summed = hooked(hook, "preactivation", summed if self.bias is None else summed + self.bias)
        i, f, g, o = summed.chunk(4, dim=-1)
        i, f = hooked(hook, "i", torch.sigmoid(i)), hooked(hook, "f", torch.sigmoid(f))
        g, o = hooked(hook, "g", torch.tanh(g)), hooked(hook, "o", torch.sigmoid(o))
        c = hooked(hook, "c", f * c + i * g)  # the second
        h = hooked(hook, "h", o * torch.tanh(c if self.norm_c is None else self.norm_c(c)))  # the third
        return h, c


class LayerNormLSTM(Recurrent):
    """Unrolls layer-normalized LSTMs: `output, (h_n, c_n) = LayerNormLSTM(input_size, hidden_size)(input)`.

    Shapes as in `Recurrent`; h_n and c_n [num_layers, B, hidden_size].

    Args:
        normalized: "products" norms W x and U h each by itself, as Ba et al. write it; "sum" norms W x + U h, as
            `HMLSTM` must (there a product may be gated to zero, which has no norm).
        normalize_cell: Whether c is normed on its way to the output.
        forget_bias: Added to the forget gate's initial bias.

    >>> import torch, nlstm_lab as lab
    >>> output, (h_n, c_n) = lab.cells.LayerNormLSTM(10, 20)(torch.randn(5, 3, 10))
    >>> output.shape, c_n.shape
    (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]))
    """

    cell_class = LayerNormLSTMCell
