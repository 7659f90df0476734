"""How many values an experiment trains, without its data set."""

from bisect import bisect_right
from dataclasses import replace
from typing import Any

import torch

from nlstm_lab import models
from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import Mixture, Symbols, Vectors
from nlstm_lab.datasets.corpora import only_beginning
from nlstm_lab.datasets.glimpses import CLASSES, PIXELS, MNISTGlimpses
from nlstm_lab.datasets.handwriting import Handwriting
from nlstm_lab.datasets.poetry import ChinesePoetry
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.datasets.words import ALPHABET, Autocomplete, AutocompleteTask, GenerationTask, TextGeneration
from nlstm_lab.errors import UsageError
from nlstm_lab.experiments.base import Experiment

WIDEST = 1 << 20  # hidden units that a network is tried with


def ends(task: Any) -> tuple[Symbols | Vectors, Symbols | Mixture]:
    """What a task's config puts into a network and asks of it: by published counts, or else by opening the text."""
    match task:
        case MNISTGlimpses():
            return Vectors(PIXELS), Symbols(CLASSES)
        case Handwriting():
            return Vectors(3), Mixture(task.components)
        case Autocomplete():
            return Symbols(len(AutocompleteTask.special) + len(ALPHABET), padded=True), Symbols(task.words + 2)
        case TextGeneration():
            symbols = Symbols(len(GenerationTask.special) + len(ALPHABET), padded=True)
        case ChinesePoetry():
            symbols = Symbols(registry.get("poetry").counts["symbols"])
        case CharacterModelling(normalization="none") if task.corpus in registry.DATASETS:
            symbols = Symbols(registry.get(task.corpus).counts["symbols"])
        case _:
            loaded = task.load()
            return loaded.input, loaded.output
    return symbols, symbols


def parameters(experiment: Experiment) -> int:
    """Count the trained values of an experiment exactly, on a device that holds none.

    >>> import nlstm_lab as lab
    >>> lab.experiments.parameters(lab.experiments.get("ptb_char_nlstm"))  # table 1 prints 4.47M
    4474850
    """
    config = replace(experiment.model, boundaries=())  # given boundaries are no parameters, and ask for the symbols
    with torch.device("meta"), only_beginning(experiment.scale == "smoke"):
        return models.parameter_count(models.build(config, models.Interface(*ends(experiment.task)), seed=0))


def width_for_parameters(experiment: Experiment, budget: int) -> int:
    """Find the widest `hidden_size` with which the experiment trains at most `budget` values: for a fair comparison.

    Hand it to `variant(name, hidden_size=...)`. Widths that the cell type refuses (a clockwork RNN's must be a multiple
    of its modules) are passed over.

    Args:
        budget: Trained values.

    Raises:
        UsageError: Even the narrowest network is too large, or a text that has to be opened is not as stated.
        MissingData: Such a text is not on this machine.

    >>> import nlstm_lab as lab
    >>> nested = lab.experiments.parameters(lab.experiments.get("ptb_char_nlstm"))
    >>> width_for_parameters(lab.experiments.get("ptb_char_lstm1"), nested)
    1026
    """
    ends(experiment.task)  # raises what is wrong with the task, which below would count as a width that is refused

    def count(width: int) -> int | None:
        try:
            return parameters(replace(experiment, model=replace(experiment.model, hidden_size=width)))
        except ValueError:
            return None

    def next_count(width: int) -> int:
        counts = (count(width + more) for more in range(64))
        return next((known for known in counts if known is not None), budget + 1)

    for width in range(bisect_right(range(1, WIDEST), budget, key=next_count), 0, -1):
        if count(width) is not None:
            return width
    raise UsageError(f"no width of {experiment.name!r} has {budget:,} parameters or fewer")
