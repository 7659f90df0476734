"""How every probe reads a text with a network: what it takes, what it is called, and where memories are kept."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from importlib import resources
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor, nn

from nlstm_lab.cells.base import memory_names
from nlstm_lab.cells.recurrent import Recurrent
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.errors import UsageError
from nlstm_lab.models.network import Network, check_network
from nlstm_lab.settings import choice, counted

CHUNK = 1000  # steps that are read at once
BURN_IN = 1000  # steps at the start that no statistics look at: a network comes from its zero state
WATCHED = 25  # steps that are read at once where a caller watches, and may end the reading
MANY = 100  # names, of more of which a message lists none
LONGEST = 200  # characters of the article's sequences, the longest that its networks were trained on
Text = str | Tensor | NDArray[Any]  # characters, or their codes [T], or vectors [T, features]
Texts = Text | list[Text] | tuple[Text, ...]  # several are read side by side, of whatever lengths


@contextmanager
def reading(model: Network) -> Iterator[None]:
    """As `evaluating`, and no gradients."""
    with evaluating(model, gradients=False), torch.inference_mode():
        yield


@contextmanager
def evaluating(model: nn.Module, gradients: bool = True) -> Iterator[None]:
    """No dropout inside, and sampled boundaries the same at every reading; afterwards all is as it was."""
    if gradients and torch.is_inference_mode_enabled():
        raise UsageError("this probe takes gradients, which torch.inference_mode() forbids: call it outside")
    modes = [(module, module.training) for module in model.modules()]
    device = next(model.parameters()).device
    model.eval()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        (torch if device.type == "cuda" else torch.default_generator).manual_seed(0)  # the first seeds every GPU, too
        try:
            yield
        finally:
            for module, training in modes:
                module.training = training  # `train` would set the parts', too


def called(model: Network) -> str:
    """What a message calls a network."""
    return model.name or "this network"


def encode(model: Network, text: Any, name: str = "text") -> Tensor:
    """`text` as the network takes it, codes [T] or vectors [T, features], on its device; UsageError, which calls it
    `name`: it is nothing that the network reads."""
    check_network(model)
    embedding, symbols = model.embedding, model.vocabulary
    size = len(symbols) if symbols else len(getattr(embedding, "weight", ())) if embedding else None
    features = model.recurrent.input_size if embedding is None else getattr(embedding, "in_features", None)
    features = features if model.segment_ends is None else None  # given boundaries are those of symbols
    if isinstance(text, str) and symbols is not None:
        text = symbols.encode(text)
    ways = ["a string"] * (symbols is not None) + ["codes [T]"] * (not isinstance(embedding, nn.Linear))
    ways += [f"vectors [T, {features}]"] * (features is not None)
    if isinstance(text, np.ndarray):  # torch takes none that runs backwards, or is of the other byte order
        text = np.array(text, text.dtype.newbyteorder("="), order="C")
    try:
        read = torch.as_tensor(text)
    except (TypeError, ValueError, RuntimeError):
        read = torch.empty(0, dtype=torch.bool)
    vectors, known = read.is_floating_point(), read.dtype not in (torch.bool, torch.cfloat, torch.cdouble)
    if known and read.dim() == 2 + vectors and len(read) == 1:
        read = read[0]  # a batch of one
    if known and read.shape[:1] == (0,):
        raise UsageError(f"the {name} is empty: a probe needs at least one character")
    fits = read.shape[1:] == (features,) if vectors else read.dim() == 1 and not isinstance(embedding, nn.Linear)
    if not known or not fits:
        said = f"{text.dtype} {list(text.shape)}" if isinstance(text, Tensor | np.ndarray) else f"{text!r}"[:60]
        raise UsageError(f"{name} must be {' or '.join(ways)}, not {said}")
    if vectors:
        return read.to(model.device, next(model.parameters()).dtype)
    read = read.long()
    size = size or features or int(read.max().item()) + 1
    if strange := read[(read < 0) | (read >= size)].tolist():
        raise UsageError(f"{name} must be of codes from 0 to {size - 1}, not {strange[0]}")
    return read.to(model.device)


def encode_all(model: Network, texts: Any) -> tuple[Tensor, list[int] | None]:
    """Texts as the network takes them, [T, B] or [T, B, features], padded, and their lengths: None for one alone."""
    if is_one(texts):
        return encode(model, texts).unsqueeze(1), None
    codes = [encode(model, text) for text in texts]
    return nn.utils.rnn.pad_sequence(codes), [len(each) for each in codes]


def is_one(texts: Any) -> bool:
    """Whether this is one text, a list of codes too, and not several; UsageError where it is none."""
    if isinstance(texts, list | tuple) and not texts:
        raise UsageError("there is no text: hand in at least one")
    return not isinstance(texts, list | tuple) or isinstance(texts[0], int | float | np.number)


def encode_symbols(model: Network, text: Text) -> Tensor:
    """`encode` for a probe that judges by the next symbol; UsageError where the network predicts anything else."""
    codes = encode(model, text)
    if codes.is_floating_point():
        raise UsageError("this probe judges by the next symbol: the text must be symbols, not vectors")
    if not predicts_symbols(model):
        raise UsageError(f"{called(model)} does not predict the symbols that it reads: take another")
    return codes


def predicts_symbols(model: Network) -> bool:
    """Whether a network predicts the next of the symbols that it reads: not words, a class or points."""
    if model.density is not None or model.per_sequence:
        return False
    if model.vocabulary is None:
        return model.words is None
    symbols = model.vocabulary.symbols
    if model.words is not None and tuple(model.words) != symbols:
        return False
    with reading(model):
        outputs: Tensor = model(torch.zeros(1, 1, dtype=torch.long, device=model.device))[0]
    return outputs.shape[-1] == len(symbols)


def symbols_of(model: Network, codes: Tensor) -> list[Any] | None:
    """What was read, of codes [T]: characters, or the codes where there is no vocabulary; None for vectors."""
    if codes.is_floating_point():
        return None
    read: list[int] = codes.tolist()
    return read if model.vocabulary is None else [model.vocabulary.symbols[code] for code in read]


def vocabulary_of(model: Network) -> Vocabulary:
    """The symbols that `model` reads; a UsageError where it does not predict something at every character."""
    check_network(model)
    if model.vocabulary is None or model.density is not None:
        raise UsageError(f"{called(model)} reads no text: a network with a vocabulary and a softmax is needed")
    if model.per_sequence:
        raise UsageError(f"{called(model)} is not autoregressive: it predicts once a sequence, not at every character")
    return model.vocabulary


def outputs_of(model: Network, size: int) -> Sequence[str]:
    """The names of the `size` things that `model` predicts: its words, or the characters that it reads."""
    names = vocabulary_of(model).symbols if model.words is None else model.words
    if len(names) != size:
        way = "hand `words`, their names in the order of their codes, to lab.models.wrap"
        raise UsageError(f"{called(model)} predicts {size} things, not {len(names)}: {way}")
    return names


def code_of(model: Network, target: Any, size: int, name: str = "target") -> int:
    """The code of a symbol or word among the `size` things that `model` predicts, by its name or as it is."""
    if isinstance(target, Integral) and not isinstance(target, bool):
        return counted(target, name, 0, size - 1)
    symbols = model.vocabulary.symbols if model.vocabulary is not None and not model.per_sequence else None
    names = symbols if model.words is None else model.words
    if names is None or len(names) != size:
        raise UsageError(f"{name} must be a code from 0 to {size - 1}: what is predicted has no names, not {target!r}")
    if not isinstance(target, str) or target not in names:
        near = get_close_matches(str(target), names, 3)
        listed = "one of " + " ".join(map(repr, names)) if size <= MANY else f"one of the {size} words it predicts"
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise UsageError(f"{name} must be {listed}, or its code, not {target!r}{hint}")
    return names.index(target)


def string(text: Any) -> str:
    """A text that must be a string; UsageError where it is none."""
    if not isinstance(text, str):
        raise UsageError(f"text must be a string, not {text!r}"[:100])
    return text


def mapped_to(vocabulary: Vocabulary, text: str) -> str:
    """A text of known characters alone: in NFC, as otherwise a combining mark would be a space, and of an unknown one
    its lower case, its base letter or, as text8's rules do, a space."""
    read = ""
    for character in unicodedata.normalize("NFC", string(text)):
        base = unicodedata.normalize("NFKD", character)[0]
        near = (character, character.lower(), base, base.lower(), " ")
        read += next((each for each in near if each in vocabulary.symbols), character)
    if not read:
        raise UsageError("the text is empty: a probe needs at least one character")
    vocabulary.encode(read)  # refuses what is near to none
    return read


