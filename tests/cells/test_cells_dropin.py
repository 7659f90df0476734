"""What code written for `torch.nn.LSTM` relies on, held by every unit.

What differs from torch is named in `Recurrent`'s docstring: bidirectional and proj_size, names of parameters, kinds of
errors, scripting.
"""

import copy
import inspect
import io
import math
import pickle
import random

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils.rnn import pack_sequence
from torch.utils.checkpoint import checkpoint

from nlstm_lab.cells import GRU, HMLSTM, LSTM, RNN, LayerNormLSTM, NestedLSTM, NestedLSTMCell, fast
from tests.cells.test_cells_contract import UNITS, B, D, H, L, T, built, close, every_unit, parts, run

WORDS = 30


class WordModel(nn.Module):
    """A word language model as it is usually written for torch: states carried and detached, dropout, clipping."""

    def __init__(self, kind):
        super().__init__()
        self.drop, self.encoder, self.decoder = nn.Dropout(0.1), nn.Embedding(WORDS, 24), nn.Linear(32, WORDS)
        self.rnn = kind(24, 32, 2, dropout=0.1)

    def forward(self, words, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(words)), hidden)
        return self.decoder(self.drop(output)), hidden

    def perplexity(self, text, optimizer=None):
        """Over words [T, B]; with an optimizer, training on the way."""
        self.train(optimizer is not None)
        hidden, total = torch.zeros(2, 2, text.shape[1], 32).unbind(), 0.0
        for words, targets in zip(text[:-1].split(12), text[1:].split(12), strict=True):
            output, hidden = self(words, tuple(part.detach() for part in hidden))
            loss = nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())
            total += loss.item() * len(words)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.parameters(), 0.5)
                optimizer.step()
        return math.exp(total / (len(text) - 1))


def text(steps, seed):
    """Words [steps, 20] of which each is one of two that may follow the one before."""
    chance, found = random.Random(seed), [0]
    for _ in range(steps * 20 - 1):
        found.append((found[-1] * 7 + chance.choice((3, 11))) % WORDS)
    return torch.tensor(found).view(20, steps).t()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nn.LSTM, NestedLSTM])
def test_a_model_for_torchs_lstm_trains_and_is_saved_with_one_name_changed(kind):
    torch.manual_seed(1)
    model, saved, valid = WordModel(kind), io.BytesIO(), text(50, 2)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(3):
        model.perplexity(text(300, 1), optimizer)
    with torch.no_grad():
        assert (trained := model.perplexity(valid)) < 4  # two of thirty words may follow each
    torch.save(model, saved)
    saved.seek(0)
    loaded = torch.load(saved, weights_only=False)
    loaded.rnn.flatten_parameters()
    with torch.no_grad():
        assert loaded.perplexity(valid) == trained


@every_unit
def test_the_signature_begins_as_torchs(make):
    theirs = ["input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size"]
    unit = built(make)
    if type(unit) is RNN:
        theirs.insert(3, "nonlinearity")
    assert list(inspect.signature(type(unit)).parameters)[: len(theirs)] == theirs
    assert (unit.batch_first, unit.bidirectional, unit.proj_size) == (False, False, 0)
    unit.flatten_parameters()
    assert "hx" in inspect.signature(unit.forward).parameters
    by_place = type(unit)(D, H, L, *(["relu"] if type(unit) is RNN else []), False, True)
    assert (by_place.bias, by_place.batch_first) == (False, True)


@every_unit
def test_what_no_unit_does_is_refused_by_its_name(make):
    for name, value in (("bidirectional", True), ("proj_size", 2)):
        with pytest.raises(ValueError, match=name):
            make(D, H, num_layers=L, **{name: value})
    make(D, H, bidirectional=False, proj_size=0)


@every_unit
def test_half_precision_is_drawn_in_float32_and_rounded(make):
    dtype = torch.bfloat16
    torch.manual_seed(0)
    unit = make(D, H, num_layers=L, dtype=dtype)
    torch.manual_seed(0)
    expected = make(D, H, num_layers=L)
    for a, b in zip(unit.parameters(), expected.parameters(), strict=True):
        assert a.dtype == dtype
        assert torch.equal(a, b.to(dtype))
    output, last = run(unit, torch.randn(T, B, D, dtype=dtype))
    output.float().sum().backward()
    assert {part.dtype for part in (output, *parts(last)) if part.is_floating_point()} == {dtype}
    torch.set_default_dtype(dtype)
    try:
        assert next(make(D, H).parameters()).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_copy_keeps_what_was_done_to_the_cells():
    unit = built(NestedLSTM)
    unit.layers[1].weight_ih.requires_grad_(False)
    unit.layers[0].register_forward_pre_hook(print)
    unit.layers[0].note = "mine"
    unit.eval()
    other = pickle.loads(pickle.dumps(unit))
    assert not other.training
    assert not other.layers[1].weight_ih.requires_grad
    assert other.layers[0].note == "mine"
    assert list(other.layers[0]._forward_pre_hooks.values()) == [print]
    nn.utils.parametrizations.weight_norm(unit.layers[0], "weight_hh")  # a class that no constructor knows
    x = torch.randn(T, B, D, dtype=torch.float64)
    close(copy.deepcopy(unit)(x)[0], unit(x)[0])


