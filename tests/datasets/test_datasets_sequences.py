"""Glimpses, handwriting, poems and words: every sequence and target, order, split and count, and what is refused."""

import gzip
import struct
from itertools import chain

import numpy as np
import pytest
import torch
from test_datasets_files import tarred

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import Mixture, Symbols, Vectors, split_90_5_5
from nlstm_lab.datasets.items import LACUNA, ChinesePoetry, Handwriting, Lines, MNISTGlimpses, glimpses
from nlstm_lab.datasets.words import SEED, Autocomplete, Sequences, TextGeneration, pack
from nlstm_lab.errors import DamagedFile, UsageError


def epoch(task):
    return list(task.train(torch.Generator().manual_seed(1)))


def first(task):
    return next(task.train(torch.Generator().manual_seed(1)))


# MNIST in glimpses


def idx(values):
    return struct.pack(f">I{values.ndim}I", 0x0800 | values.ndim, *values.shape) + values.tobytes()


def digits():
    random = np.random.default_rng(0)
    shapes = ((256, (12, 28, 28)), (10, 12), (256, (5, 28, 28)), (10, 5))
    return [idx(random.integers(high, size=shape, dtype=np.uint8)) for high, shape in shapes]


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


def test_the_other_reading_is_four_phases_and_the_reduced_quadrant():
    images = torch.rand(3, 28, 28, generator=torch.Generator().manual_seed(0))
    looks = glimpses(images, "phases")
    square = images[:, :14, 14:]
    for k, (row, column) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        assert torch.equal(looks[5 + k], square[:, row::2, column::2].reshape(3, 49))
    torch.testing.assert_close(looks[9], torch.nn.functional.avg_pool2d(square, 2).reshape(3, 49))


@pytest.mark.slow
@pytest.mark.data
def test_mnist_has_its_counts():
    task = MNISTGlimpses().load()
    assert {split: len(rows) for split, rows in task.rows.items()} == registry.get("mnist").counts
    batch = first(task)
    assert batch.inputs.shape == (20, 100, 49)
    assert (batch.inputs.min(), batch.inputs.max()) == (0, 1)
    assert batch.targets.shape == (100,)
    assert task.updates_per_epoch == 500
    assert task.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.allclose(task.log_frequencies.exp(), 0.1, atol=0.02)


# Handwriting


def line(strokes):
    written = ("".join(f'<Point x="{x}" y="{y}" time="0.1"/>' for x, y in stroke) for stroke in strokes)
    points = "".join(f"<Stroke>{stroke}</Stroke>" for stroke in written)
    header = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    return f"{header}<WhiteboardCaptureSession><StrokeSet>{points}</StrokeSet></WhiteboardCaptureSession>".encode()