def mapped(model: Network, text: str) -> str:
    """Return a text as a network reads it at best: a character that it does not know as its nearest, or a space.

    Raises:
        UsageError: The text is empty, or has a character that is near to none.
    """
    return mapped_to(vocabulary_of(model), text)


@cache
def free_text() -> str:
    """Return 30,000 characters of the English Wikipedia, letters and spaces alone, which every network of text reads.

    CC BY-SA 3.0: `datasets/free_text.md` says what it is of.
    """
    return resources.files("nlstm_lab.datasets").joinpath("free_text.txt").read_text(encoding="utf-8")


class Words(NamedTuple):
    """For each of T positions: the word it belongs to, where that starts, how many of its characters are known."""

    word: list[str]  # a space belongs to the word after it; "" where none follows
    start: NDArray[np.int_]  # the space before the word, or its first character
    known: NDArray[np.int_]  # 0 at the space


def words_of(text: str) -> Words:
    """The word of every position, as the article's targets have it."""
    pieces = re.findall(r"\s\S*|\S+", text)
    lengths = [len(piece) for piece in pieces]
    start = np.repeat(np.cumsum([0, *lengths], dtype=int)[:-1], lengths)
    before = np.repeat([piece[0].isspace() for piece in pieces], lengths)
    word = [piece.strip() for piece, length in zip(pieces, lengths, strict=True) for _ in range(length)]
    return Words(word, start, np.arange(1, len(text) + 1) - start - before)


