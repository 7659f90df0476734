"""What the explorer, the intervention lab and the run browser tell the browser is what the probes measured."""

import re

import numpy as np
import pytest
import torch

import nlstm_lab as lab
from nlstm_lab.cells.gru import GRU
from nlstm_lab.errors import MissingRun, UsageError
from nlstm_lab.widgets.reading import Networks

TEXT = "the bank of the west fell sharply on monday"
LETTERS = sorted(set("abcdefghijklmnopqrstuvwxyz "))


def network(kind=lab.NestedLSTM, name="own", **flags):
    torch.manual_seed(0)
    unit = kind(len(LETTERS), 6, **flags)
    return lab.models.wrap(unit, readout=torch.nn.Linear(6, len(LETTERS)), vocabulary=LETTERS, name=name)


def test_the_explorer_holds_the_trace() -> None:
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


@pytest.mark.slow
def test_the_explorer_tells_recorded_timescales() -> None:
    run = lab.runs.load("ptb_char_nlstm_logfreq", seed=0, scale="small")
    widget = lab.widgets.CellExplorer(run, TEXT)
    known = np.frombuffer(widget.known, "<f4").reshape(2, 3, 2, 150)
    excerpt = lab.datasets.Excerpt("ptb", "valid", 30_000)
    record = lab.probes.timescales(run.model(), excerpt)
    row = record[(record.memory == "outer") & (record.unit == 7) & (record.value == "tanh")].iloc[0]
    np.testing.assert_allclose(known[1, :, 1, 7], row[["timescale", "low", "high"]].to_numpy(float), rtol=1e-5)
    assert widget.known_on == "30,000 characters of ptb (valid)"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GRU, lab.LSTM, lab.NestedLSTM])
def test_what_an_earlier_text_began_with_is_not_read_again(kind, monkeypatch) -> None:
    """Whoever types waits for what is new alone, and gets what reading it all would give."""
    read, trace = [], kind.trace

    def counted(self, x, state, steps=None):
        read.append(len(x))
        return trace(self, x, state, steps)

    monkeypatch.setattr(kind, "trace", counted)
    widget = lab.widgets.CellExplorer(network(kind), TEXT)
    for text, steps in ((TEXT + "s", 1), (TEXT[:20] + "x" + TEXT[21:], len(TEXT) - 20), (TEXT[:9], 1), ("q", 1)):
        read.clear()
        widget.text = text
        assert sum(read) == steps
        fresh = lab.widgets.CellExplorer(network(kind), text)
        for name in ("states", "gates"):
            np.testing.assert_allclose(np.frombuffer(getattr(widget, name), "<f2"),
                                       np.frombuffer(getattr(fresh, name), "<f2"), atol=1e-3)  # fmt: skip
        np.testing.assert_allclose(np.frombuffer(widget.chances, "<f4"), np.frombuffer(fresh.chances, "<f4"), atol=1e-6)


@pytest.mark.parametrize("kind", [GRU, lab.LSTM])
def test_any_unit_is_explored_and_drawn(kind) -> None:
    widget = lab.widgets.CellExplorer(network(kind, num_layers=2), TEXT)
    assert len(widget.memories) == 2
    assert bool(widget.gates) == (kind is lab.LSTM)
    drawn = lab.figures.data(widget.figure())
    assert len(drawn) == 2 * len(TEXT)
    assert set(drawn["quantity"]) == ({"$h_t$"} if kind is GRU else {r"$\tanh(c_t)$"})


def test_the_explorer_takes_another_run_and_refuses_what_it_cannot_read() -> None:
    widget = lab.widgets.CellExplorer([network(), network(GRU, "other")], TEXT)
    widget.run = "other"
    assert widget.memories == ["h"]
    with pytest.raises(UsageError):
        widget.text = ""
    with pytest.raises(UsageError, match="'third'"):
        widget.run = "third"
    assert (widget.run, widget.text) == ("other", TEXT)


def test_a_text_is_read_leniently_and_what_was_changed_is_said() -> None:
    widget = lab.widgets.CellExplorer(network(), "ÜBER\n2", timescales=None)
    assert ("".join(widget.symbols), widget.text) == ("uber  ", "ÜBER\n2")
    assert "uber" in widget.notice
    widget.text = "a" * 1001
    assert len(widget.symbols) == 1000
    assert "1,000" in widget.notice
    widget.text = TEXT
    assert widget.notice == ""


