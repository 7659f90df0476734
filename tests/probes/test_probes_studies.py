"""What the recorded studies measure, on a small network and a text that is made up."""

import re

import numpy as np
import pytest
import torch

from nlstm_lab import models, probes
from nlstm_lab.cells import HMLSTM
from nlstm_lab.datasets import Excerpt, Lines
from nlstm_lab.datasets.base import Symbols, Vocabulary
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Interface, ModelConfig
from nlstm_lab.probes import boundary_scores as recorded
from nlstm_lab.probes import decoding as contents
from nlstm_lab.probes import interventions, shuffled, untrained
from nlstm_lab.probes.decoding import VARYING

ABC = Vocabulary(tuple(" abc."))


@pytest.fixture
def study(probes_folder, monkeypatch):
    """A network, and a text of a corpus that is not needed."""
    for name, value in (("BURN_IN", 50), ("MOMENTS", 4), ("DISTANCE", 10)):
        monkeypatch.setattr(interventions, name, value)
    for module, name, value in ((contents, "MOMENTS", 4), (recorded, "PIECE", 70)):
        monkeypatch.setattr(module, name, value)
    torch.manual_seed(0)
    model = models.build(ModelConfig("nlstm", 6), Interface(Symbols(5), Symbols(5), ABC), seed=0).eval()
    for parameter in model.parameters():
        parameter.data *= 3
    text = "".join(np.random.default_rng(0).choice(list(" abc."), 900))
    monkeypatch.setattr(Excerpt, "read", lambda self: text)
    return model, Excerpt("ptb", "valid", len(text)), text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reads"),
    [
        ({}, lambda m, t: (m, t)),
        ({"trained": False}, lambda m, t: (probes.untrained(m, 3), t)),
        ({"order": "words"}, lambda m, t: (m, probes.shuffled(t, "words", 3))),
        ({"order": "characters"}, lambda m, t: (m, probes.shuffled(t, "characters", 3))),
    ],
)
def test_timescales_are_those_of_the_condition(study, how, reads):
    model, excerpt, text = study
    result = probes.timescales(model, excerpt, burn_in=50, seed=3, **how).query("value == 'tanh'")
    behind = probes.trace(*reads(model, text)).isel(time=slice(50, None))
    expected = probes.state_timescales(behind).query("value == 'tanh'")
    np.testing.assert_allclose(result["timescale"], expected["timescale"], rtol=1e-5)
    assert expected["timescale"].notna().any()


@pytest.mark.slow
def test_cuts_are_means_over_moments_of_the_first_half(study):
    model, excerpt, text = study
    result = probes.ablations(model, excerpt).set_index(["memory", "kind", "distance"]).sort_index()
    moments = np.linspace(50, 450 - 12, 4).astype(int).tolist()
    for kind, other in (("zero", None), ("swap", text[450:])):
        ablated = probes.intervene(model, text[:450], "inner", moments=moments, distance=10, other=other)
        measured = result.loc["inner", kind]
        np.testing.assert_allclose(measured["kl"], ablated.kl.mean("moment"), rtol=1e-4, atol=1e-6)
        more = (ablated.loss_ablated - ablated.loss).mean("moment")
        np.testing.assert_allclose(measured["loss_increase"], more, rtol=1e-3, atol=1e-5)
    assert set(result.index.get_level_values("memory")) == {"outer", "inner", "h"}


def test_pieces_are_judged_against_their_own_truth(study):
    """A network whose given boundaries are the spaces meets every space of every piece."""
    _, excerpt, _ = study
    ends = Interface(Symbols(5), Symbols(5), ABC)
    model = models.build(ModelConfig("hrnn", 4, 2, boundaries=(" ",)), ends, seed=0).eval()
    measured = probes.segment_scores(model, excerpt).query(
        "truth == 'spaces' and within == '0' and detector == 'network'"
    )
    assert measured["f1"].tolist() == [1.0]
    assert recorded.update_costs(model, excerpt)["steps"].tolist() == [900, 900]  # of all pieces


