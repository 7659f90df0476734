"""What is logged of boundary detectors, on records and networks where it is known."""

import math

import pytest
import torch

from nlstm_lab import models
from nlstm_lab.datasets.base import Symbols
from nlstm_lab.training.liveness import detectors, shares


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
