"""MNIST in glimpses: twenty looks of 7 x 7 pixels, a digit to name at the end (Nested LSTMs, section 4.4)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import Batch, ColdTask, Ordered, Symbols, Vectors, consecutive
from nlstm_lab.datasets.files import Parsed, cached
from nlstm_lab.errors import DamagedFile

QUADRANT, GLIMPSE = 14, 7
STEPS, PIXELS, CLASSES = 20, GLIMPSE * GLIMPSE, 10
VALIDATION = 10_000  # the last of the training images; for smaller sets a sixth

Reading = Literal["patches", "phases"]


@dataclass(frozen=True)
class MNISTGlimpses(Ordered):
    """Name the digit after 4 quadrants x 5 glimpses x 49 pixels, pixels in [0, 1], quadrants row by row.

    "patches" (our reading of the paper): the quadrant's every second row and column, then its four 7 x 7 patches.
    "phases" (the other reading): its four interleaved 7 x 7 phases, then the quadrant reduced by means of 2 x 2.
    """

    batch_size: int = 100
    reading: Reading = "patches"

    def load(self) -> "GlimpseTask":
        """Make the task. MissingData: MNIST is not on this machine."""
        return GlimpseTask(self)


class GlimpseTask(ColdTask):
    """Inputs [20, B, 49] float32, targets [B], one prediction a sequence."""

    per_sequence = True
    metric = "nll_nats"
    evaluation_batch = 1_000

    def __init__(self, config: MNISTGlimpses) -> None:
        parsed = cached("mnist", registry.locate("mnist"), lambda: _parse(registry.contents("mnist")))
        self.config, self.fingerprint = config, str(parsed.facts["sha256"])
        self.images, self.labels = parsed.arrays["images"], parsed.arrays["labels"]  # [images, 28, 28], [images] uint8
        trained = len(self.labels) - parsed.facts["tested"]
        sizes = trained - (valid := min(VALIDATION, trained // 6)), valid, parsed.facts["tested"]
        super().__init__(consecutive(sizes), config.batch_size, config)
        self.input, self.output = Vectors(PIXELS), Symbols(CLASSES)

    def batch(self, rows: np.ndarray) -> Batch:
        images = torch.from_numpy(self.images[rows]).float() / 255
        return Batch(glimpses(images, self.config.reading), torch.from_numpy(self.labels[rows].astype(np.int64)))


def glimpses(images: Tensor, reading: Reading) -> Tensor:
    """Images [B, 28, 28] as looks [20, B, 49], quadrant after quadrant (see `MNISTGlimpses`)."""
    batch = images.shape[0]
    quadrants = images.reshape(batch, 2, QUADRANT, 2, QUADRANT).permute(1, 3, 0, 2, 4)
    quadrants = quadrants.reshape(4, batch, QUADRANT, QUADRANT)
    phases = quadrants.reshape(4, batch, GLIMPSE, 2, GLIMPSE, 2).permute(0, 3, 5, 1, 2, 4)
    phases = phases.reshape(4, 4, batch, PIXELS)
    if reading == "phases":
        looks = torch.cat([phases, phases.mean(1, keepdim=True)], dim=1)
    else:
        patches = quadrants.reshape(4, batch, 2, GLIMPSE, 2, GLIMPSE).permute(0, 2, 4, 1, 3, 5)
        looks = torch.cat([phases[:, :1], patches.reshape(4, 4, batch, PIXELS)], dim=1)
    return looks.reshape(STEPS, batch, PIXELS)


def _parse(files: list[bytes]) -> Parsed:
    images = [_idx(data, 3) for data in (files[0], files[2])]
    labels = [_idx(data, 1) for data in (files[1], files[3])]
    if [len(array) for array in images] != [len(array) for array in labels]:
        raise DamagedFile("MNIST's images and labels differ in number; get the four files again")
    facts = {"tested": len(images[1]), "sha256": registry.combined(files)}
    return Parsed({"images": np.concatenate(images), "labels": np.concatenate(labels)}, facts)


def _idx(data: bytes, dimensions: int) -> np.ndarray:
    """An IDX file of unsigned bytes: magic number 8 << 8 | dimensions, sizes big-endian, then the values."""
    header = np.frombuffer(data, ">u4", 1 + dimensions) if len(data) >= 4 * (1 + dimensions) else np.zeros(1, ">u4")
    if header[0] != 0x0800 | dimensions or len(data) != 4 * (1 + dimensions) + int(np.prod(header[1:])):
        raise DamagedFile("a file of MNIST is no IDX file of unsigned bytes, or a truncated one; get it again")
    return np.frombuffer(data, np.uint8, offset=4 * (1 + dimensions)).reshape(header[1:])
