"""How many values an experiment trains, told without its data set."""

from dataclasses import replace
from typing import Any

import torch

from nlstm_lab import models
from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import Mixture, Symbols, Vectors
from nlstm_lab.datasets.glimpses import CLASSES, PIXELS, MNISTGlimpses
from nlstm_lab.datasets.handwriting import Handwriting
from nlstm_lab.datasets.poetry import ChinesePoetry
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.datasets.words import ALPHABET, Autocomplete, AutocompleteTask, GenerationTask, TextGeneration
from nlstm_lab.experiments.base import Experiment


def ends(task: Any) -> tuple[Symbols | Vectors, Symbols | Mixture]:
    """What a task's config puts into a network and asks of it.

    Published counts stand in for the documents' data sets; another text has to be opened (MissingData, UsageError).
    """
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
        case CharacterModelling() if task.corpus in registry.DATASETS:
            symbols = Symbols(registry.get(task.corpus).counts["symbols"])
        case _:
            loaded = task.load()
            return loaded.input, loaded.output
    return symbols, symbols


def parameters(experiment: Experiment) -> int:
    """The exact number of trained values, counted on a device that holds none."""
    config = replace(experiment.model, boundaries=())  # given boundaries are no parameters, and ask for the symbols
    with torch.device("meta"):
        return models.parameter_count(models.build(config, models.Interface(*ends(experiment.task)), seed=0))
