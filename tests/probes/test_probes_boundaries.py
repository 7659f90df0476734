"""The boundary probe says what the network did: its z, its operations by equation 2, and COPY leaves h alone."""

import importlib
import itertools
import json
import math

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from nlstm_lab import probes, runs
from nlstm_lab.cells import HMLSTM, HierarchicalRNN
from nlstm_lab.datasets import Excerpt
from nlstm_lab.datasets.base import Symbols, Vocabulary
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Interface, MixtureDensity, ModelConfig, Network, build
from nlstm_lab.probes import boundary_scores
from nlstm_lab.probes.boundary_scores import judged, text_truths
from nlstm_lab.probes.records import digest
from nlstm_lab.probes.segmentation import OPERATIONS, from_rows, plain, rows_of, updates

COPY, UPDATE, FLUSH = (OPERATIONS.index(name) for name in ("COPY", "UPDATE", "FLUSH"))


@pytest.fixture
def hierarchical(network):
    return lambda **flags: network(HMLSTM, num_layers=3, scale=2.5, **flags)


def test_operations_follow_from_the_boundaries_by_equation_2(hierarchical, text):
    found = probes.boundaries(hierarchical(), text)
    z = found.z.values
    assert 0.05 < z[:, 0].mean() < 0.95, "the text must meet both"
    assert set(np.unique(z)) == {0, 1}
    assert not z[:, -1].any(), "the top layer has no detector"
    below = np.concatenate([np.ones((len(z), 1)), z[:, :-1]], 1)  # z of layer 0 is 1
    last = np.concatenate([np.zeros((1, 3)), z[:-1]])  # z before the first step is 0
    expected = np.where(last == 1, FLUSH, np.where(below == 1, UPDATE, COPY))
    np.testing.assert_array_equal(found.operation, expected)
    np.testing.assert_array_equal(found.z_tilde.values[:, :2] > 0.5, z[:, :2] == 1)  # equation 9
    assert found.attrs == {"model": "small", "boundary": "step", "threshold": 0.5, "slope": 1.0}


def test_where_a_layer_copies_its_norm_does_not_move(hierarchical, text):
    model = hierarchical()
    found = probes.boundaries(model, text)
    np.testing.assert_allclose(found.norm, np.linalg.norm(probes.trace(model, text).h, axis=-1), rtol=1e-5)
    moved = np.abs(np.diff(found.norm.values, axis=0))
    copies = found.operation.values[1:] == COPY
    assert copies.any()
    assert moved[copies].max() == 0
    assert moved[~copies].min() > 0


def test_surprise_is_what_the_network_pays_for_each_character(hierarchical, text):
    model = hierarchical()
    found = probes.boundaries(model, text)
    codes = model.vocabulary.encode(text)
    with torch.no_grad():
        log_p = model(codes[:, None])[0].log_softmax(-1)[:, 0]
    paid = -log_p[torch.arange(399), codes[1:]] / math.log(2)
    assert math.isnan(found.surprise[0])
    np.testing.assert_allclose(found.surprise[1:], paid, atol=1e-5)
    assert "".join(found.symbol.values) == text


