"""Where a network starts: its output bias, its padding, its gates."""

from contextlib import nullcontext

import pytest
import torch

from nlstm_lab import models, probes
from nlstm_lab.cells import fast
from nlstm_lab.datasets.base import Batch, Symbols, Vocabulary
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Interface, ModelConfig
from nlstm_lab.models.parts import PaddedEmbedding

ABC = Vocabulary(tuple(" abc."))
SHARES = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05])
ENDS = Interface(Symbols(5), Symbols(5), ABC, log_frequencies=SHARES.log)
FIFTY = Interface(Symbols(50), Symbols(50))


def built(cell_type, *sizes, ends=ENDS, seed=0, **flags):
    return models.build(ModelConfig(cell_type, *sizes, **flags), ends, seed=seed)


@pytest.mark.parametrize("wide", [None, 7])
def test_the_readout_starts_as_configured(wide):
    for start, expected in (("zero", torch.zeros(5)), ("log_frequencies", SHARES.log())):
        flags = {"output_bias": start, "output_weight": "orthogonal", "output_embedding_size": wide}
        readout = built("nlstm", 9, **flags).readout
        last = readout.output if wide else readout
        assert torch.equal(last.bias, expected)
        torch.testing.assert_close(last.weight @ last.weight.t(), torch.eye(5))


@pytest.mark.parametrize(("hidden", "side"), [(600, 50), (150, 50), (20, 10)])
def test_the_matrix_of_the_readout_starts_in_orthogonal_tiles_as_configured(hidden, side):
    weight = built("lstm", hidden, ends=FIFTY, output_weight="orthogonal_tiles").readout.weight
    tiles = weight.detach().unfold(0, side, side).unfold(1, side, side).flatten(0, 1)
    assert len(tiles) == 50 * hidden // side**2
    torch.testing.assert_close(tiles @ tiles.mT, torch.eye(side).expand_as(tiles), atol=1e-5, rtol=0)
    assert len({tile.sum().item() for tile in tiles}) == len(tiles)  # each drawn by itself
    assert weight.std().item() == pytest.approx(side**-0.5, rel=0.01)  # .141 for tiles of 50, where Glorot's is .055
    with pytest.raises(ValueError, match=r"orthogonal_tiles.*50 x 21"):
        built("lstm", 21, ends=FIFTY, output_weight="orthogonal_tiles")


def test_with_a_zero_output_matrix_outputs_are_the_output_bias():
    outputs, _ = built("nlstm", 4, output_weight="zero", output_bias="log_frequencies")(torch.randint(5, (6, 2)))
    assert torch.equal(outputs, SHARES.log().expand(6, 2, 5))


LEARNERS = [("lstm", 2), ("nlstm", 1), ("gru", 1), ("rnn", 2), ("lnlstm", 1)]


@pytest.mark.parametrize(("unit", "layers"), LEARNERS)
def test_a_learned_initial_state_is_read_from_trained_and_saved(unit, layers):
    zero = built(unit, 6, layers).double()
    model = built(unit, 6, layers, initial_state="learned").double()
    parts = sum(len(cell.state_names) for cell in model.recurrent.cells)
    assert models.parameter_count(model) == models.parameter_count(zero) + 6 * parts
    x = torch.randint(5, (7, 3))
    assert torch.equal(model(x)[0], zero(x)[0])  # it starts at zero, and nothing else is drawn otherwise
    with torch.no_grad():
        for cell in model.recurrent.cells:
            cell.initial.uniform_(-1, 1)
    given = model.recurrent._pack([cell.initial_state(3) for cell in model.recurrent.cells], unbatched=False)
    torch.testing.assert_close(model(x)[0], zero(x, given)[0])
    gradients = []
    for way in (nullcontext(), fast.disabled()):
        model.zero_grad()
        with way:
            model.score(Batch(x, x))[0].nats.backward()
        gradients.append([cell.initial.grad.clone() for cell in model.recurrent.cells])
    assert all((gradient != 0).any(1).all() for gradient in gradients[0])  # h and every memory of every layer
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(model.trace(x)[0], model.recurrent(x)[0])
    again = built(unit, 6, layers, initial_state="learned", seed=1).double()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x)[0], model(x)[0])
    fresh = probes.untrained(model)
    assert not any(cell.initial.any() for cell in fresh.recurrent.cells)
    wrapped = models.wrap(model.recurrent, readout=model.readout, vocabulary=ABC)
    assert torch.equal(wrapped(x)[0], model.eval()(x)[0])


def test_an_initial_state_that_cannot_be_learned_is_refused():
    with pytest.raises(ValueError, match=r"initial state.*HMLSTMCell"):
        built("hmlstm", 4, 2, initial_state="learned")
    with pytest.raises(UsageError, match=r"initial_state.*'drawn'"):
        ModelConfig("lstm", 4, initial_state="drawn")
    learned = built("lstm", 4, initial_state="learned")
    with pytest.raises(ValueError, match=r"torch\.nn learns none"):
        learned.recurrent.to_torch()


def test_output_dropout_zeroes_a_share_of_what_the_readout_reads_only_in_training():
    torch.manual_seed(0)
    model = built("nlstm", 200, output_dropout=0.25)
    plain = built("nlstm", 200)
    inputs = torch.randint(5, (30, 2))
    dropped, whole = model.train().read(inputs)[0], plain.read(inputs)[0]
    zeroed = dropped == 0
    assert abs(zeroed.float().mean() - 0.25) < 0.02
    torch.testing.assert_close(dropped[~zeroed], whole[~zeroed] / 0.75)
    assert torch.equal(model.eval().read(inputs)[0], whole)


def test_the_embedding_starts_glorot_as_configured():
    flags = {"embedding_size": 30, "embedding_weight": "glorot"}
    bound = built("lstm", 4, ends=FIFTY, **flags).embedding.weight.abs().max() / (6 / 80) ** 0.5
    assert 0.95 < bound <= 1
    with pytest.raises(ValueError, match="embedding_weight"):
        built("lstm", 4, ends=FIFTY, embedding_weight="glorot")
    with pytest.raises(ValueError, match="embedding_weight"):
        built("lstm", 4, ends=Interface(Symbols(50, padded=True), Symbols(50)), **flags)


def test_padding_is_read_as_nothing():
    embedding = PaddedEmbedding(4, 3)
    assert not embedding(torch.tensor([0])).any()
    assert torch.equal(embedding(torch.tensor([1, 3])), embedding.rows[[0, 2]])
    assert 0.9995 < PaddedEmbedding(401, 99).rows.abs().max() * 400**0.5 <= 1


def test_segments_end_at_the_symbols_that_an_experiment_names():
    model = built("hrnn", 4, 3, boundaries=(" .", "."))
    assert model.segment_ends.tolist() == [[1, 0], [0, 0], [0, 0], [0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("unit", "open_gates"),
    [("lstm", "f"), ("nlstm", "f"), ("lnlstm", "f"), ("hmlstm", "f"), ("hrnn", "f"), ("gru", "ru")],
)
def test_the_gates_that_keep_start_open(unit, open_gates):
    cell = models.CELL_TYPES[unit](5, 4, 2).cells[0]
    starts = dict(zip(cell.gates, cell.bias[: 4 * len(cell.gates)].view(-1, 4).mean(1).tolist(), strict=True))
    assert starts == {gate: float(gate in open_gates) for gate in cell.gates}
