"""What cannot be measured is refused in one sentence, and what is empty or small is measured as it is."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from nlstm_lab import experiments, figures, models, probes, runs, targets
from nlstm_lab.cells import GRU, HMLSTM, LSTM, ClockworkRNN, HierarchicalRNN, NestedLSTM
from nlstm_lab.datasets import Excerpt, Lines
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import context_accuracy
from nlstm_lab.probes.boundary_scores import agreement, text_truths
from nlstm_lab.probes.decoding import labels
from nlstm_lab.probes.lags import gradient_by_distance
from nlstm_lab.probes.reading import mapped_to

NAN, INFINITE = float("nan"), float("inf")
WORDS = ("<eos>", "<unknown>", "bad", "cafe", "dad", "face", "a", "be", "cab", "dig", "fig")


def edit(network, text, /, where="inner", edit=probes.zero, **flags):
    probes.run(network(**flags), text[:20], edits={where: edit})


def patch(network, text, /, clean="abc", corrupted="dbc", right="a", wrong="b", **asked):
    probes.patch(**{"model": network(), "pairs": (clean, corrupted, right, wrong), **asked})


def ablated(network, text, /, **asked):
    probes.intervene(network(), text, **{"memory": "inner", "moments": [5, 250], "distance": 10} | asked)


def attribution(network, text, /, **asked):
    probes.attribution(network(), **{"text": text[:20], "target": "d", **asked})


def changed(network, kind=NestedLSTM, words=None, per_sequence=False, vocabulary=True, **flags):
    """A network that lacks what a probe needs."""
    model = network(kind, **flags)
    model.words, model.per_sequence = words, per_sequence
    if words is not None:
        model.readout = nn.Linear(8, len(words))
    return model if vocabulary else model.__class__(model.recurrent, model.readout)


def connectivity(network, text, /, of=None, **asked):
    probes.connectivity(changed(network, **{"words": WORDS} | (of or {})), **{"text": " bad face", **asked})


def boundaries(network, text, /, kind=HMLSTM, num_layers=3, **asked):
    probes.boundaries(network(kind, num_layers=num_layers), **{"text": text, **asked})


def flushes(network, text, /, boundary="step", length=400):
    probes.flush_effects(network(HMLSTM, num_layers=3, boundary=boundary), text[:length])


def completion(network, text, /, typed="a", k=3, words=WORDS, **of):
    model = changed(network, words=WORDS, **of)
    model.words = words
    probes.Completer(model)(typed, k)


def continued(network, text, /, length=12, words=None, **asked):
    probes.continued(changed(network, words=words), "abc", length, **asked)


def retention(network, text, /, kind=NestedLSTM, of="a bad " * 4, flags=None, **asked):
    model = network(kind, **flags or {})
    probes.retention(probes.trace(model, of), **{"memory": "inner", **asked})


def traced(network, text, /, probe, kind=NestedLSTM, **asked):
    probe(probes.trace(network(kind), text), **asked)


REFUSED = [
    (edit, {"where": "outr"}, "did you mean outer"),
    (edit, {"where": "middle"}, "middle.*: outer, inner, h, i, f, g, o, pre"),
    (edit, {"where": "inner r"}, "inner r"),
    (edit, {"where": "h", "num_layers": 2}, "layer 1 h"),
    (edit, {"where": "inner preactivation z"}, "preactivation"),
    (edit, {"where": ("c", 3)}, "outer, inner"),
    (edit, {"where": ("inner", 3, 1, 2)}, r"\(name, time, units\)"),
    (edit, {"where": ("inner", 20)}, "0 to 19"),
    (edit, {"where": ("inner", range(30, 40))}, "range"),
    (edit, {"where": ("inner", True)}, "0 to 19"),
    (edit, {"where": ("inner", 3, (8,))}, "0 to 7"),
    (edit, {"where": ("inner", 3, 1.5)}, "units.*0 to 7"),
    (edit, {"where": ("inner before", 3, ())}, "0 to 7"),
    (edit, {"edit": lambda c: c[:, :3]}, "inner"),
    (edit, {"edit": probes.freeze}, r"freeze\(\)"),
    *((lambda network, text, e=e: probes.run(network(), "ab", e), {}, "edits") for e in (5, "h", ["h"], [probes.zero])),
    (lambda network, text: probes.put("a"), {}, "number"),
    (edit, {"where": "inner before", "edit": lambda c: c.double()}, "float64"),
    (edit, {"where": "outer f", "edit": lambda f: None}, "NoneType"),
    (edit, {"where": "h", "edit": lambda h: h * NAN}, "NaN"),
    (edit, {"where": "h", "edit": 0.5}, "function"),
    (lambda network, text: probes.run(network(), [text, ""]), {}, "text"),
    (lambda network, text: probes.run(network(), text, keep=["soul"]), {}, "soul"),
    (patch, {"corrupted": "abd"}, "alike"),
    (patch, {"corrupted": "abc"}, "same"),
    (patch, {"right": "ab"}, "'ab'"),
    (patch, {"wrong": 99}, "99"),
    (patch, {"over": ("depth",)}, "over .*'memory'"),
    (patch, {"pairs": []}, "pairs"),
    (patch, {"metric": len}, "pairs"),
    (patch, {"wrong": "a"}, "right and wrong"),
    (patch, {"pairs": 5}, "pairs"),
    (patch, {"over": None}, "over"),
    *((patch, {"pairs": ("abc", "dbc"), "metric": m}, r"metric.*\[n\]") for m in ("x", torch.sum, lambda x: x.numpy())),
    (ablated, {"memory": "middle"}, "memory .*'outer', 'inner', 'h', not 'middle'"),
    (ablated, {"moments": [0]}, "1 to 389"),
    *((ablated, {"moments": none}, "moments must be a list") for none in ([], 5)),
    (ablated, {"moments": [395]}, "389.*395"),
    (ablated, {"distance": 0}, "distance"),
    (ablated, {"other": "abc" * 40}, "`other` .*120"),
    (attribution, {"target": "?"}, "target.* 'a' 'b'"),
    (attribution, {"target": 11}, "target.*0 to 10"),
    (attribution, {"target": None}, "target"),
    (attribution, {"at": 20}, "at .*0 to 19"),
    (attribution, {"at": 1.5}, "at "),
    (attribution, {"method": "lime"}, "method.*'saliency'"),
    (attribution, {"method": "feature_ablation", "memory": "inner"}, "method of 'inner'.*'saliency'"),
    (attribution, {"memory": "middle"}, "'middle'.*outer, inner"),
    (attribution, {"baseline": "ab"}, "baseline.*20"),
    (attribution, {"points": 0}, "points"),
    (connectivity, {"text": ""}, "text"),
    (connectivity, {"text": " café"}, "'é'"),
    (connectivity, {"given": "fece"}, "'fece'.*'face'"),
    (connectivity, {"mode": "l1"}, "mode"),
    (connectivity, {"target": "best"}, "target"),
    (connectivity, {"text": " bad" * 300}, "1000"),
    (connectivity, {"at": "ab"}, "at .* 0 to 8"),
    (connectivity, {"of": {"per_sequence": True}}, "sequence"),
    (connectivity, {"of": {"kind": HMLSTM, "num_layers": 2, "boundary": "sample"}}, "samples"),
    (connectivity, {"of": {"vocabulary": False}}, "vocabulary"),
    (lambda network, text: mapped_to(Vocabulary(("a", "b")), "a-b"), {}, "'-'"),
    *((boundaries, {"threshold": one}, "threshold") for one in (0.0, 1.0, NAN, "x")),
    (boundaries, {"kind": NestedLSTM}, "boundaries"),
    (boundaries, {"num_layers": 1}, "layer"),
    (boundaries, {"text": ""}, "empty"),
    (boundaries, {"text": "Z"}, "'Z'"),
    (flushes, {"length": 20}, "23.*20"),
    (flushes, {"boundary": "soft"}, "soft"),
    (lambda network, text: agreement([np.ones(500, bool)], [np.ones(400, bool)]), {}, r"500.*400"),
    (completion, {"typed": "z"}, "'z'"),
    (completion, {"k": 0}, "k"),
    (completion, {"words": WORDS[:5]}, r"11.*5"),
    (completion, {"per_sequence": True}, "sequence"),
    *((continued, {"temperature": one}, "temperature") for one in (NAN, INFINITE, 0.0)),
    (lambda net, text: probes.patch(net(HMLSTM, num_layers=2, boundary="sample"), ("a", "d", "a", "b")), {}, "samples"),
    (lambda net, text: probes.attribution(net(HMLSTM, num_layers=2, boundary="sample"), "abc", "d"), {}, "samples"),
    (continued, {"length": 0}, "length"),
    (continued, {"words": WORDS}, "words"),
    (continued, {"edits": {("inner", 14): probes.zero}}, "0 to 13"),
    (lambda net, text: probes.lens(net(), text, burn_in=0).read(probes.trace(net(LSTM), text)), {}, "inner"),
    (lambda net, text: probes.lens(net(), text[:3], ahead=(0,), burn_in=0), {}, "3 or more"),
    *((lambda net, text, k=k: probes.lens(net(), text, ahead=k), {}, "ahead") for k in ((), (-1,), (0.5,), 3, (400,))),
    (lambda network, text: probes.loss_by_context(network(), text), {}, "positions"),
    *((lambda net, text, k=k: probes.loss_by_context(net(), text, k, 20), {}, "context") for k in ((), (1.5,), 5)),
    (lambda network, text: probes.write(network()), {}, "by hand"),
    (lambda network, text: probes.shuffled(text, "sentences"), {}, "'words'"),
    (lambda network, text: probes.fixed_points(network(HMLSTM, num_layers=2), text), {}, "boundaries"),
    (lambda network, text: probes.fixed_points(network(ClockworkRNN), text), {}, "clock"),
    (lambda network, text: probes.fixed_points(network(), "a"), {}, "2 or more"),
    (lambda network, text: probes.cell_cuts(network(GRU), text), {}, "no memory cells"),
    (lambda network, text: probes.first_updates("ptb_char_lncwrnn", "a b", scale="smoke"), {}, "no memory cells"),
    (lambda network, text: probes.first_updates("ptb_char_lstm1", "a b", scale="smoke", updates=1), {}, "updates"),
    (lambda network, text: probes.first_updates("autocomplete_lstm", "a b", scale="smoke"), {}, "does not predict"),
    *((lambda net, text, n=n: probes.fixed_points(net(), text, starts=n), {}, "start") for n in (1.5, 400)),
    (lambda network, text: probes.classes(probes.trace(network(), [text, "abc"])), {}, "several texts"),
    (lambda network, text: gradient_by_distance(HierarchicalRNN(4, 6, 2), torch.zeros(5, 2, 4)), {}, "connectivity"),
    (lambda network, text: probes.connectivity_lags(network(), []), {}, None),
    (lambda network, text: probes.connectivity_lags(network(), "the cat"), {}, "texts must be a list"),
    (lambda network, text: probes.lens(network(), []), {}, "no text"),
    (lambda network, text: probes.units(network(), text, seed=-1), {}, "seed"),
    (lambda network, text: probes.retention("abc", "inner"), {}, "trace must be"),
    (lambda network, text: models.save(None, "here"), {}, "network must be"),
    (lambda network, text: runs.load(None), {}, "name must be"),
    (lambda network, text: experiments.variant("ptb_char_nlstm", hiden_size=3), {}, r"mean hidden_size\?"),
    (lambda network, text: experiments.variant("ptb_char_nlstm", options=3), {}, "no flag 'options'"),
    (
        lambda network, text: figures.lines(pd.DataFrame({"model": "lstm", "seed": [0, 0], "t": 1}), "t", "t"),
        {},
        "split",
    ),
    *((lambda network, text, table=t: targets.verdicts(table), {}, "runs.table") for t in (None, pd.DataFrame())),
    (lambda network, text: figures.hidden_norms(probes.trace(network(), text)), {}, "boundaries"),
    (lambda network, text: figures.cell_activations(probes.trace(network(), [text, "abc"])), {}, "one text"),
    (lambda network, text: figures.patch_map(probes.patch(network(), [("abc", "dbc", "a", "b")])), {}, "one pair"),
    (lambda network, text: context_accuracy(changed(network, words=WORDS), []), {}, None),
    (lambda network, text: context_accuracy(changed(network, words=WORDS), [" ab" * 99]), {}, "200"),
    (lambda network, text: context_accuracy(network(), [" bad"]), {}, "words"),
    (lambda network, text: probes.gather([], probes.loss_by_context), {}, None),
    (lambda network, text: runs.histories([]), {}, None),
    (retention, {"memory": "outer"}, "anew at every step.*'inner'"),
    (retention, {"memory": "middle"}, "'inner'"),
    (retention, {"at": 24}, "0 to 23"),
    (retention, {"units": 8}, "units.*0 to 7"),
    (retention, {"kind": GRU}, "no memory cells"),
    (retention, {"kind": HMLSTM, "flags": {"num_layers": 2, "scale": 3.0}, "memory": "layer 2"}, "changed otherwise"),
    (retention, {"of": ["abc", "abc"]}, "text"),
    (traced, {"probe": probes.state_timescales, "burn_in": 400}, "400"),
    (traced, {"probe": probes.decode, "text": "abc"}, "text"),
    (traced, {"probe": lambda trace: probes.decode(trace, "".join(trace.symbol.values), ("mood",))}, "'mood'"),
    (lambda network, text: probes.decode(probes.trace(changed(network, vocabulary=False), [1]), "a"), {}, "codes"),
    (lambda network, text: Excerpt("ptb", "dev", 9), {}, "split must be .* not 'dev'"),
    *((lambda network, text, at=at: Excerpt("ptb", "test", *at), {}, "1 or more|0 or more") for at in ([-9], [9, -1])),
    (lambda network, text: Excerpt("text8", "test", 9, line_ends="trailing"), {}, "'ptb'"),
    *((lambda network, text, n=n: probes.written(network(), Lines("test", n)), {}, f"not {n}") for n in (0, 2)),
    (lambda network, text: probes.passages(network(LSTM), text, "cell", 8), {}, r"unit.*0 to 7"),
    (lambda network, text: probes.passages(network(LSTM), text, "inner"), {}, r"memory .*'cell'"),
    *((lambda network, text, k=k: probes.passages(network(), text, "inner", k=k), {}, "k must") for k in (0, 1.5, "a")),
    (lambda network, text: probes.passages(network(), text[:32], "inner"), {}, "33"),
    *((lambda network, text, p=p: p(network(), [text] * 2), {}, "one text") for p in (probes.units, probes.timescales)),
]


@pytest.mark.parametrize(("probe", "asked", "said"), REFUSED)
def test_what_cannot_be_measured_is_refused_by_its_name(network, text, probe, asked, said):
    with pytest.raises(UsageError, match=said):
        probe(network, text, **asked)


@pytest.mark.parametrize("of", [{"words": WORDS[6:]}, {"per_sequence": True}])
def test_a_network_that_predicts_something_else_is_not_judged_by_the_next_symbol(network, text, of):
    model = changed(network, **of)
    for probe in (probes.intervene, probes.unit_ablations):
        with pytest.raises(UsageError):
            probe(model, text, memory="inner", moments=[5], distance=5)
    with pytest.raises(UsageError):
        probes.loss_by_context(model, text, contexts=(1, 5), positions=20)


def test_an_empty_text_has_no_labels_and_no_truths():
    assert labels("").shape == (0, 5)
    truths = text_truths([])
    assert truths.keys() == text_truths("a").keys()
    assert not any(flags.size for flags in truths.values())


def test_of_two_words_the_third_likeliest_is_none(network):
    model = network(LSTM)
    model.readout, model.words = torch.nn.Linear(8, 2), ("ab", "ba")
    result = context_accuracy(model, [" ab ba cc"]).set_index(["top", "known"])["accuracy_pct"]
    assert set(result.loc[2]) == {100.0}
    np.testing.assert_array_equal(result.loc[3], result.loc[2])


SYMBOLS = [
    *(probes.trace, probes.run, probes.ablations, probes.cell_cuts),
    *(partial(probe, burn_in=0) for probe in (probes.lens, probes.units, probes.timescales)),
    lambda model, text: probes.attribution(model, text, "d"),
    lambda model, text: probes.patch(model, (text, "abc", "a", "b")),
    lambda model, text: probes.intervene(model, text, "inner", moments=[2], distance=1),
    lambda model, text: probes.loss_by_context(model, text, contexts=(1,), positions=1),
    lambda model, text: probes.fixed_points(model, text, starts=1),
    lambda model, text: probes.unit_ablations(model, text, "inner", moments=[2], distance=1),
]


@pytest.mark.parametrize("probe", SYMBOLS)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abz", "'z'.*it knows"),
        ("", "empty"),
        (None, "(text|clean) must be a string or codes"),
        (torch.tensor([1, 2, 11]), "codes from 0 to 10, not 11"),
        (np.array([1, -1, 2]), "codes from 0 to 10, not -1"),
        (torch.tensor([True, False]), "must be a string or codes"),
        (torch.ones(2, 3, dtype=torch.long), r"must be a string or codes.*\[2, 3\]"),
        (torch.rand(4, 3), r"vectors \[T, 11\].*\[4, 3\]"),
        (3, "must be a string or codes"),
    ],
)
def test_what_no_probe_can_read_is_refused_in_the_same_sentence(network, probe, text, said):
    with pytest.raises(UsageError, match=said):
        probe(network(), text)
    with pytest.raises(UsageError, match=r"model must be a network.*not LSTM"):
        probe(nn.LSTM(11, 8), text)


@pytest.mark.parametrize("text", [None, 3, torch.ones(3, dtype=torch.long)])
def test_what_needs_words_refuses_what_is_no_string(network, text):
    model = changed(network, words=WORDS)
    for probe in (probes.mapped, probes.connectivity, lambda model, text: probes.Completer(model)(text)):
        with pytest.raises(UsageError, match="text must be a string"):
            probe(model, text)
    for probe in (probes.connectivity_lags, probes.gradients, probes.context_accuracy, probes.repetition):
        with pytest.raises(UsageError, match="text must be a string"):
            probe(model, [text])
    with pytest.raises(UsageError, match="excerpt"):
        probes.word_alignment(network(HMLSTM, num_layers=2), text)


@pytest.mark.parametrize("make", [np.array, list, lambda codes: torch.tensor([codes]), torch.tensor])
def test_codes_are_read_as_the_text_that_they_are_of(network, text, make):
    model = network(scale=2.0)
    codes = make(model.vocabulary.encode(text[:60]).tolist())
    for probe in (probes.trace, lambda *given: probes.run(*given).trace):
        np.testing.assert_array_equal(probe(model, codes).c, probe(model, text[:60]).c)
    assert probes.attribution(model, codes, "d").equals(probes.attribution(model, text[:60], "d"))


@pytest.mark.parametrize("burn_in", [-5, 2.5, None, True, 400, 1000])
@pytest.mark.parametrize("probe", [probes.units, probes.timescales, probes.contents, probes.lens])
def test_burn_in_is_a_whole_number_that_leaves_something(network, text, probe, burn_in):
    with pytest.raises(UsageError, match="burn_in"):
        probe(network(), text, burn_in=burn_in)
