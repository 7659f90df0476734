"""A property that was put into a memory is found there, and nothing else."""

import numpy as np
import pytest
import xarray as xr

from nlstm_lab.probes.decoding import decode, labels

SENTENCE = 'the man (who "walked 7 miles") is slowly going home. '


def test_labels_say_what_a_reader_knows():
    result = labels(SENTENCE)
    at = {word: SENTENCE.index(word) for word in ("man", "who", "walked", "7", "miles", ")", "is", "going", "home")}
    assert result.position_in_word[:8].tolist() == [1, 2, 3, 0, 1, 2, 3, 0]
    assert result.since_space[3:8].tolist() == [0, 1, 2, 3, 0]
    assert result.in_bracket[at["who"]]
    assert not result.in_bracket[at[")"]]
    assert not result.in_bracket[at["man"]]
    assert result.in_quotation[at["walked"] : at[")"] - 1].all()
    assert not result.in_quotation[at[")"] - 1 :].any()
    assert not result.in_quotation[: at["walked"]].any()
    words = {
        "man": "function",
        "who": "other",
        "walked": "function",
        "7": "ed",
        "miles": "number",
        "going": "ly",
        "home": "ing",
    }  # the word before
    assert {word: result.word_class[at[word]] for word in words} == words


def test_a_closing_bracket_that_nothing_opened_is_ignored():
    assert labels("a) b (c) d").in_bracket.tolist() == [False] * 5 + [True] * 2 + [False] * 3


@pytest.fixture
def planted():
    """A long text, and a trace of which the inner memory knows two properties."""
    generator = np.random.default_rng(0)
    words = np.array(SENTENCE.split(" ")[:-1])
    text = " ".join(words[generator.integers(len(words), size=1500)])
    result = labels(text)
    noise = generator.standard_normal((len(text), 2, 6))
    mixing = generator.standard_normal((2, 6))
    known = np.stack([result.position_in_word / 3, result.word_class == "number"], 1).astype(float)
    c = 0.1 * noise
    c[:, 1] += 0.2 * known @ mixing
    h = 0.1 * generator.standard_normal((len(text), 1, 6))
    data = {"c": (("time", "memory", "unit"), c), "h": (("time", "layer", "unit"), h)}
    coords = {"memory": ["outer", "inner"], "layer": [1], "symbol": ("time", list(text))}
    return text, xr.Dataset(data, coords)


@pytest.mark.slow
def test_a_planted_signal_is_decoded_where_it_was_planted(planted):
    text, trace = planted
    result = decode(trace, text, ("position_in_word", "since_space", "word_class")).set_index(["label", "memory"])
    assert list(result.loc["word_class"].index) == ["outer", "inner", "h"]
    assert result.score["position_in_word", "inner"] > 0.6
    assert result.score["word_class", "inner"] > result.chance["word_class", "inner"] + 0.1
    for memory in ("outer", "h"):
        assert abs(result.score["position_in_word", memory]) < 0.02
        assert result.score["word_class", memory] == pytest.approx(result.chance["word_class", memory], abs=0.06)
    assert (result.control[["position_in_word", "since_space"]].abs() < 0.05).all()
    assert result.control["word_class", "inner"] == pytest.approx(result.chance["word_class", "inner"], abs=0.06)


def score(text, h, label):
    """Of hidden states [T, unit]."""
    trace = xr.Dataset({"h": (("time", "layer", "unit"), h[:, None])}, {"layer": [1], "symbol": ("time", list(text))})
    return decode(trace, text, (label,)).score.item()


@pytest.mark.slow
def test_what_was_learned_by_heart_does_not_count():
    """Noise of 200 units fits 320 characters well, and says nothing of the last 80."""
    text = "(ab) cd " * 50
    noise = np.random.default_rng(0).standard_normal((400, 200))
    assert score(text, noise, "since_space") < 0.1
    assert score(text, noise, "in_bracket") == pytest.approx(0.5, abs=0.15)


BRACKETS = ("(a)" + "bcdefghijklm no " * 2) * 60
INSIDE = labels(BRACKETS).in_bracket.to_numpy()


def test_a_rare_class_counts_as_much_as_a_frequent_one():
    """A unit that marks every second bracket alone finds half of the rare class, and all of the other."""
    marks = INSIDE & (np.arange(len(BRACKETS)) // 35 % 2 == 0)
    h = marks[:, None] + 0.01 * np.random.default_rng(0).standard_normal((len(BRACKETS), 3))
    assert score(BRACKETS, h, "in_bracket") == pytest.approx(0.75, abs=0.08)


def test_a_rare_class_is_weighed_as_the_frequent_one_when_the_probe_is_fitted():
    """The classes lie one deviation apart: with equal weights each is found with a probability of Phi(1/2)."""
    h = INSIDE[:, None] + np.random.default_rng(0).standard_normal((len(BRACKETS), 1))
    assert score(BRACKETS, h, "in_bracket") == pytest.approx(0.69, abs=0.06)


def test_what_cannot_be_decoded_says_why(planted):
    text, trace = planted
    plain = text.translate(str.maketrans('()"7', "abcd"))
    trace = trace.assign_coords(symbol=("time", list(plain)))
    trace["c"][:, 0] = 1.0
    trace["h"][5] = np.nan
    result = decode(trace, plain, ("in_bracket", "word_class")).set_index(["label", "memory"])
    assert result.score.drop(("word_class", "inner")).isna().all()
    assert result.reason["in_bracket", "inner"] == "the text does not vary in this"
    assert result.reason["word_class", "outer"] == "the memory does not move"
    assert result.reason["word_class", "h"] == "not finite"


def test_the_control_is_of_shifted_labels_and_rows_are_aligned():
    """One unit is the label itself, of noise: read off whole, and not at all where labels are shifted or rows slip."""
    random = np.random.default_rng(0)
    text = "".join(random.choice(list("ab "), 2000))
    planted = labels(text)["since_space"].to_numpy(float)
    c = np.stack([np.arctanh(0.9 * planted / planted.max()), random.standard_normal(2000)], 1)[:, None]
    data = {"c": (("time", "memory", "unit"), c), "h": (("time", "layer", "unit"), c)}
    trace = xr.Dataset(data, {"memory": ["cell"], "layer": [1], "unit": [0, 1]})
    row = decode(trace, text, ("since_space",)).iloc[0]
    assert row["score"] > 0.99
    assert abs(row["control"]) < 0.1
