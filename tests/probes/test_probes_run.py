"""Edits do what the equations say, wherever they are made, and an identity edit changes nothing."""

from functools import partial

import numpy as np
import pytest
import torch

import nlstm_lab as lab
from nlstm_lab.cells import GRU, HMLSTM, RNN, ClockworkRNN, NestedLSTM
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import continued, freeze, put, run, zero
from nlstm_lab.probes.reading import hidden_names, names

CELLS = ("rnn", "lstm", "gru", "nlstm", "lnlstm", "cwrnn", "hrnn", "hmlstm")


def same(values):
    return values


@pytest.fixture(params=CELLS)
def any_network(request, built):
    return built(request.param)


def test_an_identity_edit_changes_nothing_bit_for_bit(any_network, text):
    model = any_network
    plain = run(model, text[:40])
    states = [*names(model.recurrent), *hidden_names(2)]
    gates = [f"{owner} {gate}" for owner in states for gate in ("f", "g") if owner in names(model.recurrent)]
    gates += ["layer 2 r"] if isinstance(model.recurrent, GRU) else []
    places = [*states, *(f"{state} before" for state in states), *gates]
    if not isinstance(model.recurrent, GRU):
        places.append("layer 1 preactivation " + ("h" if isinstance(model.recurrent, RNN) else "f"))
    if model.recurrent.cells[0].__class__.__name__ == "ClockworkRNNCell":
        places.pop()  # its one matrix is of no gate
    edited = run(model, text[:40], edits=dict.fromkeys(places, same) | {(states[0], 7, (1, 2)): same})
    assert torch.equal(plain.logits, edited.logits)
    assert all(torch.equal(plain.values[name], edited.values[name]) for name in plain.values)
    mute = run(model, text[:40], edits=dict.fromkeys(hidden_names(2), zero))
    torch.testing.assert_close(mute.logits, model.readout.bias.detach().expand(40, -1))


def test_codes_are_read_however_they_lie_in_memory(built):
    codes = np.arange(8, dtype=">i4")
    expected = run(built("lstm"), codes[::-1].tolist()).logits
    assert torch.equal(run(built("lstm"), codes[::-1]).logits, expected)


def test_what_is_read_is_what_a_trace_has(any_network, text):
    reading = run(any_network, text[:60])
    traced = lab.probes.trace(any_network, text[:60])
    assert set(reading.trace) == set(traced) - {"log_p"}
    assert "active" not in traced or not isinstance(any_network.recurrent, ClockworkRNN)  # its modules move apart
    for name in reading.trace:
        np.testing.assert_allclose(reading.trace[name], traced[name], rtol=1e-5, atol=1e-6)
        assert reading.trace[name].dims == traced[name].dims
    np.testing.assert_allclose(reading.logits.log_softmax(-1), traced.log_p, atol=1e-5)


def test_an_edited_state_is_what_the_step_and_all_later_ones_go_on_with(network, text):
    model, text = network(scale=3.0), text[:30]
    cell, codes = model.recurrent.layers[0], model.vocabulary.encode(text)
    new = torch.linspace(-1, 1, 8)
    edited = run(model, text, edits={("outer", 10): put(new)})
    with torch.no_grad():
        state, plain = cell.initial_state(1), []
        for step, code in enumerate(codes):
            x = code[None]
            cache = lab.cells.Cache()
            last, state = state, cell.step(x, state, cache)
            if step == 10:
                h = cache.values["o"][0] * torch.tanh(new)
                state = (h, new[None], state[2])
            plain.append(model.readout(state[0])[0])
            del last
    torch.testing.assert_close(edited.logits, torch.stack(plain), atol=1e-5, rtol=1e-5)
    np.testing.assert_array_equal(edited.trace.c.sel(memory="outer", time=10), new)


def test_before_a_step_only_what_it_reads_is_another(network, text):
    model, text = network(scale=3.0), text[:30]
    plain, ablated = run(model, text), run(model, text, edits={("inner before", 10): zero})
    assert torch.equal(plain.logits[:10], ablated.logits[:10])
    assert not torch.allclose(plain.logits[10:], ablated.logits[10:])
    codes = model.vocabulary.encode(text)[:, None]
    with torch.no_grad():
        _, (h, memories) = model.recurrent(codes[:10])
        memories = memories.clone()
        memories[:, 1] = 0
        expected = model.readout(model.recurrent(codes[10:], (h, memories))[0])[:, 0]
    torch.testing.assert_close(ablated.logits[10:], expected, atol=1e-5, rtol=1e-5)


def test_gates_and_preactivations_are_edited(network, text):
    model, text = network(scale=2.0), text[:20]
    shut = run(model, text, edits={("inner f", range(5, 9)): zero, ("inner i", range(5, 9)): zero})
    assert float(shut.trace.c.sel(memory="inner")[5:9].max()) == 0
    same_gate = run(model, text, edits={"outer o": lambda o: torch.sigmoid(torch.full_like(o, 2.0))})
    same_sum = run(model, text, edits={"outer preactivation o": put(2.0)})
    assert torch.equal(same_gate.logits, same_sum.logits)
    one = run(model, text, edits={("outer preactivation g", 4, (3,)): put(0.0)})
    assert float(one.trace.g.sel(memory="outer", unit=3)[4]) == 0
    gru = network(GRU, num_layers=2)
    held = run(gru, text, edits={"layer 2 u": put(1.0)})  # u = 1 keeps the old state
    assert float(held.trace.h.sel(layer=2).max()) == 0
    mute = run(network(RNN), text, edits={("preactivation h", 3): zero})
    assert float(mute.trace.h[3].max()) == 0