@pytest.mark.slow
def test_chunks_change_nothing(hierarchical, text, monkeypatch):
    model = hierarchical()
    whole = probes.boundaries(model, text)
    monkeypatch.setattr(importlib.import_module("nlstm_lab.probes.segmentation"), "CHUNK", 7)
    xr.testing.assert_allclose(probes.boundaries(model, text), whole, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("boundary", ["step", "sample", "soft"])
def test_a_threshold_is_lent_not_given(hierarchical, text, boundary):
    model = hierarchical(boundary=boundary)
    own = probes.boundaries(model, text)
    assert own.equals(probes.boundaries(model, text)), "sampled alike at every reading"
    rates = [float(probes.boundaries(model, text, threshold=t).z[:, 0].mean()) for t in (0.1, 0.5, 0.9)]
    assert rates[0] > rates[1] > rates[2]
    assert own.equals(probes.boundaries(model, text))
    assert own.attrs["boundary"] == boundary
    assert probes.boundaries(model, text, threshold=0.5).attrs["boundary"] == "step"
    model.recurrent(torch.randn(3, 1, 11))[0].sum().backward()  # gradients still work afterwards


@pytest.mark.parametrize("chunk", [1000, 3])
def test_given_boundaries_are_returned_unchanged(chunk, monkeypatch):
    monkeypatch.setattr(importlib.import_module("nlstm_lab.probes.segmentation"), "CHUNK", chunk)
    torch.manual_seed(0)
    words = Vocabulary(tuple(" ab"))
    ends = torch.tensor([[1.0], [0.0], [0.0]])
    model = Network(HierarchicalRNN(3, 4, 2), nn.Linear(4, 3), vocabulary=words, segment_ends=ends, name="given")
    found = probes.boundaries(model, "ab ba ")
    assert found.z.values[:, 0].tolist() == [0, 0, 1, 0, 0, 1]
    assert found.operation.values[:, 0].tolist() == [UPDATE, UPDATE, UPDATE, FLUSH, UPDATE, UPDATE]
    assert found.operation.values[:, 1].tolist() == [COPY, COPY, UPDATE, COPY, COPY, UPDATE]
    assert found.attrs["boundary"] == "given"
    assert updates(model, found)["sparse"].tolist() == [672, 256]
    json.dumps(plain(found), allow_nan=False)
    with pytest.raises(UsageError):
        probes.boundaries(model, "ab", threshold=0.3)
    with pytest.raises(UsageError, match="must be a string or codes"):
        probes.boundaries(model, torch.rand(5, 3))


def test_a_given_segment_of_an_upper_layer_ends_at_one_step_alone():
    words = Vocabulary(tuple(" .ab"))
    ends = Interface(Symbols(4), Symbols(4), vocabulary=words)
    model = build(ModelConfig("hrnn", 8, 3, boundaries=(" .", ".")), ends, seed=0)
    found = probes.boundaries(model, text := "ab ba.ab a.b")
    assert found.z.sel(layer=2).values.tolist() == [symbol == "." for symbol in text]
    assert found.operation.sel(layer=3).values.tolist() == [UPDATE if symbol == "." else COPY for symbol in text]
    assert found.operation.sel(layer=2).values[[2, 5, 8, 10]].tolist() == [UPDATE, UPDATE, FLUSH, UPDATE]
    assert updates(model, found)["sparse"].tolist()[2] == 2 * 2 * 256  # it hears layer 2, and itself, twice


def test_points_of_a_pen_are_read_too():
    torch.manual_seed(0)
    density = MixtureDensity(2)
    model = Network(HMLSTM(3, 4, 2), nn.Linear(4, density.size), density=density, name="pen")
    points = torch.cat([torch.randn(20, 2), torch.rand(20, 1).round()], 1)
    found = probes.boundaries(model, points)
    with torch.no_grad():
        nats = density(model(points[:-1, None])[0], points[1:, None])[:, 0]
    np.testing.assert_allclose(found.surprise[1:], nats / math.log(2), atol=1e-5)
    assert "symbol" not in found.coords
    assert plain(found)["symbols"] is None


def test_a_browser_and_a_record_get_the_same(hierarchical, text):
    model = hierarchical()
    found = probes.boundaries(model, text)
    result = json.loads(json.dumps(plain(found), allow_nan=False))
    assert result["surprise"][0] is None
    assert [layer["layer"] for layer in result["layers"]] == [1, 2, 3]
    np.testing.assert_array_equal(result["layers"][0]["z"], found.z[:, 0])
    np.testing.assert_allclose(result["layers"][2]["norm"], found.norm[:, 2], atol=1e-4)
    assert [OPERATIONS[code] for code in found.operation.values[:, 1]] == result["layers"][1]["operation"]
    assert "".join(result["symbols"]) == text
    assert from_rows(rows_of(found), model).identical(found)


def test_a_record_is_read_without_the_weights():
    """All but the slope, which is one of them."""
    excerpt, run = Excerpt("ptb", "valid", 270), runs.load("ptb_char_hmlstm_annealed", scale="small")
    whole, kept = probes.boundaries(run.model(), excerpt), digest(run.model())
    model = run.model().to("meta")
    model.missing_weights = kept, "the weights are not kept"
    without = probes.boundaries(model, excerpt)
    assert without.attrs["slope"] is None
    assert without.assign_attrs(slope=whole.attrs["slope"]).identical(whole)


@pytest.mark.slow
def test_what_is_read_is_no_surprise_to_a_network_that_predicts_words(hierarchical, text):
    model = hierarchical()
    model.readout, model.words = nn.Linear(8, 40), tuple(map(str, range(40)))
    found = probes.boundaries(model, text)
    assert np.isnan(found.surprise).all()
    assert set(plain(found)["surprise"]) == {None}
    scores = judged([found], [text_truths(text)], {"0": (0, 0)})
    assert set(scores["detector"]) == {"network", "random", "periodic"}
    with pytest.raises(UsageError):
        probes.flush_effects(model, text)


@pytest.fixture
def first(monkeypatch):
    def of_the_first_layer(model, text, moments, distance, layers=1):
        monkeypatch.setattr(boundary_scores, "MOMENTS", moments)
        monkeypatch.setattr(boundary_scores, "DISTANCE", distance)
        return boundary_scores.flush_effects(model, text).query(f"layer <= {layers}")

    return of_the_first_layer


@pytest.mark.slow
def test_a_turned_boundary_costs_what_the_next_predictions_lose(hierarchical, text, first):
    model = hierarchical()
    result = first(model, text, moments=2, distance=4, layers=2)
    codes, z = model.vocabulary.encode(text), probes.boundaries(model, text).z.values
    for k, (kind, was) in itertools.product((0, 1), (("withheld", 1), ("forced", 0))):
        possible, more = np.flatnonzero(z[:-5, k] == was) + 1, {"kl": [], "loss_increase": []}
        for t in possible[[0, -1]].tolist():
            read, following = codes[t : t + 4, None], codes[t + 1 : t + 5]
            with torch.no_grad():
                h, c, left = model.recurrent(codes[:t, None])[1]
                turned = left.clone()
                turned[k] = 1 - left[k]
                both = [model(read, (h, c, each))[0][:, 0].log_softmax(-1) for each in (left, turned)]
            intact, lost = (F.nll_loss(log_p, following, reduction="none") for log_p in both)
            more["loss_increase"].append(lost - intact)
            more["kl"].append(F.kl_div(*both[::-1], log_target=True, reduction="none").sum(-1))
        found = result[(result["layer"] == k + 1) & (result["kind"] == kind)].sort_values("distance")
        for column, values in more.items():
            np.testing.assert_allclose(found[column], torch.stack(values).mean(0), atol=1e-5)


@pytest.mark.slow
def test_a_flush_that_drops_nothing_and_fetches_nothing_costs_nothing(hierarchical, text, first):
    model = hierarchical()
    cell = model.recurrent.cells[0]
    with torch.no_grad():  # layer 1 never keeps its cell, nor hears layer 2: FLUSH and UPDATE are the same
        cell.bias[8:16] = -100
        cell.weight_th.zero_()
    result = first(model, text, moments=20, distance=10)
    assert result["kl"].abs().max() == 0
    assert result["loss_increase"].abs().max() == 0


def test_a_layer_that_never_flushes_has_nothing_to_withhold(hierarchical, text, first):
    model = hierarchical()
    with torch.no_grad():
        model.recurrent.cells[0].bias[-1] = -100
    result = first(model, text, moments=20, distance=10)
    assert (result.loc[result["kind"] == "withheld", "number"] == 0).all()
    assert result.loc[result["kind"] == "withheld", "kl"].isna().all()
    assert (result.loc[result["kind"] == "forced", "number"] == 20).all()


class Counted(TorchDispatchMode):
    """Multiply-adds of all products of matrices with vectors while it lasts."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        name = operation.overloadpacket.__name__
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        if name in ("mv", "dot"):
            self.total += tensors[0].numel()
        elif name in ("addmv", "addmv_"):
            self.total += tensors[1].numel()
        elif name in ("mm", "addmm"):
            self.total += tensors[-2].numel() * tensors[-1].shape[1]
        return operation(*arguments, **(keywords or {}))


@pytest.mark.slow
def test_what_copy_saves_is_what_the_sparse_reader_saves(hierarchical, text):
    model = hierarchical(embedded=True)
    found = probes.boundaries(model, text)
    table = updates(model, found)
    x = model.embedding(model.vocabulary.encode(text)[:, None])
    with torch.no_grad(), Counted() as counted:
        model.recurrent(x)
    rests = found.operation.values[:, :-1] == COPY  # what a layer at rest says stands; the reader says it anew
    assert table["sparse"].sum() + 8 * (rests[1:] & rests[:-1]).sum() == counted.total
    assert table["updates"].tolist() == [(found.operation[:, k] != 0).sum() for k in range(3)]
    assert table["updates"].iloc[0] == len(text)
    assert (table["sparse"] < table["dense"]).all()
    h, size = 8, 11
    assert table["dense"].tolist() == [400 * 33 * (size + 2 * h), 400 * 33 * 3 * h, 400 * 32 * 2 * h]
    assert table["stack"].tolist() == [400 * 32 * (size + h), 400 * 32 * 2 * h, 400 * 32 * 2 * h]
    np.testing.assert_array_equal(table["flushes"], (found.operation == 2).sum("time"))
