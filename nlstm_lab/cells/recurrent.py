"""The time loop around a cell, with the interface of `torch.nn.LSTM`."""

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from nlstm_lab.cells import fast
from nlstm_lab.cells.base import Cache, Cell, Hook, Module, State
from nlstm_lab.cells.checks import checked_input, checked_state, positive


class Recurrent(Module):
    """Unrolls layers of one kind of cell over time: `output, state = network(input, state)`.

    Shapes: input [T, B, input_size] ([B, T, input_size] with `batch_first`, [T, input_size] unbatched, a packed
    sequence, or the same without the last dimension: integer symbols that stand for one-hot vectors); output [T, B,
    output_size], the last layer's h, or with `all_layers` that of every layer side by side, lowest first; each part of
    the state [num_layers, B, ...]; where none is given, zeros or what was learned.

    Code for torch's modules runs unchanged unless it needs one of these: two directions or a projection of h (no
    document has them); parameters by torch's names, `weight_ih_l0` for `layers.0.weight_ih` (a layer may hold cells
    inside, with weights of their own; `LSTM.to_torch` renames them); a second bias (one has no effect beside the other,
    and the documents count one); RuntimeError for wrong sizes and types; `torch.jit.script` (steps are Python).

    Args:
        num_layers: Number of layers; each reads h of the one below.
        batch_first: Whether input and output are [B, T, ...]; states are laid out as ever.
        dropout: The probability with which what a layer reads of the one below is zeroed, in training.
        bidirectional, proj_size: False and 0: the layers read in one direction, and h is not projected.
        all_layers: Whether the output holds every layer's h.
        options: The further arguments of `cell_class`, with its defaults; of ours the documents'.

    Raises:
        TypeError: A size, an input or a state of a wrong type, by its name; so does `forward`.
        ValueError: A wrong size, shape or choice, by its name; so does `forward`, also for empty sequences.
    """

    cell_class: ClassVar[type[Cell]]

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
        **options: Any,
    ) -> None:
        super().__init__()
        positive(num_layers, "num_layers")
        positive(hidden_size, "hidden_size")
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise ValueError(f"dropout must be a probability between 0 and 1, not {dropout!r}")
        if dropout and num_layers == 1:
            warnings.warn("dropout acts between layers, and there is only one: it does nothing", stacklevel=2)
        if bidirectional is not False:
            raise ValueError(f"bidirectional must be False, as the layers read in one direction, not {bidirectional!r}")
        if proj_size != 0:
            raise ValueError(f"proj_size must be 0, as h is not projected, not {proj_size!r}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.all_layers = bias, batch_first, dropout, all_layers
        self.bidirectional, self.proj_size = False, 0
        self.output_size = hidden_size * num_layers if all_layers else hidden_size
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(self.make_cell(k, size, **options) for k, size in enumerate(sizes))

    def make_cell(self, k: int, input_size: int, **options: Any) -> Cell:
        """Make the cell of layer `k`, 0 the lowest."""
        if k:
            options["takes_input"] = False  # a layer's h is no input vector
        make: Any = self.cell_class
        return make(input_size, self.hidden_size, bias=self.bias, **options)  # type: ignore[no-any-return]

    def flatten_parameters(self) -> None:
        """Do nothing: torch's modules lay out their weights anew, and here none need it."""

    @property
    def cells(self) -> list[Cell]:
        """The layers' cells, lowest first."""
        return cast(list[Cell], list(self.layers))

    def reset_parameters(self) -> None:
        """Draw the parameters anew, layer by layer."""
        for cell in self.cells:
            cell.reset_parameters()
            if cell.initial is not None:
                nn.init.zeros_(cell.initial)

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> Any:
        """Read `input` from the state `hx`: the output and the last state, laid out as they are."""
        read: Any = self._forward_packed if isinstance(input, PackedSequence) else self._forward_padded
        return read(input, hx)

    def trace(
        self, input: Tensor, hx: Any = None, hooks: Sequence[Hook] | None = None, **beside: Any
    ) -> tuple[Tensor, Any, list[dict[str, Any]]]:
        """Read a padded or unbatched sequence by the readable step, with every gate and state of each layer by name.

        Args:
            hooks: One for each layer, lowest first, that sees and may replace every value at every step (`Hook`).
            beside: What else the cells need, laid out as the input is.

        Returns:
            Output, last state, and a dictionary a layer, of tensors laid out as the output is, [T, B, hidden_size], by
            the names that hooks are given: what a nested memory has is called "memory.c" and so on.
        """
        caches = [Cache(hook) for hook in hooks or self.num_layers * (None,)]
        output, last = self._forward_padded(input, hx, caches, **beside)
        unbatched = output.dim() == 2
        layers = [
            {name: self._returned(torch.stack(values), unbatched) for name, values in cache.values.items()}
            for cache in caches
        ]
        return output, last, layers

    def run(self, x: Tensor, states: list[State], hooks: Sequence[Hook] | None = None) -> tuple[Tensor, list[State]]:
        """Run all layers over all steps: x [T, B, features] to output [T, B, output_size] and last states."""
        hidden, last = [], []
        for k, (cell, first) in enumerate(zip(self.cells, states, strict=True)):
            if k and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            done = fast.unroll(cell, x, first) if hooks is None else None
            x, state = done or self.loop(cell, x, first, None if hooks is None else hooks[k])
            hidden.append(x)
            last.append(state)
        return torch.cat(hidden, -1) if self.all_layers else x, last

    @staticmethod
    def loop(cell: Cell, x: Tensor, state: State, hook: Hook | None = None) -> tuple[Tensor, State]:
        """Run one readable step after the other, as the oracle of `fast.unroll`; show what it computes to `hook`."""
        hidden = []
        for share in cell.project(x).unbind():  # one by one, an index's gradient would be as large as all of them
            state = cell.recur(share, state, hook)
            hidden.append(state[0])
        return torch.stack(hidden), state

    def _prepared(self, input: Any, state: Any) -> tuple[Tensor, list[State], bool]:
        """The input time-major, the layers' first states, and whether it is a single sequence."""
        batched = "BT" if self.batch_first else "TB"
        x = checked_input(input, self.input_size, self.cells[0].like, batched, "T")
        unbatched = x.dim() == 1 + int(x.is_floating_point())
        states = self._unpack(state, 1 if unbatched else x.shape[batched.index("B")], unbatched)
        return self._turned(x, unbatched), states, unbatched

    def _forward_padded(self, input: Any, state: Any, hooks: Any = None, **beside: Any) -> tuple[Tensor, Any]:
        """`beside`: what else `run` needs, laid out as the input is."""
        x, states, unbatched = self._prepared(input, state)
        beside = {name: self._turned(tensor, unbatched) for name, tensor in beside.items()}
        output, last = self.run(x, states, hooks, **beside)
        return self._returned(output, unbatched), self._pack(last, unbatched)

    def _forward_packed(self, input: PackedSequence, state: Any, **beside: Any) -> Any:
        """Runs of steps with equally many sequences, longest first; `beside`: what else `run` needs, packed alike."""
        data = checked_input(input.data, self.input_size, self.cells[0].like, "N")
        sizes = cast(list[int], input.batch_sizes.tolist())
        states = self._unpack(state, sizes[0], unbatched=False)
        if input.sorted_indices is not None:
            states = _rows(states, input.sorted_indices)
        outputs: list[Tensor] = []
        ended: list[list[State]] = []  # shortest sequences first
        start = 0
        for size, same in itertools.groupby(sizes):
            length = len(list(same))
            ended.append(_rows(states, slice(size, None)))
            states = _rows(states, slice(size))
            here = slice(start, start + length * size)
            x = data[here].view(length, size, *data.shape[1:])
            along = {name: tensor[here].view(length, size, -1) for name, tensor in beside.items()}
            output, states = self.run(x, states, **along)
            outputs.append(output.flatten(0, 1))
            start += length * size
        order = [states, *reversed(ended)]
        last = [tuple(map(torch.cat, zip(*layer, strict=True))) for layer in zip(*order, strict=True)]
        if input.unsorted_indices is not None:
            last = _rows(last, input.unsorted_indices)
        packed = PackedSequence(torch.cat(outputs), *input[1:])
        return packed, self._pack(last, unbatched=False)

    def _turned(self, x: Tensor, unbatched: bool) -> Tensor:
        """What is laid out as the input, time-major."""
        return x.unsqueeze(1) if unbatched else x.transpose(0, 1) if self.batch_first else x

    def _returned(self, x: Tensor, unbatched: bool) -> Tensor:
        """Time-major x, laid out as the input is."""
        return x.squeeze(1) if unbatched else x.transpose(0, 1) if self.batch_first else x

    def _unpack(self, state: Any, batch_size: int, unbatched: bool) -> list[State]:
        zeros = [cell.initial_state(batch_size) for cell in self.cells]
        if state is None:
            return zeros
        first = self.cells[0]
        state = first.completed(state, 1)
        tensors = checked_state(state, self._pack(zeros, unbatched), first.part_names or first.state_names)
        states = [cell.unpack(tuple(tensor[k] for tensor in tensors)) for k, cell in enumerate(self.cells)]
        return _rows(states, None) if unbatched else states

    def _pack(self, states: list[State], unbatched: bool) -> Any:
        if unbatched:
            states = _rows(states, 0)
        packed = [cell.pack(state) for cell, state in zip(self.cells, states, strict=True)]
        if not isinstance(packed[0], tuple):
            return torch.stack(packed)
        return tuple(torch.stack(tensors) for tensors in zip(*packed, strict=True))

    def extra_repr(self) -> str:
        flags = {"batch_first": self.batch_first, "dropout": self.dropout, "all_layers": self.all_layers}
        said = "".join(f", {name}={value}" for name, value in flags.items() if value)
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}{said}"


