"""What an epoch reads, counts, keeps and divides by, on texts that are made up."""

import importlib
import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from nlstm_lab import models, training
from nlstm_lab.datasets.base import Batch, Mixture, Symbols
from nlstm_lab.datasets.text import blocks, streams
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.models import Interface, ModelConfig
from nlstm_lab.training import TrainingConfig, evaluate

LOOP = importlib.import_module("nlstm_lab.training.loop")  # what the package calls so is its function
PRECISION = importlib.import_module("nlstm_lab.cells.fast")  # likewise
CPU = torch.device("cpu")
DEAD = "silent_share/inner"
TEXTS = [np.random.default_rng(k).integers(5, size=201).astype(np.uint8) for k in range(3)]


class Given:
    """A task whose k-th epoch reads the k-th text as streams, seven symbols at a time."""

    input = output = Symbols(5)
    vocabulary, per_sequence, metric, evaluations, updates_per_epoch = None, False, "bpc", ("streams",), 10
    log_frequencies = torch.full((5,), 0.2).log()
    fingerprint = "given"

    def __init__(self):
        self.seeds = []

    def train(self, generator):
        self.seeds.append(generator.initial_seed())
        return iter(list(streams(TEXTS[(len(self.seeds) - 1) % 3], 7, 3)))

    def evaluate(self, split, evaluation):
        return iter(list(streams(TEXTS[0], 7, 3)))


def test_other_evaluations_are_of_the_best_weights(losses, monkeypatch):
    losses += [2.0, 3.0, 0.0]  # of two epochs, the first one better, and of the other evaluation
    task, weights = Given(), {"epoch": [], "blocks": []}
    task.evaluations = ("streams", "blocks")
    end, evaluate = LOOP._Trainer.end_epoch, LOOP._Trainer.evaluate

    def noting(name, done, trainer, *how):
        if name in weights:
            weights[name].append(next(trainer.network.parameters()).detach().clone())
        return done(trainer, *how)

    monkeypatch.setattr(LOOP._Trainer, "end_epoch", lambda t: noting("epoch", end, t))
    monkeypatch.setattr(LOOP._Trainer, "evaluate", lambda t, split, how: noting(how, evaluate, t, split, how))
    fit(network(), TrainingConfig(2, 0.01), task)
    assert weights["blocks"]
    assert all(torch.equal(each, weights["epoch"][0]) for each in weights["blocks"])
    assert not torch.equal(*weights["epoch"])


class Cold(Given):
    """The same, read as blocks of seven symbols, seven at a time, each from a cold state."""

    updates_per_epoch = 4

    def train(self, generator):
        return blocks(TEXTS[0][:196], 7, 7, np.arange(28))


def network(unit="nlstm", **more):
    return models.build(ModelConfig(unit, 6, **more), Interface.of(Given()), seed=0).double()


def fit(net, config, task=None, **more):
    return training.fit(net, task or Given(), config, **{"seed": 0, "progress": False, **more})


@pytest.fixture
def at_each_update(monkeypatch):
    """`at_each_update(measure)`: a list of what `measure(net, optimizer)` returns before each."""

    def begin(measure):
        found, step = [], TrainingConfig.step

        def measured(config, net, optimizer, update):
            found.append(measure(net, optimizer))
            return step(config, net, optimizer, update)

        monkeypatch.setattr(TrainingConfig, "step", measured)
        return found

    return begin


def nats(net, codes):
    """Of every prediction [T, B], the streams read in one piece; and which of them count."""
    (batch,) = streams(codes, 10_000, 3)
    with torch.no_grad():
        outcome = F.cross_entropy(net(batch.inputs)[0].flatten(0, 1), batch.targets.flatten(), reduction="none")
    counted = torch.ones_like(batch.targets, dtype=torch.bool) if batch.mask is None else batch.mask
    return outcome.view(batch.targets.shape), counted


def truth(net, codes):
    outcome, counted = nats(net, codes)
    return float(outcome[counted].mean())


def rows(fit, split, metric):
    return [value for _, _, where, _, name, value in fit.history if (where, name) == (split, metric)]


@pytest.mark.parametrize(("metric", "of"), [("bpc", lambda x: x / np.log(2)), ("perplexity", np.exp)])
def test_a_reading_carries_the_state_and_says_it_in_the_documents_unit(metric, of):
    net = network()
    outcome = evaluate(net, streams(TEXTS[0], 7, 3), CPU, metric)
    assert outcome["nll_nats"] == pytest.approx(truth(net, TEXTS[0]), rel=1e-12)
    assert outcome[metric] == pytest.approx(of(truth(net, TEXTS[0])), rel=1e-12)


