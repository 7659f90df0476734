"""How fast batches are read: `nlstm-lab bench data`."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from nlstm_lab.datasets.glimpses import MNISTGlimpses
from nlstm_lab.datasets.handwriting import Handwriting
from nlstm_lab.datasets.poetry import ChinesePoetry
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.datasets.words import Autocomplete, TextGeneration
from nlstm_lab.errors import LabError

CONFIGS: tuple[Any, ...] = (
    CharacterModelling("python_docs"),
    CharacterModelling("ptb"),
    CharacterModelling("ptb", batch_size=64, evaluation="streams"),
    CharacterModelling("enwiki2015_text8like", length=180, batch_size=128),
    CharacterModelling("text8", length=180, batch_size=128),
    CharacterModelling("enwik8", batch_size=64, evaluation="streams"),
    ChinesePoetry(),
    MNISTGlimpses(),
    Autocomplete("enwiki2015_text8like"),
    TextGeneration("enwiki2015_text8like"),
    Handwriting(),
)


@dataclass(frozen=True)
class Speed:
    """One row: seconds to open a cached task, and predictions a second that its training batches bring."""

    task: str
    open_s: float
    predictions_per_s: float


def bench(seconds: float = 1.0) -> Iterator[Speed]:
    """Read each task that is on this machine for about so long, on one thread of this process."""
    for config in CONFIGS:
        try:
            config.load()  # so that the cache is there
        except LabError:
            continue
        begin = time.perf_counter()
        task = config.load()
        opened = time.perf_counter() - begin
        count, begin = 0, time.perf_counter()
        for batch in task.train(torch.Generator().manual_seed(0)):
            count += batch.targets[..., 0].numel() if batch.targets.dim() == 3 else batch.targets.numel()
            if time.perf_counter() - begin > seconds:
                break
        yield Speed(str(config), opened, count / (time.perf_counter() - begin))
