"""The vanilla network and the GRU, as Madsen's article writes them; how weights go to `torch.nn` and come from it."""

from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from nlstm_lab.cells import initialization as init
from nlstm_lab.cells.base import GatedCell, Hook, State, hooked
from nlstm_lab.cells.checks import choice
from nlstm_lab.cells.recurrent import Recurrent

Nonlinearity = Literal["tanh", "relu"]
Reset = Literal["before", "after"]


class Exchangeable(Recurrent):
    """A network with a counterpart in `torch.nn`, whose two biases are kept as their sum where they act as one."""

    torch_class: ClassVar[Any]  # of nn.RNN, nn.LSTM and nn.GRU
    shared: ClassVar[tuple[str, ...]] = ("num_layers", "bias", "batch_first", "dropout")  # arguments of both
    as_torch: ClassVar[dict[str, Any]] = {}  # arguments with which this class computes what torch's does
    two_biases: ClassVar[bool] = False  # whether the second bias is kept as `bias_hh`

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
        initialization: init.Initialization = "nested_lstm",
        **options: Any,
    ) -> None:
        torchs = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size)
        super().__init__(*torchs, initialization=initialization, **options)

    @classmethod
    def from_torch(cls, module: nn.RNNBase) -> Self:
        """Copy the weights of a `module` of torch that runs in one direction, on its device and of its type.

        Raises:
            TypeError: The module is of another class than `torch_class`.
            ValueError: It has two directions or a projection.
        """
        if not isinstance(module, cls.torch_class):
            raise TypeError(f"module must be a torch.nn.{cls.torch_class.__name__}, not {type(module).__name__}")
        if module.bidirectional or module.proj_size:
            raise ValueError("module must read in one direction without projection: bidirectional=False, proj_size=0")
        options = {name: getattr(module, name) for name in cls.shared} | cls.as_torch
        like = module.weight_ih_l0
        network = cls(module.input_size, module.hidden_size, **options, device=like.device, dtype=like.dtype)
        ours = {}
        for k in range(module.num_layers):  # by attribute, which weight norm and its like compute
            for name in ("weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if module.bias else [])):
                ours[f"layers.{k}.{'bias' if name == 'bias_ih' else name}"] = getattr(module, f"{name}_l{k}").detach()
            if module.bias and not cls.two_biases:
                ours[f"layers.{k}.bias"] = ours[f"layers.{k}.bias"] + ours.pop(f"layers.{k}.bias_hh")
        network.load_state_dict(ours)
        return network.train(module.training)

    def to_torch(self) -> nn.RNNBase:
        """Make the counterpart in `torch.nn` with a copy of the weights, on their device and of their type.

        Raises:
            ValueError: The counterpart cannot compute the same.
        """
        cell = self.cells[0]
        if self.all_layers or cell.initial is not None:
            raise ValueError(
                "all_layers must be False and the initial state zero: torch.nn learns none, and returns the last layer"
            )
        for name, wanted in self.as_torch.items():
            if (own := getattr(cell, name)) != wanted:
                raise ValueError(f"{name} must be {wanted!r} for torch.nn to compute the same, not {own!r}")
        options = {name: getattr(self if hasattr(self, name) else cell, name) for name in self.shared}
        like = {"device": cell.like.device, "dtype": cell.like.dtype}
        module: nn.RNNBase = self.torch_class(self.input_size, self.hidden_size, **options, **like)
        theirs = {}
        for name, weight in self.state_dict().items():
            _layers, k, parameter = name.split(".")
            theirs[f"{'bias_ih' if parameter == 'bias' else parameter}_l{k}"] = weight
            if parameter == "bias" and not self.two_biases:
                theirs[f"bias_hh_l{k}"] = torch.zeros_like(weight)
        module.load_state_dict(theirs)
        return module.train(self.training)


class RNNCell(GatedCell):
    """Computes one step of a vanilla network, h_t = sigma(W x_t + U h_{t-1} + b).

    Shapes: input [B, input_size], h [B, hidden_size], returns the new h. `nonlinearity` as in `RNN`.
    """

    gates = ("h",)

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: Nonlinearity = "tanh", **options: Any
    ) -> None:
        super().__init__(input_size, hidden_size, bias, **options)
        self.nonlinearity = choice("nonlinearity", nonlinearity, Nonlinearity)
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
    shared = (*Exchangeable.shared, "nonlinearity")

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
        **options: Any,
    ) -> None:
        torchs = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size)
        super().__init__(*torchs, nonlinearity=nonlinearity, **options)

    @property
    def mode(self) -> str:
        """`RNN_TANH` or `RNN_RELU`, as of `torch.nn.RNN`."""
        return f"RNN_{self.cells[0].nonlinearity}".upper()


