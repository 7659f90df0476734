"""A training that two ways of computing the same thing must share."""

import torch
from torch import nn


def curve(unit, outputs, updates, carried=False):
    """The training losses of a small language model in float64 that learns to say what it read two steps ago.

    Args:
        unit: Reads symbols.
        outputs: How wide its output is.
        updates: Of the training.
        carried: Whether a batch starts from the state in which the last one ended.
    """
    generator = torch.Generator().manual_seed(1)
    readout = nn.Linear(outputs, unit.input_size, dtype=torch.float64)
    nn.init.zeros_(readout.weight)
    nn.init.zeros_(readout.bias)
    optimizer = torch.optim.Adam([*unit.parameters(), *readout.parameters()], lr=0.01)
    losses, state = [], None
    for _ in range(updates):
        x = torch.randint(unit.input_size, (7, 4), generator=generator)
        output, last = unit(x, state)
        if carried:
            state = tuple(part.detach() for part in last)
        loss = nn.functional.cross_entropy(readout(output[2:]).flatten(0, 1), x[:-2].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)
