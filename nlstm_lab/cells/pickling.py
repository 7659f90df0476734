"""Networks whose pickles ask to trust one class."""

from abc import abstractmethod
from typing import Any

import torch
from torch import nn


class Trusted(nn.Module):
    """A network with `layers` that its constructor makes: of them a pickle holds attributes and parameters alone.

    So `torch.load` asks to trust the network's class and no other, if the constructor makes the layers' classes anew.
    """

    layers: nn.ModuleList
    _options: dict[str, Any]  # with which the layers are made

    @abstractmethod
    def _made_layers(self, options: dict[str, Any]) -> nn.ModuleList:
        """The layers as the constructor makes them."""

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        plain = bool | int | float | str | tuple | torch.dtype | None  # type: ignore[type-arg]
        if all(isinstance(value, plain) for value in self._options.values()):
            fresh = self._blank_layers()
            if _classes(fresh) == _classes(self.layers):
                state["_modules"] = {**self._modules, "layers": None}
                state["_inside"] = {name: {**vars(part), "_modules": {}} for name, part in self.layers.named_modules()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        inside = state.pop("_inside", None)
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        if inside is not None:
            self.layers = self._blank_layers()
            for name, part in self.layers.named_modules():
                vars(part).update({**inside[name], "_modules": part._modules})

    def _blank_layers(self) -> nn.ModuleList:
        """The layers as the constructor makes them, without values."""
        with torch.device("meta"):
            return self._made_layers(self._options)


def _classes(layers: nn.ModuleList) -> list[tuple[str, type]]:
    return [(name, type(part)) for name, part in layers.named_modules()]
