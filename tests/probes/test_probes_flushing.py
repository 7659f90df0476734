"""A FLUSH that is withheld matters exactly as far as it did something; COPY saves what the sparse reader saves."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from nlstm_lab import probes
from nlstm_lab.cells import HMLSTM
from nlstm_lab.probes import flush_effects
from nlstm_lab.probes.segmentation import updates


@pytest.fixture
def hierarchical(network):
    def make(**flags):
        return network(HMLSTM, num_layers=3, scale=2.5, **flags)

    return make


def first(model, text, **how):
    """Of the first layer."""
    return flush_effects(model, text, **how).query("layer == 1")


def by_kind(table, column="kl"):
    return {kind: part.set_index("distance")[column] for kind, part in table.groupby("kind")}


@pytest.mark.slow
def test_a_turned_boundary_costs_what_the_next_predictions_lose(hierarchical, text):
    model = hierarchical()
    result = first(model, text, moments=1, distance=4)
    codes, z = model.vocabulary.encode(text), probes.boundaries(model, text).z.values[:, 0]
    for kind, was in (("withheld", 1), ("forced", 0)):
        t = int(np.flatnonzero(z == was)[0]) + 1
        read, following = codes[t : t + 4, None], codes[t + 1 : t + 5]
        with torch.no_grad():
            h, c, left = model.recurrent(codes[:t, None])[1]
            turned = torch.cat([1 - left[:1], left[1:]])
            intact, lost = (
                F.cross_entropy(model(read, (h, c, each))[0][:, 0], following, reduction="none")
                for each in (left, turned)
            )
        np.testing.assert_allclose(by_kind(result, "loss_increase")[kind], lost - intact, atol=1e-5)


@pytest.mark.slow
def test_a_flush_that_drops_nothing_and_fetches_nothing_costs_nothing(hierarchical, text):
    model = hierarchical()
    cell = model.recurrent.cells[0]
    with torch.no_grad():  # layer 1 never keeps its cell, nor hears layer 2: FLUSH and UPDATE are the same
        cell.bias[8:16] = -100
        cell.weight_th.zero_()
    result = first(model, text, moments=20, distance=10)
    assert result["kl"].abs().max() == 0
    assert result["loss_increase"].abs().max() == 0


def test_a_layer_that_never_flushes_has_nothing_to_withhold(hierarchical, text):
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
    assert table["sparse"].sum() == counted.total
    assert table["updates"].tolist() == [(found.operation[:, k] != 0).sum() for k in range(3)]
    assert table["updates"].iloc[0] == len(text)
    assert (table["sparse"] < table["dense"]).all()
    h, size = 8, 11
    assert table["dense"].tolist() == [400 * 33 * (size + 2 * h), 400 * 33 * 3 * h, 400 * 32 * 2 * h]
    assert table["stack"].tolist() == [400 * 32 * (size + h), 400 * 32 * 2 * h, 400 * 32 * 2 * h]
    np.testing.assert_array_equal(table["flushes"], (found.operation == 2).sum("time"))
