"""How many hours the trainings of the tables take on this machine: `nlstm-lab bench trainings`."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from nlstm_lab import experiments, models, paths, training
from nlstm_lab.datasets.base import Batch, Evaluation, Metric, Mixture, Split, Symbols, Vocabulary
from nlstm_lab.datasets.glimpses import MNISTGlimpses
from nlstm_lab.errors import UsageError
from nlstm_lab.experiments import Experiment, sizes
from nlstm_lab.training.state import machine

STEPS = 20  # of a drawn sequence: the rows' own have up to 649, and an update of theirs takes up to half a minute
UPDATES = {"cpu": 3, "cuda": 300}  # on a GPU as many as its kernels are compiled for
SAME = "_logfreq"  # rows that differ in the output bias alone, and take as long


class Drawn:
    """A task of random sequences, as wide as an experiment's and as many side by side, that needs no data set."""

    metric: Metric = "nll_nats"
    evaluations: tuple[Evaluation, ...] = ("blocks",)
    fingerprint = ""
    log_frequencies = torch.empty(0)

    def __init__(self, experiment: Experiment, updates: int) -> None:
        self.input, self.output = sizes.ends(experiment.task)
        self.per_sequence = isinstance(experiment.task, MNISTGlimpses)
        self.vocabulary: Vocabulary | None = Vocabulary(tuple(map(chr, range(ord(" "), ord(" ") + self.input.size))))
        self.batch_size: int = experiment.task.batch_size
        self.updates_per_epoch = updates

    def train(self, generator: torch.Generator) -> Iterator[Batch]:
        for _ in range(self.updates_per_epoch):
            yield self._batch(self.batch_size, generator)

    def evaluate(self, split: Split, evaluation: Evaluation) -> Iterator[Batch]:
        yield self._batch(2, torch.Generator().manual_seed(0))

    def _batch(self, rows: int, generator: torch.Generator) -> Batch:
        if isinstance(self.input, Symbols):
            inputs = torch.randint(int(self.input.padded), self.input.size, (STEPS, rows), generator=generator)
        else:
            inputs = torch.randn(STEPS, rows, self.input.size, generator=generator)
        if isinstance(self.output, Mixture):
            points = torch.randn(STEPS, rows, 3, generator=generator)
            return Batch(inputs, torch.cat([points[..., :2], (points[..., 2:] > 0).float()], dim=-1))
        shape = (rows,) if self.per_sequence else (STEPS, rows)
        return Batch(inputs, torch.randint(self.output.size, shape, generator=generator))


def hours(experiment: Experiment, device: str = "cpu") -> float:
    """About how long its training takes on `device`, by a few updates on short random sequences.

    Too long by up to a half for small networks, since what an update costs beside its steps is shared by fewer of them;
    too short by the readings, and by the padding of handwriting. NaN for a text of unknown length.
    """
    task = Drawn(experiment, UPDATES[device])
    network = models.build(experiment.model, models.Interface.of(task), seed=0)
    short = replace(experiment.training, epochs=1, updates_per_epoch=None, batches_per_reading=None)
    for _ in range(2):  # the first time kernels are chosen and memory is allocated
        fit = training.fit(network, task, short, seed=0, device=device, progress=False)
    return sizes.symbols_read(experiment) / fit.tokens_per_second / 3600


def measured(pattern: str = "*") -> Iterator[tuple[str, float]]:
    """Each experiment with a paper scale that matches, and its hours on the GPU, or else the CPU."""
    names = [name for name in experiments.names(pattern) if "paper" in experiments.scales(name)]
    if not (distinct := [name for name in names if not name.endswith(SAME)]):
        raise UsageError(
            f"no experiment to be measured at paper scale matches {pattern!r} (those that end in {SAME} take as long "
            "as those without): `nlstm-lab experiments` lists them"
        )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for name in distinct:
        yield name, hours(experiments.get(name, "paper"), device)


def record_hours(name: str, known: float, path: Path) -> None:
    """Keep the hours of an experiment, and the machine that they are of, in a CSV file, beside those that it has."""
    here = machine()
    row = {"experiment": name, "hours": known} | here | {"cuda": ", ".join(here["cuda"])}
    rows = [one for one in _rows(path) if one["experiment"] != name] + [row]
    paths.write(path, pd.DataFrame(rows).to_csv(index=False, float_format="%.3g", lineterminator="\n"))


def _rows(path: Path) -> list[dict[str, Any]]:
    return pd.read_csv(path, na_filter=False).to_dict("records") if path.is_file() else []  # type: ignore[return-value]


def recorded_hours(names: Iterable[str]) -> pd.DataFrame:
    """Read the recorded hours of trainings at paper scale.

    Args:
        names: Of experiments.

    Returns:
        A row for each name, a column for each machine that has a record; NaN where it has none.

    >>> import nlstm_lab as lab
    >>> lab.bench.recorded_hours(["ptb_char_nlstm"]).columns.tolist()
    ['one thread']
    """
    names, columns = list(names), {}
    for path in sorted(paths.bench().glob("trainings-*.csv")):
        known = pd.read_csv(path, index_col="experiment")["hours"]
        name_of_machine = path.stem.removeprefix("trainings-").replace("_", " ")
        columns[name_of_machine] = known.reindex([name.removesuffix(SAME) for name in names]).to_numpy()
    return pd.DataFrame(columns, index=names)
