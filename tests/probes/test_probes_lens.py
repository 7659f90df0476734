"""A lens finds what a known memory holds, at the distance at which it is needed, and respects edits."""

import numpy as np
import pytest
import torch
from test_probes_patching import delay_line, latch

import nlstm_lab as lab
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import lens


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


def test_several_texts_are_read_as_each_alone(network, text):
    model = network()
    learned = lens(model, [text[:200], text[200:390]], ahead=(0, 2), burn_in=10)
    together = learned.read(lab.probes.trace(model, [text[:30], text[30:50]]))
    assert together.dims == ("memory", "ahead", "text", "time", "vocabulary")
    for k, piece in enumerate((text[:30], text[30:50])):
        alone = learned.read(lab.probes.trace(model, piece))
        np.testing.assert_allclose(together.sel(text=k)[:, :, : len(piece)], alone, atol=1e-5)
    assert np.isnan(together.sel(text=1)[:, :, 20:]).all()


def test_the_penalty_is_the_one_that_serves_what_is_held_out():
    """Where nothing can be learned, the strongest penalty is chosen; where the next symbol is known, a weak one."""
    noise = torch.randint(3, (1500,), generator=torch.Generator().manual_seed(1))
    known = torch.tensor([1, 2, 1, 1, 2, 2] * 250)
    sizes = [
        float(lens(delay_line(4), text, ahead=(0,), burn_in=10).weights["h"][:-1].norm()) for text in (noise, known)
    ]
    assert sizes[0] < 0.2 < 2 < sizes[1]


@pytest.mark.slow
def test_bad_requests_are_refused(network, text):
    for options in ({"ahead": ()}, {"ahead": (-1,)}, {"burn_in": 400}):
        with pytest.raises(UsageError, match=r"ahead|burn_in"):
            lens(network(), text, **options)
    with pytest.raises(UsageError, match="outer"):
        lens(network(), text, burn_in=10).read(lab.probes.trace(delay_line(2), " a"))
