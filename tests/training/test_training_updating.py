"""Updates as graphs: around a capture that runs eagerly, everything is as without one; and no update waits."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only

from nlstm_lab import models
from nlstm_lab.datasets.base import Symbols
from nlstm_lab.datasets.text import blocks, streams
from nlstm_lab.models import Interface, ModelConfig
from nlstm_lab.training import TrainingConfig
from nlstm_lab.training.updating import Updater, make_capturable

CODES = np.random.default_rng(0).integers(5, size=211).astype(np.uint8)
CPU = torch.device("cpu")
STREAMS = list(streams(CODES, 7, 3)) * 2  # the last of each ten has a mask, and the first a fresh state
BLOCKS = list(blocks(CODES, 7, 8, np.arange(30))) * 5  # the last of each four is smaller


class Fake:
    """The calls of a capture, run eagerly: nothing happens before the first replay; counts both."""

    def __init__(self):
        self.captures = self.replays = 0

    def __call__(self, make):
        self.captures += 1

        def replay():
            self.replays += 1
            return make()

        return replay


def network(unit):
    layers = 2 if unit in ("lstm", "hmlstm") else 1
    flags = {"dropout": 0.3} if unit == "lstm" else {}
    return models.build(ModelConfig(unit, 6, layers, flags=flags), Interface(Symbols(5), Symbols(5)), seed=0)


def trained(unit, batches, config, device, capture=None):
    """The weights after an update with each batch, in epochs of twelve, and what each gave."""
    net = network(unit).to(device)
    optimizer = config.make_optimizer(net)
    make_capturable(optimizer.param_groups, device)
    updater = Updater(net, config, optimizer, device, "fp32", 1, capture)
    torch.manual_seed(0)
    state, outcome = None, []
    for update, batch in enumerate(batches):
        epoch = update // 12
        if (slope := config.slope_at(epoch)) is not None:
            net.recurrent.slope = slope
        if update == 12:
            optimizer.param_groups[0]["lr"] /= 2  # as a plateau does
        values, state = updater(batch, state, update, epoch)
        outcome.append(values)
    return net.state_dict(), outcome


ADAM = TrainingConfig(epochs=2, learning_rate=0.01)


@pytest.mark.parametrize(
    ("unit", "batches", "config", "captures", "replays"),
    [
        # fresh, carried, masked; after the rate is halved anew, as far as there are enough of a kind
        ("nlstm", STREAMS, ADAM, 2, 12),
        ("lstm", BLOCKS, replace(ADAM, clip="update"), 2, 9),
        ("nlstm", BLOCKS, replace(ADAM, optimizer="rmsprop"), 2, 9),
        ("nlstm", BLOCKS, replace(ADAM, optimizer="sgd"), 2, 9),
        ("nlstm", BLOCKS, replace(ADAM, warm_up=100), 0, 0),
        ("hmlstm", STREAMS, replace(ADAM, slope=(5.0, 1.0)), 2, 12),
        ("hmlstm", STREAMS, replace(ADAM, rate_lengths=(6.0,)), 0, 0),
    ],
)
def test_captured_updates_are_the_eager_ones(unit, batches, config, captures, replays, device):
    fake, tolerance = Fake(), 0 if device == CPU else 1e-3  # on a GPU the fake is the eager one
    weights, outcome = trained(unit, batches, config, device)
    others, same = trained(unit, batches, config, device, fake)
    assert (fake.captures, fake.replays) == (captures, replays)
    torch.testing.assert_close(outcome, same, atol=tolerance, rtol=tolerance)
    assert tolerance or all(torch.equal(weights[name], others[name]) for name in others)


def test_what_an_update_gave_is_not_written_over_by_the_next():
    net, buffer = network("nlstm"), torch.zeros(7, dtype=torch.float64)

    def capture(make):
        """As a graph does: every replay writes into the same tensors."""
        return lambda: (lambda outcome, after: (buffer.copy_(outcome), after))(*make())

    updater = Updater(net, ADAM, ADAM.make_optimizer(net), CPU, "fp32", 1, capture)
    outcome = [updater(batch, None, k, 0)[0] for k, batch in enumerate(BLOCKS[:3] * 4)]
    assert len({float(one[0]) for one in outcome}) == len(outcome)


@pytest.mark.parametrize("unit", ["lstm", "nlstm", "gru", "hmlstm"])
@pytest.mark.parametrize("clip", ["gradient", "update"])
def test_no_update_waits_for_the_device(unit, clip):
    """A processor waits for a GPU where it asks for a value; a fake tensor has none, and refuses."""
    with FakeTensorMode() as mode:
        net, config = network(unit), replace(ADAM, optimizer="rmsprop", clip=clip)  # Adam's fused step is one operation
        updater, state = Updater(net, config, config.make_optimizer(net), CPU, "fp32", 1), None
        for update, batch in enumerate(STREAMS[:3]):
            _, state = updater(tree_map_only(torch.Tensor, mode.from_tensor, batch), state, update, 0)


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop", "radam", "sgd"])
def test_a_checkpoint_of_a_gpu_goes_on_on_a_cpu_and_the_other_way(optimizer):
    """The step counts of a capturable optimizer lie beside the parameters; its saved groups say so."""
    config, gpu = replace(ADAM, optimizer=optimizer), torch.device("cuda")
    net = network("nlstm")
    first = config.make_optimizer(net)
    Updater(net, config, first, CPU, "fp32", 1)(BLOCKS[0], None, 0, 0)
    saved = copy.deepcopy(first.state_dict())
    make_capturable(saved["param_groups"], gpu)
    assert all(group.get("capturable", True) for group in saved["param_groups"])
    other = network("nlstm")
    other.load_state_dict(net.state_dict())
    second = config.make_optimizer(other)
    make_capturable(saved["param_groups"], CPU)
    second.load_state_dict(saved)
    assert not any(group.get("capturable") for group in second.param_groups)
    for one, optimizer_of in ((net, first), (other, second)):
        Updater(one, config, optimizer_of, CPU, "fp32", 1)(BLOCKS[1], None, 1, 0)
    assert all(map(torch.equal, net.state_dict().values(), other.state_dict().values()))