def test_a_reading_of_blocks_begins_cold_at_each():
    net, batches = network(), list(Cold().train(torch.Generator()))
    outcome = evaluate(net, batches, CPU, "bpc")["nll_nats"]
    with torch.no_grad():
        each = [F.cross_entropy(net(b.inputs)[0].flatten(0, 1), b.targets.flatten()) for b in batches]
    assert outcome == pytest.approx(float(torch.stack(each).mean()), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("task", [Given, Cold])
def test_an_updates_gradient_is_that_of_the_mean_over_the_predictions_that_count(task, at_each_update):
    """The last batch of the streams has a mask; a stream goes on from the batch before, a block begins cold."""
    net = network()
    found = at_each_update(lambda net, _: [parameter.grad.clone() for parameter in net.parameters()])
    fit(net, TrainingConfig(1, 1e-300), task())
    batches, state = list(task().train(torch.Generator())), None
    assert len(found) == len(batches) > 1
    for batch, gradients in zip(batches, found, strict=True):
        outputs, after = net(batch.inputs, None if task is Cold else state)
        outcome = F.cross_entropy(outputs.flatten(0, 1), batch.targets.flatten(), reduction="none")
        counted = slice(None) if batch.mask is None else batch.mask.flatten()
        expected = torch.autograd.grad(outcome[counted].mean(), list(net.parameters()))
        torch.testing.assert_close(gradients, list(expected), rtol=1e-9, atol=1e-12)
        state = tuple(part.detach() for part in after)
    assert (batches[-1].mask is None) == (task is Cold)


def test_a_batch_in_which_nothing_counts_has_no_gradient(at_each_update):
    found, task = at_each_update(lambda net, _: sum(float(p.grad.abs().sum()) for p in net.parameters())), Cold()
    first, *others = Cold().train(torch.Generator())
    task.train = lambda generator: iter([first._replace(mask=first.targets < 0), *others])
    assert fit(network(), TrainingConfig(1, 0.01, updates_per_epoch=99), task).updates == 4
    assert found[0] == 0 < min(found[1:])


def watched(net, monkeypatch, measure):
    """A set that takes up what `measure` returns whenever the network reads a batch."""
    seen = set()
    read = net.read

    def noted(*given):
        seen.add(measure())
        return read(*given)

    monkeypatch.setattr(net, "read", noted)
    return seen


def test_updates_drop_and_readings_do_not(monkeypatch):
    net = network("lstm", num_layers=2, flags={"dropout": 0.5})
    seen = watched(net, monkeypatch, lambda: (net.training, torch.is_grad_enabled()))
    fit(net, TrainingConfig(1, 0.01, updates_per_epoch=2))
    assert seen == {(True, True), (False, False)}
    net.train()
    outcome = evaluate(net, streams(TEXTS[0], 7, 3), CPU, "bpc")
    assert outcome["nll_nats"] == pytest.approx(truth(net.eval(), TEXTS[0]), rel=1e-12)


def test_updates_are_taken_in_the_precision_and_readings_in_fp32(monkeypatch):
    monkeypatch.setattr(PRECISION, "has_bf16", lambda device: True)
    net = network().float()
    seen = watched(net, monkeypatch, lambda: (torch.is_grad_enabled(), PRECISION.product_type(torch.ones(()))))
    fit(net, TrainingConfig(1, 0.01, updates_per_epoch=2), precision="bf16")
    assert seen == {(True, torch.bfloat16), (False, torch.float32)}


@pytest.mark.slow
def test_an_epochs_training_loss_is_that_of_its_own_text_with_the_state_carried():
    """At a learning rate at which the network stays what it is."""
    net, task = network(), Given()
    outcome = fit(net, TrainingConfig(3, 1e-300), task, seed=7)
    assert rows(outcome, "train", "nll_nats") == pytest.approx([truth(net, text) for text in TEXTS], rel=1e-9)
    losses, counted = nats(net, TEXTS[0])
    pieces = [slice(7 * a, 7 * b) for a, b in itertools.pairwise((0, 1, 2, 3, 5, 7, 10))]  # updates that are logged
    expected = [float(losses[piece][counted[piece]].mean()) for piece in pieces]
    assert rows(outcome, "early", "nll_nats") == pytest.approx(expected, rel=1e-9)
    judged = [update for _, update, split, _, name, _ in outcome.history if (split, name) == ("early", DEAD)]
    assert judged == [0, 1, 2, 3, 5, 7, 10]
    assert len(set(task.seeds)) == 3
    again = Given()
    fit(network(), TrainingConfig(3, 1e-300), again, seed=8)
    assert not set(again.seeds) & set(task.seeds)


@pytest.mark.slow
def test_the_slope_of_each_epoch_is_the_schedules(at_each_update):
    seen = at_each_update(lambda net, _: net.recurrent.slope)
    fit(network("hmlstm", num_layers=2), TrainingConfig(3, 0.01, slope=(1.5, 0.4), updates_per_epoch=1))
    assert seen == pytest.approx([1.0, 1.4, 1.5])


@pytest.fixture
def losses(monkeypatch):
    """Losses of the epochs on validation, in the place of what is measured; on the test set, read next, what is high
    there is low."""
    outcome, readings = [], itertools.count()

    def evaluate(*_):
        epoch, of_test = divmod(next(readings), 2)
        return {"nll_nats": 9.0 - outcome[epoch] if of_test else outcome[epoch]}

    monkeypatch.setattr(LOOP, "evaluate", evaluate)
    return outcome


@pytest.mark.slow
def test_the_weights_that_are_kept_are_the_best_epochs(losses, monkeypatch):
    losses += [3.0, 2.0, 2.5]
    ends = []
    for name in ("end_epoch", "finish"):
        done = getattr(LOOP._Trainer, name)

        def noted(trainer, done=done):
            result = done(trainer)
            ends.append({key: value.clone() for key, value in trainer.network.state_dict().items()})
            return result

        monkeypatch.setattr(LOOP._Trainer, name, noted)
    net = network()
    assert fit(net, TrainingConfig(3, 0.01)).best_epoch == 2
    assert all(torch.equal(value, ends[1][name]) for name, value in net.state_dict().items())
    assert all(torch.equal(value, ends[1][name]) for name, value in ends[3].items())  # the last reading is theirs
    assert not all(torch.equal(value, ends[2][name]) for name, value in net.state_dict().items())


def test_the_learning_rate_is_divided_where_validation_does_not_fall_below_the_epoch_before(losses, at_each_update):
    """The third epoch is worse than the best one, and no plateau; the fourth is as good as the third, and is one."""
    losses += [2.0, 3.0, 2.5, 2.5, 1.0]
    rates = at_each_update(lambda _, optimizer: optimizer.param_groups[0]["lr"])
    outcome = fit(network(), TrainingConfig(5, 0.01, divide_on_plateau=2.0, updates_per_epoch=1))
    assert rates == pytest.approx([0.01, 0.01, 0.005, 0.005, 0.0025])
    assert outcome.best_epoch == 5


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 4), (3, 5), (4, 7), (None, 7)])
def test_a_training_may_end_when_validation_has_not_improved(patience, epochs, losses):
    """Epochs 1, 2 and 6 improve on all before; the third, as good as the second, does not."""
    losses += [3.0, 2.0, 2.0, 2.5, 2.2, 1.0, 1.5]
    outcome = fit(network(), TrainingConfig(7, 0.01, updates_per_epoch=1), patience=patience)
    assert (outcome.epoch, outcome.best_epoch) == (epochs, 2 if epochs < 6 else 6)
    assert max(epoch for epoch, *_ in outcome.history) == epochs


