"""An ablation has the effect that the equations say, and none where nothing reads what was ablated."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from nlstm_lab import probes
from nlstm_lab.cells import GRU, LSTM, NestedLSTM
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import intervene, loss_by_context, unit_ablations
from nlstm_lab.probes.reading import component, hidden_names, names, reading, states_at

MOMENTS = [5, 60, 61, 250]


def gate_bias(cell, gate, value, units=slice(None)):
    with torch.no_grad():
        cell.bias.view(4, -1)["ifgo".index(gate), units] = value


@pytest.fixture
def driven(network):
    """A network that is driven hard enough for ablations to matter."""
    return lambda kind=NestedLSTM, **flags: network(kind, scale=3.0, **flags)


def test_a_memory_that_nothing_reads_can_be_cut(driven, text):
    model = driven()
    gate_bias(model.recurrent.layers[0].memory, "f", -1e4)  # f~ = 0: the inner memory is overwritten at every step
    measured = intervene(model, text, "inner", moments=MOMENTS, distance=20)
    assert np.abs(measured.kl).max() < 1e-6
    assert np.abs(measured.loss - measured.loss_ablated).max() < 1e-5
    assert intervene(model, text, "outer", moments=MOMENTS, distance=20).kl.max() > 1e-3


def test_an_effect_fades_with_the_distance_and_zero_at_once_is_what_the_step_says(driven, text):
    model = driven(LSTM)
    measured = intervene(model, text, "cell", moments=MOMENTS, distance=30)
    assert measured.kl.sizes == {"moment": 4, "distance": 30}
    assert measured.kl.mean("moment")[0] > measured.kl.mean("moment")[-1]
    codes = model.vocabulary.encode(text)
    with torch.no_grad():
        _, (h, c) = model.recurrent(codes[:60, None])
        intact, ablated = (
            model.readout(model.recurrent(codes[60:90, None], (h, held))[0]).log_softmax(-1).squeeze(1)
            for held in (c, torch.zeros_like(c))
        )
    expected = -ablated.gather(1, codes[61:91, None]).squeeze(1)
    np.testing.assert_allclose(measured.loss_ablated.sel(moment=60), expected, atol=1e-5)
    # D(intact | ablated), not the other
    divergence = F.kl_div(ablated, intact, log_target=True, reduction="none").sum(-1)
    np.testing.assert_allclose(measured.kl.sel(moment=60), divergence, atol=1e-5)


def test_its_own_state_changes_nothing_and_with_anothers_a_network_goes_on_as_if_it_had_read_that_one(driven, text):
    for memory in ("outer", "inner", "h"):
        assert np.abs(intervene(driven(), text, memory, moments=MOMENTS, distance=5, other=text).kl).max() < 1e-6
    model, other = driven(GRU), text[::-1]
    measured = intervene(model, text, "h", moments=[60], distance=5, other=other)
    codes, before = model.vocabulary.encode(text), model.vocabulary.encode(other)[:60]
    with torch.no_grad():
        logits, _ = model(torch.cat([before, codes[60:65]])[:, None])
    expected = -logits.log_softmax(-1)[60:, 0].gather(1, codes[61:66, None]).squeeze(1)
    np.testing.assert_allclose(measured.loss_ablated[0], expected, atol=1e-5)


def test_freezing_everything_lets_only_the_last_symbol_through(driven, text):
    model = driven()
    codes = model.vocabulary.encode(text)
    with reading(model):
        state = states_at(model, codes, [60])
        edits = {(f"{name} before", range(8)): probes.freeze() for name in ("outer", "inner", "h")}
        frozen = probes.run(model, codes[60:68], edits, keep=[], state=state).logits.log_softmax(-1)
        for d in range(8):
            logits, _ = model(codes[60 + d : 61 + d, None], state)
            expected = -logits.log_softmax(-1)[0, 0, codes[61 + d]]
            assert float(-frozen[d, codes[61 + d]]) == pytest.approx(float(expected), abs=1e-5)


def test_attribution_finds_the_units_that_matter(driven, text):
    model = driven()
    inert = [1, 4]
    gate_bias(model.recurrent.layers[0].memory, "f", -1e4, units=inert)
    measured = unit_ablations(model, text, "inner", moments=MOMENTS, distance=6).set_index("unit")
    assert measured.kl[inert].max() < 1e-6
    assert measured.kl.drop(inert).min() > 1e-6
    model = driven()
    gate_bias(model.recurrent.layers[0].memory, "f", -1e4, units=[0, 1, 2, 4, 5, 6, 7])  # unit 3 alone holds anything
    effects = unit_ablations(model, text, "inner", moments=MOMENTS, distance=6).set_index("unit")
    every = intervene(model, text, "inner", moments=MOMENTS, distance=6)
    assert effects.kl[3] == pytest.approx(float(every.kl.mean()), rel=1e-3)
    assert effects.loss_increase[3] == pytest.approx(float((every.loss_ablated - every.loss).mean()), rel=1e-2)


def test_layers_of_a_stack_have_their_own_memories(driven, text):
    model = driven(NestedLSTM, num_layers=2)
    with reading(model):
        state = states_at(model, model.vocabulary.encode(text), MOMENTS)
    trace = probes.trace(model, text)
    for memory in trace.memory.values:
        expected = trace.c.sel(memory=memory).isel(time=[m - 1 for m in MOMENTS])
        np.testing.assert_allclose(component(model.recurrent, state, memory), expected, atol=1e-3)
    np.testing.assert_allclose(
        component(model.recurrent, state, "layer 2 h"), trace.h[[m - 1 for m in MOMENTS], 1], atol=1e-3
    )
    assert intervene(model, text, "layer 2 inner", moments=MOMENTS).kl.max() > 0


UNITS = ("rnn", "lstm", "gru", "nlstm", "lnlstm", "cwrnn", "hrnn")
SWAPPED = [*((unit, {}) for unit in UNITS), *(("hmlstm", {"boundary": one}) for one in ("step", "soft", "sample"))]


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "flags"), SWAPPED)
def test_a_swap_that_changes_nothing_costs_nothing_in_any_unit(unit, flags, built, text):
    """A network that samples is refused: its intact and its ablated reading would draw differently."""
    model = built(unit, **flags)
    for parameter in model.parameters():
        parameter.data *= 3
    if "sample" in flags.values():
        refusal = "`boundary`"
        with pytest.raises(UsageError, match=refusal):
            intervene(model, text, "layer 1", moments=MOMENTS, distance=5, other=text)
        with pytest.raises(UsageError, match=refusal):
            unit_ablations(model, text, "layer 1", moments=MOMENTS, distance=5)
        for cell in model.recurrent.cells:
            cell.boundary = "step"
    for memory in (*names(model.recurrent), *hidden_names(2)):
        assert intervene(model, text, memory, moments=MOMENTS, distance=5, other=text).kl.max() == 0
    for memory in hidden_names(2):
        assert intervene(model, text, memory, moments=MOMENTS, distance=5).kl.max() > 0


def test_the_horizon_is_the_loss_from_so_much_context(network, text, monkeypatch):
    monkeypatch.setattr("nlstm_lab.probes.interventions.ROWS", 7)
    model = network(scale=3.0)  # driven hard enough for contexts to matter
    result = loss_by_context(model, text, contexts=(1, 3, 50), positions=20).set_index("context")["loss"]
    codes = model.vocabulary.encode(text)
    for context in (1, 3, 50):
        losses = []
        for p in np.linspace(50, len(codes) - 1, 20).round().astype(int):
            with torch.no_grad():
                log_p = model(codes[p - context : p, None])[0][-1, 0].log_softmax(-1)
            losses.append(-float(log_p[codes[p]]))
        assert result[context] == pytest.approx(np.mean(losses), abs=1e-5)


def test_the_horizon_ends_where_the_memory_does(network, text):
    model = network(LSTM)
    cell = model.recurrent.layers[0]
    with torch.no_grad():
        cell.bias.view(4, -1)[1] = -1e4  # the forget gate
        cell.weight_hh.zero_()  # neither c nor h carries anything from step to step
    result = loss_by_context(model, text, contexts=(1, 5, 50), positions=30)["loss"]
    np.testing.assert_allclose(result[0], result[2], atol=1e-6)
