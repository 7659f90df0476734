"""Handwriting: predict the next offset of the pen (HM-RNN, section 4.2; Graves 2013, section 4)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import torch
from torch import Tensor

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import Batch, Evaluation, Metric, Mixture, Split, Vectors, Vocabulary, split_90_5_5
from nlstm_lab.datasets.registry import Parsed, cached
from nlstm_lab.errors import DamagedFile, UsageError
from nlstm_lab.settings import check

LINE = re.compile(r"(.+)-(\d+)\.xml")


@dataclass(frozen=True)
class Handwriting:
    """Lines of IAM-OnDB as sequences of (dx, dy, pen lifted after this point), cold for each line.

    Lines shorter than `minimum` points are left out, and nothing else. The paper's split was never published: ours
    is drawn under `seed`, 90/5/5, which gives the paper's very numbers, 10,465 + 581 + 582.
    """

    batch_size: int = 32
    minimum: int = 300
    components: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        check(self, zero=("seed", "minimum"))

    def load(self) -> "HandwritingTask":
        """Make the task.

        Raises:
            MissingData: IAM-OnDB is not on this machine.
        """
        return HandwritingTask(self)


class HandwritingTask:
    """Inputs and targets are points [T, B, 3]; mask [T, B], since lines differ in length.

    Offsets are normalized by the mean and deviation of the training split's; the first input of a line is zero.
    A line of n points has n - 1 predictions. The log-likelihood of a line is the sum over its column.
    """

    per_sequence = False
    metric: Metric = "log_likelihood_nats"
    evaluations: tuple[Evaluation, ...] = ("blocks",)
    vocabulary: Vocabulary | None = None
    input = Vectors(3)
    log_frequencies = torch.empty(0)  # a density has no symbols

    def __init__(self, config: Handwriting) -> None:
        parsed = lines()
        self.config, self.output = config, Mixture(config.components)
        self.fingerprint: str = parsed.facts["sha256"]
        self.points, self.lifted = parsed.arrays["points"], parsed.arrays["lifted"]
        ends = parsed.arrays["ends"]
        self.starts = np.concatenate([[0], ends[:-1]])
        self.sizes = ends - self.starts
        long = np.flatnonzero(self.sizes >= max(config.minimum, 2))
        order = np.random.default_rng(config.seed).permutation(long)
        self.lines = split_90_5_5(order, f"{len(long)} lines have {config.minimum} points or more")
        key = {"lines": self.fingerprint, "minimum": config.minimum, "seed": config.seed}
        moments = cached("moments", (), self._moments, **key).facts
        self.mean, self.deviation = np.array(moments["mean"]), np.array(moments["deviation"])
        self.updates_per_epoch = -(-len(self.lines["train"]) // config.batch_size)

    def _moments(self) -> Parsed:
        """`mean` and `deviation` of x and y over the offsets within the training lines, in the tablet's units."""
        offsets = np.diff(self.points, axis=0, prepend=self.points[:1]).astype(np.float64)
        counts = np.zeros(len(offsets), bool)
        for line in self.lines["train"]:
            counts[self.starts[line] + 1 : self.starts[line] + self.sizes[line]] = True
        chosen = offsets[counts]
        return Parsed({}, {"mean": chosen.mean(0).tolist(), "deviation": chosen.std(0).tolist()})

    def train(self, generator: torch.Generator) -> Iterator[Batch]:
        order = torch.randperm(len(self.lines["train"]), generator=generator).numpy()
        return self._batches(self.lines["train"][order])

    def evaluate(self, split: Split, evaluation: Evaluation) -> Iterator[Batch]:
        lines = self.lines[split]
        return self._batches(lines[np.argsort(self.sizes[lines], kind="stable")])  # like lengths together

    def _batches(self, lines: np.ndarray) -> Iterator[Batch]:
        for start in range(0, len(lines), self.config.batch_size):
            chosen = lines[start : start + self.config.batch_size]
            begin, sizes = self.starts[chosen], self.sizes[chosen]
            steps = np.arange(sizes.max())[:, None]
            real = steps < sizes
            places = begin + np.minimum(steps, sizes - 1)
            xy = self.points[places]
            offsets = (np.diff(xy, axis=0) - self.mean) / self.deviation
            sequence = np.zeros((*real.shape, 3), np.float32)
            sequence[1:, :, :2] = offsets
            sequence[:, :, 2] = self.lifted[places]
            sequence[~real] = 0
            rows, mask = torch.from_numpy(sequence), torch.from_numpy(real[1:])
            yield Batch(rows[:-1], rows[1:], mask)

    def line(self, split: Split, k: int) -> Tensor:
        """All points [T, 3] of the k-th line of a split."""
        (batch,) = self._batches(self.lines[split][k : k + 1])
        return torch.cat([batch.inputs, batch.targets[-1:]])[:, 0]

    def raw_units_nats(self, split: Split) -> float:
        """What to add to a line's mean log-likelihood to have it in the tablet's units instead of normalized."""
        predictions = float((self.sizes[self.lines[split]] - 1).mean())
        return -predictions * log(float(self.deviation.prod()))


