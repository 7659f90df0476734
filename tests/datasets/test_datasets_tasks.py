"""Poetry, glimpses, packed words, handwriting: shapes, contents and counts, on tiny originals and the real ones."""

import gzip
import io
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from nlstm_lab.datasets import iamondb, registry
from nlstm_lab.datasets.base import Batch, Mixture, Symbols, Task, Vectors
from nlstm_lab.datasets.glimpses import MNISTGlimpses, assemble, glimpses
from nlstm_lab.datasets.handwriting import Handwriting
from nlstm_lab.datasets.poetry import LACUNA, ChinesePoetry
from nlstm_lab.datasets.words import SEED, Autocomplete, TextGeneration, pack
from nlstm_lab.errors import DamagedFile, UsageError

Publish = Callable[..., dict[str, bytes]]
SEEDED = 1


def epoch(task: Task) -> list[Batch]:
    return list(task.train(torch.Generator().manual_seed(SEEDED)))


# --- poetry


def poem(*characters: str) -> str:
    verses = ["".join(characters)[k : k + 5] for k in range(0, 20, 5)]
    return "\t".join(" ".join(verse) for verse in verses)


FIRST = "偶寻半开梅闲倚一竿竹儿童不知春问草何故绿"
SECOND = "白日不到处青春恰自来苔花如米小亦学牡丹开"


def quatrains() -> list[bytes]:
    train = "\r\n".join([poem(*FIRST).replace("梅", "<R>")] * 3)
    return [train.encode(), poem(*SECOND).encode(), poem(*FIRST).encode()]


def test_a_poem_is_one_sequence_with_19_predictions(publish: Publish) -> None:
    publish("poetry", quatrains())
    task = ChinesePoetry(batch_size=2).load()
    assert task.vocabulary is not None
    assert set(task.vocabulary.symbols) == {*FIRST, *SECOND, LACUNA}  # the union of all splits
    batches = epoch(task)
    assert [tuple(batch.inputs.shape) for batch in batches] == [(19, 2), (19, 1)]
    assert task.updates_per_epoch == 2
    assert torch.equal(batches[0].inputs[1:], batches[0].targets[:-1])
    read = torch.cat([batches[0].inputs[:1, 0], batches[0].targets[:, 0]])
    assert task.show(read) == "偶寻半开□\n闲倚一竿竹\n儿童不知春\n问草何故绿"


def test_the_start_may_be_a_zero_vector(publish: Publish) -> None:
    publish("poetry", quatrains())
    task, zero = ChinesePoetry().load(), ChinesePoetry(start="zero").load()
    (batch,) = epoch(zero)
    assert batch.inputs.shape == (20, 3, task.input.size)
    assert batch.targets.shape == (20, 3)
    assert batch.inputs[0].abs().sum() == 0
    assert torch.equal(batch.inputs[1:].argmax(-1), batch.targets[:-1])
    assert zero.input == task.input


def test_a_line_that_is_no_poem_is_refused(publish: Publish) -> None:
    publish("poetry", [quatrains()[0] + "\r\n春 夏".encode(), *quatrains()[1:]])
    with pytest.raises(DamagedFile, match=r"line 4 of the quatrains \(train\)"):
        ChinesePoetry().load()


@pytest.mark.data
def test_the_quatrains_have_their_counts() -> None:
    task = ChinesePoetry().load()
    sizes = {split: len(poems) for split, poems in task.poems.items()}
    seen = len(np.unique(task.poems["train"]))
    assert sizes | {"symbols": task.input.size, "symbols in train": seen} == registry.get("poetry").counts
    batch = next(task.train(torch.Generator().manual_seed(SEEDED)))
    assert batch.inputs.shape == batch.targets.shape == (19, 64)
    assert task.updates_per_epoch == 177
    assert task.show(task.poems["train"][0]).startswith("偶寻半开梅\n闲倚一竿竹")


# --- glimpses


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">I{values.ndim}I", 0x0800 | values.ndim, *values.shape) + values.tobytes()


def digits() -> list[bytes]:
    random = np.random.default_rng(0)
    sizes = (12, 5)
    parts = [
        (random.integers(256, size=(n, 28, 28), dtype=np.uint8), random.integers(10, size=n, dtype=np.uint8))
        for n in sizes
    ]
    return [idx(array) for part in parts for array in part]


