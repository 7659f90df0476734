"""Networks that `torch.nn` has too: their weights go there and come from there."""

from typing import Any, ClassVar, Self

import torch
from torch import nn

from nlstm_lab.cells.recurrent import Recurrent


class Exchangeable(Recurrent):
    """A network with a counterpart in `torch.nn`, whose two biases are kept as their sum where they act as one."""

    torch_class: ClassVar[Any]  # of nn.RNN, nn.LSTM and nn.GRU
    two_biases: ClassVar[bool] = False  # whether the second bias is kept as `bias_hh`

    @classmethod
    def options_of(cls, module: nn.RNNBase) -> dict[str, Any]:
        """Return the further arguments with which this class computes what `module` does."""
        return {}

    def torch_options(self) -> dict[str, Any]:
        """Return the counterpart's further arguments.

        Raises:
            ValueError: It cannot compute the same.
        """
        return {}

    @classmethod
    def from_torch(cls, module: nn.RNNBase) -> Self:
        """Copy the weights of a module of torch, on its device and of its type.

        Args:
            module: A `torch.nn.RNN`, `LSTM` or `GRU` that runs in one direction, without projection.

        Raises:
            TypeError: The module is of another class.
            ValueError: It has two directions or a projection.
        """
        if not isinstance(module, cls.torch_class):
            raise TypeError(f"module must be a torch.nn.{cls.torch_class.__name__}, not {type(module).__name__}")
        if module.bidirectional or module.proj_size:
            raise ValueError("module must run in one direction and without projection (proj_size=0)")
        like = module.weight_ih_l0
        network = cls(
            module.input_size,
            module.hidden_size,
            module.num_layers,
            batch_first=module.batch_first,
            dropout=module.dropout,
            bias=module.bias,
            device=like.device,
            dtype=like.dtype,
            **cls.options_of(module),
        )
        ours = {}
        for k in range(module.num_layers):  # by attribute, which weight norm and its like compute
            ours[f"layers.{k}.weight_ih"] = getattr(module, f"weight_ih_l{k}").detach()
            ours[f"layers.{k}.weight_hh"] = getattr(module, f"weight_hh_l{k}").detach()
            if module.bias:
                outside, inside = (getattr(module, f"{name}_l{k}").detach() for name in ("bias_ih", "bias_hh"))
                ours |= (
                    {f"layers.{k}.bias": outside, f"layers.{k}.bias_hh": inside}
                    if cls.two_biases
                    else {f"layers.{k}.bias": outside + inside}
                )
        network.load_state_dict(ours)
        return network.train(module.training)

    def to_torch(self) -> nn.RNNBase:
        """Make the counterpart in `torch.nn` with a copy of the weights, on their device and of their type.

        Raises:
            ValueError: The network returns all layers or learns its initial state, or the counterpart cannot compute
                the same.
        """
        if any(cell.initial is not None for cell in self.cells):
            raise ValueError("the initial state must be zero: torch.nn learns none")
        if self.all_layers:
            raise ValueError("all_layers must be False: torch.nn returns the last layer's output alone")
        cell, ours, theirs = self.cells[0], self.state_dict(), {}
        module: nn.RNNBase = self.torch_class(
            self.input_size,
            self.hidden_size,
            self.num_layers,
            bias="layers.0.bias" in ours,
            batch_first=self.batch_first,
            dropout=self.dropout,
            device=cell.like.device,
            dtype=cell.like.dtype,
            **self.torch_options(),
        )
        for name, weight in ours.items():
            _layers, k, parameter = name.split(".")
            theirs[f"{'bias_ih' if parameter == 'bias' else parameter}_l{k}"] = weight
            if parameter == "bias" and not self.two_biases:
                theirs[f"bias_hh_l{k}"] = torch.zeros_like(weight)
        module.load_state_dict(theirs)
        module.train(self.training)
        return module