def trajectory(points: Tensor, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """The path [T, 2] of the pen in the tablet's units, from points [T, 3] normalized by these; y grows downward."""
    return np.cumsum(points[:, :2].numpy() * deviation + mean, axis=0)


def lines() -> Parsed:
    """Read every line of IAM-OnDB, from its line XMLs, parsed once.

    Returns:
        Arrays: `points` [all points, 2] int32 (x, y), `lifted` [all points] uint8 (1 where a stroke ends), `ends`
        [lines] int64. Facts: `names` and `sha256`.
    """
    files = registry.locate("iamondb")
    return cached("iamondb", files, lambda: _parse(files[0]))


def _parse(strokes: Path) -> Parsed:
    names, points, lifted = [], [], []
    for name, data in registry.members(strokes):
        if LINE.fullmatch(Path(name).name) is None:
            raise DamagedFile(f"{strokes}: {name} is not named after a form and a line; get the archive again")
        xy, pen = _line(data, name)
        names.append(Path(name).stem)
        points.append(xy)
        lifted.append(pen)
    if not names:
        raise DamagedFile(f"{strokes} holds no lines; get the archive again")
    order = sorted(range(len(names)), key=names.__getitem__)  # whatever order an archive has
    arrays = {
        "points": np.concatenate([points[k] for k in order]),
        "lifted": np.concatenate([lifted[k] for k in order]),
        "ends": np.cumsum([len(points[k]) for k in order]),
    }
    digest = registry.combined([array.tobytes() for array in arrays.values()])
    return Parsed(arrays, {"names": [names[k] for k in order], "sha256": digest})


def _line(data: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points [n, 2] int32 and pen-ups [n] uint8 of one line."""
    points: list[tuple[int, int]] = []
    ends: list[int] = []

    def start(tag: str, attributes: dict[str, Any]) -> None:
        if tag == "Point":
            points.append((int(attributes["x"]), int(attributes["y"])))

    def end(tag: str) -> None:
        if tag == "Stroke" and points:
            ends.append(len(points) - 1)

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, KeyError, ValueError) as error:
        raise DamagedFile(f"{name} is no line of strokes ({error}); get the archive again") from None
    if not points:
        raise DamagedFile(f"{name} has no points; get the archive again")
    lifted = np.zeros(len(points), np.uint8)
    lifted[ends] = 1
    return np.array(points, np.int32), lifted


@dataclass(frozen=True)
class Lines:
    """`count` lines of handwriting of a split (of at least 300 points, as `Handwriting` draws it), from `start` on.

    >>> str(Lines("valid", 20))
    'iamondb valid 0:20'
    """

    split: Split
    count: int
    start: int = 0

    def __str__(self) -> str:
        return f"iamondb {self.split} {self.start}:{self.start + self.count}"

    def read(self) -> list[Tensor]:
        """Read the lines.

        Returns:
            The points [T, 3] of each, as a network reads them.

        Raises:
            MissingData: IAM-OnDB is not on this machine.
            UsageError: The split has fewer lines.
        """
        task = Handwriting().load()
        if self.start + self.count > len(task.lines[self.split]):
            raise UsageError(f"the {self.split} split of IAM-OnDB has no lines {self.start}:{self.start + self.count}")
        return [task.line(self.split, k) for k in range(self.start, self.start + self.count)]
