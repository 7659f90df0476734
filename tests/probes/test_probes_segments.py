"""Boundaries are judged rightly: perfect ones get 1, chance gets what chance must, information is at most entropy."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from nlstm_lab.datasets import Excerpt
from nlstm_lab.datasets.text import PHRASE, WITHIN, WORD, NestedLanguage
from nlstm_lab.probes import boundary_scores as segments
from nlstm_lab.probes.boundary_scores import agreement, judged, mutual_information, text_truths

TEXT = "it 's a mr. test\nof all it can do"


def flags(steps, rate, seed):
    return np.random.default_rng(seed).random(steps) < rate


def reading(z, operation=None, surprise=None):
    """A dataset as the boundary probe returns it; z [T, detectors], the top layer is added."""
    z = np.concatenate([z, np.zeros((len(z), 1))], 1).astype(np.float32)
    operation = np.ones_like(z) if operation is None else operation
    surprise = np.random.default_rng(0).random(len(z)) if surprise is None else surprise
    dims = ("time", "layer")
    data = {"z": (dims, z), "operation": (dims, operation.astype(np.int8)), "surprise": ("time", surprise)}
    return xr.Dataset(data, {"layer": np.arange(1, z.shape[1] + 1)}, {"threshold": 0.5})


def test_the_truths_of_a_text():
    truths = {name: "".join(" ^"[int(flag)] for flag in true) for name, true in text_truths(TEXT).items()}
    assert TEXT.replace("\n", "_") == "it 's a mr. test_of all it can do"
    assert truths["spaces"] == "  ^  ^ ^   ^    ^  ^   ^  ^   ^  "
    assert truths["word starts"] == "^  ^  ^ ^   ^    ^  ^   ^  ^   ^ "
    assert truths["word ends"] == " ^  ^ ^   ^    ^  ^   ^  ^   ^  ^"
    assert truths["punctuation"] == "   ^      ^                      "


def test_a_perfect_detector_gets_1_and_a_shifted_one_only_with_tolerance():
    true = flags(500, 0.2, 0)
    shifted = np.concatenate([[False], true[:-1]])
    assert agreement([true], [true]) == (1, 1, 1)
    late = shifted.sum() / true.sum()  # one may have been shifted out
    assert agreement([shifted], [true], (0, 1)) == (1, late, pytest.approx(2 * late / (1 + late)))
    assert agreement([shifted], [true], (1, 0))[2] < 0.6
    nothing = np.zeros(500, bool)
    precision, recall, f1 = agreement([nothing], [true])
    assert np.isnan(precision)
    assert (recall, f1) == (0, 0)
    assert agreement([nothing], [true], (1, 1))[1:] == agreement([true], [nothing], (1, 1))[::2] == (0, 0)


def test_boundaries_are_never_matched_across_texts():
    last, first = np.array([0, 0, 1], bool), np.array([1, 0, 0], bool)
    nothing = np.zeros(3, bool)
    assert agreement([last, nothing], [nothing, first], (1, 1))[2] == 0
    assert agreement([np.r_[last, nothing]], [np.r_[nothing, first]], (1, 1))[2] == 1


def test_detectors_that_know_nothing_get_what_chance_must_give():
    true, z = flags(20_000, 0.18, 1), flags(20_000, 0.3, 2)
    table = judged([reading(z[:, None])], [{"words": true}], {"0": (0, 0)}).set_index("detector")
    p, r = true.mean(), z.mean()
    for detector in ("network", "random", "periodic", "surprise"):  # here even the network's is a coin
        row = table.loc[detector]
        assert row["rate"] == pytest.approx(r, abs=1e-3)
        assert row["precision"] == pytest.approx(p, abs=0.015)
        assert row["recall"] == pytest.approx(r, abs=0.015)
        assert row["f1"] == pytest.approx(2 * p * r / (p + r), abs=0.015)


def test_rivals_fire_as_often_and_where_they_say():
    fired, surprise = [flags(300, 0.2, 3), flags(200, 0.1, 4)], [np.random.default_rng(5).random(n) for n in (300, 200)]
    surprise[0][0] = np.nan  # nothing is expected of a first step
    rivals = segments.rivals(fired, surprise)
    number = sum(one.sum() for one in fired)
    assert all(sum(one.sum() for one in texts) == number for texts in rivals["random"] + rivals["surprise"])
    for texts in rivals["periodic"]:
        gaps = np.diff(np.flatnonzero(texts[0]))
        assert gaps.max() - gaps.min() <= 1
        assert abs(int(texts[0].sum()) - int(fired[0].sum())) <= 1
    ((first, second),) = rivals["surprise"]
    assert not first[0]
    result, bits = np.r_[first, second], np.nan_to_num(np.concatenate(surprise), nan=-1)
    assert bits[result].min() >= bits[~result].max()
    firing = segments.rivals([np.ones(10, bool)], [np.arange(10.0)])
    assert all(texts[0].all() for draws in firing.values() for texts in draws)


def test_a_detector_of_surprise_is_distinguished_from_a_network_that_knows_the_words():
    true = flags(4000, 0.2, 6)
    network = judged([reading(true[:, None])], [{"words": true}])
    assert set(network.loc[network["detector"] == "network", "f1"]) == {1.0}
    assert network.loc[network["detector"] != "network", "f1"].max() < 0.75
    surprised = reading(flags(4000, 0.2, 7)[:, None], surprise=true + np.random.default_rng(8).random(4000) / 2)
    table = judged([surprised], [{"words": true}], {"0": (0, 0)}).set_index("detector")
    assert table.loc["surprise", "f1"] > 0.95
    assert set(table["layer"]) == {1}, "the top layer has no detector"


def test_information_is_entropy_at_most_and_nothing_at_least():
    true = flags(10_000, 0.25, 9)
    p = true.mean()
    entropy = -p * np.log2(p) - (1 - p) * np.log2(1 - p)
    assert mutual_information(true, true) == pytest.approx(entropy)
    assert mutual_information(~true, true) == pytest.approx(entropy)
    kinds = np.random.default_rng(10).integers(4, size=10_000)
    assert mutual_information(kinds, kinds) == pytest.approx(2, abs=0.01)
    assert mutual_information(kinds % 2, kinds) == pytest.approx(1, abs=0.01)
    assert 0 <= mutual_information(kinds, true) < 10 * 3 / (2 * np.log(2) * 10_000)
    flipped = true ^ flags(10_000, 0.1, 11)  # a channel that errs in a tenth of the cases
    noise = -0.1 * np.log2(0.1) - 0.9 * np.log2(0.9)
    q = flipped.mean()
    assert mutual_information(flipped, true) == pytest.approx(
        -q * np.log2(q) - (1 - q) * np.log2(1 - q) - noise, abs=0.02
    )


@pytest.fixture
def measured(monkeypatch):
    """A recorded measurement of readings and truths that are given."""

    def made(measure, readings, truths, text=""):
        monkeypatch.setattr(segments, "_readings", lambda model, text: (readings, truths, segments.WINDOWS))
        return measure(None, text)

    return made


def test_the_symbol_of_a_space_tells_all_of_it_and_shuffled_boundaries_nothing(measured):
    true = np.arange(600) % 6 == 0
    found = reading((true | (np.arange(600) % 2 == 0))[:, None])
    found = found.assign_coords(symbol=("time", np.where(true, " ", "a")))
    bits = measured(segments.boundary_information, [found], [{"spaces": true}]).iloc[0]
    assert bits["symbol"] == pytest.approx(bits["entropy"])
    assert bits["shuffled"] < 0.01 < bits["bits"] < bits["entropy"]


@pytest.mark.parametrize(("late", "right"), [(-1, False), (0, True), (1, True), (2, False)])
def test_a_boundary_falls_on_a_word_at_a_space_or_one_step_after(late, right, measured):
    symbols = list(TEXT)
    z = np.roll(text_truths(symbols)["spaces"], late)
    found = reading(z[:, None]).assign_coords(symbol=("time", symbols))
    text = Excerpt("ptb", "valid", len(symbols))
    row = measured(segments.word_alignment.__wrapped__, [found], [text_truths(symbols)], text).iloc[0]
    assert (row["f1"] == 1) == right


KNOWN = Excerpt(NestedLanguage(words=32, topics=4), "valid", 9_500)


@pytest.fixture
def aligned(measured):
    """`word_alignment` of a network that fires at z."""

    def made(z):
        truths, symbols = segments.known_truths(KNOWN), KNOWN.read()
        pieces = [slice(start, start + segments.PIECE) for start in range(0, len(z), segments.PIECE)]
        readings = [reading(z[piece][:, None]).assign_coords(symbol=("time", list(symbols[piece]))) for piece in pieces]
        each = [{name: flags[piece] for name, flags in truths.items()} for piece in pieces]
        return measured(segments.word_alignment.__wrapped__, readings, each, KNOWN).iloc[0]

    return made


def test_the_truths_are_the_language_s_own():
    begins = KNOWN.corpus.load().boundaries["valid"]
    truths = segments.known_truths(Excerpt(KNOWN.corpus, "valid", len(begins)))
    assert begins[0] == WITHIN or truths["word starts"][0]
    assert len(truths["phrase ends"]) == len(begins)
    assert truths["phrase ends"][-1]
    assert (truths["word ends"][:-1] == truths["word starts"][1:]).all()
    assert truths["word starts"].sum() == (begins >= WORD).sum()
    assert truths["phrase starts"].tolist() == (begins == PHRASE).tolist()


def test_a_detector_that_knows_the_words_has_all_that_symbols_leave(aligned):
    ends = segments.known_truths(KNOWN)["word ends"]
    row = aligned(ends)
    left = segments.mutual_information(ends, ends) - segments.mutual_information(np.array(list(KNOWN.read())), ends)
    assert row["f1"] == 1
    assert row["bits"] == pytest.approx(left)
    assert row["shuffled"] < 0.01 < row["bits"]


def test_a_random_detector_has_chance(aligned):
    ends = segments.known_truths(KNOWN)["word ends"]
    row = aligned(np.random.default_rng(0).random(len(ends)) < ends.mean())
    assert row["f1"] == pytest.approx(row["chance"], abs=0.03)
    assert row["bits"] == pytest.approx(row["shuffled"], abs=0.003)


def test_a_detector_that_reads_the_symbol_shares_nothing_beyond_it(aligned):
    """Its F1 may be above chance; its bits given the symbol are exactly 0, shuffled or not."""
    row = aligned(np.isin(list(KNOWN.read()), list("aeiou")))
    assert row["bits"] == pytest.approx(0, abs=1e-12)
    assert row["shuffled"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("f1", "bits", "verdict"),
    [
        ((0.5, 0.51, 0.52), (0.1, 0.11, 0.12), "yes"),
        ((0.5, 0.51, 0.52), (-0.1, 0.0, 0.1), "inconclusive"),  # the bits decide, too
        ((-0.03, 0.0, 0.03), (0.1, 0.11, 0.12), "inconclusive"),  # an interval up to 0.075
        ((-0.01, 0.0, 0.01), (0.1, 0.11, 0.12), "no"),  # up to 0.025
        ((0.5,), (0.1,), "inconclusive"),
    ],
)
def test_the_verdict_on_words_is_that_of_the_criterion(f1, bits, verdict):
    above = pd.DataFrame({"seed": range(len(f1)), "f1": f1, "bits": bits})
    one = above.assign(f1=above["f1"] + 0.3, chance=0.3, bits=above["bits"] + 0.01, shuffled=0.01, rate=0.25)
    table = segments.on_words(pd.concat([one.assign(setting="one"), one.assign(setting="other")]), by=["setting"])
    assert table["verdict"].tolist() == [verdict] * 2
    assert table.loc["one", ["seeds", "rate", "f1", "bits"]].tolist() == pytest.approx(
        [len(f1), 0.25, np.mean(f1), np.mean(bits)]
    )
