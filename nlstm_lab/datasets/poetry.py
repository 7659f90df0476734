"""Chinese quatrains: four lines of five characters, read as one sequence of twenty (Nested LSTMs, section 4.3)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import SPLITS, Batch, ColdTask, Ordered, Symbols, Vocabulary, consecutive
from nlstm_lab.datasets.files import Parsed, cached
from nlstm_lab.errors import DamagedFile

REPLACED = "<R>"  # what the data's authors wrote for a character that they took out
LACUNA = "□"  # what it is here: one character, the editors' sign for a lost one, and not in the data
LINES, CHARACTERS = 4, 5


@dataclass(frozen=True)
class ChinesePoetry(Ordered):
    """Predict the next character of a quatrain, cold for each poem (SeqGAN's setting: batch 64, length 20).

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
        parsed = cached("poetry", registry.locate("poetry"), lambda: _parse(registry.contents("poetry")))
        self.config, self.fingerprint = config, str(parsed.facts["sha256"])
        splits = [parsed.arrays[split] for split in SPLITS]
        self.poems = np.concatenate(splits)  # [poems, 20] uint16
        super().__init__(consecutive([*map(len, splits)]), config.batch_size, config)
        self.vocabulary = Vocabulary(tuple(parsed.facts["symbols"]))
        self.input = self.output = Symbols(len(self.vocabulary))

    def batch(self, rows: np.ndarray) -> Batch:
        poems = torch.from_numpy(self.poems[rows].astype(np.int64)).T.contiguous()
        if self.config.start == "none":
            return Batch(poems[:-1], poems[1:])
        vectors = torch.zeros(*poems.shape, self.output.size)
        vectors[1:].scatter_(2, poems[:-1, :, None], 1)
        return Batch(vectors, poems)


def _parse(files: list[bytes]) -> Parsed:
    """One poem a line, a tab between verses, a space between characters, CRLF between poems."""
    poems = [_poems(data, split) for data, split in zip(files, SPLITS, strict=True)]
    symbols = sorted(set("".join(map("".join, poems))))
    codes = {symbol: code for code, symbol in enumerate(symbols)}
    arrays = [np.array([[codes[character] for character in poem] for poem in split], np.uint16) for split in poems]
    return Parsed(dict(zip(SPLITS, arrays, strict=True)), {"symbols": symbols, "sha256": registry.combined(files)})


def _poems(data: bytes, split: str) -> list[str]:
    poems = []
    for number, line in enumerate(data.decode("utf-8").replace(REPLACED, LACUNA).split("\r\n"), 1):
        verses = [verse.split() for verse in line.split("\t")]
        if [len(verse) for verse in verses] != [CHARACTERS] * LINES:
            raise DamagedFile(
                f"line {number} of the quatrains ({split}) is no poem of 4 verses of 5 characters; get them again"
            )
        poems.append("".join("".join(verse) for verse in verses))
    return poems
