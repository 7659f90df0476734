"""The vanilla recurrent network, as Madsen's article writes it."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from nlstm_lab.cells import initialization as init
from nlstm_lab.cells.base import Device, GatedCell, Hook, State, hooked
from nlstm_lab.cells.checks import choice
from nlstm_lab.cells.exchange import Exchangeable

Nonlinearity = Literal["tanh", "relu"]


class RNNCell(GatedCell):
    """Computes one step of a vanilla network, h_t = sigma(W x_t + U h_{t-1} + b).

    Shapes: input [B, input_size], h [B, hidden_size], returns the new h. `nonlinearity` as in `RNN`.
    """

    gates = ("h",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Nonlinearity = "tanh",
        **options: Any,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, **options)
        choice("nonlinearity", nonlinearity, get_args(Nonlinearity))
        self.nonlinearity = nonlinearity
        self.reset_parameters()

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        sigma = torch.tanh if self.nonlinearity == "tanh" else torch.relu
        summed = hooked(hook, "preactivation", projected + state[0] @ self.weight_hh.t())
        return (hooked(hook, "h", sigma(summed)),)


class RNN(Exchangeable):
    """Unrolls a vanilla network's layers over time: `output, h_n = RNN(input_size, hidden_size)(input, h_0)`.

    Shapes as in `Recurrent`; h_n [num_layers, B, hidden_size]. The arguments' order is that of `torch.nn.RNN`.

    Args:
        nonlinearity: sigma: "tanh" or "relu".

    >>> import torch, nlstm_lab as lab
    >>> theirs, x = torch.nn.RNN(10, 20), torch.randn(5, 3, 10)
    >>> torch.allclose(lab.cells.RNN.from_torch(theirs)(x)[0], theirs(x)[0], atol=1e-6)
    True
    """

    cell_class = RNNCell
    torch_class = nn.RNN

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Nonlinearity = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        all_layers: bool = False,
        initialization: init.Initialization = "nested_lstm",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        torchs = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size)
        options: Any = {"initialization": initialization, "device": device, "dtype": dtype}
        super().__init__(*torchs, all_layers=all_layers, nonlinearity=nonlinearity, **options)

    @property
    def mode(self) -> str:
        """`RNN_TANH` or `RNN_RELU`, as of `torch.nn.RNN`."""
        return f"RNN_{self.cells[0].nonlinearity}".upper()

    @classmethod
    def options_of(cls, module: nn.RNNBase) -> dict[str, Any]:
        return {"nonlinearity": module.nonlinearity}

    def torch_options(self) -> dict[str, Any]:
        return {"nonlinearity": self.cells[0].nonlinearity}
