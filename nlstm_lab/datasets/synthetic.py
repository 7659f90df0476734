"""Data with known truth, on which probes are validated: nested language, timescales, a known memory demand."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from math import exp, log
from string import ascii_lowercase

import numpy as np
import torch
from scipy.signal import lfilter
from torch import Tensor

from nlstm_lab.datasets.base import Batch, Evaluation, Metric, Split, Symbols, Vocabulary
from nlstm_lab.datasets.corpora import SPLITS, Corpus
from nlstm_lab.datasets.text import TextTask, log_shares
from nlstm_lab.errors import UsageError
from nlstm_lab.settings import check

WITHIN, WORD, PHRASE = 0, 1, 2  # what begins at a character


@dataclass(frozen=True)
class NestedLanguage:
    """Characters in words in phrases, whose boundaries are known and written nowhere in the text.

    `words` random spellings of 2 to 6 letters are shared out to `topics`; a phrase is 3 to 8 words of one topic, the
    next phrase has another. No spaces: what separates words is that letters within one follow from the letters
    before, and what separates phrases is that only a phrase's own topic goes on.
    """

    size: int = 200_000  # characters in all
    words: int = 64
    topics: int = 8
    length: int = 100
    batch_size: int = 32
    evaluation: Evaluation = "blocks"
    seed: int = 0

    def __post_init__(self) -> None:
        check(self)

    def load(self) -> "NestedLanguageTask":
        """The task, with `boundaries`; a UsageError where a topic would have fewer than two words."""
        if self.topics < 2 or self.words < 2 * self.topics:
            raise UsageError(f"{self.topics} topics with {self.words} words: 2 topics at least, 2 words in each")
        return NestedLanguageTask(self)


class NestedLanguageTask(TextTask):
    """A text task; `boundaries[split]` [symbols] uint8 says what begins there: WITHIN, WORD or PHRASE."""

    def __init__(self, config: NestedLanguage) -> None:
        codes, begins = _nested(config)
        cuts = (config.size * 90 // 100, config.size * 95 // 100, config.size)
        vocabulary = Vocabulary(tuple(ascii_lowercase))
        corpus = Corpus("nested language", codes, cuts, vocabulary, sha256(codes.tobytes()).hexdigest())
        super().__init__(corpus, config.length, config.batch_size, config.evaluation)
        starts = (0, *cuts)
        self.boundaries: Mapping[Split, np.ndarray] = {
            split: begins[starts[k] : starts[k + 1]] for k, split in enumerate(SPLITS)
        }


def _nested(config: NestedLanguage) -> tuple[np.ndarray, np.ndarray]:
    """Codes and what begins at each of them, `size` characters."""
    random = np.random.default_rng(config.seed)
    spellings: list[bytes] = []
    while len(spellings) < config.words:
        spelling = random.integers(26, size=random.integers(2, 7), dtype=np.uint8).tobytes()
        if spelling not in spellings:
            spellings.append(spelling)
    lengths = np.array([len(spelling) for spelling in spellings])
    phrases = config.size // 6 + 1  # three words of two letters at least
    topics = np.cumsum(np.r_[random.integers(config.topics), random.integers(1, config.topics, phrases - 1)])
    counts = random.integers(3, 9, phrases)
    first = np.repeat(np.arange(phrases), counts)  # the phrase of each word
    choices = config.words // config.topics
    words = (topics % config.topics)[first] * choices + random.integers(choices, size=len(first))
    kinds = np.full(len(words), WORD, np.uint8)
    kinds[np.r_[0, np.cumsum(counts)[:-1]]] = PHRASE
    places = np.r_[0, np.cumsum(lengths[words])[:-1]]
    codes = np.frombuffer(b"".join([spellings[word] for word in words]), np.uint8)
    begins = np.zeros(len(codes), np.uint8)
    begins[places] = kinds
    return codes[: config.size], begins[: config.size]


def signals(timescales: tuple[float, ...], steps: int, seed: int = 0) -> np.ndarray:
    """Stationary Gaussian signals [steps, len(timescales)] of unit variance, autocorrelation exp(-lag / timescale)."""
    decays = np.array([_decay(timescale) for timescale in timescales])
    random = np.random.default_rng(seed)
    noise = random.standard_normal((steps, len(decays))) * np.sqrt(1 - decays**2)
    noise[0] /= np.sqrt(1 - decays**2)  # the first value has the stationary variance already
    columns = [lfilter([1.0], [1.0, -decay], noise[:, k]) for k, decay in enumerate(decays)]
    return np.stack(columns, axis=1)


def symbol_sequence(timescale: float, steps: int, symbols: int = 27, seed: int = 0) -> np.ndarray:
    """Symbols [steps] int64 that stay with probability exp(-1 / timescale), else are drawn anew, uniformly.

    The autocorrelation of every indicator "the symbol is s" is exp(-lag / timescale), exactly.
    """
    random = np.random.default_rng(seed)
    renewed = random.random(steps) >= _decay(timescale)
    renewed[0] = True
    drawn = random.integers(symbols, size=steps)
    return drawn[np.maximum.accumulate(np.where(renewed, np.arange(steps), 0))]


def _decay(timescale: float) -> float:
    if not timescale > 0:  # NaN, too
        raise UsageError(f"a timescale is a positive number of steps, not {timescale}")
    return exp(-1 / timescale)


@dataclass(frozen=True)
class CopyTask:
    """Read `width` random symbols, wait, and write them when told to (Hochreiter and Schmidhuber's copy problem).

    A sequence is width symbols, lag - 1 blanks, the command, width - 1 blanks: each symbol is asked for width + lag - 1
    steps after it was read, and only these answers count. To be perfect, `demand_bits` must be held over the lag;
    without any memory the loss is ln(symbols) a prediction.
    """

    symbols: int = 8
    width: int = 10
    lag: int = 50
    sequences: int = 6_400  # of one epoch; each epoch has new ones
    evaluated: int = 1_000  # of valid, and of test
    batch_size: int = 32
    seed: int = 0

    @property
    def demand_bits(self) -> float:
        return self.width * log(self.symbols, 2)

    def load(self) -> "CopyTaskData":
        """The task; a UsageError where nothing would be copied."""
        if min(self.symbols - 1, self.width, self.lag, self.sequences, self.evaluated, self.batch_size) < 1:
            raise UsageError(f"copying needs 2 symbols, and a width, a lag and sequences of 1 at least: {self}")
        return CopyTaskData(self)


class CopyTaskData:
    """Inputs [T, B]: symbols, then the blank and the command. Targets [T, B]: symbols; mask: the last `width` steps."""

    per_sequence = False
    metric: Metric = "nll_nats"
    evaluations: tuple[Evaluation, ...] = ("blocks",)
    vocabulary: Vocabulary | None = None

    def __init__(self, config: CopyTask) -> None:
        self.config = config
        self.input, self.output = Symbols(config.symbols + 2), Symbols(config.symbols)
        self.updates_per_epoch = -(-config.sequences // config.batch_size)
        self.fingerprint = sha256(repr(sorted(asdict(config).items())).encode()).hexdigest()

    @cached_property
    def log_frequencies(self) -> Tensor:
        return log_shares(np.ones(self.config.symbols, np.int64))

    def train(self, generator: torch.Generator) -> Iterator[Batch]:
        return self._batches(self.config.sequences, generator)

    def evaluate(self, split: Split, evaluation: Evaluation) -> Iterator[Batch]:
        # below 0, out of reach of training, whose seeds count up from 0
        generator = torch.Generator().manual_seed(-1 - len(SPLITS) * self.config.seed - SPLITS.index(split))
        return self._batches(self.config.evaluated, generator)

    def _batches(self, sequences: int, generator: torch.Generator) -> Iterator[Batch]:
        config = self.config
        blank, command = config.symbols, config.symbols + 1
        for start in range(0, sequences, config.batch_size):
            size = min(config.batch_size, sequences - start)
            symbols = torch.randint(config.symbols, (config.width, size), generator=generator)
            inputs = torch.full((2 * config.width + config.lag - 1, size), blank)
            inputs[: config.width] = symbols
            inputs[config.width + config.lag - 1] = command
            targets = torch.zeros_like(inputs)
            targets[-config.width :] = symbols
            mask = torch.zeros_like(inputs, dtype=torch.bool)
            mask[-config.width :] = True
            yield Batch(inputs, targets, mask)
