"""What a network writes: a text continued, and lines of handwriting (Graves 2013, section 4), drawn step by step."""

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from nlstm_lab.datasets import Lines
from nlstm_lab.datasets.items import Handwriting
from nlstm_lab.datasets.words import PADDING, UNKNOWN
from nlstm_lab.errors import UsageError
from nlstm_lab.models.network import Network, check_network
from nlstm_lab.probes.edits import Edits, Plan
from nlstm_lab.probes.reading import called, encode, reading, string, vocabulary_of
from nlstm_lab.probes.records import ensure
from nlstm_lab.probes.segmentation import boundaries, from_rows, rows_of
from nlstm_lab.settings import above_zero, check_seed, counted

NO_SYMBOLS = (PADDING, UNKNOWN)
LONGEST = 10_000  # points; a line of the training text has 648 on average


def continued(
    model: Network, text: str, length: int, seed: int = 0, temperature: float = 1.0, edits: Edits | None = None
) -> str:
    """Continue `text` by `length` characters that the network draws from its own predictions.

    Args:
        length: Symbols to write.
        temperature: The logits are divided by it; towards 0 the likeliest character is always taken.
        edits: As `run` takes them; the steps of what is drawn, of which the last is not read, follow those of `text`.

    Returns:
        `text` and what was drawn; UsageError where the network predicts words, or a number is not as said.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_lstm2_logfreq", scale="small").model()
    >>> text = continued(model, "the company said ", 20, temperature=0.5)
    >>> len(text), text.startswith("the company said ")
    (37, True)
    """
    vocabulary = vocabulary_of(model)
    length, seed, temperature = counted(length, "length"), check_seed(seed), above_zero(temperature, "temperature")
    if model.words is not None:
        raise UsageError(f"{called(model)} predicts words; a text is continued by the next character")
    generator = torch.Generator().manual_seed(seed)
    nothing = torch.tensor([vocabulary.symbols.index(symbol) for symbol in NO_SYMBOLS if symbol in vocabulary.symbols])
    codes, state = encode(model, string(text)).unsqueeze(1), None
    plan = Plan(model, codes[:1], len(codes) + length - 1, edits or {})
    drawn: list[int] = []
    with reading(model):
        begun = min(len(codes) - 1, plan.first)  # what comes before the first edit is read at once
        if begun:
            state = model.read(codes[:begun])[1]
        for step in range(begun, len(codes) + length - 1):
            x = codes[step : step + 1] if step < len(codes) else torch.full_like(codes[:1], drawn[-1])
            if step < plan.first:
                hidden, state = model.read(x, state)
            else:
                hidden, state, _ = plan.read(step, x, state)
            if step < len(codes) - 1:
                continue
            scores = model.readout(hidden)[-1, 0].double().cpu().index_fill(-1, nothing.long(), -torch.inf)
            behind = (scores - scores.max()) / temperature  # at most 0: no temperature is so low that it overflows
            drawn.append(int(torch.multinomial(torch.softmax(behind, -1), 1, generator=generator)))
    return text + vocabulary.decode(torch.tensor(drawn))


def write(model: Network, points: int = 600, temperature: float = 1.0, seed: int = 0) -> Tensor:
    """Write with the pen: draw points from the network's own predictions (`model.density.sample`).

    Args:
        points: How many points.
        temperature: Below 1 it writes what it finds more likely, and more alike; the pen is lifted as often as it says.

    Returns:
        Points [T, 3] of the pen (dx, dy, lifted after this point) in normalized units, the first of them zero.
    """
    check_network(model)
    density = model.density
    if density is None:
        raise UsageError(f"{called(model)} does not write by hand: it has no mixture density")
    points, temperature = counted(points, "points", 2, LONGEST), above_zero(temperature, "temperature")
    generator = torch.Generator().manual_seed(check_seed(seed))
    line, state = [torch.zeros(1, 1, 3)], None
    with reading(model):
        for _ in range(points - 1):
            output, state = model(line[-1].to(model.device), state)
            line.append(density.sample(output.cpu(), generator, temperature))
    return torch.cat(line)[:, 0]


def written(model: Network, lines: Lines) -> xr.Dataset:
    """Read one line of handwriting: its `boundaries`, and of `pen` `x`, `y` and `lifted` [time].

    Args:
        lines: The line.
    """
    if lines.count != 1:
        raise UsageError(f"one line is read at a time, lab.datasets.Lines(split, 1), not {lines.count}")

    def measure() -> pd.DataFrame:
        (points,) = lines.read()
        return rows_of(boundaries(model, points)).assign(**pen(points))

    table = ensure("written", measure, weights=model, text=str(lines))
    read = from_rows(table, model)
    return read.assign({name: ("time", table[name]) for name in ("x", "y", "lifted")})


def pen(points: Tensor) -> dict[str, np.ndarray]:
    """Turn normalized points of a pen into whole units of the tablet, where y grows downward.

    Args:
        points: Offsets and pen [T, 3]: dx, dy, lifted.

    Returns:
        `x`, `y` and `lifted`, 1 where the pen is lifted after the point, [T] each.
    """
    config = Handwriting()

    def measure() -> pd.DataFrame:
        task = config.load()
        return pd.DataFrame({"axis": ["x", "y"], "mean": task.mean, "deviation": task.deviation})

    scale = ensure("pen_scale", measure, task="iamondb", minimum=config.minimum, seed=config.seed)
    path = np.cumsum(points[:, :2].numpy() * scale["deviation"].to_numpy() + scale["mean"].to_numpy(), axis=0)
    x, y = np.round(path - path.min(0)).astype(int).T
    return {"x": x, "y": y, "lifted": points[:, 2].numpy().astype(int)}
