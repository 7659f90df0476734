"""A network that writes by hand: new lines drawn point by point from its own predictions (Graves 2013, section 4)."""

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from nlstm_lab.datasets import Lines
from nlstm_lab.datasets.handwriting import Handwriting, trajectory
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.reading import reading
from nlstm_lab.probes.records import ensure
from nlstm_lab.probes.segmentation import boundaries, described, from_rows, rows_of

LONGEST = 10_000  # points; a line of the training text has 648 on average


def write(model: Network, points: int = 600, temperature: float = 1.0, seed: int = 0) -> Tensor:
    """Write with the pen: draw points from the network's own predictions (`model.density.sample`).

    Args:
        points: How many points.
        temperature: Below 1 the network writes what it finds more likely, and more alike; the pen is lifted as often as
            it says.

    Returns:
        Points [T, 3] of the pen (dx, dy, lifted after this point) in normalized units, the first of them zero.

    Raises:
        UsageError: There are fewer than 2 points or more than `LONGEST`, or the temperature is not positive.
    """
    density = model.density
    if density is None:
        raise UsageError(f"{model.name or 'this network'} does not write by hand: it has no mixture density")
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


def written(model: Network, lines: Lines) -> xr.Dataset:
    """Read one line of handwriting, with the boundaries and the pen's place at every point.

    Args:
        lines: Which handwritten lines.

    Returns:
        `lab.probes.boundaries` of it, with `x`, `y` [time] in the tablet's units (y grows downward) and `lifted`
        [time], 1 where the pen is lifted after the point.
    """

    def measure() -> pd.DataFrame:
        (points,) = lines.read()
        return rows_of(boundaries(model, points)).assign(**pen(points))

    table = ensure("written", measure, weights=model, text=str(lines))
    reading = from_rows(table, described(model, None, None, model.name))
    return reading.assign({name: ("time", table[name]) for name in ("x", "y", "lifted")})


def pen(points: Tensor) -> dict[str, np.ndarray]:
    """Turn normalized points into whole units of the tablet.

    Args:
        points: Offsets and pen [T, 3]: dx, dy, pen up.

    Returns:
        `x`, `y` and `lifted`, [T] each.
    """
    scale = _scale()
    path = trajectory(points, scale["mean"].to_numpy(), scale["deviation"].to_numpy())
    x, y = np.round(path - path.min(0)).astype(int).T
    return {"x": x, "y": y, "lifted": points[:, 2].numpy().astype(int)}


def _scale() -> pd.DataFrame:
    """What normalized offsets are multiplied by and what is added: rows x and y, columns mean and deviation."""
    config = Handwriting()

    def measure() -> pd.DataFrame:
        task = config.load()
        return pd.DataFrame({"axis": ["x", "y"], "mean": task.mean, "deviation": task.deviation})

    return ensure("pen_scale", measure, task="iamondb", minimum=config.minimum, seed=config.seed)