@every_unit
def test_an_empty_batch_goes_forward_and_back(make):
    unit = built(make)
    x = torch.randn(T, 0, D, dtype=torch.float64, requires_grad=True)
    output, last = run(unit, x)
    assert output.shape == (T, 0, H)
    assert all(0 in part.shape for part in parts(last))
    output.sum().backward()
    assert x.grad.shape == x.shape
    assert all(not parameter.grad.any() for parameter in unit.parameters() if parameter.grad is not None)


@every_unit
def test_vectorized_and_second_derivatives_are_the_readable_steps(make):
    unit = built(make)
    x = torch.randn(3, 2, D, dtype=torch.float64, requires_grad=True)

    def derivatives():
        output = run(unit, x)[0]
        batched = torch.autograd.grad(output, x, torch.stack([torch.ones_like(output), output]), is_grads_batched=True)
        (first,) = torch.autograd.grad(run(unit, x)[0].square().sum(), x, create_graph=True)
        leaves = [x, *unit.parameters()]
        return *batched, first, *torch.autograd.grad(first.square().sum(), leaves, allow_unused=True)

    found = derivatives()
    with fast.disabled():
        expected = derivatives()
    for a, b in zip(found, expected, strict=True):
        assert a is b is None or torch.allclose(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("symbols", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("make", "flags"),
    [
        *((NestedLSTM, {"depth": 3}), (NestedLSTM, {"depth": 1}), (LSTM, {}), (GRU, {}), (LayerNormLSTM, {})),
        *((HMLSTM, {"boundary": boundary, "num_layers": 3, "layer_norm": True}) for boundary in ("sample", "soft")),
        (HMLSTM, {"straight_through": "identity", "num_layers": 3}),
    ],
)
def test_a_second_derivative_reaches_every_parameter(make, flags, bias, symbols):
    """As in meta-learning, the weights of a step stand in for the unit's own; a state is carried."""
    unit = built(make, **{"num_layers": 1, "bias": bias, **flags})
    weights = {name: torch.randn_like(weight).requires_grad_() for name, weight in unit.named_parameters()}
    x = torch.randint(D, (T, B)) if symbols else torch.randn(T, B, D, dtype=torch.float64)

    def second():
        torch.manual_seed(5)  # of sampled boundaries
        _, state = torch.func.functional_call(unit, weights, (x,))
        output = torch.func.functional_call(unit, weights, (x, state))[0]
        options = {"allow_unused": True, "materialize_grads": True}
        firsts = torch.autograd.grad(output.square().sum(), list(weights.values()), create_graph=True, **options)
        return torch.autograd.grad(sum(first.square().sum() for first in firsts), list(weights.values()), **options)

    found = second()
    with fast.disabled():
        torch.testing.assert_close(found, second(), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@every_unit
def test_meta_and_fake_tensors_have_shapes_alone(make):
    unit = make(D, H, num_layers=L, device="meta")
    output, last = run(unit, torch.empty(T, B, D, device="meta"))
    assert output.shape == (T, B, H)
    assert {part.device.type for part in parts(last)} == {"meta"}
    unit.to_empty(device="cpu").reset_parameters()
    assert getattr(unit, "slope", 1) == 1
    with FakeTensorMode():
        unit = make(D, H, num_layers=L)
        output, _last = run(unit, torch.empty(T, B, D))
        output.sum().backward()
        with torch.no_grad():
            assert run(unit, torch.empty(T, 1, D))[0].shape == (T, 1, H)
    assert output.shape == (T, B, H)


def test_what_the_backward_needs_is_saved_as_autograd_saves():
    function = built(NestedLSTM, num_layers=1)(torch.randn(T, B, D, dtype=torch.float64))[0].grad_fn
    assert function.name() == "UnrolledBackward"
    assert not any(isinstance(value, torch.Tensor) for value in vars(function).values())


@every_unit
def test_checkpointing_changes_no_gradient(make):
    unit = built(make)
    x = torch.randn(T, B, D, dtype=torch.float64)
    run(unit, x)[0].square().sum().backward()
    expected = [copy.copy(parameter.grad) for parameter in unit.parameters()]
    unit.zero_grad()
    checkpoint(lambda x: run(unit, x)[0], x, use_reentrant=False).square().sum().backward()
    for parameter, gradient in zip(unit.parameters(), expected, strict=True):
        if type(unit) is HMLSTM and gradient is not None:  # the readable step serves here: another order of sums
            close(parameter.grad, gradient)
        else:
            assert parameter.grad is gradient is None or torch.equal(parameter.grad, gradient)


def test_a_nested_lstm_takes_an_lstms_state():
    unit, x = built(NestedLSTM, depth=3), torch.randn(T, B, D, dtype=torch.float64)
    h, c = torch.randn(2, L, B, H, dtype=torch.float64)
    memories = torch.stack([c, torch.zeros_like(c), torch.zeros_like(c)], 1)
    close(unit(x, (h, c))[0], unit(x, (h, memories))[0])
    close(unit(x[:, 0], (h[:, 0], c[:, 0]))[0], unit(x, (h, c))[0][:, 0])
    cell = NestedLSTMCell(D, H, depth=3, dtype=torch.float64)
    close(cell(x[0], (h[0], c[0])), cell(x[0], (h[0], memories[0])))
    packed = pack_sequence([x[:, b] for b in range(B)])
    close(unit(packed, (h, c))[0].data, unit(packed, (h, memories))[0].data)


def test_autocast_is_accepted_by_every_unit():
    for name, make in UNITS.items():
        unit = built(make, dtype=torch.float32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = run(unit, torch.randn(T, B, D))[0]
        assert torch.isfinite(output).all(), name
