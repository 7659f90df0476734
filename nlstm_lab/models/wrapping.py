"""A trained network of one's own as a `Network`, once it is seen to fit."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import torch
from torch import nn

from nlstm_lab import cells
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.models.network import Network

STEPS = 3  # that are read to see whether a network computes what torch's module does
OURS: tuple[tuple[type[nn.RNNBase], type[nn.RNNCellBase], Any], ...] = (
    (nn.LSTM, nn.LSTMCell, cells.LSTM),
    (nn.GRU, nn.GRUCell, cells.GRU),
    (nn.RNN, nn.RNNCell, cells.RNN),
)


def wrap(
    rnn: nn.Module | Sequence[nn.Module],
    *,
    readout: nn.Module,
    embedding: nn.Module | None = None,
    vocabulary: Vocabulary | Sequence[str] | Mapping[str, int] | None = None,
    words: Sequence[str] | None = None,
    name: str = "wrapped",
) -> Network:
    """Make your own trained network ready for every probe and widget.

    A few steps show whether what is read is what `rnn` computes, and whether all sizes fit. What `torch.compile` or
    `nn.DataParallel` have put around a module is taken off.

    Args:
        rnn: An `nn.LSTM`, `nn.RNN` or `nn.GRU` in one direction without projection, or torch's cells for one step, one
            or a list, the lowest first, of which the weights are copied; or one of ours that needs no given boundaries,
            which is shared. The network takes time first.
        readout: From h [..., hidden_size] to logits. It and the embedding are no copies, and set to eval mode.
        embedding: From symbols to vectors; None for one-hot input.
        vocabulary: The symbols in the order of their codes, or a mapping from symbol to code.
        words: The names of what is predicted, where that is not the next symbol.

    Raises:
        TypeError: rnn is of another kind, or computes something else, as a subclass with a `forward` of its own may; a
            symbol is no text.
        ValueError: A vocabulary with gaps or duplicates; an embedding or a readout of other sizes, by its name; a
            readout that gives probabilities; an rnn of two directions or with a projection; a part without values.

    >>> import torch, nlstm_lab as lab
    >>> rnn, embedding, readout = torch.nn.LSTM(8, 16, 2), torch.nn.Embedding(27, 8), torch.nn.Linear(16, 27)
    >>> model = lab.models.wrap(rnn, embedding=embedding, readout=readout, vocabulary=" abcdefghijklmnopqrstuvwxyz")
    >>> dict(lab.probes.trace(model, "the cat sat").c.sizes)
    {'time': 11, 'memory': 2, 'unit': 16}
    """
    given, embedding, readout = _bare(rnn), _bare(embedding), _bare(readout)
    if not isinstance(readout, nn.Module):
        raise TypeError(f"readout must be a torch.nn.Module, from h to logits, not {type(readout).__name__}")
    for what, part in (("rnn", given), ("embedding", embedding), ("readout", readout)):
        modules = [one for one in (part if isinstance(part, list | tuple) else [part]) if isinstance(one, nn.Module)]
        if any(parameter.is_meta for one in modules for parameter in one.parameters()):
            raise ValueError(f"{what} must hold values, and lies on the meta device: load its weights first")
    if isinstance(given, cells.HierarchicalRNN):
        raise TypeError("rnn must not be a HierarchicalRNN, which reads given boundaries, too: use lab.models.build")
    recurrent = copy.copy(given) if isinstance(given, cells.Recurrent) else _from_torch(given)
    recurrent.batch_first = False
    known = None if vocabulary is None else _vocabulary(vocabulary)
    words = None if words is None else _texts("words", words)
    network = Network(recurrent, readout, embedding, known, name=name, words=words).eval()
    _check_sizes(network)
    return network


def _bare(module: Any) -> Any:
    """What `torch.compile` or a data-parallel module is put around."""
    if hasattr(module, "_orig_mod"):
        return _bare(module._orig_mod)
    parallel = isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel)
    return _bare(module.module) if parallel else module


def _vocabulary(given: Vocabulary | Sequence[str] | Mapping[str, int]) -> Vocabulary:
    if isinstance(given, Mapping):
        codes = list(given.values())
        whole = all(isinstance(code, Integral) and not isinstance(code, bool) for code in codes)
        if not whole or sorted(codes) != list(range(len(codes))):
            raise ValueError("a vocabulary must map each symbol to its code, 0, 1, 2, ...: name unused codes, too")
        given = sorted(given, key=given.__getitem__)
    symbols = _texts("vocabulary", given.symbols if isinstance(given, Vocabulary) else given)
    if len(set(symbols)) < len(symbols) or not all(symbols):
        raise ValueError("a vocabulary must hold each symbol once, and no empty one")
    return Vocabulary(symbols)


def _texts(name: str, given: Any) -> tuple[str, ...]:
    """Names in the order of their codes, one at least."""
    if not isinstance(given, Iterable) or isinstance(given, set | frozenset):
        raise TypeError(f"{name} must be str in the order of their codes, not {type(given).__name__}")
    for text in (texts := tuple(given)):
        if not isinstance(text, str):
            way_out = " (decode bytes to a str first)" if isinstance(given, bytes | bytearray) else ""
            raise TypeError(f"{name} must hold str, not {type(text).__name__} {text!r}{way_out}")
    if not texts:
        raise ValueError(f"{name} must hold one name at least, or be None")
    return texts


@torch.no_grad()
def _from_torch(rnn: Any) -> cells.Recurrent:
    listed = isinstance(rnn, list | tuple | nn.ModuleList | nn.Sequential)
    layers = [_bare(cell) for cell in ([rnn] if isinstance(rnn, nn.RNNCellBase) else rnn if listed else [])]
    for theirs, one_step, ours in OURS:
        stacked = bool(layers) and all(  # a subclass, or a hook, may compute otherwise
            type(cell) is one_step and not cell._forward_pre_hooks and not cell._forward_hooks for cell in layers
        )
        rnn = _of_cells(theirs, layers) if stacked else rnn
        if isinstance(rnn, theirs):
            training, like = rnn.training, next(rnn.parameters())
            x = torch.linspace(-1, 1, STEPS * rnn.input_size, dtype=like.dtype, device=like.device).view(STEPS, -1)
            try:
                expected = rnn.eval()(x)[0]  # weight norm computes its weights
            except (TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
                raise TypeError(f"rnn must be called as torch's, and {type(rnn).__name__} is not: {error}") from error
            finally:
                rnn.train(training)
            recurrent: cells.Recurrent = ours.from_torch(rnn).eval()
            tolerance = max(2e-3, 10 * torch.finfo(like.dtype).eps)  # what a GPU's TF32 may round away
            if not torch.allclose(recurrent(x)[0], expected, rtol=0, atol=tolerance):
                raise TypeError(f"{type(rnn).__name__} must compute what torch.nn.{theirs.__name__} does, and does not")
            return recurrent
    raise TypeError(f"rnn must be torch's LSTM, GRU, RNN or their cells, or a Recurrent of ours, not {_described(rnn)}")


def _of_cells(theirs: type[nn.RNNBase], layers: list[Any]) -> nn.RNNBase:
    """The unrolled network of one cell, or of several that stand on each other."""
    first = layers[0]
    kinds = {(cell.bias, cell.hidden_size, getattr(cell, "nonlinearity", "")) for cell in layers}
    if len(kinds) > 1 or any(cell.input_size != first.hidden_size for cell in layers[1:]):
        raise ValueError("the cells must stand on each other: alike, and each reading what the one below gives")
    kind: dict[str, Any] = {"nonlinearity": first.nonlinearity} if theirs is nn.RNN else {}
    kind |= {"bias": first.bias, "device": first.weight_ih.device, "dtype": first.weight_ih.dtype}
    rnn = theirs(first.input_size, first.hidden_size, len(layers), **kind)
    for name, value in rnn.named_parameters():
        own, _, k = name.rpartition("_l")
        value.copy_(getattr(layers[int(k)], own))
    return rnn


def _described(rnn: Any) -> str:
    """What was handed in, and what to hand in instead."""
    kind = type(rnn)
    if isinstance(rnn, cells.Cell):
        return f"the single step {kind.__name__}: hand in its network, {kind.__name__.removesuffix('Cell')}"
    inside = dict(rnn.named_modules()) if isinstance(rnn, nn.Module) else {}
    for name, part in inside.items():
        if name and isinstance(part, nn.RNNBase | nn.RNNCellBase | cells.Recurrent):
            return f"{kind.__name__}: hand in its recurrent part, .{name}"
    return kind.__name__


@torch.no_grad()
def _check_sizes(network: Network) -> None:
    """Raise ValueError unless every symbol reaches the layers, and every name has an output."""
    known, recurrent = network.vocabulary, network.recurrent
    symbols = torch.arange(len(known) if known else 1, device=network.device)
    if network.embedding is None and len(symbols) > recurrent.input_size:
        raise ValueError(f"vocabulary must hold at most the {recurrent.input_size} symbols that rnn reads; embed more")
    names = network.words or (known.symbols if known else ())
    hidden = recurrent.cells[0].like.new_zeros(1, 1, recurrent.output_size)
    for part, given, wanted in (("embedding", symbols, recurrent.input_size), ("readout", hidden, len(names))):
        if (module := getattr(network, part)) is None:
            continue
        try:
            size = module(given).shape[-1]
        except (IndexError, RuntimeError, ValueError) as error:
            what = f"the {len(symbols)} symbols of the vocabulary" if part == "embedding" else "h"
            raise ValueError(f"{part} must take {what}: {error}") from error
        if wanted and size != wanted:
            way_out = ", one a symbol or word: name unused ones, too" if part == "readout" else ""
            raise ValueError(f"{part} must give {wanted} values, not {size}{way_out}")
    outputs = network.readout(torch.cat((hidden, hidden + 1))).float()
    sums = outputs.sum(-1)
    if outputs.shape[-1] > 1 and (outputs >= 0).all() and torch.allclose(sums, torch.ones_like(sums), atol=1e-2):
        raise ValueError("readout must give logits, and gives probabilities: hand it in without its softmax")