def test_an_image_is_twenty_glimpses_in_the_papers_order(publish: Publish) -> None:
    publish("mnist", digits())
    task = MNISTGlimpses(batch_size=4).load()
    assert {split: len(labels) for split, labels in task.labels.items()} == {"train": 10, "valid": 2, "test": 5}
    (batch,) = task.evaluate("test", "blocks")
    images = torch.from_numpy(np.array(task.images["test"])).float() / 255
    assert batch.inputs.shape == (20, 5, 49)
    assert batch.targets.tolist() == task.labels["test"].tolist()
    for quadrant, (row, column) in enumerate([(0, 0), (0, 14), (14, 0), (14, 14)]):
        square = images[:, row : row + 14, column : column + 14]
        expected = [square[:, ::2, ::2], square[:, :7, :7], square[:, :7, 7:], square[:, 7:, :7], square[:, 7:, 7:]]
        for k, patch in enumerate(expected):
            assert torch.equal(batch.inputs[5 * quadrant + k], patch.reshape(5, 49))
    assert torch.equal(assemble(batch.inputs), images)


def test_the_other_reading_is_four_phases_and_the_reduced_quadrant() -> None:
    images = torch.rand(3, 28, 28, generator=torch.Generator().manual_seed(0))
    looks = glimpses(images, "phases")
    square = images[:, :14, 14:]
    for k, (row, column) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        assert torch.equal(looks[5 + k], square[:, row::2, column::2].reshape(3, 49))
    torch.testing.assert_close(looks[9], torch.nn.functional.avg_pool2d(square, 2).reshape(3, 49))


def test_files_that_are_no_idx_files_are_refused(publish: Publish) -> None:
    files = digits()
    publish("mnist", [files[0][:-1], *files[1:]])
    with pytest.raises(DamagedFile, match="no IDX file"):
        MNISTGlimpses().load()


@pytest.mark.data
def test_mnist_has_its_counts() -> None:
    task = MNISTGlimpses().load()
    assert {split: len(labels) for split, labels in task.labels.items()} == registry.get("mnist").counts
    batch = next(task.train(torch.Generator().manual_seed(SEEDED)))
    assert batch.inputs.shape == (20, 100, 49)
    assert (batch.inputs.min(), batch.inputs.max()) == (0, 1)
    assert batch.targets.shape == (100,)
    assert task.updates_per_epoch == 500
    assert task.labels["train"][:5].tolist() == [5, 0, 4, 1, 9]
    assert np.allclose(task.log_frequencies.exp(), 0.1, atol=0.02)


# --- packed words

WORDS = ["one", "two", "three", "four", "three", "two", "one", "three", "unheard"]


def text8(repeats: int = 60) -> bytes:
    return f" {' '.join(WORDS * repeats)}".encode()


def test_packing_is_greedy_and_leaves_out_what_never_fits() -> None:
    text = " aa bbbb c ddddddddddd e ff"
    starts = np.array([k for k, character in enumerate(text) if character == " "])
    packed = pack(starts, len(text), 8).arrays
    assert packed["firsts"].tolist() == [0, 2, 4]  # "aa bbbb", "c", then nothing of eleven letters, "e ff"
    assert packed["sizes"].tolist() == [8, 2, 5]


def test_every_character_and_the_space_before_it_predict_their_word(publish: Publish) -> None:
    publish("text8", [text8()])
    task = Autocomplete(length=20, words=4, batch_size=8).load()
    assert task.words == ("<eos>", "<unknown>", "three", "one", "two", "four") or task.words[2] == "three"
    assert (task.input, task.output) == (Symbols(28), Symbols(6))
    assert task.vocabulary is not None
    for split in ("train", "valid", "test"):
        for batch in task.evaluate(split, "blocks"):  # type: ignore[arg-type]
            assert len(batch.inputs) <= 20
            assert batch.mask is not None
            for column in range(batch.inputs.shape[1]):
                text = task.vocabulary.decode(batch.inputs[:, column]).rstrip("\0")
                expected = [word for word in text.split() for _ in f" {word}"]
                targets = [task.words[code] for code in batch.targets[: len(text), column]]
                assert [w if w in task.words else "<unknown>" for w in expected] == targets
                assert batch.targets[len(text) :, column].tolist() == [0] * (len(batch.targets) - len(text))
                counted = batch.mask[:, column].tolist()
                assert counted == [target not in ("<eos>", "<unknown>") for target in targets] + [False] * (
                    len(counted) - len(text)
                )


