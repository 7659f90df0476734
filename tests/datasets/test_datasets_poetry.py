"""Quatrains: shapes, contents and counts, on tiny originals and on the real ones."""

from itertools import chain

import numpy as np
import pytest
import torch

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.items import LACUNA, ChinesePoetry
from nlstm_lab.errors import DamagedFile

SEEDED = 1


def epoch(task):
    return list(task.train(torch.Generator().manual_seed(SEEDED)))


def poem(*characters):
    verses = ["".join(characters)[k : k + 5] for k in range(0, 20, 5)]
    return "\t".join(" ".join(verse) for verse in verses)


FIRST = "偶寻半开梅闲倚一竿竹儿童不知春问草何故绿"
SECOND = "白日不到处青春恰自来苔花如米小亦学牡丹开"


def quatrains():
    train = "\r\n".join([poem(*FIRST).replace("梅", "<R>")] * 3)
    return [train.encode(), poem(*SECOND).encode(), poem(*FIRST).encode()]


def test_a_poem_is_one_sequence_with_19_predictions(publish):
    publish("poetry", quatrains())
    task = ChinesePoetry(batch_size=2).load()
    assert set(task.vocabulary.symbols) == {*FIRST, *SECOND, LACUNA}  # the union of all splits
    batches = epoch(task)
    assert [tuple(batch.inputs.shape) for batch in batches] == [(19, 2), (19, 1)]
    assert task.updates_per_epoch == 2
    assert torch.equal(batches[0].inputs[1:], batches[0].targets[:-1])
    read = torch.cat([batches[0].inputs[:1, 0], batches[0].targets[:, 0]])
    assert task.vocabulary.decode(read) == "偶寻半开□闲倚一竿竹儿童不知春问草何故绿"


def test_the_start_may_be_a_zero_vector(publish):
    publish("poetry", quatrains())
    task, zero = ChinesePoetry().load(), ChinesePoetry(start="zero").load()
    (batch,) = epoch(zero)
    assert batch.inputs.shape == (20, 3, task.input.size)
    assert batch.targets.shape == (20, 3)
    assert batch.inputs[0].abs().sum() == 0
    assert torch.equal(batch.inputs[1:].argmax(-1), batch.targets[:-1])
    assert zero.input == task.input


def test_batches_in_fixed_order_are_the_files_and_a_partial_one_may_be_dropped(publish):
    poems = [FIRST[k:] + FIRST[:k] for k in range(7)]
    publish("poetry", ["\r\n".join(poem(*one) for one in poems).encode(), *quatrains()[1:]])

    def read(**decisions):
        """Three epochs as batches of poems."""
        task = ChinesePoetry(batch_size=3, **decisions).load()
        generator = torch.Generator().manual_seed(SEEDED)
        epochs = [list(task.train(generator)) for _ in range(3)]
        assert {len(batches) for batches in epochs} == {task.updates_per_epoch}
        whole = [[torch.cat([batch.inputs[:1], batch.targets]).T for batch in batches] for batches in epochs]
        return [[[task.vocabulary.decode(row) for row in batch] for batch in batches] for batches in whole]

    assert read(batch_order="fixed") == [[poems[:3], poems[3:6], poems[6:]]] * 3
    assert read(batch_order="fixed", last_batch="drop") == [[poems[:3], poems[3:6]]] * 3
    shuffled, cut = ([list(chain(*batches)) for batches in read(last_batch=last)] for last in ("keep", "drop"))
    assert all(sorted(epoch) == sorted(poems) and epoch != poems for epoch in shuffled)
    assert cut == [epoch[:6] for epoch in shuffled]
    assert len({epoch[6] for epoch in shuffled}) > 1  # another poem is left out each time


def test_a_line_that_is_no_poem_is_refused(publish):
    publish("poetry", [quatrains()[0] + "\r\n春 夏".encode(), *quatrains()[1:]])
    with pytest.raises(DamagedFile, match=r"line 4.*train"):
        ChinesePoetry().load()


@pytest.mark.data
def test_the_quatrains_have_their_counts():
    task = ChinesePoetry().load()
    sizes = {split: len(rows) for split, rows in task.rows.items()}
    seen = len(np.unique(task.poems[task.rows["train"]]))
    assert sizes | {"symbols": task.input.size, "symbols in train": seen} == registry.get("poetry").counts
    batch = next(task.train(torch.Generator().manual_seed(SEEDED)))
    assert batch.inputs.shape == batch.targets.shape == (19, 64)
    assert task.updates_per_epoch == 177
    assert task.vocabulary.decode(task.poems[0]).startswith("偶寻半开梅闲倚一竿竹")