def test_lines_are_judged_by_the_lifted_pen(study, monkeypatch):
    lines = [torch.cat([torch.randn(n, 2), torch.rand(n, 1).round()], 1) for n in (30, 20)]
    monkeypatch.setattr(Lines, "read", lambda self: lines)
    density = models.MixtureDensity(2)
    model = models.Network(HMLSTM(3, 4, 2), torch.nn.Linear(4, density.size), density=density)
    found = probes.segment_scores(model, Lines("valid", 2))
    assert found["base"].tolist() == pytest.approx([float(torch.cat(lines)[:, 2].mean())] * len(found))
    assert found.groupby("within").size().to_dict() == dict.fromkeys(("0", "±1"), 4)  # the network and its rivals


@pytest.mark.slow
def test_contents_are_decoded_behind_the_start_of_both_networks(study):
    model, excerpt, text = study
    for trained, network in ((False, probes.untrained(model, 3)), (True, model)):
        result = probes.contents(model, excerpt, trained, burn_in=50, seed=3)
        expected = probes.decode(probes.trace(network, text).isel(time=slice(50, None)), text[50:], VARYING)
        keys = ["memory", "label", "reason"]
        assert result[keys].values.tolist() == expected[keys].values.tolist()
        np.testing.assert_allclose(result["score"], expected["score"], rtol=1e-4)
        np.testing.assert_allclose(result["control"], expected["control"], rtol=1e-3, atol=1e-5)
    (reason,) = set(result[result["label"] == "word_class"]["reason"])
    assert reason.startswith("a class is met less than")
    known = result[(result["label"] == "since_space") & (result["memory"] == "h")]
    assert (known["score"] > known["control"] + 0.2).all()


@pytest.mark.slow
def test_the_one_cell_that_keeps_anything_carries_the_prediction(study):
    """All other cells of the inner memory forget at every step, so that resampling their past changes nothing."""
    model, excerpt, _ = study
    with torch.no_grad():
        forget = model.recurrent.layers[0].memory.bias.view(4, -1)[1]  # of i, f, g, o
        forget[[0, 1, 2, 3, 5]] = -1e4
    measured = probes.cell_cuts(model, excerpt)
    assert measured.groupby("memory", sort=False).size().to_dict() == {"outer": 6, "inner": 6}
    inner = measured[measured["memory"] == "inner"].set_index("unit")["kl"]
    assert inner.idxmax() == 4
    assert inner.drop(4).max() < 0.01 * inner[4]


@pytest.mark.slow
@pytest.mark.parametrize(("measure", "least"), [(probes.ablations, 124), (probes.cell_cuts, 112)])
def test_a_text_without_moments_behind_its_start_is_refused(study, monkeypatch, measure, least):
    model, excerpt, text = study
    monkeypatch.setattr(Excerpt, "read", lambda self: text[: least - 2])
    with pytest.raises(UsageError, match=rf"{least - 2}.*{least}"):
        measure(model, excerpt)
    monkeypatch.setattr(Excerpt, "read", lambda self: text[:least])
    assert len(measure(model, excerpt))


TEXT = "the cat  sat on\nthe mat, and the dog did not"


def test_shuffling_keeps_the_characters_or_the_words():
    by_words, by_characters = shuffled(TEXT, "words"), shuffled(TEXT, "characters")
    assert sorted(by_words.split()) == sorted(TEXT.split())
    assert by_words.split() != TEXT.split()
    assert sorted(by_characters) == sorted(by_words) == sorted(TEXT)
    assert sorted(by_characters.split()) != sorted(TEXT.split())
    assert shuffled(TEXT, "words", 1) != by_words == shuffled(TEXT, "words")


def test_an_untrained_copy_is_drawn_anew_and_reproducibly(network):
    model = network(scale=5.0, embedded=True)
    fresh = untrained(model, seed=3)
    for (name, trained), new in zip(model.named_parameters(), fresh.parameters(), strict=True):
        assert trained.shape == new.shape
        assert not torch.equal(trained, new), name
    torch.testing.assert_close(untrained(model, seed=3).state_dict(), fresh.state_dict(), rtol=0, atol=0)
    other = untrained(model, seed=4)
    assert not torch.equal(other.recurrent.layers[0].weight_ih, fresh.recurrent.layers[0].weight_ih)
    assert fresh.recurrent.layers[0].weight_ih.abs().max() < 1  # the unit's own initialization, not five times that


@pytest.mark.parametrize("seed", range(5))
def test_white_space_at_the_ends_stays_there(seed):
    assert re.fullmatch(r"  \w+ \w+\n\w+ ", shuffled("  one two\nthree ", "words", seed))
