"""Reading one text with an HM-LSTM, computing only what UPDATE and FLUSH need (equation 2 of the HM-RNN paper).

A layer that copies only looks at its own h again.
"""

import torch
from torch import Tensor

from nlstm_lab.cells.base import State, gates
from nlstm_lab.cells.hmlstm import HMLSTM, HMLSTMCell, biased


def read(network: HMLSTM, x: Tensor, states: list[State]) -> tuple[Tensor, list[State]] | None:
    """All layers over all steps, x [T, 1, features] or symbols [T, 1].

    None where every step needs everything: on a GPU, with gradients, several texts, dropout, boundaries that the step
    function does not decide or that are normalized together with the gates, or z = 1 in the top layer's first state.
    """
    devices = {x.device.type, *(part.device.type for state in states for part in state)}
    if torch.is_grad_enabled() or devices != {"cpu"} or x.shape[1] != 1 or (network.dropout and network.training):
        return None  # before any look at values, for which a GPU would have to be waited for
    cells = [cell for cell in network.cells if type(cell) is HMLSTMCell and cell.boundary == "step"]
    joint = any(cell.norm is not None and cell.norm.normalized_shape[0] > 4 * cell.hidden_size for cell in cells)
    hard = all(((z == 0) | (z == 1)).all() for _, _, z in states)
    if len(cells) < network.num_layers or joint or not hard or bool(states[-1][2].any()):
        return None
    layers, output = [Layer(cell, state) for cell, state in zip(cells, states, strict=True)], []
    for projected in cells[0].project(x)[:, 0].unbind():
        share: Tensor | None = projected  # "the input should not be omitted": z of layer 0 is 1
        for k, layer in enumerate(layers):
            above = layers[k + 1].h if layer.z and not layer.cell.top else None
            layer.step(share, above)
            share = layers[k + 1].cell.weight_ih @ layer.h if layer.z else None
        output.append(torch.cat([layer.h for layer in layers]) if network.all_layers else layers[-1].h)
    return torch.stack(output).unsqueeze(1), [layer.state() for layer in layers]


class Layer:
    """One layer between steps: h and c [hidden_size], and z, which in the top layer stays False."""

    def __init__(self, cell: HMLSTMCell, state: State) -> None:
        self.cell, self.slope = cell, float(cell.slope)
        self.h, self.c = state[0][0], state[1][0]
        self.z = bool(state[2][0])

    def state(self) -> State:
        """The flat state as the cell keeps it, of a batch of one."""
        return self.h[None], self.c[None], self.h.new_full((1,), float(self.z))

    def step(self, share: Tensor | None, above: Tensor | None) -> None:
        """Given the layer below's part of the pre-activations if it ended a segment, and h above if this one did."""
        cell, hears = self.cell, True
        if share is None and not self.z:  # COPY
            hears = cell.detect_on_copy  # by its own h alone
            if hears and not cell.top and cell.weight_z is None:
                score = cell.weight_hh[-1] @ self.h + (0 if cell.bias is None else cell.bias[-1])
        else:
            summed = cell.weight_hh @ self.h  # equation 5
            if share is not None:
                summed += share  # equation 7
            if above is not None and cell.weight_th is not None:
                summed.addmv_(cell.weight_th, above)  # equation 6
            summed = biased(summed, cell.bias, None if cell.norm is None else cell.norm.weight)
            i, f, g, o = gates(summed[: 4 * cell.hidden_size])
            self.c = i * g if self.z and cell.reset else f * self.c + i * g  # FLUSH, UPDATE
            self.h = o * torch.tanh(self.c if cell.norm_c is None else cell.norm_c(self.c))
            score = summed[-1]
        self.z = hears and not cell.top
        if self.z:
            score = score if cell.weight_z is None else cell.weight_z[0] @ self.h
            self.z = min(max((self.slope * float(score) + 1) / 2, 0.0), 1.0) > cell.threshold  # equations 4, 9