def test_runs_are_called_as_in_the_figures_and_know_their_twins() -> None:
    names = ("ptb_char_nlstm_logfreq", "ptb_char_nlstm", "ptb_char_lstm2")
    titles = Networks([lab.runs.load(name, seed=0, scale="small") for name in names]).titles
    labels = [title["label"].partition(",")[0] for title in titles.values()]
    assert labels == [lab.figures.look(model).label for model in ("nlstm", "nlstm", "stacked_lstm")]
    rescued, printed, stacked = titles.values()
    assert (titles[rescued["twin"]], titles[printed["twin"]], stacked["twin"]) == (printed, rescued, "")


@pytest.mark.slow
def test_the_explorer_opens_on_a_living_unit_that_follows_spaces() -> None:
    run = lab.runs.load("ptb_char_nlstm_logfreq", seed=0, scale="small")
    widget = lab.widgets.CellExplorer(run, TEXT)
    trace = lab.probes.trace(run.model(), TEXT)
    since = lab.probes.labels(TEXT)["since_space"]
    states = np.tanh(trace.c.sel(memory="inner").values)
    with np.errstate(invalid="ignore"):
        r = np.abs([np.corrcoef(states[:, unit], since)[0, 1] for unit in range(150)])
    assert r[widget.unit] == pytest.approx(np.nanmax(r), abs=0.01)


@pytest.mark.slow
def test_the_page_of_a_unit_is_what_was_recorded_of_it(tmp_path) -> None:
    run = lab.runs.load("ptb_char_nlstm_logfreq", seed=0, scale="small")
    excerpt = lab.datasets.Excerpt("ptb", "valid", 30_000)
    widget = lab.widgets.CellExplorer(run, TEXT, unit=7)
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
    if widget.pages["text"]:  # where the corpus is at hand, a page quotes what the shown unit needs
        at = int(row.places.split()[0])
        assert page["passages"][str(at)] == widget.pages["text"][at - 24 : at + 8]
        assert len(page["passages"]) <= 40


def test_the_units_of_a_phrase_stand_beside_two_baselines() -> None:
    model = network()
    widget = lab.widgets.CellExplorer(model, TEXT, timescales=None)
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


