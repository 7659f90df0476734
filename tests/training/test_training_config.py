"""One update, as the configuration states it."""

import importlib
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from nlstm_lab import experiments, models, training
from nlstm_lab.datasets.base import Symbols
from nlstm_lab.datasets.text import NestedLanguage
from nlstm_lab.errors import UsageError
from nlstm_lab.training import TrainingConfig
from nlstm_lab.training.liveness import detectors, ratio_loss, shares


def network(gradient):
    """A weight of three values and a bias, all with the same gradient."""
    made = nn.Linear(3, 1)
    for one in made.parameters():
        nn.init.zeros_(one).grad = torch.full_like(one, gradient)
    return made


@pytest.mark.parametrize("gradient", [0.1, 10.0])
def test_the_gradient_is_clipped_to_the_norm(gradient):
    config = TrainingConfig(epochs=np.int64(1), learning_rate=np.float64(0.5), optimizer="rmsprop", clip_norm=1.0)
    assert [type(one) for one in (config.epochs, config.learning_rate)] == [int, float]  # plain ones of NumPy's
    made = network(gradient)
    norm = config.step(made, config.make_optimizer(made))
    assert float(norm) == pytest.approx(gradient * 2)
    clipped = nn.utils.get_total_norm([one.grad for one in made.parameters()])
    assert float(clipped) == pytest.approx(min(1.0, gradient * 2), rel=1e-5)


@pytest.mark.parametrize("limit", [0.01, 100.0])
def test_the_update_is_clipped_to_the_norm(limit):
    free = TrainingConfig(epochs=1, learning_rate=0.5, clip_norm=None)
    clipped = TrainingConfig(epochs=1, learning_rate=0.5, clip_norm=limit, clip="update")
    one, other = network(10.0), network(10.0)
    free.step(one, free.make_optimizer(one))
    clipped.step(other, clipped.make_optimizer(other))
    moved, less = (nn.utils.parameters_to_vector(each.parameters()) for each in (one, other))
    torch.testing.assert_close(less, moved * min(1.0, limit / float(moved.detach().norm())))
    assert (other.weight.grad == 10.0).all()  # the gradient is not


def test_the_slope_rises_with_the_epoch_up_to_its_ceiling():
    config = TrainingConfig(epochs=1, learning_rate=1.0, slope=(5.0, 0.04))
    assert [config.slope_at(epoch) for epoch in (0, 1, 50, 200)] == [1.0, 1.04, 3.0, 5.0]
    assert TrainingConfig(epochs=1, learning_rate=1.0).slope_at(3) is None
    lower = replace(config, slope_start=0.5)
    assert [lower.slope_at(epoch) for epoch in (0, 50, 200)] == [0.5, 2.5, 5.0]
    assert lower.lengths_at(0) is None


def test_rates_are_held_for_so_many_epochs():
    held = TrainingConfig(epochs=4, learning_rate=1.0, rate_lengths=(6.0, 30.0), rate_epochs=2)
    assert [held.lengths_at(epoch) for epoch in range(4)] == [(6.0, 30.0), (6.0, 30.0), None, None]
    assert replace(held, rate_epochs=None).lengths_at(3) == (6.0, 30.0)
    with pytest.raises(UsageError, match="rate_lengths"):
        TrainingConfig(epochs=4, learning_rate=1.0, rate_lengths=(1.0,))


