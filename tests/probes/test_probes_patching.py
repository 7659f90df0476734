"""A patch map lights where a known memory carries it, and nowhere else."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

import nlstm_lab as lab
from nlstm_lab.cells import LSTM, NestedLSTM
from nlstm_lab.probes import lens, patch

OPEN = 20.0  # a pre-activation at which a sigmoid is 1 and a tanh too


def delay_line(lag):
    """An LSTM of `lag` cells: cell 0 takes in whether "a" is read, cell k what cell k - 1 let out a step before."""
    unit = LSTM(3, lag)
    cell = unit.layers[0]
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        i, f, _, o = cell.bias.view(4, lag)
        i[:], f[:], o[:] = OPEN, -OPEN, OPEN
        cell.weight_ih.view(4, lag, 3)[2, 0] = torch.tensor([0.0, 1.0, -1.0])  # " ", "a", "b"
        for k in range(1, lag):
            cell.weight_hh.view(4, lag, lag)[2, k, k - 1] = 1.0
    readout = nn.Linear(lag, 3, bias=False)
    with torch.no_grad():
        readout.weight.zero_()
        readout.weight[1, lag - 1], readout.weight[2, lag - 1] = 1.0, -1.0
    return lab.models.wrap(unit, readout=readout, vocabulary=" ab")


def one_unit(kind):
    """A network of one unit, whose weights are 0, and whose h is read as "a" or, where it is negative, as "b"."""
    unit, readout = kind(3, 1), nn.Linear(1, 3, bias=False)
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.zero_()
        readout.weight[:] = torch.tensor([[0.0], [1.0], [-1.0]])
    return lab.models.wrap(unit, readout=readout, vocabulary=" ab")


def latch():
    """A Nested LSTM whose inner cell keeps the sign of the first "a" or "b" for ever."""
    model = one_unit(NestedLSTM)
    cell = model.recurrent.layers[0]
    with torch.no_grad():
        cell.bias[:] = torch.tensor([OPEN, -OPEN, 0, OPEN])  # i, f, g, o: the outer cell itself keeps nothing
        cell.weight_ih[2] = torch.tensor([0.0, 1.0, -1.0])
        cell.memory.bias[:] = torch.tensor([OPEN, OPEN, 0, OPEN])
        cell.memory.weight_ih[2] = 1.0
    return model


@pytest.mark.slow
def test_in_a_delay_line_each_moment_lights_in_its_own_cell():
    lag, model = 4, delay_line(4)
    clean, corrupted = "  a   ", "  b   "
    found = patch(model, (clean, corrupted, "a", "b"))
    effect = found.clean - found.corrupted
    assert effect > 1
    # the word was read three characters ago; it goes on through h alone, one cell a step
    np.testing.assert_allclose(found.patched.sel(memory="h"), effect, rtol=1e-5)
    np.testing.assert_allclose(found.patched.sel(memory="cell"), 0, atol=1e-6)
    later = patch(model, (clean + " ", corrupted + " ", "a", "b"))
    assert float(later.effect) == pytest.approx(0, abs=1e-6)  # the line is four steps long
    for step in range(lag - 1):  # patched unit by unit, it lights in the unit that holds it then
        lit = []
        for unit in range(lag):
            state = lab.probes.run(model, clean).trace.h[2 + step, 0].values
            edits = {("h before", 3 + step, (unit,)): lab.probes.put(float(state[unit]))}
            logits = lab.probes.run(model, corrupted, edits=edits).logits[-1]
            lit.append(float(logits[1] - logits[2]) - float(found.corrupted))
        assert np.argmax(lit) == step
        assert lit[step] == pytest.approx(float(effect), rel=1e-5)
        assert sum(lit) == pytest.approx(float(effect), rel=1e-4)


def test_a_latch_lights_in_its_memory_at_every_step():
    found = patch(latch(), ("a    ", "b    ", "a", "b"))
    effect = found.clean - found.corrupted
    assert effect > 1
    np.testing.assert_allclose(found.patched.sel(memory="inner"), effect, rtol=1e-5)
    np.testing.assert_allclose(found.patched.sel(memory=["outer", "h"]), 0, atol=1e-6)


def test_in_a_counter_each_memory_restores_what_it_counted():
    """A cell that counts "a" up and "b" down for ever: whenever it is patched, all that was counted comes back."""
    model = one_unit(LSTM)
    cell = model.recurrent.layers[0]
    with torch.no_grad():
        cell.bias[:] = torch.tensor([OPEN, 2 * OPEN, 0, OPEN])
        cell.weight_ih[2] = torch.tensor([0.0, 0.1, -0.1])
    found = patch(model, ("aab a b ", "bbb a b ", "a", "b"))
    counts = [2 * np.tanh(each * np.tanh(0.1)) for each in (1, -3)]
    assert (float(found.clean), float(found.corrupted)) == pytest.approx(counts, abs=1e-5)
    np.testing.assert_allclose(found.patched.sel(memory="cell"), counts[0] - counts[1], rtol=1e-4)
    np.testing.assert_allclose(found.patched.sel(memory="h"), 0, atol=1e-6)
    after = found.log_p.sel(memory="cell")
    np.testing.assert_allclose(after[:, 1] - after[:, 2], counts[0], atol=1e-5)


def test_attribution_is_patching_to_first_order(network):
    model = network(LSTM, scale=2.0)
    with torch.no_grad():  # two symbols that are nearly the same make two states that are
        weight = model.recurrent.layers[0].weight_ih
        weight[:, 4] = weight[:, 5] + 1e-3 * torch.randn(len(weight), generator=torch.Generator().manual_seed(0))
    found = patch(model, ("abdij gh", "abeij gh", "a", "b"))
    assert float(np.abs(found.patched).max()) > 3e-5
    np.testing.assert_allclose(found.attributed, found.patched, rtol=0.05, atol=3e-6)


PAIRS = [("abc dij gh", "abc gij gh"), ("a bad", "a bed"), ("he had a cab", "i had a cab")]


def entropy(logits):
    """A metric of one's own, of logits [n, outputs]."""
    return torch.distributions.Categorical(logits=logits).entropy()


