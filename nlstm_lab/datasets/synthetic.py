"""A language whose boundaries are known, on which probes are validated."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from string import ascii_lowercase

import numpy as np

from nlstm_lab.datasets.base import Evaluation, Split, Vocabulary
from nlstm_lab.datasets.corpora import SPLITS, Corpus
from nlstm_lab.datasets.text import TextTask
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
        """Make the task, with `boundaries`.

        Raises:
            UsageError: There is one topic, or a topic would have fewer than two words.
        """
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
