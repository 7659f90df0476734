"""MNIST in glimpses: the order of the looks, and the counts."""

import struct

import numpy as np
import pytest
import torch

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.items import MNISTGlimpses, glimpses
from nlstm_lab.errors import DamagedFile, UsageError

SEEDED = 1


def idx(values):
    return struct.pack(f">I{values.ndim}I", 0x0800 | values.ndim, *values.shape) + values.tobytes()


def digits():
    random = np.random.default_rng(0)
    sizes = (12, 5)
    parts = [
        (random.integers(256, size=(n, 28, 28), dtype=np.uint8), random.integers(10, size=n, dtype=np.uint8))
        for n in sizes
    ]
    return [idx(array) for part in parts for array in part]


def assemble(looks):
    """The images [B, 28, 28] back from the patches among the looks [20, B, 49] of the reading "patches"."""
    batch = looks.shape[1]
    patches = looks.reshape(2, 2, 5, batch, 49)[:, :, 1:].reshape(2, 2, 2, 2, batch, 7, 7)
    return patches.permute(4, 0, 2, 5, 1, 3, 6).reshape(batch, 28, 28)


def test_an_image_is_twenty_glimpses_in_the_papers_order(publish):
    publish("mnist", digits())
    task = MNISTGlimpses(batch_size=4).load()
    assert {split: len(rows) for split, rows in task.rows.items()} == {"train": 10, "valid": 2, "test": 5}
    (batch,) = task.evaluate("test", "blocks")
    images = torch.from_numpy(np.array(task.images[task.rows["test"]])).float() / 255
    assert batch.inputs.shape == (20, 5, 49)
    assert batch.targets.tolist() == task.labels[task.rows["test"]].tolist()
    for quadrant, (row, column) in enumerate([(0, 0), (0, 14), (14, 0), (14, 14)]):
        square = images[:, row : row + 14, column : column + 14]
        expected = [square[:, ::2, ::2], square[:, :7, :7], square[:, :7, 7:], square[:, 7:, :7], square[:, 7:, 7:]]
        for k, patch in enumerate(expected):
            assert torch.equal(batch.inputs[5 * quadrant + k], patch.reshape(5, 49))
    assert torch.equal(assemble(batch.inputs), images)


def test_batches_in_fixed_order_are_the_files_and_a_partial_one_may_be_dropped(publish):
    publish("mnist", digits())
    shuffled = MNISTGlimpses(batch_size=4).load()
    fixed = MNISTGlimpses(batch_size=4, batch_order="fixed", last_batch="drop").load()
    generator = torch.Generator().manual_seed(SEEDED)
    for _ in range(2):
        (first, second), other = fixed.train(generator), list(shuffled.train(generator))
        read, labels = torch.cat([first.inputs, second.inputs], 1), torch.cat([first.targets, second.targets])
        assert torch.equal(assemble(read), torch.from_numpy(np.array(fixed.images[:8])).float() / 255)
        assert labels.tolist() == fixed.labels[:8].tolist()
        assert [len(batch.targets) for batch in other] == [4, 4, 2]
        assert not torch.equal(other[0].inputs, first.inputs)
    assert (fixed.updates_per_epoch, shuffled.updates_per_epoch) == (2, 3)


def test_a_batch_that_is_never_full_is_not_dropped(publish):
    publish("mnist", digits())
    with pytest.raises(UsageError, match=r"10.*11.*batch_size.*last_batch"):
        MNISTGlimpses(batch_size=11, last_batch="drop").load()


def test_the_other_reading_is_four_phases_and_the_reduced_quadrant():
    images = torch.rand(3, 28, 28, generator=torch.Generator().manual_seed(0))
    looks = glimpses(images, "phases")
    square = images[:, :14, 14:]
    for k, (row, column) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        assert torch.equal(looks[5 + k], square[:, row::2, column::2].reshape(3, 49))
    torch.testing.assert_close(looks[9], torch.nn.functional.avg_pool2d(square, 2).reshape(3, 49))


def test_files_that_are_no_idx_files_are_refused(publish):
    files = digits()
    publish("mnist", [files[0][:-1], *files[1:]])
    with pytest.raises(DamagedFile):
        MNISTGlimpses().load()


@pytest.mark.slow
@pytest.mark.data
def test_mnist_has_its_counts():
    task = MNISTGlimpses().load()
    assert {split: len(rows) for split, rows in task.rows.items()} == registry.get("mnist").counts
    batch = next(task.train(torch.Generator().manual_seed(SEEDED)))
    assert batch.inputs.shape == (20, 100, 49)
    assert (batch.inputs.min(), batch.inputs.max()) == (0, 1)
    assert batch.targets.shape == (100,)
    assert task.updates_per_epoch == 500
    assert task.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.allclose(task.log_frequencies.exp(), 0.1, atol=0.02)