def test_the_first_cut_costs_something() -> None:
    widget = lab.widgets.InterventionLab(network(), TEXT, memory="inner")
    costs = [np.frombuffer(widget.divergences, "<f4").sum()]
    for moment in range(5, len(TEXT), 9):
        widget.moment = moment
        costs.append(np.frombuffer(widget.divergences, "<f4").sum())
    assert costs[0] > np.median(costs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zero", "swap"])
def test_a_cut_is_what_the_probe_measures(kind) -> None:
    model, other = network(), TEXT[::-1]
    widget = lab.widgets.InterventionLab(model, TEXT, other=other, memory="outer", kind=kind, moment=20)
    donor = other if kind == "swap" else None
    distance = len(TEXT) - 21
    effect = lab.probes.intervene(model, TEXT, kind, "outer", moments=[20], distance=distance, other=donor)
    cut = np.frombuffer(widget.cut_surprises, "<f4")
    np.testing.assert_allclose(cut[:-1] * np.log(2), effect.loss_cut[0], rtol=1e-4)
    np.testing.assert_allclose(np.frombuffer(widget.divergences, "<f4")[:-1], effect.kl[0], atol=1e-6)
    assert np.isnan(cut[-1])
    frame = lab.figures.data(widget.figure())
    assert frame["time"].tolist() == list(range(8, len(TEXT)))


def driven():
    """A trained network is driven harder than a fresh one."""
    model = network()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 4
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zero", "freeze", "swap"])
def test_units_are_ranked_by_what_cutting_each_alone_costs(kind: str) -> None:
    widget = lab.widgets.InterventionLab(driven(), TEXT, other=TEXT[::-1], memory="inner", kind=kind, moment=20)
    assert widget.costs == b""
    widget.ranking = True
    costs = np.frombuffer(widget.costs, "<f4")
    for unit in range(6):
        widget.unit = unit
        alone = np.frombuffer(widget.divergences, "<f4")
        assert costs[unit] == pytest.approx(alone.mean(), rel=1e-3, abs=1e-7)  # single precision
    assert costs.max() > 1e-5


@pytest.mark.slow
def test_intact_and_cut_networks_write_on_with_the_same_draws() -> None:
    model = driven()
    widget = lab.widgets.InterventionLab(model, TEXT, other=TEXT, memory="inner", kind="swap", moment=20)
    assert widget.written == []
    widget.seed = 3
    intact, cut = widget.written
    assert TEXT[:21] + intact == lab.probes.continued(model, TEXT[:21], 120, seed=3)
    assert cut == intact  # its own memory was put in
    widget.kind = "freeze"
    assert widget.written[0] == intact != widget.written[1]


def test_a_memory_that_another_network_lacks_gives_way() -> None:
    widget = lab.widgets.InterventionLab([network(), network(GRU, "other")], TEXT, memory="inner")
    widget.run = "other"
    assert widget.memory == "h"
    with pytest.raises(UsageError, match="5"):
        widget.unit = 6
    with pytest.raises(UsageError):
        lab.widgets.InterventionLab(network(), TEXT, other="short", kind="swap", moment=20)


def test_a_patch_lab_shows_what_the_probe_measures_and_predicts() -> None:
    model, clean, corrupted = network(), "a man sold it", "a men sold it"
    widget = lab.widgets.PatchLab([model, network(GRU, "other")], clean, corrupted, right="a", wrong="e")
    found = lab.probes.patch_map(model, clean, corrupted, right="a", wrong="e")
    np.testing.assert_allclose(np.frombuffer(widget.patched, "<f4"), found.patched.values.ravel(), rtol=1e-4, atol=1e-7)
    assert widget.preferences == pytest.approx([found.clean, found.corrupted])
    assert widget.memories == ["outer", "inner", "h"]
    codes = np.frombuffer(widget.likely, "<i2").reshape(2 + found.patched.size, -1)
    ends = [lab.probes.trace(model, text).log_p[-1].values for text in (clean, corrupted)]
    best = [int(each.argmax()) for each in (*ends, *found.log_p.values.reshape(-1, len(LETTERS)))]
    assert codes[:, 0].tolist() == best
    np.testing.assert_allclose(
        lab.figures.data(widget.figure())["patched"].sum(),
        float(found.patched.sum()) / (found.clean - found.corrupted),
        rtol=1e-3,
    )
    widget.memory, widget.step = 2, 8
    widget.run = "other"
    assert (widget.memories, widget.memory, widget.step) == (["h"], 0, 8)


def test_a_patch_lab_chooses_what_the_difference_moves_most() -> None:
    model = network()
    widget = lab.widgets.PatchLab(model, "a man sold it", "a men sold it")
    gain = np.subtract(*(np.exp(lab.probes.trace(model, text).log_p[-1]) for text in (widget.clean, widget.corrupted)))
    assert widget.answers == [LETTERS[int(np.argmax(gain.values))], LETTERS[int(np.argmin(gain.values))]]
    assert widget.preferences[0] > widget.preferences[1]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"corrupted": "a man sold it"}, "same"),
        ({"corrupted": "a man sold is"}, "alike"),
        ({"clean": ""}, "empty"),
        ({"right": "ab"}, "'ab'"),
        ({"clean": "a" + "b" * 130, "corrupted": "c" + "b" * 130}, "120"),
    ],
)
def test_texts_that_cannot_be_patched_are_said_in_a_sentence(changes, named) -> None:
    widget = lab.widgets.PatchLab(network(), "a man sold it", "a men sold it")
    refused(widget, **changes)
    assert named in widget.error


@pytest.mark.slow
def test_the_browser_lists_runs_and_offers_what_is_picked() -> None:
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


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(MissingRun, match="nothing_"):
        lab.widgets.RunBrowser("nothing_*")
    with pytest.raises(UsageError, match="'x'"):
        lab.widgets.RunBrowser("ptb_char_nlstm", pick=["x"])


@pytest.mark.parametrize("widget", [lab.widgets.CellExplorer, lab.widgets.InterventionLab])
def test_a_network_that_predicts_words_is_refused_in_a_sentence(widget) -> None:
    words = lab.models.wrap(
        lab.LSTM(len(LETTERS), 6), readout=torch.nn.Linear(6, 3), vocabulary=LETTERS, words=["a", "be", "on"]
    )
    with pytest.raises(UsageError):
        widget(words, TEXT)


def refused(widget, **changes) -> None:
    """A choice of the browser that is answered with an error."""
    widget.set_state({**changes, "asked": widget.asked + 1})
    widget.wait()
    assert widget.error


@pytest.mark.slow
def test_a_refused_choice_is_not_drawn() -> None:
    explorer = lab.widgets.CellExplorer(network(), TEXT, timescales=None)
    refused(explorer, text="")
    assert len(lab.figures.data(explorer.figure())) == 2 * len(TEXT)
    assert "image/png" in explorer._repr_mimebundle_()[0]
    cut = lab.widgets.InterventionLab(network(), TEXT)
    refused(cut, kind="burn")
    assert "kind='zero'" in repr(cut)
    assert len(lab.figures.data(cut.figure()))


