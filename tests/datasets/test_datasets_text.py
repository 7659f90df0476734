"""Blocks and streams: which symbol is predicted from which, how often, and from what state."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nlstm_lab.datasets import Excerpt, registry
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.datasets.corpora import Corpus
from nlstm_lab.datasets.text import PHRASE, WITHIN, WORD, CharacterModelling, NestedLanguage, TextTask, blocks, streams
from nlstm_lab.errors import MissingData, UsageError


def predicted(batches):
    """(input, target) of every prediction that counts."""
    pairs = []
    for batch in batches:
        mask = torch.ones_like(batch.targets, dtype=torch.bool) if batch.mask is None else batch.mask
        pairs += list(zip(batch.inputs[mask].tolist(), batch.targets[mask].tolist(), strict=True))
    return pairs


@pytest.mark.slow
@given(st.integers(2, 300), st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_streams_predict_every_symbol_but_the_first_exactly_once(size, length, batch_size):
    batches = list(streams(np.arange(size, dtype=np.uint16), length, batch_size))
    assert sorted(predicted(batches)) == [(k, k + 1) for k in range(size - 1)]
    assert [batch.fresh for batch in batches] == [True] + [False] * (len(batches) - 1)


@pytest.mark.slow
@given(st.integers(20, 300), st.integers(1, 20), st.integers(1, 9))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_stream_goes_on_where_it_stopped(size, length, batch_size):
    batches = list(streams(np.arange(size, dtype=np.uint16), length, batch_size))
    for column in range(batches[0].inputs.shape[1]):
        masks = [b.mask[:, column] if b.mask is not None else slice(None) for b in batches]
        read = torch.cat([b.inputs[mask, column] for b, mask in zip(batches, masks, strict=True)])
        assert (read.diff() == 1).all()


@pytest.mark.slow
@given(st.integers(2, 300), st.integers(1, 40), st.integers(1, 40), st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_streams_entered_in_the_middle_are_read_whole(size, length, batch_size, data):
    codes = np.arange(size, dtype=np.uint16)
    batches = list(streams(codes, length, batch_size))
    first = data.draw(st.integers(0, len(batches) - 1))
    turned = list(streams(codes, length, batch_size, first))
    for batch, other in zip(batches[first:] + batches[:first], turned, strict=True):
        assert torch.equal(batch.inputs, other.inputs)
    # cold where one enters, and where the text begins
    assert [k for k, batch in enumerate(turned) if batch.fresh] == sorted({0, (len(batches) - first) % len(batches)})


def test_blocks_are_consecutive_cold_and_whole():
    codes = np.arange(47, dtype=np.uint8)
    batches = list(blocks(codes, 10, 3, np.array([2, 0, 1, 3])))
    assert [tuple(batch.inputs.shape) for batch in batches] == [(9, 3), (9, 1)]
    assert all(batch.fresh and batch.mask is None for batch in batches)
    assert batches[0].inputs[:, 0].tolist() == list(range(20, 29))
    assert batches[0].targets[:, 0].tolist() == list(range(21, 30))
    # nothing crosses a block's border, and the remainder 40..46 is never read
    assert sorted(predicted(batches)) == [(k, k + 1) for k in range(40) if k % 10 != 9]


def small(evaluation="blocks", length=10, **decisions):
    codes = np.random.default_rng(0).integers(4, size=1000).astype(np.uint8)
    corpus = Corpus("small", codes, (900, 950, 1000), Vocabulary(("a", "b", "c", "d", "e")), "")
    return TextTask(corpus, CharacterModelling(length=length, batch_size=7, evaluation=evaluation, **decisions))


def test_training_blocks_are_shuffled_by_the_generator_alone():
    task = small()
    epochs = [list(task.train(torch.Generator().manual_seed(seed))) for seed in (1, 1, 2)]
    assert torch.equal(epochs[0][0].inputs, epochs[1][0].inputs)
    assert not torch.equal(epochs[0][0].inputs, epochs[2][0].inputs)
    assert sorted(predicted(epochs[0])) == sorted(predicted(epochs[2]))


def test_blocks_in_fixed_order_are_the_texts():
    fixed = small(batch_order="fixed")
    table = torch.from_numpy(fixed.corpus.splits["train"].astype(np.int64)).view(90, 10)
    for seed in (1, 2):
        batches = fixed.train(torch.Generator().manual_seed(seed))
        assert torch.equal(torch.cat([torch.cat([batch.inputs[:1], batch.targets]).T for batch in batches]), table)
    assert fixed.updates_per_epoch == 13


def test_streams_are_entered_at_another_place_each_epoch():
    task = small("streams")
    batches = [next(iter(task.train(torch.Generator().manual_seed(seed)))) for seed in range(8)]
    assert len({tuple(batch.inputs.flatten().tolist()) for batch in batches}) > 2


@pytest.mark.parametrize("evaluation", ["blocks", "streams"])
def test_log_frequencies_are_the_shares_of_the_training_targets(evaluation):
    task = small(evaluation)
    counts = Counter(target for _, target in predicted(list(task.train(torch.Generator()))))
    counts[4] = 1  # "e" never occurs
    share = [counts[k] / counts.total() for k in range(5)]
    torch.testing.assert_close(task.log_frequencies.exp(), torch.tensor(share))


def test_a_text_shorter_than_a_block_is_refused():
    with pytest.raises(UsageError, match=r"valid.*50.*60"):
        small(length=60)


def test_the_nested_language_is_cut_where_it_says():
    task = NestedLanguage(size=30_000, words=24, topics=4).load()
    codes = np.concatenate(list(task.corpus.splits.values()))
    begins = np.concatenate(list(task.boundaries.values()))
    assert len(codes) == len(begins) == 30_000
    starts = np.flatnonzero(begins != WITHIN)
    words = [codes[a:b].tobytes() for a, b in itertools.pairwise(starts)]
    assert len(set(words)) == 24
    assert {len(word) for word in words} <= set(range(2, 7))
    phrases = np.split(np.arange(len(words)), np.flatnonzero(begins[starts[:-1]] == PHRASE)[1:])
    assert all(3 <= len(phrase) <= 8 for phrase in phrases[:-1])
    # words keep to topics: phrases that share a word share their whole lexicon, and neighbours share none
    lexica = [frozenset(words[k] for k in phrase) for phrase in phrases]
    assert all(not a & b for a, b in itertools.pairwise(lexica))
    merged = []
    for lexicon in lexica:
        joined = [group for group in merged if group & lexicon]
        merged = [group for group in merged if not group & lexicon] + [set(lexicon).union(*joined)]
    assert sorted(len(group) for group in merged) == [6, 6, 6, 6]
    assert (begins == WORD).sum() > 3 * (begins == PHRASE).sum() > 0


def test_the_nested_language_is_a_task_and_its_seed_its_only_chance():
    first, again, other = (NestedLanguage(size=10_000, seed=seed).load() for seed in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    batch = next(first.train(torch.Generator().manual_seed(0)))
    assert batch.inputs.shape == (99, 32)
    with pytest.raises(UsageError, match="topics"):
        NestedLanguage(words=4, topics=4).load()
    with pytest.raises(UsageError, match="evaluation"):
        NestedLanguage(evaluation="stream")


@pytest.mark.slow
@pytest.mark.data
def test_ptb_has_its_published_counts():
    task = CharacterModelling("ptb").load()
    assert isinstance(task, TextTask)
    assert {split: len(codes) for split, codes in task.corpus.splits.items()} | {"symbols": task.input.size} == (
        registry.DATASETS["ptb"].counts
    )
    assert len(set(task.vocabulary.symbols) - {"\n"}) == 49
    text = task.vocabulary.decode(task.corpus.splits["train"][:5017482:])
    assert text.startswith("aer banknote berlitz calloway")
    assert text.count("\n") == 42068
    assert "mr. <unk> is chairman of <unk> n.v." in text
    assert task.updates_per_epoch == 1568
    batch = next(task.train(torch.Generator().manual_seed(0)))
    assert batch.inputs.shape == batch.targets.shape == (99, 32)
    assert sum(batch.targets.numel() for batch in task.evaluate("valid", "blocks")) == 3930 * 99
    assert len(predicted(list(task.evaluate("test", "streams")))) == 442_422
    for kept in ("trailing", "leading"):  # 446,184 symbols of test text, as in the lineage's code
        longer = CharacterModelling("ptb", line_ends=kept).load()
        sizes = {split: len(codes) for split, codes in longer.corpus.splits.items()}
        assert (sizes["valid"], sizes["test"], longer.input.size) == (396_412, 446_184, 50)
        texts = [Excerpt("ptb", "valid", 9_999, line_ends=one).read() for one in ("stripped", kept)]
        ours, whole = (text.split("\n")[:9] for text in texts)
        assert ours == [line.strip() for line in whole] != whole


def test_an_excerpt_is_of_its_split_and_begins_where_it_says():
    text = NestedLanguage(size=10_000)
    corpus = text.load().corpus
    assert Excerpt(text, "valid", 40, 60).read() == corpus.vocabulary.decode(corpus.splits["valid"][60:100])
    with pytest.raises(UsageError):
        Excerpt(text, "valid", 501).read()


@pytest.mark.slow
@pytest.mark.data
def test_the_distributed_char_files_of_ptb_hold_the_same_symbols():
    task = CharacterModelling("ptb").load()
    for split, words in zip(task.corpus.splits, registry.locate("ptb"), strict=True):
        file = words.with_name(words.name.replace("ptb.", "ptb.char."))
        if not file.is_file():
            pytest.skip("the char files are not among the data")
        text = file.read_text().replace(" ", "").replace("_", " ")
        assert task.vocabulary.decode(task.corpus.splits[split]) == text


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["text8", "enwik8", "enwiki2015_text8like", "enwiki2015_plain"])
def test_wikipedia_texts_have_their_counts(name):
    try:
        task = CharacterModelling(name, length=180, batch_size=128).load()
    except MissingData:
        pytest.skip(f"{name} is not among the data")
    sizes = {split: len(codes) for split, codes in task.corpus.splits.items()}
    assert sizes | {"symbols": task.input.size} == registry.DATASETS[name].counts
    assert registry.DATASETS[name].files[0].sha256 in (None, task.fingerprint)
    assert next(task.train(torch.Generator())).inputs.shape == (179, 128)
