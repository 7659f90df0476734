"""Sequences packed from words: every target, the split, and the counts."""

import numpy as np
import pytest
import torch

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import Symbols, split_90_5_5
from nlstm_lab.datasets.words import SEED, Autocomplete, TextGeneration, pack
from nlstm_lab.errors import UsageError

SEEDED = 1


def epoch(task):
    return list(task.train(torch.Generator().manual_seed(SEEDED)))


WORDS = ["one", "two", "three", "four", "three", "two", "one", "three", "unheard"]


def text8(repeats=60):
    return f" {' '.join(WORDS * repeats)}".encode()


def test_packing_is_greedy_and_leaves_out_what_never_fits():
    text = " aa bbbb c ddddddddddd e ff"
    starts = np.array([k for k, character in enumerate(text) if character == " "])
    packed = pack(starts, len(text), 8).arrays
    assert packed["firsts"].tolist() == [0, 2, 4]  # "aa bbbb", "c", then nothing of eleven letters, "e ff"
    assert packed["sizes"].tolist() == [8, 2, 5]


def test_an_order_is_cut_ninety_five_five_and_nothing_is_lost():
    order = np.random.default_rng(0).permutation(39)
    parts = split_90_5_5(order, "here are 39 lines")
    assert {split: len(part) for split, part in parts.items()} == {"train": 35, "valid": 1, "test": 3}
    assert np.concatenate(list(parts.values())).tolist() == order.tolist()
    with pytest.raises(UsageError, match="19"):
        split_90_5_5(order[:19], "here are 19 lines")


def test_every_character_and_the_space_before_it_predict_their_word(publish):
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
                assert counted == [target not in ("<eos>", "<unknown>") for target in targets] + [False] * (
                    len(counted) - len(text)
                )


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
    read = sum(
        int(batch.mask.sum())
        for split in task.rows
        for batch in task.evaluate(split, "blocks")
        if batch.mask is not None
    )
    assert read == len(text8())
    assert task.updates_per_epoch == len(epoch(task)) == len(task.rows["train"]) // 8


def test_log_frequencies_count_the_words_that_the_loss_counts(publish):
    publish("text8", [text8()])
    task = Autocomplete(length=20, words=4, batch_size=8).load()
    targets = torch.cat([batch.targets[batch.mask] for batch in task.evaluate("train", "blocks")])
    counts = torch.bincount(targets, minlength=6).clamp(min=1)
    torch.testing.assert_close(task.log_frequencies.exp(), counts / counts.sum())


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
        read = task.sizes[task.rows["train"]].sum()  # an epoch, as its hours are told beforehand
        assert read == pytest.approx(registry.get(config.corpus).counts["train"], rel=0.01)
        batch = next(task.train(torch.Generator().manual_seed(SEEDED)))
        assert batch.inputs.shape == batch.targets.shape
        assert batch.inputs.shape[1] == 64
        assert config.length - 10 < len(batch.inputs) <= config.length
