"""Data sets of separate items: Chinese quatrains, MNIST's digits in glimpses, handwritten lines; each is read cold."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import numpy as np
import torch
from torch import Tensor

from nlstm_lab.datasets import base, registry
from nlstm_lab.datasets.base import Batch, ColdTask, Mixture, Ordered, Split, Symbols, Vectors, Vocabulary
from nlstm_lab.datasets.files import Parsed, cached, members
from nlstm_lab.errors import DamagedFile, UsageError
from nlstm_lab.settings import check

REPLACED = "<R>"  # what the data's authors wrote for a character that they took out
LACUNA = "□"  # what it is here: one character, the editors' sign for a lost one, and not in the data
QUADRANT, GLIMPSE = 14, 7
STEPS, PIXELS, CLASSES = 20, GLIMPSE * GLIMPSE, 10


@dataclass(frozen=True)
class ChinesePoetry(Ordered):
    """Predict the next of a quatrain's 20 characters (Nested LSTMs, section 4.3; SeqGAN's batches of 64).

    Args:
        start: "none": the first character is given, 19 predictions a poem. "zero": a zero vector comes first, 20
            predictions and not one parameter more; the inputs are then one-hot vectors [20, B, symbols].
    """

    batch_size: int = 64
    start: Literal["none", "zero"] = "none"

    def load(self) -> "PoetryTask":
        """Make the task. MissingData: the quatrains are not on this machine."""
        return PoetryTask(self)


class PoetryTask(ColdTask):
    """Inputs and targets are symbols [19, B] (see `ChinesePoetry` for the other start)."""

    metric = "perplexity"

    def __init__(self, config: ChinesePoetry) -> None:
        files = registry.contents("poetry")
        # one poem a line, a tab between verses, a space between characters, CRLF between poems
        texts = [data.decode("utf-8").replace(REPLACED, LACUNA).split("\r\n") for data in files]
        poems = ["".join(line.split()) for text in texts for line in text]
        self.vocabulary = Vocabulary(tuple(sorted(set("".join(poems)))))
        self.poems = self.vocabulary.encode("".join(poems)).view(len(poems), -1)  # [poems, 20] int64
        rows = base.in_splits(np.arange(len(poems)), np.cumsum([len(text) for text in texts]))
        super().__init__(rows, config.batch_size, config.batch_order)
        self.config, self.fingerprint = config, sha256(b"".join(files)).hexdigest()
        self.input = self.output = Symbols(len(self.vocabulary))

    def batch(self, rows: np.ndarray) -> Batch:
        poems = self.poems[rows].T.contiguous()
        if self.config.start == "none":
            return Batch(poems[:-1], poems[1:])
        vectors = torch.zeros(*poems.shape, self.output.size)
        vectors[1:].scatter_(2, poems[:-1, :, None], 1)
        return Batch(vectors, poems)


@dataclass(frozen=True)
class MNISTGlimpses(Ordered):
    """MNIST: name the digit after 4 quadrants x 5 glimpses x 49 pixels, pixels in [0, 1], quadrants row by row
    (Nested LSTMs, section 4.4).

    "patches" (our reading of the paper): the quadrant's every second row and column, then its four 7 x 7 patches.
    "phases" (the other reading): its four interleaved 7 x 7 phases, then the quadrant reduced by means of 2 x 2.
    """

    batch_size: int = 100
    reading: Literal["patches", "phases"] = "patches"

    def load(self) -> "GlimpseTask":
        """Make the task. MissingData: MNIST is not on this machine."""
        return GlimpseTask(self)


class GlimpseTask(ColdTask):
    """Inputs [20, B, 49] float32, targets [B], one prediction a sequence."""

    per_sequence = True
    metric = "nll_nats"
    evaluation_batch = 1_000

    def __init__(self, config: MNISTGlimpses) -> None:
        files = registry.contents("mnist")
        self.images, self.labels = (np.concatenate([*map(_idx, files[k::2])]) for k in range(2))  # uint8
        trained = len(_idx(files[1]))
        # the last 10,000 of the 60,000 training images are for validation
        rows = base.in_splits(np.arange(len(self.labels)), (trained - trained // 6, trained))
        super().__init__(rows, config.batch_size, config.batch_order)
        self.config, self.fingerprint = config, sha256(b"".join(files)).hexdigest()
        self.input, self.output = Vectors(PIXELS), Symbols(CLASSES)

    def batch(self, rows: np.ndarray) -> Batch:
        images = torch.from_numpy(self.images[rows]).float() / 255
        return Batch(glimpses(images, self.config.reading), torch.from_numpy(self.labels[rows].astype(np.int64)))


def glimpses(images: Tensor, reading: str) -> Tensor:
    """Images [B, 28, 28] as looks [20, B, 49], quadrant after quadrant (see `MNISTGlimpses`)."""
    looks: list[Tensor] = []
    for top, left in product((0, QUADRANT), repeat=2):
        quadrant = images[:, top : top + QUADRANT, left : left + QUADRANT]
        phases = [quadrant[:, y::2, x::2] for y, x in product(range(2), repeat=2)]
        patches = [quadrant[:, y : y + GLIMPSE, x : x + GLIMPSE] for y, x in product((0, GLIMPSE), repeat=2)]
        looks += [*phases, torch.stack(phases).mean(0)] if reading == "phases" else [phases[0], *patches]
    return torch.stack(looks).flatten(2)


def _idx(data: bytes) -> np.ndarray:
    """An IDX file of unsigned bytes: a magic number that ends in the number of dimensions, their sizes, the values."""
    sizes = np.frombuffer(data, ">u4", data[3], offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(sizes)


@dataclass(frozen=True)
class Handwriting:
    """Predict the next (dx, dy, pen lifted after it) of a line of IAM-OnDB (HM-RNN, section 4.2; Graves 2013).

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

    Offsets are normalized by the mean and deviation of the training split's; the offset of a line's first input is 0.
    A line of n points has n - 1 predictions. The log-likelihood of a line is the sum over its column.
    """

    metric = "log_likelihood_nats"
    input = Vectors(3)

    def __init__(self, config: Handwriting) -> None:
        files = registry.locate("iamondb")
        parsed = cached("iamondb", files, lambda: _lines(files[0]))
        self.output, self.fingerprint = Mixture(config.components), str(parsed.facts["sha256"])
        self.points, self.lifted = parsed.arrays["points"], parsed.arrays["lifted"]
        self.sizes = np.diff(parsed.arrays["ends"], prepend=0)
        self.starts = parsed.arrays["ends"] - self.sizes
        long = np.flatnonzero(self.sizes >= max(config.minimum, 2))
        order = np.random.default_rng(config.seed).permutation(long)
        rows = base.split_90_5_5(order, f"{len(long)} lines have {config.minimum} points or more")
        super().__init__(rows, config.batch_size)
        # of x and y over the offsets within the training lines, in the tablet's units
        offsets = np.diff(self.points, axis=0, prepend=self.points[:1]).astype(np.float64)
        counts = np.repeat(np.isin(np.arange(len(self.sizes)), self.rows["train"]), self.sizes)
        counts[self.starts] = False
        self.mean, self.deviation = offsets[counts].mean(0), offsets[counts].std(0)

    def evaluate(self, split: Split, evaluation: base.Evaluation) -> Iterator[Batch]:
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


def _lines(archive: Path) -> Parsed:
    """Every line: `points` [all, 2] int32, `lifted` [all] uint8 (1 where a stroke ends), `ends` [lines]."""
    found = {Path(name).stem: _line(data, name) for name, data in members(archive)}
    if not found:
        raise DamagedFile(f"{archive} holds no lines; get the archive again")
    points, lifted = zip(*(found[name] for name in sorted(found)), strict=True)  # whatever order an archive has
    ends = np.cumsum([len(line) for line in points])
    arrays = {"points": np.concatenate(points), "lifted": np.concatenate(lifted), "ends": ends}
    return Parsed(arrays, {"sha256": sha256(b"".join(array.tobytes() for array in arrays.values())).hexdigest()})


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
    """`count` lines of handwriting of a split (of at least 300 points, as `Handwriting` draws it), from its first on.

    >>> str(Lines("valid", 20))
    'iamondb valid 0:20'
    """

    split: Split
    count: int

    def __post_init__(self) -> None:
        check(self)

    def __str__(self) -> str:
        return f"iamondb {self.split} 0:{self.count}"

    def read(self) -> list[Tensor]:
        """The points [T, 3] of each line. MissingData: IAM-OnDB is not here. UsageError: there are fewer lines."""
        task = Handwriting().load()
        rows = task.rows[self.split][: self.count]
        if len(rows) < self.count:
            raise UsageError(f"there are no lines {self}")
        alone = map(task.batch, np.split(rows, self.count))
        return [torch.cat([batch.inputs, batch.targets[-1:]])[:, 0] for batch in alone]
