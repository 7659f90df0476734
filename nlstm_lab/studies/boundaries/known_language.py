"""Does an HM-LSTM find segments that nobody marked? A small one learns a language whose words and phrases are known."""

import json
from collections.abc import Iterable

import numpy as np
import pandas as pd
import xarray as xr

from nlstm_lab import models, training
from nlstm_lab.datasets.synthetic import WORD, NestedLanguage, NestedLanguageTask
from nlstm_lab.models import Interface, ModelConfig, Network
from nlstm_lab.probes.records import ensure
from nlstm_lab.settings import plain
from nlstm_lab.studies.boundaries import segments
from nlstm_lab.studies.boundaries.measure import together
from nlstm_lab.studies.boundaries.segments import Flags
from nlstm_lab.training import TrainingConfig

LANGUAGE = NestedLanguage(words=32, topics=4, length=50, batch_size=64, evaluation="streams")
MODEL = ModelConfig("hmlstm", 64, 3, flags={"layer_norm": True}, embedding_size=32, output_embedding_size=64)
TRAINING = TrainingConfig(epochs=5, learning_rate=0.004, updates_per_epoch=20)
READ, PIECE = 9_500, 500  # characters of the validation text, and of a piece that is read from a zero state


def language_truths(task: NestedLanguageTask, length: int) -> dict[str, Flags]:
    """Where in the validation text a word, a phrase (which is one, too) ends, and where one begins."""
    begins = task.boundaries["valid"][: length + 1]
    begun = {"word": begins >= WORD, "phrase": begins > WORD}
    ends = {f"{name} ends": flags[1:] for name, flags in begun.items()}
    return ends | {f"{name} starts": flags[:-1] for name, flags in begun.items()}


def information(seed: int = 0) -> pd.DataFrame:
    """Information of z about the true segments, one row a layer and truth (`language_truths`).

    Columns: bits, the mutual information of z with the truth, step by step; shuffled, the same for z in another order,
    which is what is left of chance; entropy, the truth's own, the most that z could carry; rate and base, boundaries a
    step of the network and of the truth; bpc, of the text that was read.
    """

    def measure() -> pd.DataFrame:
        readings, truths = _read(seed)
        bpc = float(np.nanmean([reading["surprise"].values for reading in readings]))
        return segments.information(readings, truths, seed).drop(columns="symbol").assign(bpc=bpc)

    return ensure("nested_information", measure, config=_described(), seed=seed)


def language_information(seeds: Iterable[int]) -> pd.DataFrame:
    """`information` of several seeds under each other, with the column `seed`.

    Args:
        seeds: Seeds of the runs.
    """
    return pd.concat([information(seed).assign(seed=seed) for seed in seeds], ignore_index=True)


def _described() -> str:
    return json.dumps([plain(config) for config in (LANGUAGE, MODEL, TRAINING)] + [{"read": READ}])


def _read(seed: int) -> tuple[list[xr.Dataset], list[dict[str, Flags]]]:
    """The validation text in pieces, and what is true of each."""
    task = LANGUAGE.load()
    text = task.corpus.vocabulary.decode(task.corpus.splits["valid"][:READ])
    whole, cuts = language_truths(task, READ), range(0, READ, PIECE)
    readings = together(trained(task, seed), [text[start : start + PIECE] for start in cuts])
    return readings, [{name: flags[start : start + PIECE] for name, flags in whole.items()} for start in cuts]


def trained(task: NestedLanguageTask, seed: int) -> Network:
    """The network after some minutes' training, in eval mode."""
    network = models.build(MODEL, Interface.of(task), seed=seed, name="nested language")
    fit = training.fit(network, task, TRAINING, seed=seed, progress=False)
    network.load_state_dict(fit.weights)
    return network.eval()
