"""Handwriting: predict the next offset of the pen (HM-RNN, section 4.2; Graves 2013, section 4)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from torch import Tensor

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import Batch, ColdTask, Evaluation, Mixture, Split, Vectors, split_90_5_5
from nlstm_lab.datasets.files import Parsed, cached, members
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
        """Make the task. MissingData: IAM-OnDB is not on this machine."""
        return HandwritingTask(self)


class HandwritingTask(ColdTask):
    """Inputs and targets are points [T, B, 3]; mask [T, B], since lines differ in length.

    Offsets are normalized by the mean and deviation of the training split's; the first input of a line is zero.
    A line of n points has n - 1 predictions. The log-likelihood of a line is the sum over its column.
    """

    metric = "log_likelihood_nats"
    input = Vectors(3)

    def __init__(self, config: Handwriting) -> None:
        parsed = lines()
        self.output, self.fingerprint = Mixture(config.components), str(parsed.facts["sha256"])
        self.points, self.lifted = parsed.arrays["points"], parsed.arrays["lifted"]
        ends = parsed.arrays["ends"]
        self.starts = np.concatenate([[0], ends[:-1]])
        self.sizes = ends - self.starts
        long = np.flatnonzero(self.sizes >= max(config.minimum, 2))
        order = np.random.default_rng(config.seed).permutation(long)
        super().__init__(
            split_90_5_5(order, f"{len(long)} lines have {config.minimum} points or more"), config.batch_size
        )
        # of x and y over the offsets within the training lines, in the tablet's units
        offsets = np.diff(self.points, axis=0, prepend=self.points[:1]).astype(np.float64)
        counts = np.repeat(np.isin(np.arange(len(ends)), self.rows["train"]), self.sizes)
        counts[self.starts] = False
        self.mean, self.deviation = offsets[counts].mean(0), offsets[counts].std(0)

    def evaluate(self, split: Split, evaluation: Evaluation) -> Iterator[Batch]:
        rows = self.rows[split]
        return self.read(split, rows[np.argsort(self.sizes[rows], kind="stable")], self.batch_size)  # like lengths

    def batch(self, rows: np.ndarray) -> Batch:
        begin, sizes = self.starts[rows], self.sizes[rows]
        steps = np.arange(sizes.max())[:, None]
        real = steps < sizes
        places = begin + np.minimum(steps, sizes - 1)
        sequence = np.zeros((*real.shape, 3), np.float32)
        sequence[1:, :, :2] = (np.diff(self.points[places], axis=0) - self.mean) / self.deviation
        sequence[:, :, 2] = self.lifted[places]
        sequence[~real] = 0
        points = torch.from_numpy(sequence)
        return Batch(points[:-1], points[1:], torch.from_numpy(real[1:]))

    def line(self, split: Split, k: int) -> Tensor:
        """All points [T, 3] of the k-th line of a split."""
        batch = self.batch(self.rows[split][k : k + 1])
        return torch.cat([batch.inputs, batch.targets[-1:]])[:, 0]

    def raw_units_nats(self, split: Split) -> float:
        """What to add to a line's mean log-likelihood to have it in the tablet's units instead of normalized."""
        predictions = float((self.sizes[self.rows[split]] - 1).mean())
        return -predictions * log(float(self.deviation.prod()))


def trajectory(points: Tensor, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """The path [T, 2] of the pen in the tablet's units, from points [T, 3] normalized by these; y grows downward."""
    return np.cumsum(points[:, :2].numpy() * deviation + mean, axis=0)


def lines() -> Parsed:
    """Every line of IAM-OnDB: `points` [all, 2] int32, `lifted` [all] uint8 (1 where a stroke ends), `ends` [lines]."""
    files = registry.locate("iamondb")
    return cached("iamondb", files, lambda: _parse(files[0]))


def _parse(archive: Path) -> Parsed:
    found = {}
    for name, data in members(archive):
        if LINE.fullmatch(Path(name).name) is None:
            raise DamagedFile(f"{archive}: {name} is not named after a form and a line; get the archive again")
        found[Path(name).stem] = _line(data, name)
    if not found:
        raise DamagedFile(f"{archive} holds no lines; get the archive again")
    names = sorted(found)  # whatever order an archive has
    arrays = {
        "points": np.concatenate([found[name][0] for name in names]),
        "lifted": np.concatenate([found[name][1] for name in names]),
        "ends": np.cumsum([len(found[name][0]) for name in names]),
    }
    digest = registry.combined([array.tobytes() for array in arrays.values()])
    return Parsed(arrays, {"names": names, "sha256": digest})


def _line(data: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points [n, 2] int32 and pen-ups [n] uint8 of one line."""
    try:
        strokes = [
            [(int(point.attrib["x"]), int(point.attrib["y"])) for point in stroke.iter("Point")]
            for stroke in ElementTree.fromstring(data).iter("Stroke")
        ]
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise DamagedFile(f"{name} is no line of strokes ({error}); get the archive again") from None
    if not any(strokes):
        raise DamagedFile(f"{name} has no points; get the archive again")
    points = np.array([point for stroke in strokes for point in stroke], np.int32)
    lifted = np.zeros(len(points), np.uint8)
    lifted[np.cumsum([len(stroke) for stroke in strokes if stroke]) - 1] = 1
    return points, lifted


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
        """The points [T, 3] of each line. MissingData: IAM-OnDB is not here. UsageError: there are fewer lines."""
        task = Handwriting().load()
        if self.start + self.count > len(task.rows[self.split]):
            raise UsageError(f"there are no lines {self}")
        return [task.line(self.split, k) for k in range(self.start, self.start + self.count)]