def whole(asked: Any, size: int, message: str, from_end: bool = False) -> list[int]:
    """The numbers below `size` that an int, a slice, a range or a list of ints asks for; None asks for all."""
    asked = range(size)[asked or slice(None)] if asked is None or isinstance(asked, slice) else asked
    found = list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
    sound = all(isinstance(each, Integral) and not isinstance(each, bool) for each in found)
    if not found or not sound or min(found) < (-size if from_end else 0) or max(found) >= size:
        raise UsageError(f"{message} 0 to {size - 1}, at least one of them, by int, slice or list")
    return [int(each) % size for each in found]


def skipped(traced: xr.Dataset, burn_in: Any, least: int = 1) -> xr.Dataset:
    """What is left of a trace of one text behind the first steps; UsageError unless that is at least so many."""
    length, skip = traced.sizes["time"], counted(burn_in, "burn_in", 0)
    if "text" in traced.dims:
        raise UsageError("text must be one text, not a list of several: take them one by one")
    if length - skip < least:
        less = ", or a smaller burn_in" if skip else ""
        raise UsageError(f"the text has {length} steps: {skip + least} or more are needed{less}")
    return traced.isel(time=slice(skip, None))


def names(recurrent: Recurrent) -> list[str]:
    """The names of a network's memories, layer by layer, outermost first; none without cells."""
    depth = sum(name.rpartition(".")[2] == "c" for name in recurrent.layers[0].state_names)  # type: ignore[union-attr]
    return memory_names(recurrent.num_layers, depth) if depth else []


def hidden_names(num_layers: int) -> list[str]:
    """What the hidden state of each layer is called where it stands beside memories: 'h', or 'layer 1 h' and so on."""
    return ["h"] if num_layers == 1 else [f"layer {k + 1} h" for k in range(num_layers)]


def every_name(recurrent: Recurrent) -> list[str]:
    """The names of a network's memories and hidden states."""
    return [*names(recurrent), *hidden_names(recurrent.num_layers)]


def memory_states(trace: xr.Dataset) -> dict[str, xr.DataArray]:
    """The states of each memory of a trace, (time, unit), layer by layer, outermost first; none without cells."""
    return {str(name): trace["c"].sel(memory=name) for name in trace["memory"].values} if "c" in trace else {}


def hidden_states(trace: xr.Dataset) -> dict[str, xr.DataArray]:
    """The hidden states of each layer of a trace, (time, unit), the lowest first."""
    layers = trace["layer"].values
    return {name: trace["h"].sel(layer=k) for name, k in zip(hidden_names(len(layers)), layers, strict=True)}


def seen(trace: xr.Dataset) -> dict[str, NDArray[np.float32]]:
    """What the rest of a network sees of each memory, tanh c, and each hidden state, [time, unit]."""
    cells = {name: np.tanh(states.values) for name, states in memory_states(trace).items()}
    return cells | {name: states.values for name, states in hidden_states(trace).items()}


def component(recurrent: Recurrent, state: Any, name: str) -> Tensor:
    """The component of a packed state that is called `name` (a memory or a layer's h), a view [B, hidden_size]."""
    memories, hidden = names(recurrent), hidden_names(recurrent.num_layers)
    if name in hidden:
        layers: Tensor = state[0] if isinstance(state, tuple) else state
        return layers[hidden.index(name)]
    layer, depth = divmod(memories.index(choice(name, "memory", [*memories, *hidden])), len(memories) // len(hidden))
    cells: Tensor = state[1]
    return cells[layer] if cells.dim() == 3 else cells[layer, depth]


def batched(states: list[Any]) -> Any:
    """Packed states of several texts side by side as one batch."""
    if not isinstance(states[0], tuple):
        return torch.cat(states, -2)
    # the batch is the last dimension but one, and the last of an HM-LSTM's boundaries [num_layers, B]
    return tuple(torch.cat(tensors, -1 if tensors[0].dim() == 2 else -2) for tensors in zip(*states, strict=True))


def rows(state: Any, index: Sequence[int]) -> Any:
    """The chosen texts of a packed state side by side, a copy."""
    if not isinstance(state, tuple):
        return state[..., list(index), :]
    return tuple(tensor[..., list(index)] if tensor.dim() == 2 else tensor[..., list(index), :] for tensor in state)


def states_at(model: Network, codes: Tensor, moments: Sequence[int]) -> Any:
    """The packed states with which a network enters steps of a text, from 1 on, side by side in that order."""
    states: dict[int, Any] = {}
    state, start = None, 0
    for moment in sorted(set(moments)):
        state = model.read(codes[start:moment, None], state)[1]
        states[moment], start = state, moment
    return batched([states[moment] for moment in moments])