@pytest.mark.slow
def test_places_that_another_text_or_network_lacks_are_corrected() -> None:
    torch.manual_seed(0)
    narrow = lab.models.wrap(
        lab.NestedLSTM(len(LETTERS), 4), readout=torch.nn.Linear(4, len(LETTERS)), vocabulary=LETTERS, name="narrow"
    )
    widget = lab.widgets.CellExplorer([network(), narrow], TEXT, unit=5, timescales=None)
    widget.step = 30
    widget.run = "narrow"
    assert widget.unit == 3
    widget.text = "short"
    assert widget.step == 4
    assert widget.figure()


@pytest.mark.slow
def test_a_cut_unit_that_another_network_lacks_gives_way_and_a_named_one_is_refused() -> None:
    def sized(units, name):
        unit, readout = lab.NestedLSTM(len(LETTERS), units), torch.nn.Linear(units, len(LETTERS))
        return lab.models.wrap(unit, readout=readout, vocabulary=LETTERS, name=name)

    widget = lab.widgets.InterventionLab([sized(150, "wide"), sized(64, "narrow")], TEXT, unit=140)
    widget.run = "narrow"
    assert (widget.run, widget.unit, widget.units) == ("narrow", 63, 64)
    assert "unit=63" in repr(widget)
    with pytest.raises(UsageError, match="63"):
        widget.unit = 140
    widget.run = "wide"
    widget.unit = 149
    widget.set_state({"run": "narrow", "asked": widget.asked + 1})  # the browser's choice
    widget.wait()
    assert (widget.run, widget.unit, widget.error) == ("narrow", 63, "")
    with pytest.raises(UsageError, match="63"):
        lab.widgets.InterventionLab(sized(64, "narrow"), TEXT, unit=140)


def test_a_metric_without_a_curve_is_refused_in_a_sentence() -> None:
    browser = lab.widgets.RunBrowser("autocomplete_gru", scale="small")
    browser.metric = "top1_accuracy_unmasked_pct"
    with pytest.raises(UsageError, match=r"'top1_accuracy_unmasked_pct'.*top1_accuracy_pct"):
        browser.figure()


@pytest.mark.slow
def test_what_is_picked_and_cannot_be_read_becomes_a_sentence_and_changes_nothing() -> None:
    first, other = "ptb_char_nlstm/small-seed0", "ptb_char_nlstm/small-seed1"
    words = "autocomplete_gru/small-seed0"
    browser = lab.widgets.RunBrowser("*", scale="small", pick=[first])
    explorer = lab.widgets.CellExplorer(browser, "the bank", timescales=None)
    closed = lab.widgets.CellExplorer(browser, "the bank", timescales=None)
    closed.close()
    browser.picked = [words]
    assert "predicts the characters" in explorer.error
    assert (explorer.runs, explorer.run) == ([first], first)
    browser.picked = [words, other]
    assert (explorer.runs, explorer.run, explorer.error) == ([other], other, "")
    assert closed.runs == [first]
    assert closed.error == ""


@pytest.mark.slow
def test_linked_widgets_show_one_selection() -> None:
    networks = [network(), network(name="second")]
    explorer = lab.widgets.CellExplorer(networks, TEXT, unit=2, timescales=None)
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
    explorer.set_state({"text": "a", "asked": 1})  # too short for a cut, not for the explorer
    explorer.wait()
    assert (explorer.symbols, explorer.error, "".join(scissors.symbols)) == (["a"], "", TEXT)
    explorer.set_state({"text": "a longer text", "asked": 2})
    explorer.wait()
    assert "".join(scissors.symbols) == "a longer text"


@pytest.mark.parametrize("name", sorted(set(lab.widgets.__all__) - {"Dashboard"}))
def test_caption_and_call_of_a_widget_name_its_traits(name) -> None:
    kind = getattr(lab.widgets, name)
    named = set(re.findall(r"{(\w+)}", kind.caption + kind.snippet)) - {"load", "networks"}
    assert named <= set(kind.class_trait_names(sync=True)) | {"run"}
    assert set(kind.looks) <= set(kind.class_trait_names(sync=True))
    assert kind.snippet.startswith(f"lab.widgets.{name}(")


def test_two_networks_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="'own'"):
        lab.widgets.CellExplorer([network(), network(GRU)], TEXT)


def test_the_traces_that_were_looked_at_last_are_kept() -> None:
    reader = Networks(network())
    first = reader.trace("own", "a")
    for text in "bcde":
        reader.trace("own", text)
        assert reader.trace("own", "a") is first