def _rows(states: list[State], rows: slice | Tensor | int | None) -> list[State]:
    """Of every part of every layer's state these rows of the batch; None puts a batch around a single row."""
    return [tuple(tensor[rows] for tensor in state) for state in states]


class Exchangeable(Recurrent):
    """A network with a counterpart in `torch.nn`, whose two biases are kept as their sum where they act as one."""

    torch_class: ClassVar[Any]  # of nn.RNN, nn.LSTM and nn.GRU
    shared: ClassVar[tuple[str, ...]] = ("num_layers", "bias", "batch_first", "dropout")  # arguments of both
    as_torch: ClassVar[dict[str, Any]] = {}  # arguments with which this class computes what torch's does

    @classmethod
    def from_torch(cls, module: nn.RNNBase) -> Self:
        """Copy the weights of a `module` of torch that runs in one direction, on its device and of its type.

        `reset_parameters` draws the copy anew as torch does: uniform, without a forget bias.

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
        ours, two = {}, getattr(network.cells[0], "bias_hh", None) is not None
        for k in range(module.num_layers):  # by attribute, which weight norm and its like compute
            for name in ("weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if module.bias else [])):
                ours[f"layers.{k}.{'bias' if name == 'bias_ih' else name}"] = getattr(module, f"{name}_l{k}").detach()
            if module.bias and not two:
                ours[f"layers.{k}.bias"] = ours[f"layers.{k}.bias"] + ours.pop(f"layers.{k}.bias_hh")
        network.load_state_dict(ours)
        cell: Any
        for cell in network.cells:
            cell.initialization, cell.gate_bias = "torch", {}
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
        theirs, two = {}, getattr(cell, "bias_hh", None) is not None
        for name, weight in self.state_dict().items():
            _layers, k, parameter = name.split(".")
            theirs[f"{'bias_ih' if parameter == 'bias' else parameter}_l{k}"] = weight
            if parameter == "bias" and not two:
                theirs[f"bias_hh_l{k}"] = torch.zeros_like(weight)
        module.load_state_dict(theirs)
        return module.train(self.training)