def test_boundaries_of_an_hmlstm_are_edited(network, text):
    model = network(HMLSTM, num_layers=2)
    never = run(model, text[:30], edits={"layer 1 z": zero})
    assert float(never.trace.c.sel(memory="layer 2").values.max()) == 0  # it copies what it began with
    always = run(model, text[:30], edits={"layer 1 z": put(1.0)})
    assert float(abs(always.trace.c.sel(memory="layer 2")).min()) > 0


def test_gradients_flow_through_edits(network, text):
    model, text = network(scale=2.0).double(), text[:12]
    delta = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    edits = {("inner before", 4): lambda c: c + delta}
    reading = run(model, text, edits=edits, gradients=True)
    gradient = torch.autograd.grad(reading.logits[-1, 3], delta)[0]
    for unit in (0, 5):
        ends = []
        for size in (1e-5, -1e-5):
            nudge = partial(torch.add, torch.eye(8, dtype=torch.float64)[unit] * size)
            ends.append(float(run(model, text, edits={("inner before", 4): nudge}).logits[-1, 3]))
        assert float(gradient[unit]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-9)
    assert not run(model, text, edits=edits).logits.requires_grad


def test_texts_side_by_side_are_read_as_each_alone(any_network, text):
    texts = [text[:30], text[40:52], text[60:61]]
    together = run(any_network, texts).trace
    traced = lab.probes.trace(any_network, texts)
    assert traced.length.values.tolist() == [30, 12, 1]
    assert traced.log_p.dims == ("text", "time", "vocabulary")
    for k, one in enumerate(texts):
        single = lab.probes.trace(any_network, one)
        for name in together:
            mine = traced[name].sel(text=k)
            np.testing.assert_allclose(mine[: len(one)], single[name], atol=1e-5)
            np.testing.assert_allclose(together[name].sel(text=k)[: len(one)], single[name], atol=1e-5)
            assert np.isnan(mine[len(one) :]).all()
        assert "".join(traced.symbol.values[k]) == one


def test_a_labelled_array_is_put_where_its_coordinates_say(network, text):
    model = network(scale=2.0)
    donor = run(model, text[50:80]).trace
    edits = [(("inner", slice(4, 9), [1, 6]), put(donor.c)), (("outer f", 12), put(donor.f))]
    found = run(model, text[:30], edits).trace
    np.testing.assert_array_equal(found.c.sel(memory="inner")[4:9, [1, 6]], donor.c.sel(memory="inner")[4:9, [1, 6]])
    np.testing.assert_array_equal(found.f.sel(memory="outer")[12], donor.f.sel(memory="outer")[12])
    everything = [
        ((f"{name} before", 20), put(donor[of])) for name, of in zip(("outer", "inner", "h"), "cch", strict=True)
    ]
    swapped = run(model, text[:30], everything)
    follows = run(model, text[50:70] + text[20:30])
    torch.testing.assert_close(swapped.logits[20:], follows.logits[20:])
    stack = network(GRU, num_layers=2)
    donor_h = run(stack, text[50:80]).trace.h
    put_in = run(stack, text[:30], [(("layer 2 h", 12), put(donor_h))]).trace.h
    np.testing.assert_array_equal(put_in.sel(layer=2)[12], donor_h.sel(layer=2)[12])
    for array, said in ((donor.c.isel(time=slice(3)), "time"), (donor.c.isel(unit=slice(3)), "fit")):
        with pytest.raises(UsageError, match=said):
            run(model, text[:30], [("inner", put(array))])


def test_frozen_values_begin_anew_in_each_reading(network, text):
    model, mine = network(scale=2.0), freeze()
    mine(torch.full((1, 8), 9.0))  # which it held, were it not for the beginning of a reading
    trace = run(model, text[:20]).trace
    edits = [
        ("outer o", lambda o: o / 2),
        (("inner before", slice(5, None), slice(2, 4)), mine),
        (("h", [2, -1], 3), put(0.25)),
        (("inner", range(3)), put(trace.c)),
        (("outer", 4), zero),
    ]
    again = [*edits[:1], (edits[1][0], freeze()), *edits[2:]]
    for length in (30, 25):
        assert torch.equal(run(model, text[:length], edits).logits, run(model, text[:length], again).logits)


def test_a_text_is_continued_under_edits(network):
    model = network(scale=3.0)
    edits = [("inner", zero), (("h", slice(6, None)), lambda h: h / 2)]
    generated = continued(model, "abc", 12, edits=edits, temperature=1e-6)
    read = run(model, generated[:-1], edits).logits[2:]
    assert generated[3:] == model.vocabulary.decode(read.argmax(-1))
    assert generated != continued(model, "abc", 12, temperature=1e-6)
    assert continued(model, "abc", 12, 3, edits={("inner", 13): same}) == continued(model, "abc", 12, 3)


@pytest.mark.parametrize(
    ("place", "same"),
    [
        (("inner", -1), ("inner", 399)),
        (("inner", slice(390, None)), ("inner", range(390, 400))),
        (("inner", [5, 9]), ("inner", (5, 9))),
        (("inner", 12, 7), ("inner", 12, (7,))),
        (("inner", 12, slice(6, None)), ("inner", 12, [6, 7])),
    ],
)
def test_times_and_units_are_ints_slices_or_lists(network, text, place, same):
    model = network()
    first, second = (run(model, text, [(each, zero)], keep=[]).logits for each in (place, same))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_behind_the_end_of_a_shorter_text_there_is_nothing(network, text):
    model, texts = network(NestedLSTM), [text[:20], text[:12]]
    logits = run(model, texts).logits
    assert logits[1, 12:].isnan().all()
    torch.testing.assert_close(logits[1, :12], run(model, texts[1]).logits)
    with pytest.raises(UsageError, match="-1"):
        run(model, texts, {("inner before", -1): zero})  # the end of which?
