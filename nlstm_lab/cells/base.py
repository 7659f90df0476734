"""What the steps of all cell types share: `Cell.recur`, written once, readably, which every faster path equals.

Initializations, gate block by gate block, in the order of the rows of a matrix:

`nested_lstm`: Nested LSTMs, section 4, as we read it: the matrices that take the input vector Glorot uniform, every
other one orthogonal. `glorot`: every matrix Glorot uniform. `madsen`: Glorot uniform as the article's cells start,
whose framework keeps the matrices of several gates, for the input and for the hidden state, in one kernel [inputs,
outputs], and draws it as one. `torch`: everything, biases included, uniform within 1 / sqrt(hidden_size), as
`torch.nn.LSTM` starts; `forget_bias` and its like are added to that.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab.cells.checks import checked_input, checked_state, finite, positive
from nlstm_lab.settings import choice

State = tuple[Tensor, ...]
Device = torch.device | str | int | None
# Called with the name and value of every gate and state of a step, h always; what a nested memory has is called
# "memory.c" and so on. A memory's state is called c. What a hook returns is what the step goes on with; None: the value
# itself. Training counts dead cells where i, f and g are shown, too; a probe about a gate needs that gate shown.
Hook = Callable[[str, Tensor], Tensor | None]
Initialization = Literal["nested_lstm", "glorot", "madsen", "torch"]
RECORDED = {"nested_lstm": "paper", "madsen": "tensorflow"}  # what records call them, whose digests stay as they are


def hooked(hook: Hook | None, name: str, value: Tensor) -> Tensor:
    """Show a `value` by its `name` to a hook, and return what the step goes on with: so it can be edited."""
    if hook is None:
        return value
    new = hook(name, value)
    return value if new is None else new


def gates(summed: Tensor, hook: Hook | None = None, tanh: bool = True) -> tuple[Tensor, ...]:
    """The gates i, f, g, o of pre-activations [..., 4 * hidden_size]; the candidate g of tanh, or as it is."""
    i, f, g, o = summed.chunk(4, dim=-1)
    i, f = hooked(hook, "i", torch.sigmoid(i)), hooked(hook, "f", torch.sigmoid(f))
    return i, f, hooked(hook, "g", torch.tanh(g) if tanh else g), hooked(hook, "o", torch.sigmoid(o))


class Cache:
    """A hook that keeps what it is shown, a list for each name; another `hook` may replace the values before."""

    def __init__(self, hook: Hook | None = None) -> None:
        self.hook, self.values = hook, dict[str, list[Tensor]]()

    def __call__(self, name: str, value: Tensor) -> Tensor:
        value = hooked(self.hook, name, value)
        self.values.setdefault(name, []).append(value)
        return value


def memory_names(num_layers: int, depth: int) -> list[str]:
    """Name the memories of a network, `depth` in each layer, layer by layer, outermost first.

    >>> memory_names(1, 1), memory_names(2, 1), memory_names(1, 4)
    (['cell'], ['layer 1', 'layer 2'], ['outer', 'inner 1', 'inner 2', 'inner 3'])
    >>> memory_names(2, 2)
    ['layer 1 outer', 'layer 1 inner', 'layer 2 outer', 'layer 2 inner']
    """
    known = {1: [""], 2: ["outer", "inner"], 3: ["outer", "middle", "inner"]}
    names = known.get(depth) or ["outer", *(f"inner {k}" for k in range(1, depth))]
    layers = [""] if num_layers == 1 else [f"layer {k + 1}" for k in range(num_layers)]
    return [f"{layer} {name}".strip() or "cell" for layer in layers for name in names]


def memories(layers: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What was traced of the layers, one for each memory that has a state `c`, by name, with what is inside it."""
    found: list[dict[str, Any]] = []
    for layer in layers:
        while "c" in layer:
            found.append(layer)
            layer = {name.removeprefix("memory."): layer[name] for name in layer if name.startswith("memory.")}
    return dict(zip(memory_names(len(layers), len(found) // len(layers)), found, strict=True)) if found else {}


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """W x + b for any number of steps, x [..., columns]; integer symbols [...] are looked up, as one-hot vectors."""
    if x.is_floating_point():
        return F.linear(x, weight, bias)
    table = weight.t()
    try:
        # few symbols cost less in a table that is not laid out by rows
        columns = F.embedding(x, table.contiguous() if x.numel() >= len(table) else table)
    except IndexError:
        raise ValueError(f"input must hold symbols from 0 to {len(table) - 1}, not others") from None
    return columns if bias is None else columns + bias


class Module(nn.Module):
    """A module that can be copied whatever computes its weights."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy as torch does; of weights that are computed (weight norm, pruning) their values."""
        for part in self.modules():
            for value in vars(part).values():
                if isinstance(value, Tensor) and not value.is_leaf and id(value) not in memo:
                    memo[id(value)] = value.detach().clone()
        memo[id(self)] = fresh = type(self).__new__(type(self))
        fresh.__setstate__(copy.deepcopy(vars(self), memo))  # type: ignore[no-untyped-call]
        return fresh


class Cell(Module, ABC):
    """One step of a recurrent network: x_t and the last state in, the new state out.

    Shapes: input [B, input_size] (or [input_size], or integer symbols [B] or []), each part of the state [B,
    hidden_size] where the cell does not say otherwise; where none is given, zeros or what was learned.

    Raises:
        TypeError: A size, an input or a state of a wrong type, by its name; so does `forward`.
        ValueError: A wrong size, shape or choice, by its name; so does `forward`.
    """

    state_names: tuple[str, ...] = ("h",)  # of the flat state
    part_names: tuple[str, ...] | None = None  # of what users see, where that differs
    shown: tuple[str, ...] = ()  # what a hook sees and cannot replace
    takes_input = True  # whether x_t is the network's input, and not another cell's state
    initial: nn.Parameter | None  # [parts of the flat state, hidden_size], where these are learned

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = positive(input_size, "input_size")
        self.hidden_size = positive(hidden_size, "hidden_size")
        self.register_parameter("initial", None)

    def reset_parameters(self) -> None:
        """Draw the parameters anew from torch's global generator; norms and cells inside start by themselves."""
        for part in self.children():
            if (reset := getattr(part, "reset_parameters", None)) is not None:
                reset()

    @abstractmethod
    def project(self, x: Tensor) -> Tensor:
        """Compute the input's share of the pre-activations for any number of steps at once: x [..., input_size]."""

    @abstractmethod
    def recur(self, projected: Tensor, state: State, hook: Hook | None = None) -> State:
        """Take the step proper, given x_t's share of the pre-activations; show gates and states to `hook`."""

    def step(self, x: Tensor, state: State, hook: Hook | None = None) -> State:
        """Take x_t [B, input_size] and a flat state to the next flat state."""
        return self.recur(self.project(x), state, hook)

    @property
    def like(self) -> Tensor:
        """A tensor on the device and of the type of the parameters."""
        return next(self.parameters(), torch.empty(0))

    def layer_norm(self, size: int, bias: bool = True) -> nn.LayerNorm:
        """Make a layer normalization of `size` features on the device and in the type of the parameters."""
        return nn.LayerNorm(size, bias=bias, device=self.like.device, dtype=self.like.dtype)

    def initial_state(self, batch_size: int) -> State:
        """Make a flat state of zeros, or of what is learned, on the device and in the type of the parameters."""
        if self.initial is not None:
            return self.initial.unsqueeze(1).expand(-1, batch_size, -1).unbind()
        return tuple(self.like.new_zeros(batch_size, self.hidden_size) for _ in self.state_names)

    def learn_initial_state(self) -> None:
        """Make the initial state a parameter, initialized at zero; ValueError: a part is not [B, hidden_size]."""
        if type(self).initial_state is not Cell.initial_state:
            raise ValueError(f"the initial state of a {type(self).__name__} cannot be learned: leave it at zero")
        self.initial = nn.Parameter(self.like.new_zeros(len(self.state_names), self.hidden_size))

    def pack(self, state: State) -> Any:
        """Return a flat state as users see it: h alone, or the tuple (h, c)."""
        return state if len(state) > 1 else state[0]

    def unpack(self, state: State) -> State:
        """Return the parts that users hand in as a flat state."""
        return state

    def completed(self, state: Any, dim: int) -> Any:
        """Add to the `state` of users what they may leave out; several memories lie along `dim` of its second part."""
        return state

    def forward(self, input: Tensor, hx: Any = None, **beside: Tensor | None) -> Any:
        """Take one step, from `hx`, the last state, to the new one; `beside`: what else it needs, laid out as input."""
        x = checked_input(input, self.input_size, self.like, "B", "")
        single = x.dim() == int(x.is_floating_point())
        around: Any
        around, inside = (None, 0) if single else (..., ...)
        x = x[around]
        first = self.initial_state(x.shape[0])
        if hx is not None:
            like = self.pack(tuple(tensor[inside] for tensor in first))
            given = checked_state(self.completed(hx, 0), like, self.part_names or self.state_names)
            first = tuple(tensor[around] for tensor in self.unpack(given))
        further: Any = {name: tensor[around] for name, tensor in beside.items() if tensor is not None}
        return self.pack(tuple(tensor[inside] for tensor in self.recur(self.project(x), first, **further)))

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


@torch.no_grad()
def fill(
    parameter: Tensor,
    initialization: Initialization,
    *,
    takes_input: bool,
    hidden_size: int,
    fans: Sequence[int] | None = None,
) -> None:
    """Fill a matrix [gates * hidden_size, columns] in place, gate block by gate block, or a bias, zero but torch's.

    Half precision is drawn in float32 and rounded. `fans` are inputs plus outputs of each block's kernel.
    """
    if parameter.dtype in (torch.float16, torch.bfloat16):
        drawn = parameter.float()
        fill(drawn, initialization, takes_input=takes_input, hidden_size=hidden_size, fans=fans)
        parameter.copy_(drawn)
        return
    blocks = torch.split(parameter, hidden_size)
    for block, fan in zip(blocks, fans or [sum(parameter.shape)] * len(blocks), strict=True):
        if initialization == "torch":
            nn.init.uniform_(block, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))
        elif parameter.dim() == 1:
            nn.init.zeros_(block)
        elif initialization == "madsen":
            nn.init.uniform_(block, -math.sqrt(6 / fan), math.sqrt(6 / fan))
        elif initialization == "glorot" or takes_input:
            nn.init.xavier_uniform_(block)
        else:
            nn.init.orthogonal_(block)


class GatedCell(Cell):
    """A cell whose gates are row blocks of one matrix for the input, one for the hidden state, and one bias.

    A subclass names its `gates` in the order of the rows. `gate_bias` is added to a gate's initial bias, by its name;
    `further_rows` of the matrices come after those of the gates.
    """

    gates: tuple[str, ...]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        gates: tuple[str, ...] | None = None,
        gate_bias: Mapping[str, float] | None = None,
        further_rows: int = 0,
        takes_input: bool = True,
        initialization: Initialization = "nested_lstm",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.takes_input, self.gates = takes_input, gates or self.gates
        today = {recorded: known for known, recorded in RECORDED.items()}.get(initialization, initialization)
        self.initialization, self.gate_bias = choice(today, "initialization", Initialization), dict(gate_bias or {})
        for gate, value in self.gate_bias.items():
            finite(value, "forget_bias" if gate == "f" else "gate_bias")
        new: Any = {"device": device, "dtype": dtype}
        rows = len(self.gates) * hidden_size + further_rows
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size, **new))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size, **new))
        self.bias = nn.Parameter(torch.empty(rows, **new)) if bias else None

    def fans(self) -> list[int]:
        """Of each block of rows, the inputs and outputs of its kernel (`fill`): here one for all."""
        rows = len(self.weight_ih)
        return [self.input_size + self.hidden_size + rows] * math.ceil(rows / self.hidden_size)

    def reset_parameters(self) -> None:
        size = self.hidden_size
        for name in ("weight_ih", "weight_hh", "bias", "bias_hh", "weight_th", "weight_z"):
            if isinstance(parameter := getattr(self, name, None), Tensor):
                fans = self.fans() if name in ("weight_ih", "weight_hh") else None
                takes_input = self.takes_input and name == "weight_ih"
                fill(parameter, self.initialization, takes_input=takes_input, hidden_size=size, fans=fans)
        if self.bias is not None:
            with torch.no_grad():
                for gate, value in self.gate_bias.items():
                    row = self.gates.index(gate) * size
                    self.bias[row : row + size] += value
        super().reset_parameters()

    def project(self, x: Tensor) -> Tensor:
        return product(x, self.weight_ih, self.bias)
