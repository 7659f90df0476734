"""A trained network of one's own as a `Network`, once it is seen to fit."""

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from nlstm_lab import cells
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.models.network import Network

STEPS = 3  # that are read to see whether a network computes what torch's module does


def wrap(
    rnn: nn.Module,
    *,
    readout: nn.Module,
    embedding: nn.Module | None = None,
    vocabulary: Vocabulary | Sequence[str] | Mapping[str, int] | None = None,
    words: Sequence[str] | None = None,
    name: str = "wrapped",
) -> Network:
    """Make your own trained network ready for every probe and widget.

    A few steps show whether what is read is what `rnn` computes, and whether all sizes fit.

    Args:
        rnn: An `nn.LSTM`, `nn.RNN` or `nn.GRU`, unidirectional, or one of ours; the network takes time first in any
            case.
        readout: From h [..., hidden_size] to logits.
        embedding: From symbols to vectors; None for one-hot input.
        vocabulary: The symbols in the order of their codes, or a mapping from symbol to code.
        words: The names of what is predicted, where that is not the next symbol.

    Raises:
        TypeError: rnn is of another kind, or computes something else, as a subclass with a `forward` of its own may.
        ValueError: A vocabulary with gaps or duplicates; an embedding or a readout of other sizes, by its name.

    >>> import torch, nlstm_lab as lab
    >>> rnn, embedding, readout = torch.nn.LSTM(8, 16, 2), torch.nn.Embedding(27, 8), torch.nn.Linear(16, 27)
    >>> model = lab.models.wrap(rnn, embedding=embedding, readout=readout, vocabulary=" abcdefghijklmnopqrstuvwxyz")
    >>> dict(lab.probes.trace(model, "the cat sat").c.sizes)
    {'time': 11, 'memory': 2, 'unit': 16}
    """
    recurrent = copy.copy(rnn) if isinstance(rnn, cells.Recurrent) else _from_torch(rnn)
    recurrent.batch_first = False
    if isinstance(vocabulary, Mapping):
        if sorted(vocabulary.values()) != list(range(len(vocabulary))):
            raise ValueError("a vocabulary's codes must be 0, 1, 2, ... without a gap")
        vocabulary = sorted(vocabulary, key=vocabulary.__getitem__)
    if vocabulary is not None and not isinstance(vocabulary, Vocabulary):
        vocabulary = Vocabulary(tuple(vocabulary))
    if vocabulary is not None and len(set(vocabulary.symbols)) < len(vocabulary):
        raise ValueError("a vocabulary must hold each symbol once")
    network = Network(recurrent, readout, embedding, vocabulary, name=name, words=words).eval()
    _check_sizes(network)
    return network


@torch.no_grad()
def _from_torch(rnn: nn.Module) -> cells.Recurrent:
    for theirs, ours in ((nn.LSTM, cells.LSTM), (nn.GRU, cells.GRU), (nn.RNN, cells.RNN)):
        if isinstance(rnn, theirs):
            training, like = rnn.training, next(rnn.parameters())
            x = torch.linspace(-1, 1, STEPS * rnn.input_size, dtype=like.dtype, device=like.device).view(STEPS, -1)
            try:
                expected = rnn.eval()(x)[0]  # and weight norm and its like compute their weights
            except (TypeError, ValueError, AttributeError, IndexError) as error:
                raise TypeError(f"rnn must be called as torch's, and {type(rnn).__name__} is not: {error}") from error
            rnn.train(training)
            recurrent = ours.from_torch(rnn).eval()
            tolerance = max(2e-3, 10 * torch.finfo(like.dtype).eps)  # what a GPU's TF32 may round away
            if not torch.allclose(recurrent(x)[0], expected, rtol=0, atol=tolerance):
                raise TypeError(f"{type(rnn).__name__} must compute what torch.nn.{theirs.__name__} does, and does not")
            return recurrent
    raise TypeError(f"rnn must be a torch.nn.LSTM, GRU or RNN, or a Recurrent of nlstm_lab, not {type(rnn).__name__}")


@torch.no_grad()
def _check_sizes(network: Network) -> None:
    """Raise ValueError unless every symbol reaches the layers, and every name has an output."""
    known, recurrent = network.vocabulary, network.recurrent
    symbols = torch.arange(len(known) if known else 1, device=network.device)
    if network.embedding is None and len(symbols) > recurrent.input_size:
        raise ValueError(f"vocabulary must hold at most the {recurrent.input_size} symbols that rnn reads")
    names = network.words or (known.symbols if known else ())
    hidden = recurrent.cells[0].like.new_zeros(1, 1, recurrent.output_size)
    for part, given, wanted in (("embedding", symbols, recurrent.input_size), ("readout", hidden, len(names))):
        if (module := getattr(network, part)) is None:
            continue
        try:
            size = module(given).shape[-1]
        except (IndexError, RuntimeError, ValueError) as error:
            raise ValueError(f"{part} must take the symbols, or the h, that it is given: {error}") from error
        if wanted and size != wanted:
            raise ValueError(f"{part} must give {wanted} values, not {size}")
