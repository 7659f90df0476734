"""A network that writes by hand: new lines drawn point by point from its own predictions (Graves 2013, section 4)."""

import torch
from torch import Tensor

from nlstm_lab.errors import UsageError
from nlstm_lab.models import MixtureDensity, Network
from nlstm_lab.probes.reading import reading

LONGEST = 10_000  # points; a line of the training text has 648 on average


def density_of(model: Network) -> MixtureDensity:
    """What the network predicts the pen with; UsageError where it does not write by hand."""
    if model.density is None:
        raise UsageError(f"{model.name or 'this network'} does not write by hand: it has no mixture density")
    return model.density


def write(model: Network, points: int = 600, temperature: float = 1.0, seed: int = 0) -> Tensor:
    """Points [T, 3] of the pen (dx, dy, lifted after this point) in normalized units, the first of them zero.

    temperature: below 1 the network writes what it finds more likely, and more alike; the pen is lifted as often as it
    says. What is drawn is `model.density.sample`, from `seed`. UsageError: a network that does not write, fewer than
    two points, a temperature that is not positive.
    """
    density = density_of(model)
    if not 2 <= points <= LONGEST:
        raise UsageError(f"a line has from 2 to {LONGEST} points, not {points}")
    if not temperature > 0:
        raise UsageError(f"a temperature must be positive, not {temperature}")
    generator = torch.Generator().manual_seed(seed)
    line, state = [torch.zeros(1, 1, 3)], None
    device = model.device
    with reading(model):
        for _ in range(points - 1):
            output, state = model(line[-1].to(device), state)
            line.append(density.sample(output.cpu(), generator, temperature))
    return torch.cat(line)[:, 0]
