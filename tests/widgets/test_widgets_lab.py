"""What the explorer, the intervention lab and the run browser tell the browser is what the probes measured."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import nlstm_lab as lab
from nlstm_lab.cells import GRU
from nlstm_lab.datasets.base import Batch
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.widgets.reading import Networks, examples

TEXT = "the bank of the west fell sharply on monday"
LONGER = "ptb_char_hmlstm_step+epochs=8+updates_per_epoch=640"
LETTERS = sorted(set("abcdefghijklmnopqrstuvwxyz "))


def network(kind=lab.NestedLSTM, name="own", units=6, **flags):
    torch.manual_seed(0)
    unit = kind(len(LETTERS), units, **flags)
    return lab.models.wrap(unit, readout=torch.nn.Linear(units, len(LETTERS)), vocabulary=LETTERS, name=name)


def driven():
    """A trained network is driven harder than a fresh one."""
    model = network()
    for parameter in model.parameters():
        parameter.data *= 4
    return model


def test_the_explorer_holds_the_trace():
    widget = lab.widgets.CellExplorer(network(), TEXT, unit=4)
    trace = lab.probes.trace(network(), TEXT)
    assert widget.memories == ["inner", "outer"]
    states = np.frombuffer(widget.states, "<f2").reshape(2, 6, len(TEXT))
    np.testing.assert_allclose(states[0], trace.c.sel(memory="inner").T, atol=2e-3)
    gates = np.frombuffer(widget.gates, "<f2").reshape(4, 2, 6, len(TEXT))
    np.testing.assert_allclose(gates[1, 1], trace.f.sel(memory="outer").T, atol=1e-3)
    bits = np.frombuffer(widget.surprises, "<f4")
    expected = -trace.log_p.sel(vocabulary=TEXT[7])[6] / np.log(2)
    np.testing.assert_allclose(bits[6], expected, rtol=1e-5)
    assert np.isnan(bits[-1])
    assert widget.squashed == [True, False]


def test_the_explorer_reads_vectors():
    """Those of one's own, by name, and by default those of a run's task."""
    torch.manual_seed(0)
    own = lab.models.wrap(torch.nn.LSTM(2, 6), readout=torch.nn.Linear(6, 3), name="own")
    x = np.stack([np.sin(np.arange(40) / 5), np.arange(40) % 2], 1)
    widget = lab.widgets.CellExplorer(own, {"waves": x, "short": x[:9]})
    trace = lab.probes.trace(own, x)
    np.testing.assert_allclose(np.frombuffer(widget.states, "<f2").reshape(6, 40), trace.c[:, 0].T, atol=1e-3)
    np.testing.assert_allclose(np.frombuffer(widget.labels, "<f4").reshape(2, 40), x.T, rtol=1e-6)
    r = [abs(np.corrcoef(np.tanh(states), x[:, 0])[0, 1]) for states in trace.c[:, 0].T.values]
    assert (widget.rule, widget.unit, widget.symbols[-1]) == ("input 0", int(np.argmax(r)), "39")
    widget.span = [3, 9]
    assert np.frombuffer(widget.contrasts, "<f4").shape == (3 * 6,)
    widget.text = "short"
    assert (len(widget.symbols), widget.span) == (9, [])
    assert len(lab.figures.data(widget.figure())) == 9
    assert "networks" not in widget.shown()
    with pytest.raises(UsageError, match="'long'"):
        widget.text = "long"
    with pytest.raises(UsageError, match="array"):
        lab.widgets.CellExplorer(own, TEXT)


def test_the_sequences_of_a_task_end_where_they_end():
    """A batch pads the shorter of its sequences."""
    points, sizes = torch.randn(7, 2, 3), torch.tensor([7, 4])
    batch = Batch(points, points, torch.arange(7)[:, None] < sizes)
    task = SimpleNamespace(evaluations=("blocks",), evaluate=lambda split, evaluation: iter([batch]))
    found = examples(SimpleNamespace(experiment=SimpleNamespace(load=lambda: task)))
    assert {name: x.tolist() for name, x in found.items()} == {
        "test sequence 0": points[:, 0].tolist(),
        "test sequence 1": points[:4, 1].tolist(),
    }


@pytest.mark.parametrize("kind", [GRU, lab.LSTM])
def test_any_unit_is_explored_and_drawn(kind):
    widget = lab.widgets.CellExplorer(network(kind, num_layers=2), TEXT)
    assert len(widget.memories) == 2
    assert bool(widget.gates) == (kind is lab.LSTM)
    drawn = lab.figures.data(widget.figure())
    assert len(drawn) == 2 * len(TEXT)
    assert set(drawn["quantity"]) == ({"$h_t$"} if kind is GRU else {r"$\tanh(c_t)$"})


def test_a_text_is_read_leniently_and_what_was_changed_is_said():
    widget = lab.widgets.CellExplorer(network(), "ÜBER\n2")
    assert ("".join(widget.symbols), widget.text) == ("uber  ", "ÜBER\n2")
    assert "uber" in widget.notice
    widget.text = "a" * 1001
    assert len(widget.symbols) == 1000
    assert "1,000" in widget.notice
    widget.text = TEXT
    assert widget.notice == ""


@pytest.mark.slow
def test_the_page_of_a_unit_is_what_was_recorded_of_it(tmp_path):
    run = lab.runs.load("ptb_char_nlstm_logfreq", seed=0, scale="small")
    excerpt = lab.datasets.Excerpt("ptb", "valid", 30_000)
    widget = lab.widgets.CellExplorer({"mine": run}, TEXT, unit=7)
    assert widget.known_on == "30,000 characters of ptb (valid)"
    known = np.frombuffer(widget.known, "<f4").reshape(2, 3, 2, 150)[1, :, 1, 7]
    measured = lab.probes.timescales(run.model(), excerpt).query("memory == 'outer' and unit == 7 and value == 'tanh'")
    np.testing.assert_allclose(known, measured[["timescale", "low", "high"]].to_numpy(float)[0], rtol=1e-5)
    record = lab.probes.units(run.model(), excerpt)
    row = record[(record.memory == "outer") & (record.unit == 7)].iloc[0]
    place = widget.memories.index("outer") * 150 + 7
    assert (widget.pages["label"][place], widget.pages["places"][place]) == (row.label, row.places)
    cuts = lab.probes.cell_cuts(run.model(), excerpt)
    assert widget.pages["kl"][place] == cuts[(cuts.memory == "outer") & (cuts.unit == 7)].kl.item()
    names = [name for name, _, _ in widget.pages["counterparts"][place]]
    assert names == ["ptb_char_nlstm_logfreq/small-seed1", "ptb_char_nlstm_logfreq/small-seed2"]
    page = widget.shown()["pages"]
    assert page["text"] == ""
    if not widget.pages["text"]:
        pytest.skip("ptb is not among the data, so that no page quotes it")
    at = int(row.places.split()[0])
    assert page["passages"][str(at)] == widget.pages["text"][at - 24 : at + 8]
    assert len(page["passages"]) <= 40


def test_the_units_of_a_phrase_stand_beside_two_baselines():
    model = network()
    widget = lab.widgets.CellExplorer(model, TEXT)
    assert widget.contrasts == b""
    widget.span = [4, 7]
    found = np.frombuffer(widget.contrasts, "<f4").reshape(3, 2, 6)
    x = np.tanh(lab.probes.trace(model, TEXT).c.sel(memory="outer").values)
    inside, outside = x[4:8], np.delete(x, np.s_[4:8], 0)
    pooled = np.sqrt((4 * inside.var(0) + len(outside) * outside.var(0)) / len(TEXT))
    np.testing.assert_allclose(found[0, 1], (inside.mean(0) - outside.mean(0)) / pooled, rtol=1e-3)
    assert not np.allclose(found[0], found[1])
    assert not np.allclose(found[0], found[2])
    widget.text = "short"
    assert (widget.span, widget.contrasts) == ([], b"")


def test_a_patch_lab_shows_what_the_probe_measures_and_predicts():
    model, clean, corrupted = driven(), "a man sold it", "a men sold it"
    widget = lab.widgets.PatchLab([model, network(GRU, "other")], clean, corrupted, right="a", wrong="e")
    found = lab.probes.patch(model, (clean, corrupted, "a", "e"))
    np.testing.assert_allclose(np.frombuffer(widget.patched, "<f4"), found.patched.values.ravel(), rtol=1e-4, atol=1e-7)
    assert widget.preferences == pytest.approx([float(found.clean), float(found.corrupted)])
    assert widget.memories == ["outer", "inner", "h"]
    codes = np.frombuffer(widget.likely, "<i2").reshape(2 + found.patched.size, -1)
    ends = [lab.probes.trace(model, text).log_p[-1].values for text in (clean, corrupted)]
    best = [int(each.argmax()) for each in (*ends, *found.log_p.values.reshape(-1, len(LETTERS)))]
    assert codes[:, 0].tolist() == best
    drawn = lab.figures.data(widget.figure())["patched"].sum()
    np.testing.assert_allclose(drawn, float(found.patched.sum() / found.effect), rtol=1e-3)
    widget.memory, widget.step = 2, 8
    widget.run = "other"
    assert (widget.memories, widget.memory, widget.step) == (["h"], 0, 8)


@pytest.mark.slow
def test_the_browser_lists_runs_and_offers_what_is_picked():
    browser = lab.widgets.RunBrowser("ptb_char_nlstm*", scale="small", pick=["ptb_char_nlstm/small-seed0"])
    row = next(row for row in browser.rows if row["name"] == "ptb_char_nlstm/small-seed0")
    table = lab.runs.table("ptb_char_nlstm", scale="small")
    first = table[(table.seed == 0) & (table.metric == "bpc") & (table.split == "test")].iloc[0]
    assert row["metrics"]["bpc"]["test"] == first.value
    assert row["parameters"] == first.parameters
    explorer = lab.widgets.CellExplorer(browser, TEXT)
    assert explorer.runs == ["ptb_char_nlstm/small-seed0"]
    browser.picked = ["ptb_char_nlstm/small-seed1", "ptb_char_nlstm_logfreq/small-seed0"]
    assert explorer.runs == [run.name for run in browser.chosen()]
    assert explorer.run in explorer.runs
    assert set(lab.figures.data(browser.figure())["run"]) == set(explorer.runs)


@pytest.mark.slow
def test_what_is_picked_and_cannot_be_read_becomes_a_sentence_and_changes_nothing():
    first, other = "ptb_char_nlstm/small-seed0", "ptb_char_nlstm/small-seed1"
    words = "autocomplete_gru/small-seed0"
    browser = lab.widgets.RunBrowser("*_[gn]*[um]", scale="small", pick=[first])
    explorer = lab.widgets.CellExplorer(browser, "the bank")
    closed = lab.widgets.CellExplorer(browser, "the bank")
    closed.close()
    browser.picked = [words]
    assert "predicts the characters" in explorer.error
    assert (explorer.runs, explorer.run) == ([first], first)
    browser.picked = [words, other]
    assert (explorer.runs, explorer.run, explorer.error) == ([other], other, "")
    assert closed.runs == [first]
    assert closed.error == ""


@pytest.mark.slow
def test_linked_widgets_show_one_selection():
    networks = [network(), network(name="second")]
    explorer = lab.widgets.CellExplorer(networks, TEXT, unit=2)
    scissors = lab.widgets.InterventionLab(networks, TEXT, moment=9)
    board = lab.widgets.Dashboard(explorer, scissors)
    assert (scissors.unit, explorer.unit, board.children) == (-1, 2, (explorer, scissors))
    explorer.unit = 3
    assert scissors.unit == 3
    assert {"application/vnd.jupyter.widget-view+json", "image/png"} <= set(board._repr_mimebundle_()[0])
    explorer.run, explorer.step = "second", 5
    assert (scissors.run, scissors.step) == ("second", 5)
    scissors.unit = -1  # all units
    assert explorer.unit == 3
    explorer.set_state({"text": "a", "asked": 1})  # too short for an ablation, not for the explorer
    explorer.wait()
    assert (explorer.symbols, explorer.error, "".join(scissors.symbols)) == (["a"], "", TEXT)
    explorer.set_state({"text": "a longer text", "asked": 2})
    explorer.wait()
    assert "".join(scissors.symbols) == "a longer text"


@pytest.mark.parametrize("name", sorted(set(lab.widgets.__all__) - {"Dashboard"}))
def test_caption_and_call_of_a_widget_name_its_traits(name):
    kind = getattr(lab.widgets, name)
    named = set(re.findall(r"{(\w+)}", kind.caption + kind.snippet)) - {"load", "networks"}
    assert named <= set(kind.class_trait_names(sync=True)) | {"run"}
    assert set(kind.looks) <= set(kind.class_trait_names(sync=True))
    assert kind.snippet.startswith(f"lab.widgets.{name}(")


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["ptb_char_nlstm_logfreq", "ptb_char_nlstm", "ptb_char_lstm2"], ["log-frequencies", "baseline", "stacked"]),
        ([LONGER, f"{LONGER}+detect_from=hidden"], ["seed 0", "seed 0, detect_from=hidden"]),
    ],
)
def test_runs_are_called_by_what_tells_them_apart_and_know_their_twins(names, labels):
    titles = [*Networks([lab.runs.load(name, seed=0, scale="small") for name in names]).titles.items()]
    assert all(part in title["label"] for part, (_, title) in zip(labels, titles, strict=True))
    twins = [title["twin"] for _, title in titles]
    assert twins == ([titles[1][0], titles[0][0], ""] if len(names) == 3 else ["", ""])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zero", "freeze", "resample"])
def test_an_ablation_is_what_the_probe_measures_and_so_is_that_of_each_unit(kind):
    model, other = driven().double(), TEXT[::-1]
    widget = lab.widgets.InterventionLab(model, TEXT, other=other, memory="inner", kind=kind, moment=20)
    assert widget.costs == b""
    if kind != "freeze":
        donor = {"other": other} if kind == "resample" else {}
        measured = lab.probes.intervene(model, TEXT, "inner", moments=[20], distance=len(TEXT) - 21, **donor)
        bits = np.frombuffer(widget.ablated_surprises, "<f4")
        np.testing.assert_allclose(bits[:-1] * np.log(2), measured.loss_ablated[0], rtol=1e-4)
        np.testing.assert_allclose(np.frombuffer(widget.divergences, "<f4")[:-1], measured.kl[0], atol=1e-6)
        assert np.isnan(bits[-1])
    assert lab.figures.data(widget.figure())["time"].tolist() == list(range(8, len(TEXT)))
    widget.ranking = True
    costs = np.frombuffer(widget.costs, "<f4")
    for unit in range(6):
        widget.unit = unit
        single = np.frombuffer(widget.divergences, "<f4")
        assert costs[unit] == pytest.approx(single.mean(), rel=1e-3, abs=1e-7)  # single precision
    assert costs.max() > 1e-5


@pytest.mark.slow
def test_what_another_network_or_text_lacks_gives_way():
    """A memory, a unit, a character; what is asked for by name is refused instead."""
    networks = [network(), network(GRU, "other"), network(name="narrow", units=4)]
    widget = lab.widgets.InterventionLab(networks, TEXT, memory="inner", unit=5)
    widget.run = "other"
    assert (widget.memory, widget.unit) == ("h", 5)
    widget.set_state({"run": "narrow", "asked": widget.asked + 1})  # the browser's choice
    widget.wait()
    assert (widget.run, widget.unit, widget.error) == ("narrow", 3, "")
    with pytest.raises(UsageError, match="3"):
        widget.unit = 5
    explorer = lab.widgets.CellExplorer(networks, TEXT, unit=5)
    explorer.step = 30
    explorer.run = "narrow"
    explorer.text = "short"
    assert (explorer.unit, explorer.step) == (3, 4)
    assert explorer.figure()


def words():
    flags = {"vocabulary": LETTERS, "words": ["a", "be", "on"]}
    return lab.models.wrap(lab.LSTM(len(LETTERS), 6), readout=torch.nn.Linear(6, 3), **flags)


def layers():
    return network(lab.HMLSTM, num_layers=3)


def pair():
    return lab.widgets.PatchLab(driven(), "a man sold it", "a men sold it")


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: lab.widgets.CellExplorer([network(), network(GRU)], TEXT), "'own'"),
        (lambda: lab.widgets.CellExplorer(words(), TEXT), "predict"),
        (lambda: lab.widgets.CellExplorer("ptb_char_nlstm", TEXT), "not str"),
        (lambda: lab.widgets.PatchLab(None, TEXT, TEXT), "NoneType"),
        (lambda: lab.widgets.AutocompleteDemo(words()), "lstm"),
        (lambda: lab.widgets.InterventionLab(words(), TEXT), "predict"),
        (lambda: lab.widgets.InterventionLab(network(), TEXT, other="short", kind="resample", moment=20), "lengthen"),
        (lambda: lab.widgets.InterventionLab(network(), TEXT, unit=6), "5"),
        (lambda: lab.widgets.RunBrowser("nothing_*"), "nothing_"),
        (lambda: lab.widgets.RunBrowser("ptb_char_nlstm", pick=["x"]), "'x'"),
        (lambda: lab.widgets.BoundaryExplorer({}, TEXT), "network"),
        (lambda: lab.widgets.BoundaryExplorer(network(lab.LSTM), TEXT), "boundar"),
        (lambda: lab.widgets.ConnectivityExplorer({}, TEXT), "network"),
        (lambda: lab.widgets.ConnectivityExplorer({"lstm": words()}, TEXT, at=43), "43.*42"),
        (lambda: lab.widgets.ConnectivityExplorer({"lstm": words()}, TEXT, target="given"), "word"),
        (lambda: lab.widgets.AutocompleteDemo({}), "network"),
    ],
)
def test_what_cannot_be_shown_is_refused_by_name(make, named):
    with pytest.raises(LabError, match=named):
        make()


@pytest.mark.parametrize(
    ("make", "changes", "named"),
    [
        (pair, {"clean": "a" + "b" * 130, "corrupted": "c" + "b" * 130}, "120"),
        (lambda: lab.widgets.CellExplorer(network(), TEXT), {"run": "third"}, "'third'"),
        (lambda: lab.widgets.BoundaryExplorer(layers(), TEXT), {"threshold": 1.0}, "threshold"),
        (lambda: lab.widgets.ConnectivityExplorer({"lstm": words()}, TEXT, at=12), {"text": ""}, "empty"),
    ],
)
def test_a_refused_choice_of_the_browser_is_a_sentence_and_is_not_drawn(make, changes, named):
    widget = make()
    drawn = lab.figures.data(widget.figure())
    widget.set_state({**changes, "asked": widget.asked + 1})
    widget.wait()
    assert named in widget.error
    assert lab.figures.data(widget.figure()).equals(drawn)