class GRUCell(GatedCell):
    """Computes one step of a gated recurrent unit (Cho et al. 2014).

    The reset gate acts on h_{t-1} before the candidate's matrix (the article's equations, one bias a gate) or after it
    (`torch.nn.GRU`, with a second bias `bias_hh` inside the reset). Rows of the matrices hold r, u and the candidate g,
    torch's order; u = 1 keeps the old state, as at first: the biases of r and u start at 1.

    Shapes: input [B, input_size], h [B, hidden_size], returns the new h. `reset` as in `GRU`.
    """

    gates = ("r", "u", "g")

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, reset: Reset = "before", **options: Any
    ) -> None:
        super().__init__(input_size, hidden_size, bias, gate_bias={"r": 1.0, "u": 1.0}, **options)
        self.reset = choice("reset", reset, Reset)
        after = self.bias is not None and reset == "after"
        self.bias_hh = nn.Parameter(torch.empty_like(self.weight_hh[:, 0])) if after else None
        self.reset_parameters()

    def fans(self) -> list[int]:
        inputs = self.input_size + self.hidden_size
        return [inputs + 2 * self.hidden_size] * 2 + [inputs + self.hidden_size]  # r and u share one, g has its own

    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        (h,) = state
        size = 2 * self.hidden_size
        if self.reset == "before":
            r, u = self._gates(projected[..., :size] + h @ self.weight_hh[:size].t(), hook)
            g = torch.tanh(projected[..., size:] + (r * h) @ self.weight_hh[size:].t())
        else:
            recurrent = h @ self.weight_hh.t() if self.bias_hh is None else h @ self.weight_hh.t() + self.bias_hh
            r, u = self._gates(projected[..., :size] + recurrent[..., :size], hook)
            g = torch.tanh(projected[..., size:] + r * recurrent[..., size:])
        g = hooked(hook, "g", g)
        return (hooked(hook, "h", (1 - u) * g + u * h),)

    @staticmethod
    def _gates(summed: Tensor, hook: Hook | None) -> tuple[Tensor, Tensor]:
        summed = hooked(hook, "preactivation", summed)  # of r and u: the candidate's needs r first
        r, u = torch.sigmoid(summed).chunk(2, dim=-1)
        return hooked(hook, "r", r), hooked(hook, "u", u)


class GRU(Exchangeable):
    """Unrolls gated recurrent units over time: `output, h_n = GRU(input_size, hidden_size)(input, h_0)`.

    Shapes as in `Recurrent`; h_n [num_layers, B, hidden_size].

    Args:
        reset: Whether the reset gate acts "before" the candidate's matrix, as the article has it, or "after", as torch.

    >>> import torch, nlstm_lab as lab
    >>> theirs, x = torch.nn.GRU(10, 20), torch.randn(5, 3, 10)
    >>> torch.allclose(lab.cells.GRU.from_torch(theirs)(x)[0], theirs(x)[0], atol=1e-6)
    True
    """

    cell_class = GRUCell
    torch_class = nn.GRU
    as_torch: ClassVar[dict[str, Any]] = {"reset": "after"}
    two_biases = True