def wander(seed, points):
    path = np.random.default_rng(seed).integers(-50, 60, (points, 2)).cumsum(0) + 1000
    pairs = [(int(x), int(y)) for x, y in path]
    return [pairs[: points // 3], pairs[points // 3 :]]


LINES = {f"lineStrokes/a/a01-000u-{k:02}.xml": line(wander(k, 5 + k)) for k in range(1, 41)}


def test_a_line_that_is_read_is_one_of_its_split_as_it_was_written(publish):
    publish("iamondb", [tarred({f"a/{k:02}.xml": line(wander(k, 299 + k)) for k in range(1, 21)}), b"transcripts"])
    task, (points,) = Handwriting().load(), Lines("test", 1).read()
    (number,) = task.rows["test"]
    path = np.cumsum(points[:, :2].numpy() * task.deviation + task.mean, axis=0)
    written = np.concatenate(wander(number + 1, task.sizes[number]))
    np.testing.assert_allclose(path - path[0], written - written[0], atol=0.01)
    with pytest.raises(UsageError):
        Lines("test", 2).read()


def test_lines_become_normalized_offsets(publish):
    publish("iamondb", [tarred(LINES), b"transcripts"])
    task = Handwriting(batch_size=4, minimum=10).load()
    assert sum(len(chosen) for chosen in task.rows.values()) == 36  # four lines are shorter than 10 points
    assert (task.input, task.output) == (Vectors(3), Mixture(20))
    batches = epoch(task)
    assert len(batches) == task.updates_per_epoch
    offsets = torch.cat([batch.targets[batch.mask][:, :2] for batch in batches])
    torch.testing.assert_close(offsets.mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(offsets.std(0, correction=0), torch.ones(2), atol=1e-5, rtol=0)
    assert sum(int(batch.mask.sum()) for batch in batches) == sum(task.sizes[task.rows["train"]] - 1)
    for batch in batches:
        assert torch.equal(batch.inputs[1:], batch.targets[:-1])
        assert batch.inputs[0, :, :2].abs().sum() == 0
        assert batch.targets[~batch.mask].abs().sum() == 0


def test_offsets_add_up_to_the_line_that_was_written(publish):
    publish("iamondb", [tarred(LINES), b"transcripts"])
    task = Handwriting(batch_size=4, minimum=10).load()
    chosen = task.rows["test"][np.argsort(task.sizes[task.rows["test"]], kind="stable")]
    (batch,) = task.evaluate("test", "blocks")
    for column, number in enumerate(chosen):
        size = task.sizes[number]
        path = np.cumsum(batch.targets[: size - 1, column, :2].numpy() * task.deviation + task.mean, axis=0)
        written = np.concatenate(wander(number + 1, size))
        np.testing.assert_allclose(path, written[1:] - written[0], atol=0.01)
        assert (np.flatnonzero(batch.targets[:, column, 2]) + 1).tolist() == [size // 3 - 1, size - 1]  # two strokes


POINT = line([[(1, 2)]])


@pytest.mark.parametrize(
    "content", [POINT.replace(b'y="2"', b""), POINT[:-30], POINT.replace(b'y="2"', b'y="two"'), line([])]
)
def test_damaged_lines_are_named(publish, content):
    publish("iamondb", [tarred(LINES | {"lineStrokes/a/a01-000u-05.xml": content}), b"transcripts"])
    with pytest.raises(DamagedFile, match=r"a01-000u-05.xml"):
        Handwriting().load()


def test_a_truncated_archive_is_refused(home, publish):
    publish("iamondb", [tarred(LINES), b"transcripts"])
    file = home / "data/iamondb/lineStrokes-all.tar"
    packed = gzip.compress(file.read_bytes())
    file.unlink()
    file.with_name("lineStrokes-all.tar.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DamagedFile, match="lineStrokes-all"):
        Handwriting().load()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.xdist_group("iamondb")  # parsed once
def test_iamondb_has_the_papers_counts():
    task = Handwriting().load()
    sizes = {split: len(chosen) for split, chosen in task.rows.items()}
    points = int(task.sizes[task.rows["train"]].sum())
    assert sizes | {"lines": len(task.sizes), "points in train": points} == registry.get("iamondb").counts
    kept = np.concatenate(list(task.rows.values()))
    assert len(kept) == 11_628
    assert round(float(task.sizes[kept].mean()), 2) == 648.40
    batch = first(task)
    assert batch.inputs.shape == batch.targets.shape == (len(batch.inputs), 32, 3)


# Quatrains


def poem(characters):
    return "\t".join(" ".join(characters[k : k + 5]) for k in range(0, 20, 5))


FIRST = "偶寻半开梅闲倚一竿竹儿童不知春问草何故绿"
SECOND = "白日不到处青春恰自来苔花如米小亦学牡丹开"


def quatrains():
    train = "\r\n".join([poem(FIRST).replace("梅", "<R>")] * 3)
    return [train.encode(), poem(SECOND).encode(), poem(FIRST).encode()]


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


def test_poems_in_fixed_order_are_the_files_and_shuffled_ones_come_in_another(publish):
    poems = [FIRST[k:] + FIRST[:k] for k in range(7)]
    publish("poetry", ["\r\n".join(map(poem, poems)).encode(), *quatrains()[1:]])

    def read(**decisions):
        """Three epochs as batches of poems."""
        task, generator = ChinesePoetry(batch_size=3, **decisions).load(), torch.Generator().manual_seed(1)
        whole = [[torch.cat([batch.inputs[:1], batch.targets]).T for batch in task.train(generator)] for _ in range(3)]
        assert {len(batches) for batches in whole} == {task.updates_per_epoch}
        return [[[task.vocabulary.decode(row) for row in batch] for batch in batches] for batches in whole]

    assert read(batch_order="fixed") == [[poems[:3], poems[3:6], poems[6:]]] * 3
    shuffled = [list(chain(*batches)) for batches in read()]
    assert all(sorted(epoch) == sorted(poems) and epoch != poems for epoch in shuffled)
    assert len({epoch[6] for epoch in shuffled}) > 1


@pytest.mark.data
def test_the_quatrains_have_their_counts():
    task = ChinesePoetry().load()
    sizes = {split: len(rows) for split, rows in task.rows.items()}
    seen = len(np.unique(task.poems[task.rows["train"]]))
    assert sizes | {"symbols": task.input.size, "symbols in train": seen} == registry.get("poetry").counts
    batch = first(task)
    assert batch.inputs.shape == batch.targets.shape == (19, 64)
    assert task.updates_per_epoch == 177
    assert task.vocabulary.decode(task.poems[0]).startswith("偶寻半开梅闲倚一竿竹")


# Words

WORDS = ["one", "two", "three", "four", "three", "two", "one", "three", "unheard"]


def text8(repeats=60):
    return f" {' '.join(WORDS * repeats)}".encode()


def test_packing_is_greedy_and_leaves_out_what_never_fits():
    text = " aa bbbb c ddddddddddd e ff"
    starts = np.array([k for k, character in enumerate(text) if character == " "])
    packed = pack(starts, len(text), 8).arrays
    assert packed["firsts"].tolist() == [0, 2, 4]  # "aa bbbb", "c", then nothing of eleven letters, "e ff"
    assert packed["sizes"].tolist() == [8, 2, 5]


def test_sequences_are_the_first_of_their_split(publish):
    publish("text8", [text8()])
    config = TextGeneration(length=20, batch_size=8)
    task = config.load()
    batch = next(task.evaluate("test", "blocks"))
    told = [task.vocabulary.decode(codes).rstrip("\0") for codes in batch.inputs.T]
    assert Sequences(config, "test", 5).read() == told[:5]
    with pytest.raises(UsageError):
        Sequences(config, "test", 99_999).read()


def test_an_order_is_cut_ninety_five_five_and_nothing_is_lost():
    order = np.random.default_rng(0).permutation(39)
    parts = split_90_5_5(order, "here are 39 lines")
    assert {split: len(part) for split, part in parts.items()} == {"train": 35, "valid": 1, "test": 3}
    assert np.concatenate(list(parts.values())).tolist() == order.tolist()
    with pytest.raises(UsageError, match="19"):
        split_90_5_5(order[:19], "here are 19 lines")


def test_every_character_and_the_space_before_it_predict_their_word(publish, monkeypatch):
    monkeypatch.setattr("nlstm_lab.datasets.words.RANKED", 4)  # the fifth word has no code of its own
    publish("text8", [text8()])
    task = Autocomplete(length=20, words=4, batch_size=8).load()
    words = ("<eos>", "<unknown>", "three", "one", "two", "four")
    assert (task.input, task.output) == (Symbols(28, padded=True), Symbols(6, names=words))
    for split in ("train", "valid", "test"):
        for batch in task.evaluate(split, "blocks"):
            assert len(batch.inputs) <= 20
            for column in range(batch.inputs.shape[1]):
                text = task.vocabulary.decode(batch.inputs[:, column]).rstrip("\0")
                expected = [word for word in text.split() for _ in f" {word}"]
                targets = [words[code] for code in batch.targets[: len(text), column]]
                assert [w if w in words else "<unknown>" for w in expected] == targets
                assert batch.targets[len(text) :, column].tolist() == [0] * (len(batch.targets) - len(text))
                counted = batch.mask[:, column].tolist()
                assert counted[: len(text)] == [target not in ("<eos>", "<unknown>") for target in targets]
                assert not any(counted[len(text) :])


def test_generation_predicts_the_next_character_and_a_space_at_the_end(publish):
    publish("text8", [text8()])
    task = TextGeneration(length=20, batch_size=8).load()
    assert (task.input, task.output) == (Symbols(29, padded=True), Symbols(29))
    for batch in task.evaluate("train", "blocks"):
        for column in range(batch.inputs.shape[1]):
            text = task.vocabulary.decode(batch.inputs[:, column]).rstrip("\0")
            assert task.vocabulary.decode(batch.targets[:, column]).rstrip("\0") == f"{text[1:]} "
            assert batch.mask[:, column].sum() == len(text)


def test_the_split_is_the_articles_and_covers_every_sequence_once(publish):
    publish("text8", [text8()])
    task = TextGeneration(length=20, batch_size=8).load()
    rows = np.concatenate(list(task.rows.values()))
    count = len(rows)
    assert rows.tolist() == np.random.RandomState(SEED).permutation(count).tolist()
    assert len(task.rows["train"]) == count * 9 // 10
    masks = [batch.mask for split in task.rows for batch in task.evaluate(split, "blocks")]
    assert sum(int(mask.sum()) for mask in masks) == len(text8())
    assert task.updates_per_epoch == len(epoch(task)) == len(task.rows["train"]) // 8


def test_other_symbols_than_letters_are_refused_with_the_way_out(home):
    file = home / "text.txt"
    file.write_text("Some words, 3 of them.\n" * 99)
    with pytest.raises(UsageError, match='normalization="text8"'):
        Autocomplete(str(file)).load()
    names = Autocomplete(str(file), length=40, words=4, normalization="text8").load().output.names
    assert names == ("<eos>", "<unknown>", "of", "some", "them", "three")


@pytest.mark.data
@pytest.mark.slow
def test_hundred_million_characters_pack_as_the_articles_did():
    """On the substitute: as many sequences as the article's, to a quarter of a percent (its are from text8)."""
    for config, sequences in (
        (Autocomplete("enwiki2015_text8like"), 456_896),
        (TextGeneration("enwiki2015_text8like"), 508_583),
    ):
        task = config.load()
        assert len(task.rows["train"]) == pytest.approx(sequences, rel=0.0025)
        read = task.sizes[task.rows["train"]].sum()  # an epoch, as its hours are said beforehand
        assert read == pytest.approx(registry.get(config.corpus).counts["train"], rel=0.01)
        batch = first(task)
        assert batch.inputs.shape == batch.targets.shape
        assert batch.inputs.shape[1] == 64
        assert config.length - 10 < len(batch.inputs) <= config.length
