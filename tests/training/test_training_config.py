"""One update, as the configuration states it."""

import importlib
from collections.abc import Iterable
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from nlstm_lab import experiments, models, training
from nlstm_lab.datasets.synthetic import NestedLanguage
from nlstm_lab.training import TrainingConfig


def network(gradient: float) -> nn.Linear:
    """Three weights, each with the same gradient."""
    made = nn.Linear(3, 1, bias=False)
    nn.init.zeros_(made.weight)
    made.weight.grad = torch.full_like(made.weight, gradient)
    return made


@pytest.mark.parametrize("gradient", [0.1, 10.0])
def test_the_gradient_is_clipped_to_the_norm(gradient: float) -> None:
    config = TrainingConfig(epochs=1, learning_rate=0.5, optimizer="rmsprop", clip_norm=1.0)
    made = network(gradient)
    norm = config.step(made, config.make_optimizer(made))
    assert float(norm) == pytest.approx(gradient * 3**0.5)
    assert made.weight.grad is not None
    assert float(made.weight.grad.norm()) == pytest.approx(min(1.0, gradient * 3**0.5), rel=1e-5)


@pytest.mark.parametrize("limit", [0.01, 100.0])
def test_the_update_is_clipped_to_the_norm(limit: float) -> None:
    free = TrainingConfig(epochs=1, learning_rate=0.5, clip_norm=None)
    clipped = TrainingConfig(epochs=1, learning_rate=0.5, clip_norm=limit, clip="update")
    one, other = network(10.0), network(10.0)
    free.step(one, free.make_optimizer(one))
    clipped.step(other, clipped.make_optimizer(other))
    length = float(one.weight.detach().norm())
    torch.testing.assert_close(other.weight, one.weight * min(1.0, limit / length))


def test_the_slope_rises_with_the_epoch_up_to_its_ceiling() -> None:
    config = TrainingConfig(epochs=1, learning_rate=1.0, slope=(5.0, 0.04))
    assert [config.slope_at(epoch) for epoch in (0, 1, 50, 200)] == [1.0, 1.04, 3.0, 5.0]
    assert TrainingConfig(epochs=1, learning_rate=1.0).slope_at(3) is None


def test_a_reading_is_cut_short_as_an_epoch_is(runs_folder: object, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = importlib.import_module("nlstm_lab.training.loop")
    read: list[int] = []

    def told(network: object, batches: Iterable[object], *_: object) -> dict[str, float]:
        read.append(len(list(batches)))
        return {"nll_nats": 1.0}

    monkeypatch.setattr(loop, "evaluate", told)
    for name in ("ptb_char_lstm1+epochs=1", "ptb_char_lstm1+epochs=1+batches_per_reading=1"):
        experiment = experiments.get(name, "smoke")
        task = experiment.task.load()
        net = models.build(experiment.model, models.Interface.of(task), seed=0)
        training.fit(net, task, experiment.training, seed=0, progress=False)
    assert set(read[: len(read) // 2]) != {1}
    assert set(read[len(read) // 2 :]) == {1}


@pytest.mark.parametrize("updates", [1, 2])
def test_only_long_trainings_are_compiled(updates: int, runs_folder: object, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = importlib.import_module("nlstm_lab.training.loop")
    monkeypatch.setattr(loop, "COMPILED_FROM", 2)
    asked: list[bool] = []
    monkeypatch.setattr(loop, "compiled", lambda on: asked.append(on) or nullcontext())
    experiment = experiments.get(f"ptb_char_nlstm+epochs=1+updates_per_epoch={updates}", "smoke")
    task = experiment.task.load()
    net = models.build(experiment.model, models.Interface.of(task), seed=0)
    training.fit(net, task, experiment.training, seed=0, progress=False)
    assert asked == [updates >= 2] * updates


def test_rmsprop_forgets_by_its_decay() -> None:
    config, made = TrainingConfig(1, 0.5, optimizer="rmsprop", decay=0.75, clip_norm=None), network(10.0)
    config.step(made, config.make_optimizer(made))
    torch.testing.assert_close(made.weight.data, torch.full((1, 3), -0.5 / 0.25**0.5))


def test_where_the_update_is_clipped_the_gradient_is_not() -> None:
    config, made = TrainingConfig(1, 0.5, clip_norm=1.0, clip="update"), network(10.0)
    config.step(made, config.make_optimizer(made))
    assert made.weight.grad is not None
    assert (made.weight.grad == 10.0).all()


def test_the_backward_of_an_update_is_exact_too() -> None:
    task = NestedLanguage(size=2_000, words=8, topics=2, length=10, batch_size=2).load()
    made = models.build(models.ModelConfig("lstm", hidden_size=3), models.Interface.of(task), seed=0)
    switch, seen = torch.backends.cudnn.rnn, []
    made.readout.weight.register_hook(lambda _: seen.append(switch.fp32_precision))  # type: ignore[union-attr, operator]
    config = TrainingConfig(1, 0.01, updates_per_epoch=1, batches_per_reading=1)
    training.fit(made, task, config, seed=0, progress=False)
    assert seen == ["ieee"]
