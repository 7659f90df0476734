"""Synthetic data has the truth that it claims."""

import itertools

import numpy as np
import pytest
import torch

from nlstm_lab.datasets.corpora import SPLITS
from nlstm_lab.datasets.synthetic import (
    PHRASE,
    WITHIN,
    WORD,
    CopyTask,
    NestedLanguage,
    signals,
    symbol_sequence,
)
from nlstm_lab.errors import UsageError


def autocorrelation(x: np.ndarray, lag: int) -> float:
    return float(np.mean(x[lag:] * x[:-lag]) / np.mean(x * x))


def test_signals_have_their_timescales() -> None:
    taus = (2.0, 20.0, 200.0)
    x = signals(taus, 400_000, seed=1)
    assert x.shape == (400_000, 3)
    for column, tau in enumerate(taus):
        error = 4 * np.sqrt(tau / len(x))  # of an autocorrelation, about
        for lag in (1, int(tau), int(2 * tau)):
            assert autocorrelation(x[:, column], lag) == pytest.approx(np.exp(-lag / tau), abs=error)
        assert x[:, column].std() == pytest.approx(1, abs=error)


def test_signals_are_stationary_from_the_first_step() -> None:
    x = signals((10.0,) * 8000, 300)
    np.testing.assert_allclose(x.var(1)[[0, 1, 150, -1]], 1, atol=0.08)


def test_symbol_sequences_have_their_timescale() -> None:
    codes = symbol_sequence(30.0, 400_000, symbols=5, seed=2)
    assert sorted(set(codes.tolist())) == list(range(5))
    for symbol in range(5):
        indicator = (codes == symbol) - 0.2
        for lag in (1, 30, 60):
            assert autocorrelation(indicator, lag) == pytest.approx(np.exp(-lag / 30), abs=0.05)


def test_the_nested_language_is_cut_where_it_says() -> None:
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
    merged: list[set[bytes]] = []
    for lexicon in lexica:
        joined = [group for group in merged if group & lexicon]
        merged = [group for group in merged if not group & lexicon] + [set(lexicon).union(*joined)]
    assert sorted(len(group) for group in merged) == [6, 6, 6, 6]
    assert (begins == WORD).sum() > 3 * (begins == PHRASE).sum() > 0


def test_the_nested_language_is_a_task_and_its_seed_its_only_chance() -> None:
    first, again, other = (NestedLanguage(size=10_000, seed=seed).load() for seed in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    batch = next(first.train(torch.Generator().manual_seed(0)))
    assert batch.inputs.shape == (99, 32)
    with pytest.raises(UsageError, match="topics"):
        NestedLanguage(words=4, topics=4).load()


def test_copying_asks_for_each_symbol_after_the_same_lag() -> None:
    config = CopyTask(symbols=8, width=4, lag=20, sequences=70, batch_size=32)
    task = config.load()
    assert config.demand_bits == 12
    batches = list(task.train(torch.Generator().manual_seed(0)))
    assert [batch.inputs.shape[1] for batch in batches] == [32, 32, 6]
    assert task.updates_per_epoch == 3
    for batch in batches:
        steps, counted = torch.where(batch.mask)  # type: ignore[arg-type]
        assert len(steps) == 4 * batch.inputs.shape[1]
        assert torch.equal(batch.targets[steps, counted], batch.inputs[steps - (4 + 20 - 1), counted])
        assert (batch.inputs[4:23] == 8).all()
        assert (batch.inputs[23] == 9).all()
        assert (steps >= 23).all()


def test_copying_is_evaluated_on_fixed_sequences_and_trained_on_new_ones() -> None:
    task = CopyTask(sequences=32, evaluated=32).load()
    generator = torch.Generator().manual_seed(0)
    first, second = (next(task.train(generator)).inputs for _ in range(2))
    assert not torch.equal(first, second)
    valid, again, test = (next(task.evaluate(split, "blocks")).inputs for split in ("valid", "valid", "test"))
    assert torch.equal(valid, again)
    assert not torch.equal(valid, test)
    with pytest.raises(UsageError, match="copying needs"):
        CopyTask(lag=0).load()


@pytest.mark.parametrize("seed", [0, 1])
def test_copying_is_evaluated_on_no_training_batch(seed: int) -> None:
    task = CopyTask(sequences=32, evaluated=32, seed=seed).load()
    trained = [task.train(torch.Generator().manual_seed(epoch)) for epoch in range(10)]  # of the run with seed 0
    read = [task.evaluate(split, "blocks") for split in SPLITS]
    batches = [next(batches).inputs for batches in (*trained, *read)]
    assert not any(torch.equal(one, other) for one, other in itertools.combinations(batches, 2))