@pytest.mark.parametrize("over", [("unit",), ("memory", "unit"), ("time",), ("memory", "time", "unit"), ()])
def test_every_patch_is_an_edit_by_hand_along_whatever_axes(network, over, monkeypatch):
    monkeypatch.setattr("nlstm_lab.probes.patching.AT_ONCE", 50)
    model = network(scale=2.0)
    found = patch(model, PAIRS, entropy, over)
    assert found.patched.dims == ("pair", *over)
    memories = {"outer": "c", "inner": "c", "h": "h"}
    for k, (clean, corrupted) in enumerate(PAIRS):
        donor, common = lab.probes.run(model, clean).trace, (5, 1, 10)[k]
        for place in ({"memory": "inner", "time": common - 1, "unit": 3}, {"memory": "h", "time": 0, "unit": 7}):
            steps = [place["time"]] if "time" in over else range(common)
            names = [place["memory"]] if "memory" in over else memories
            edits = []
            for step in steps:
                for name in names:
                    held = donor[memories[name]].isel(time=len(clean) - common + step - 1)
                    held = held.sel(memory=name) if memories[name] == "c" else held.sel(layer=1)
                    units = [place["unit"]] if "unit" in over else list(range(8))
                    where = (f"{name} before", len(corrupted) - common + step, units)
                    edits.append((where, lab.probes.put(torch.from_numpy(held.values[units]))))
            by_hand = entropy(lab.probes.run(model, corrupted, edits).logits[-1:])
            mine = found.isel(pair=k).sel({axis: place[axis] for axis in over})
            assert float(mine.patched + mine.corrupted) == pytest.approx(float(by_hand), abs=1e-5)
    shorter = found.patched.isel(pair=1)
    assert bool(shorter.isel(time=slice(1, None)).isnull().all()) if "time" in over else shorter.notnull().all()