def test_generation_predicts_the_next_character_and_a_space_at_the_end(publish: Publish) -> None:
    publish("text8", [text8()])
    task = TextGeneration(length=20, batch_size=8).load()
    assert task.input == task.output == Symbols(29)
    assert task.vocabulary is not None
    for batch in task.evaluate("train", "blocks"):
        for column in range(batch.inputs.shape[1]):
            text = task.vocabulary.decode(batch.inputs[:, column]).rstrip("\0")
            assert task.vocabulary.decode(batch.targets[:, column]).rstrip("\0") == f"{text[1:]} "
            assert batch.mask is not None
            assert batch.mask[:, column].sum() == len(text)


def test_the_split_is_the_articles_and_covers_every_sequence_once(publish: Publish) -> None:
    publish("text8", [text8()])
    task = TextGeneration(length=20, batch_size=8).load()
    rows = np.concatenate(list(task.rows.values()))
    count = len(rows)
    assert rows.tolist() == np.random.RandomState(SEED).permutation(count).tolist()
    assert len(task.rows["train"]) == count * 9 // 10
    read = sum(
        int(batch.mask.sum())
        for split in task.rows
        for batch in task.evaluate(split, "blocks")
        if batch.mask is not None
    )
    assert read == len(text8())
    assert task.updates_per_epoch == len(epoch(task)) == len(task.rows["train"]) // 8


def test_log_frequencies_count_the_words_that_the_loss_counts(publish: Publish) -> None:
    publish("text8", [text8()])
    task = Autocomplete(length=20, words=4, batch_size=8).load()
    targets = torch.cat([batch.targets[batch.mask] for batch in task.evaluate("train", "blocks")])
    counts = torch.bincount(targets, minlength=6).clamp(min=1)
    torch.testing.assert_close(task.log_frequencies.exp(), counts / counts.sum())


def test_other_symbols_than_letters_are_refused_with_the_way_out(home: Path) -> None:
    file = home / "text.txt"
    file.write_text("Some words, 3 of them.\n" * 99)
    with pytest.raises(UsageError, match='normalization="text8"'):
        Autocomplete(str(file)).load()
    assert Autocomplete(str(file), length=40, normalization="text8").load().words[2] == "of"


@pytest.mark.data
@pytest.mark.slow
def test_hundred_million_characters_pack_as_the_articles_did() -> None:
    """On the substitute: as many sequences as the article's, to a quarter of a percent (its are from text8)."""
    for config, sequences in (
        (Autocomplete("enwiki2015_text8like"), 456_896),
        (TextGeneration("enwiki2015_text8like"), 508_583),
    ):
        task = config.load()
        assert len(task.rows["train"]) == pytest.approx(sequences, rel=0.0025)
        batch = next(task.train(torch.Generator().manual_seed(SEEDED)))
        assert batch.inputs.shape == batch.targets.shape
        assert batch.inputs.shape[1] == 64
        assert config.length - 10 < len(batch.inputs) <= config.length


# --- handwriting


def line(strokes: list[list[tuple[int, int]]]) -> bytes:
    points = "".join(
        "<Stroke>" + "".join(f'<Point x="{x}" y="{y}" time="0.1"/>' for x, y in stroke) + "</Stroke>"
        for stroke in strokes
    )
    header = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    return f"{header}<WhiteboardCaptureSession><StrokeSet>{points}</StrokeSet></WhiteboardCaptureSession>".encode()


