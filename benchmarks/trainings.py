"""How many hours the trainings of the tables take on this machine, by a few of their updates; no data is needed.

python benchmarks/trainings.py 'ptb_char_*' --record one_thread   # keeps data/bench/trainings-one_thread.csv
"""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
import torch
from timing import arguments, write_csv

from nlstm_lab import experiments, models, paths, training
from nlstm_lab.datasets import items, registry
from nlstm_lab.datasets.base import Batch, Evaluation, Metric, Mixture, Split, Symbols, Vocabulary
from nlstm_lab.datasets.items import ChinesePoetry, Handwriting, MNISTGlimpses
from nlstm_lab.datasets.text import CharacterModelling, NestedLanguage
from nlstm_lab.datasets.words import Autocomplete, TextGeneration
from nlstm_lab.experiments import Experiment, base
from nlstm_lab.runs.tables import SAME

STEPS = 20  # of a drawn sequence: the rows' own have up to 649, and an update of theirs takes up to half a minute
UPDATES = {"cpu": 3, "cuda": 300}  # on a GPU as many as its kernels are compiled for


class Drawn:
    """A task of random sequences, as wide as an experiment's and as many side by side, that needs no data set."""

    metric: Metric = "nll_nats"
    evaluations: tuple[Evaluation, ...] = ("blocks",)
    fingerprint = ""
    log_frequencies = torch.empty(0)

    def __init__(self, experiment: Experiment, updates: int) -> None:
        self.input, self.output = base.ends(experiment.task)
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


def symbols_read(experiment: Experiment) -> float:
    """How many symbols (points, glimpses) the training reads, from published counts; NaN where none are known."""
    task, training = experiment.task, experiment.training
    match task:
        case MNISTGlimpses():
            epoch, sequence = registry.get("mnist").counts["train"] * items.STEPS, items.STEPS
        case ChinesePoetry():
            epoch, sequence = registry.get("poetry").counts["train"] * 20, 20  # characters of a poem
        case Handwriting():
            counts = registry.get("iamondb").counts
            epoch, sequence = counts["points in train"], counts["points in train"] // counts["train"]
        case CharacterModelling() | Autocomplete() | TextGeneration() if task.corpus in registry.DATASETS:
            epoch, sequence = registry.get(task.corpus).counts["train"], task.length
        case NestedLanguage():
            epoch, sequence = task.size * 90 // 100, task.length
        case _:
            return float("nan")
    if training.updates_per_epoch:
        epoch = min(epoch, training.updates_per_epoch * task.batch_size * sequence)
    return float(training.epochs * epoch)


def hours(experiment: Experiment, device: str) -> float:
    """About how long its training takes on `device`, by a few updates on short random sequences.

    Too long by up to a half for small networks, since what an update costs beside its steps is shared by fewer of them;
    too short by the readings, and by the padding of handwriting. NaN for a text of unknown length.
    """
    task = Drawn(experiment, UPDATES[device])
    network = models.build(experiment.model, models.Interface.of(task), seed=0)
    short = replace(experiment.training, epochs=1, updates_per_epoch=None, batches_per_reading=None)
    for _ in range(2):  # the first time kernels are chosen and memory is allocated
        fit = training.fit(network, task, short, seed=0, device=device, progress=False)
    return symbols_read(experiment) / fit.rate() / 3600


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("pattern", nargs="?", default="*", help="experiments, by a shell pattern in quotes")
    given = parser.parse_args()
    names = [name for name in experiments.names(given.pattern) if "paper" in experiments.scales(name)]
    if not (distinct := [name for name in names if not name.endswith(SAME)]):
        parser.error(
            f"no experiment with a paper scale matches {given.pattern!r} (those in {SAME} take as long as"
            " those without): `nlstm-lab experiments` lists them"
        )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for name in distinct:
        known = hours(experiments.get(name, "paper"), device)
        print(f"{known:10,.1f} h  {name}", flush=True)
        if given.record:  # beside those that the file has
            path = paths.bench() / f"trainings-{given.record}.csv"
            rows = pd.read_csv(path, na_filter=False).to_dict("records") if path.is_file() else []
            write_csv([row for row in rows if row["experiment"] != name] + [{"experiment": name, "hours": known}], path)


if __name__ == "__main__":
    main()
