"""What is logged of boundary detectors, on records and networks where it is known."""

import math

import pytest
import torch

from nlstm_lab import models, training
from nlstm_lab.datasets.base import Symbols
from nlstm_lab.datasets.text import NestedLanguage
from nlstm_lab.errors import UsageError
from nlstm_lab.training import TrainingConfig
from nlstm_lab.training.liveness import detectors, ratio_loss, shares


def test_what_is_logged_of_known_boundaries():
    """Layer 1 fires at symbol 0, a quarter of the steps; layer 2 at every second step, whatever is read; 3 never."""
    symbols = torch.tensor([0, 1, 1, 2, 1, 0, 2, 1])[:, None]
    first, second = (symbols == 0).double(), torch.tensor([1.0, 1, 0, 0, 1, 0, 1, 0])[:, None].double()
    records = [
        {"z": first, "z_tilde": first},
        {"z": second, "z_tilde": 0.25 + second / 2},
        {"z": 0 * first, "z_tilde": 0 * first + 0.3},
        {"z": 0 * first, "z_tilde": 0 * first},
    ]
    found = detectors(records, symbols)
    assert [found[f"boundary_rate/layer {k}"] for k in (1, 2, 3)] == [0.25, 0.5, 0]
    assert [found[f"clamped_share/layer {k}"] for k in (1, 2, 3)] == [1, 0, 0]
    assert found["explained_share/layer 1"] == pytest.approx(1)
    assert found["explained_share/layer 2"] == pytest.approx(0)
    assert math.isnan(found["explained_share/layer 3"])
    assert not any("layer 4" in name for name in found)  # the top layer has no detector


def test_every_hm_lstm_has_rows_and_no_other_cell_type():
    ends = models.Interface(Symbols(5), Symbols(5))
    for cell_type, expected in (("hmlstm", 6), ("lstm", 0)):
        network = models.build(models.ModelConfig(cell_type, 4, 3, embedding_size=3), ends, seed=0)
        found = shares(network, torch.randint(5, (20, 2)))
        assert sum(name.split("/")[0] not in ("latched_share", "silent_share") for name in found) == expected


def test_the_history_has_no_row_of_what_has_no_value():
    """A detector that never fires has no entropy to be explained; a record with a NaN could not be read."""
    task = NestedLanguage(size=1_000, words=8, topics=2, length=10, batch_size=4).load()
    network = models.build(models.ModelConfig("hmlstm", 8, 2), models.Interface.of(task), seed=0)
    with torch.no_grad():
        for name, value in network.named_parameters():
            if "layers.0.bias" in name:
                value[-1] = -1e3  # z of the first layer, whatever it reads
    fit = training.fit(network, task, TrainingConfig(1, 0.01), seed=0, progress=False)
    rows = {name: value for *_, name, value in fit.history}
    assert rows["boundary_rate/layer 1"] == 0
    assert "explained_share/layer 1" not in rows
    assert not any(math.isnan(value) for *_, value in fit.history)


def test_the_ratio_loss_is_least_at_its_rate():
    """1 a layer where z and z~ have a mean of 1 / N; the formula elsewhere; a gradient by z~ alone."""
    z = torch.tensor([1.0, 0, 0, 0]).view(4, 1, 1).expand(4, 3, 1).double().clone().requires_grad_()
    z_tilde = torch.full((4, 3, 1), 0.25, dtype=torch.double, requires_grad=True)
    assert ratio_loss(z, z_tilde, (4.0, 4.0)).item() == pytest.approx(2)
    assert ratio_loss(z, 2 * z_tilde, (3.0, 4.0)).item() == pytest.approx(
        1.5 * (2 * 0.25 * 0.5 + 0.75 * 0.5) + 4 / 3 * (3 * 0.25 * 0.5 + 0.75 * 0.5)
    )
    ratio_loss(z, z_tilde, (2.0, 8.0)).backward()
    assert z.grad is None
    # too few boundaries for N = 2: more of z~ lowers the loss; too many for N = 8: less does
    assert z_tilde.grad[:, 0].max() < 0 < z_tilde.grad[:, 1].min()
    assert not z_tilde.grad[:, 2].any()
    with pytest.raises(UsageError, match="detectors"):
        ratio_loss(z, z_tilde, (4.0,))
    ends = models.Interface(Symbols(5), Symbols(5))
    with pytest.raises(UsageError, match="detectors"):
        models.build(models.ModelConfig("lstm", 4), ends, seed=0).read_boundaries(torch.zeros(2, 1).long())


@pytest.mark.slow
def test_a_training_holds_the_rate_as_configured():
    """With the loss strong and alone, the mean of z~ moves to 1 / N in a few updates."""
    task = NestedLanguage(size=4_000, words=8, topics=2, length=10, batch_size=4).load()
    config = TrainingConfig(1, 0.01, rate_lengths=(4.0,), rate_weight=100.0)
    rates = {}
    for name, one in (("held", config), ("free", TrainingConfig(1, 0.01))):
        flags = {"boundary": "soft"}
        network = models.build(models.ModelConfig("hmlstm", 8, 2, flags=flags), models.Interface.of(task), seed=0)
        training.fit(network, task, one, seed=0, progress=False)
        with torch.no_grad():
            z_tilde = network.read_boundaries(next(iter(task.evaluate("valid", "blocks"))).inputs)[3]
        rates[name] = z_tilde[:, 0].mean().item()
    assert abs(rates["held"] - 0.25) < 0.1 < abs(rates["free"] - 0.25)