def test_a_reading_is_cut_short_as_an_epoch_is(runs_folder, monkeypatch):
    loop = importlib.import_module("nlstm_lab.training.loop")
    read = []
    monkeypatch.setattr(loop, "evaluate", lambda _, batches, *__: read.append(len(list(batches))) or {"nll_nats": 1.0})
    for name in ("ptb_char_lstm1+epochs=1", "ptb_char_lstm1+epochs=1+batches_per_reading=1"):
        experiment = experiments.get(name, "smoke")
        task = experiment.task.load()
        net = models.build(experiment.model, models.Interface.of(task), seed=0)
        training.fit(net, task, experiment.training, seed=0, progress=False)
    assert set(read[: len(read) // 2]) != {1}
    assert set(read[len(read) // 2 :]) == {1}


def test_rmsprop_forgets_by_its_decay():
    config, made = TrainingConfig(1, 0.5, optimizer="rmsprop", decay=0.75, clip_norm=None), network(10.0)
    config.step(made, config.make_optimizer(made))
    torch.testing.assert_close(made.weight.data, torch.full((1, 3), -0.5 / 0.25**0.5))


def test_the_backward_of_an_update_is_exact_too():
    task = NestedLanguage(size=2_000, words=8, topics=2, length=10, batch_size=2).load()
    made = models.build(models.ModelConfig("lstm", hidden_size=3), models.Interface.of(task), seed=0)
    switch, seen = torch.backends.cudnn.rnn, []
    made.readout.weight.register_hook(lambda _: seen.append(switch.fp32_precision))
    config = TrainingConfig(1, 0.01, updates_per_epoch=1, batches_per_reading=1)
    training.fit(made, task, config, seed=0, progress=False)
    assert seen == ["ieee"]


class Apart(nn.Module):
    """A weight and an output bias, a value each, with the gradient of the loss weight + bias."""

    def __init__(self):
        super().__init__()
        self.weight, self.output_bias = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))

    def moved(self, config, updates):
        """How far weight and bias have come, in learning rates of `config`."""
        optimizer = config.make_optimizer(self)
        for update in range(updates):
            self.zero_grad()
            (self.weight + self.output_bias).backward()
            config.step(self, optimizer, update)
        weight, bias = (-float(one.detach()) / config.learning_rate for one in (self.weight, self.output_bias))
        return weight, bias


@pytest.mark.parametrize(
    ("settings", "weight", "bias"),
    [
        ({}, 10, 10),
        ({"output_bias_rate": 7.0}, 10, 70),
        ({"output_bias_first": 4}, 6, 10),
        ({"output_bias_rate": 7.0, "output_bias_first": 4}, 6, 34),  # the factor for those updates alone
        ({"warm_up": 20}, 55 / 20, 55 / 20),
        ({"warm_up": 4, "output_bias_rate": 2.0}, 8.5, 17),
    ],
)
def test_adam_moves_weight_and_output_bias_as_far_as_their_rates_say(settings, weight, bias):
    """Of a constant gradient every step of Adam is one learning rate long."""
    config = TrainingConfig(1, 0.01, clip_norm=None, **settings)
    assert Apart().moved(config, 10) == pytest.approx((weight, bias), rel=1e-4)
    assert Apart().moved(replace(config, clip="update"), 10) == pytest.approx((weight, bias), rel=1e-4)


def test_sgd_follows_the_gradient_and_radam_moves_less_than_adam_at_first():
    assert Apart().moved(TrainingConfig(1, 0.01, optimizer="sgd", clip_norm=None), 10) == pytest.approx((10, 10))
    moved, _ = Apart().moved(TrainingConfig(1, 0.01, optimizer="radam", clip_norm=None), 20)
    assert 0 < moved < 20
    for name in ("adam", "radam"):
        optimizer = TrainingConfig(1, 0.01, optimizer=name).make_optimizer(network(1.0))
        assert (optimizer.defaults["betas"], optimizer.defaults["weight_decay"]) == ((0.9, 0.999), 0)


def test_an_output_bias_that_is_not_there_cannot_be_trained_apart():
    with pytest.raises(UsageError, match="output_bias"):
        TrainingConfig(1, 0.01, output_bias_rate=2.0).make_optimizer(network(1.0))


def test_the_rates_stay_where_a_plateau_left_them():
    config = TrainingConfig(1, 0.01, warm_up=10, output_bias_rate=5.0)
    made = Apart()
    optimizer = config.make_optimizer(made)
    for group in optimizer.param_groups:
        group["lr"] /= 2
    (made.weight + made.output_bias).backward()
    config.step(made, optimizer, 3)
    assert [group["lr"] for group in optimizer.param_groups] == [0.005, 0.005]
    assert float(made.weight.detach()) == pytest.approx(-0.005 * 0.4)


# What is logged of boundary detectors, on records and networks where it is known.


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
