"""Autocomplete as a function: a text in, the likeliest words out (Madsen's article, its first figure)."""

import math
import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nlstm_lab.datasets.words import PADDING, UNKNOWN
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import texts as wording
from nlstm_lab.probes.edits import Edits
from nlstm_lab.probes.reading import reading
from nlstm_lab.probes.running import Plan

NO_SYMBOLS = (PADDING, UNKNOWN)
REMEMBERED = 256  # prefixes whose states a Completer keeps


class Completion(NamedTuple):
    """A `word` (or character) and its `probability` among everything that the network predicts."""

    word: str
    probability: float


class Completer:
    """Complete words while somebody types: `completer(text)` reads only what is new since an earlier call.

    Of a long text the last words within 200 characters are read, from a zero state. Where reading starts moves on by
    half of that, so that it seldom moves. The network must not change meanwhile: a new one needs a new Completer.

    Args:
        model: The network; it predicts at every character.
        unknown: What happens to characters outside the vocabulary: "refuse" or "map".

    Raises:
        UsageError: The network does not predict at every character.

    >>> import nlstm_lab as lab
    >>> completer = Completer(lab.runs.load("autocomplete_gru", scale="small").model())
    >>> [word for word, probability in completer("the united stat")][:2]
    ['states', 'state']
    """

    def __init__(self, model: Network, *, unknown: wording.Unknown = "refuse") -> None:
        self.model, self.unknown = model, unknown
        self.vocabulary = wording.vocabulary_of(model)
        self._read: OrderedDict[str, tuple[Tensor, Any]] = OrderedDict()  # h of the last step and the state

    def __call__(self, text: str, k: int = 3) -> list[Completion]:
        """The `k` likeliest words for what is being typed, likeliest first: `text` is any prefix, also an empty one.

        The article's sequences begin with a space: one is put before a text without.
        """
        if k < 1:
            raise UsageError(f"k must be a positive number of words, not {k}")
        text = wording.composed(text, self.unknown)
        if not text or (self.model.words is not None and not text.startswith(" ")):
            text = f" {text}"
        half = wording.LONGEST // 2
        start = max(-(-(len(text) - wording.LONGEST) // half) * half, 0)
        if start:  # a space far behind would leave little to read; how far may not depend on what is typed
            start = max(text.find(" ", start, start + half // 2 + 1), start)
        with reading(self.model):
            logits = self.model.readout(self._hidden(text[start:]))
        (suggestions,) = likeliest(logits, wording.outputs_of(self.model, logits.shape[-1]), k)
        return suggestions

    def _hidden(self, text: str) -> Tensor:
        """h after the last character, [1, hidden_size], reading on from the longest prefix that was read before."""
        known = next((n for n in range(len(text), 0, -1) if text[:n] in self._read), 0)
        hidden, state = self._read.get(text[:known], (None, None))
        if known < len(text):
            codes, _ = wording.encode_leniently(self.vocabulary, text[known:], self.unknown)
            read = (tensor.unsqueeze(1) for tensor in wording.unit_input(self.model, codes))
            output, state = self.model.recurrent(*read, state)
            hidden = output[-1]
        assert hidden is not None  # a text has at least one character
        self._read[text] = hidden, state
        self._read.move_to_end(text)
        if len(self._read) > REMEMBERED:
            self._read.popitem(last=False)
        return hidden


def continued(
    model: Network,
    text: str,
    length: int,
    seed: int = 0,
    temperature: float = 1.0,
    edits: Edits | None = None,
) -> str:
    """Continue `text` by `length` characters that the network draws from its own predictions.

    Args:
        model: A network that predicts the next character.
        length: Symbols to write.
        seed: The same seed gives the same text.
        temperature: The logits are divided by it; towards 0 the likeliest character is always taken.
        edits: As `run` takes them; the steps of `text` go on with those of what is drawn, of which the last is not
            read.

    Returns:
        `text` and what was drawn.

    Raises:
        UsageError: The network predicts words, or a length or temperature is not positive and finite.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_lstm2_logfreq", scale="small").model()
    >>> text = continued(model, "the company said ", 20, temperature=0.5)
    >>> len(text), text.startswith("the company said ")
    (37, True)
    """
    vocabulary = wording.vocabulary_of(model)
    if length < 1 or not 0 < temperature < math.inf:
        raise UsageError(f"length and temperature must be positive and finite, not {length} and {temperature}")
    if model.words is not None:
        raise UsageError(f"{model.name or 'this network'} predicts words; a text is continued by the next character")
    generator = torch.Generator().manual_seed(seed)
    nothing = torch.tensor([vocabulary.symbols.index(symbol) for symbol in NO_SYMBOLS if symbol in vocabulary.symbols])
    codes, state = wording.encode_leniently(vocabulary, text)[0].unsqueeze(1).to(model.device), None
    plan = Plan(model, (len(codes) + length - 1, 1), edits or {})
    drawn: list[int] = []
    first = plan.first
    with reading(model):
        begun = min(len(codes) - 1, first)  # what comes before the first edit is read at once
        if begun:
            state = model.recurrent(*model.recurrent_arguments(codes[:begun]))[1]
        for step in range(begun, len(codes) + length - 1):
            x = codes[step : step + 1] if step < len(codes) else torch.full_like(codes[:1], drawn[-1])
            if step < first:
                hidden, state = model.recurrent(*model.recurrent_arguments(x), state)
            else:
                hidden, state, _ = plan.read(step, x, state)
            if step < len(codes) - 1:
                continue
            scores = model.readout(hidden)[-1, 0].double().cpu().index_fill(-1, nothing.long(), -torch.inf)
            behind = (scores - scores.max()) / temperature  # at most 0: no temperature is so low that it overflows
            drawn.append(int(torch.multinomial(torch.softmax(behind, -1), 1, generator=generator)))
    return text + vocabulary.decode(torch.tensor(drawn))


def likeliest_codes(scores: Tensor, names: Sequence[str], k: int) -> tuple[Tensor, Tensor]:
    """The `k` highest of scores [..., outputs] and their codes, [..., k] each; <eos> and <unknown> are no words."""
    no_words = torch.tensor(
        [code for code, name in enumerate(names) if re.fullmatch("<.+>", name)], device=scores.device
    )
    scores = scores.index_fill(-1, no_words.long(), -torch.inf)
    values, indices = scores.topk(min(k, len(names) - len(no_words)), dim=-1)
    return values, indices


def likeliest(logits: Tensor, names: Sequence[str], k: int) -> list[list[Completion]]:
    """For every row of logits [T, outputs] the `k` likeliest words."""
    values, codes = likeliest_codes(torch.softmax(logits.double(), -1), names, k)
    rows = zip(codes.tolist(), values.tolist(), strict=True)
    return [[Completion(names[code], p) for code, p in zip(*row, strict=True)] for row in rows]