def test_the_best_epoch_may_be_that_of_the_lowest_error_rate(monkeypatch, at_each_update):
    readings = itertools.count()
    accuracies, nats = (40.0, 39.0, 42.0, 0.0), (2.0, 1.0, 1.5, 0.0)

    def evaluate(*_):
        epoch, of_test = divmod(next(readings), 2)
        return {"nll_nats": nats[epoch], "top1_accuracy_pct": 100 * of_test + (-1) ** of_test * accuracies[epoch]}

    monkeypatch.setattr(LOOP, "evaluate", evaluate)
    rates = at_each_update(lambda _, optimizer: optimizer.param_groups[0]["lr"])
    config = TrainingConfig(3, 0.01, updates_per_epoch=1, select_by="error", divide_on_plateau=2.0)
    assert fit(network(), config).best_epoch == 3
    assert rates == [0.01] * 3  # a plateau is one of the loss
    task = Given()
    task.output = Mixture(2)
    with pytest.raises(UsageError, match="select_by=error"):
        fit(network(), TrainingConfig(3, 0.01, select_by="error"), task)


def test_a_slope_needs_boundary_detectors():
    with pytest.raises(UsageError, match="slope"):
        fit(network(), TrainingConfig(1, 0.01, slope=(5.0, 0.04)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"config": TrainingConfig(2, 0.01, select_by="error")}, r"select_by='loss'.*would go on with 'error'"),
        ({"config": TrainingConfig(2, 0.02)}, r"learning_rate=0.01.*0.02"),
        ({"seed": 1}, r"seed=0.*1"),
        ({"precision": "bf16"}, r"precision='fp32'.*would go on with 'bf16'"),
        ({"flags": {"initial_state": "learned"}}, "of another network"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused_and_stays(tmp_path, change, said):
    file, start = tmp_path / "checkpoint.pt", {"config": TrainingConfig(1, 0.01), "flags": {}}

    def go(flags, **more):
        fit(network(**flags), checkpoint=file, **more)

    go(**start)
    before = file.read_bytes()
    with pytest.raises(UsageError, match=said) as caught:
        go(**start | change)
    assert "\n" not in str(caught.value)
    assert file.read_bytes() == before


@pytest.mark.slow
def test_a_plateau_and_the_best_epoch_are_known_after_a_stop(losses, tmp_path):
    losses += [2.0, 3.0, 2.5]
    config, file = TrainingConfig(1, 0.01, divide_on_plateau=2.0), tmp_path / "checkpoint.pt"
    fit(network(), config, checkpoint=file)
    assert fit(network(), replace(config, epochs=2), checkpoint=file).best_epoch == 1
    with pytest.raises(UsageError, match="2 epochs"):
        fit(network(), config, checkpoint=file)
    assert torch.load(file, weights_only=True)["optimizer"]["param_groups"][0]["lr"] == 0.005


@pytest.mark.slow
def test_seconds_and_tokens_are_those_of_all_attempts(tmp_path, monkeypatch):
    """By a clock that goes on by a second whenever it is read."""
    ticks, file = itertools.count(), tmp_path / "checkpoint.pt"
    monkeypatch.setattr(LOOP, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    first, both = (fit(network(), TrainingConfig(epochs, 0.01), checkpoint=file) for epochs in (1, 2))
    assert both.seconds > 1.5 * first.seconds
    read = sum(batch.inputs.numel() for batch in Given().train(torch.Generator()))
    assert (first.tokens, both.tokens) == (read, 2 * read)
    assert both.rate() > 1.5 * both.tokens / both.seconds  # of the updates alone


@pytest.mark.slow
def test_a_training_goes_on_on_a_gpu_and_back(device, tmp_path):
    for epochs, where in enumerate((CPU, device, CPU), 1):
        done = fit(network(), TrainingConfig(epochs, 0.01), Cold(), checkpoint=tmp_path / "checkpoint.pt", device=where)
    whole = fit(network(), TrainingConfig(3, 0.01), Cold())
    values, expected = ([row[-1] for row in one.history] for one in (done, whole))
    assert values == pytest.approx(expected, rel=0 if device == CPU else 1e-6)


def test_a_split_of_which_no_prediction_counts_is_refused():
    codes = torch.zeros(4, 2, dtype=torch.long)
    for batches in ([], [Batch(codes, codes, torch.zeros_like(codes, dtype=torch.bool))]):
        with pytest.raises(LabError):
            evaluate(network(), batches, CPU, "bpc")


ELSEWHERE = {"processor": "another", "threads": 4, "instructions": "AVX2", "cuda": [], "torch": "2.0"}


@pytest.mark.slow
def test_each_machine_is_named_once(tmp_path, monkeypatch):
    def trained(epochs):
        config = TrainingConfig(epochs, 0.01, updates_per_epoch=1)
        return fit(network(), config, checkpoint=tmp_path / "checkpoint.pt")

    first = trained(2)
    assert [one["threads"] for one in first.machines] == [torch.get_num_threads()]
    assert trained(4).machines == first.machines
    monkeypatch.setattr("nlstm_lab.training.loop.machine", lambda: ELSEWHERE)
    second = trained(6)
    assert second.machines == [*first.machines, ELSEWHERE]
    assert len(second.history) > len(first.history)
    assert trained(6).machines == second.machines  # back and forth, each is named once