def test_shares_have_an_interval_over_pairs_and_none_where_texts_hardly_differ(network):
    model = network(scale=2.0)
    found = patch(model, [(*pair, "a", "b") for pair in PAIRS], over=("memory",))
    expected = found.patched.sum("pair") / found.effect.sum()
    np.testing.assert_allclose(found.share, expected, rtol=1e-6)
    drawn = (found[["patched", "effect"]].isel(pair=list(k)).sum("pair") for k in product(range(3), repeat=3))
    every = [some.patched / some.effect for some in drawn]  # each has a chance of 1 in 27, which is more than 2.5 %
    np.testing.assert_allclose([found.low, found.high], [np.min(every, 0), np.max(every, 0)], rtol=1e-5)
    alike = patch(model, PAIRS[0], lambda logits: 1 + 1e-4 * logits[:, 0])
    assert alike.effect != 0
    assert alike.share.isnull().all()


def test_classifiers_and_vectors_are_patched(network):
    torch.manual_seed(0)
    model = lab.models.wrap(nn.LSTM(3, 8), readout=nn.Linear(8, 4), words=("a", "b", "c", "d"))
    model.per_sequence = True
    one, end = torch.randn(9, 3), torch.randn(5, 3)
    found = patch(model, (torch.cat((one, end)), torch.cat((-one, end)), "c", "d"), over=("memory", "time", "unit"))
    assert dict(found.patched.sizes) == {"memory": 2, "time": 5, "unit": 8}
    assert "symbol" not in found.coords
    whole = patch(model, (torch.cat((one, end)), torch.cat((-one, end)), "c", "d"), over=())
    assert float(whole.share) == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
def test_a_lens_finds_what_a_delay_line_holds_and_nothing_else():
    """Each symbol is most often that of four before: who holds the last two knows what is 3 and 4 steps ahead."""
    generator = torch.Generator().manual_seed(0)
    text, again = torch.randint(1, 3, (6000,), generator=generator), torch.rand(6000, generator=generator) < 0.9
    for step in range(4, len(text)):
        text[step] = text[step - 4] if again[step] else 3 - text[step - 4]
    known = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    for lag, expected in ((2, (np.log(2), np.log(2), known, known)), (4, (known, known, known, known))):
        model = delay_line(lag)
        found = lens(model, text[:4000], ahead=(0, 1, 2, 3), burn_in=100).read(lab.probes.trace(model, text[4000:]))
        codes = text[4000:].numpy()
        for k in range(4):
            guess = found.sel(memory="h", ahead=k).values
            loss = -np.mean([guess[t, codes[t + 1 + k]] for t in range(10, 1990)])
            assert loss == pytest.approx(expected[k], abs=0.05)


@pytest.mark.slow
def test_a_lens_respects_edits():
    model = latch()
    text = "".join(first + " " * 5 + first for first in "ab" * 40)
    learned = lens(model, text, ahead=(0,), burn_in=0)
    plain = lab.probes.run(model, "a   ")
    flipped = lab.probes.run(model, "a   ", edits={("inner before", 2): lambda c: -c})
    one, other = (learned.read(reading.trace).sel(memory="inner", ahead=0)[3] for reading in (plain, flipped))
    assert torch.from_numpy(one.values - other.values).abs().max() > 1e-3
    assert (
        abs(one.values - learned.read(lab.probes.trace(model, "a   ")).sel(memory="inner", ahead=0)[3].values).max()
        < 1e-6
    )


def test_the_penalty_is_the_one_that_serves_what_is_held_out():
    """Where nothing can be learned, the strongest penalty is chosen; where the next symbol is known, a weak one."""
    noise = torch.randint(3, (1500,), generator=torch.Generator().manual_seed(1))
    known = torch.tensor([1, 2, 1, 1, 2, 2] * 250)
    sizes = [
        float(lens(delay_line(4), text, ahead=(0,), burn_in=10).weights["h"][:-1].norm()) for text in (noise, known)
    ]
    assert sizes[0] < 0.2 < 2 < sizes[1]
