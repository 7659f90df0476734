"""Synthetic data has the truth that it claims."""

import itertools

import numpy as np
import pytest
import torch
from known_signals import signals

from nlstm_lab.datasets.text import PHRASE, WITHIN, WORD, NestedLanguage
from nlstm_lab.errors import UsageError


def autocorrelation(x, lag):
    return float(np.mean(x[lag:] * x[:-lag]) / np.mean(x * x))


def test_signals_have_their_timescales():
    taus = (2.0, 20.0, 200.0)
    x = signals(taus, 400_000, seed=1)
    assert x.shape == (400_000, 3)
    for column, tau in enumerate(taus):
        error = 4 * np.sqrt(tau / len(x))  # of an autocorrelation, about
        for lag in (1, int(tau), int(2 * tau)):
            assert autocorrelation(x[:, column], lag) == pytest.approx(np.exp(-lag / tau), abs=error)
        assert x[:, column].std() == pytest.approx(1, abs=error)


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