def archive(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def wander(seed: int, points: int) -> list[list[tuple[int, int]]]:
    path = np.random.default_rng(seed).integers(-50, 60, (points, 2)).cumsum(0) + 1000
    pairs = [(int(x), int(y)) for x, y in path]
    return [pairs[: points // 3], pairs[points // 3 :]]


def lines(count: int = 40) -> dict[str, bytes]:
    return {f"lineStrokes/a/a01-000u-{k:02}.xml": line(wander(k, 5 + k)) for k in range(1, count + 1)}


def forms(count: int = 40) -> bytes:
    text = "OCR:\r\n\r\nnoise\r\n\r\nCSR:\r\n\r\n" + "\r\n".join(f"line {k}" for k in range(1, count))
    return archive({"ascii/a/a01-000u.txt": text.encode()})


def test_points_strokes_and_transcripts_are_read(publish: Publish) -> None:
    publish("iamondb", [archive(lines(40)), forms(40)])
    parsed = iamondb.lines()
    assert parsed.facts["names"][:2] == ["a01-000u-01", "a01-000u-02"]
    assert parsed.facts["transcripts"][0] == "line 1"
    assert parsed.facts["transcripts"][-1] == ""  # the form's text is one line short
    first = [point for stroke in wander(1, 6) for point in stroke]
    assert parsed.arrays["points"][:6].tolist() == [list(point) for point in first]
    assert parsed.arrays["lifted"][:6].tolist() == [0, 1, 0, 0, 0, 1]


def test_lines_become_normalized_offsets(publish: Publish) -> None:
    publish("iamondb", [archive(lines(40)), forms(40)])
    task = Handwriting(batch_size=4, minimum=10).load()
    assert sum(len(chosen) for chosen in task.lines.values()) == 36  # four lines are shorter than 10 points
    assert (task.input, task.output) == (Vectors(3), Mixture(20))
    batches = epoch(task)
    assert len(batches) == task.updates_per_epoch
    offsets = torch.cat([batch.targets[batch.mask][:, :2] for batch in batches])
    torch.testing.assert_close(offsets.mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(offsets.std(0, correction=0), torch.ones(2), atol=1e-5, rtol=0)
    assert sum(int(batch.mask.sum()) for batch in batches if batch.mask is not None) == sum(
        task.sizes[task.lines["train"]] - 1
    )
    for batch in batches:
        assert torch.equal(batch.inputs[1:], batch.targets[:-1])
        assert batch.inputs[0, :, :2].abs().sum() == 0
        assert batch.mask is not None
        assert batch.targets[~batch.mask].abs().sum() == 0


def test_a_trajectory_is_the_line_that_was_written(publish: Publish) -> None:
    publish("iamondb", [archive(lines(40)), forms(40)])
    task = Handwriting(batch_size=4, minimum=10).load()
    chosen = task.lines["test"][np.argsort(task.sizes[task.lines["test"]], kind="stable")]
    (batch,) = task.evaluate("test", "blocks")
    for column, number in enumerate(chosen):
        begin, size = task.starts[number], task.sizes[number]
        path = task.trajectory(batch.targets[: size - 1, column])
        written = task.points[begin + 1 : begin + size] - task.points[begin]
        np.testing.assert_allclose(path, written, atol=0.01)
        assert batch.targets[: size - 1, column, 2].tolist() == task.lifted[begin + 1 : begin + size].tolist()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (line([[(1, 2)]]).replace(b'y="2"', b""), "a01-000u-05.xml has a point without y"),
        (line([[(1, 2)]])[:-30], "a01-000u-05.xml is no line of strokes"),
        (line([[(1, 2)]]).replace(b'y="2"', b'y="two"'), "a01-000u-05.xml is no line of strokes"),
        (line([]), "a01-000u-05.xml has no points"),
    ],
)
def test_damaged_lines_are_named(publish: Publish, content: bytes, sentence: str) -> None:
    publish("iamondb", [archive(lines(40) | {"lineStrokes/a/a01-000u-05.xml": content}), forms(40)])
    with pytest.raises(DamagedFile, match=sentence):
        iamondb.lines()


def test_a_truncated_archive_is_refused(home: Path, publish: Publish) -> None:
    publish("iamondb", [archive(lines(40)), forms(40)])
    file = home / "data/iamondb/lineStrokes-all.tar"
    packed = gzip.compress(file.read_bytes())
    file.unlink()
    file.with_name("lineStrokes-all.tar.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DamagedFile, match="truncated"):
        iamondb.lines()


@pytest.mark.data
@pytest.mark.slow
def test_iamondb_has_the_papers_counts() -> None:
    task = Handwriting().load()
    sizes = {split: len(chosen) for split, chosen in task.lines.items()}
    assert sizes | {"lines": len(task.names)} == registry.get("iamondb").counts
    kept = np.concatenate(list(task.lines.values()))
    assert len(kept) == 11_628
    assert round(float(task.sizes[kept].mean()), 2) == 648.40
    batch = next(task.train(torch.Generator().manual_seed(SEEDED)))
    assert batch.inputs.shape == batch.targets.shape == (len(batch.inputs), 32, 3)
    assert sum(text == "" for text in task.transcripts) < 10
