"""TrainingExplorer shows what the networks were after each update, and looking at them changes no training."""

import numpy as np
import pytest
import torch

import nlstm_lab as lab
from nlstm_lab import models, probes, training
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Interface
from nlstm_lab.probes.death import LEVELS, unpacked_cells

NAMES = ["ptb_char_nlstm", "ptb_char_nlstm_logfreq"]
TEXT = "the old man"


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLSTM_LAB_PROBES", str(tmp_path_factory.mktemp("probes")))
        yield


def trained(name):
    """The network after the whole smoke training, of which nobody took a look."""
    experiment = lab.experiments.get(name, "smoke")
    task = experiment.load()
    network = models.build(experiment.model, Interface.of(task), seed=0)
    training.fit(network, task, experiment.training, seed=0, progress=False)
    return network.eval(), task


@pytest.mark.slow
def test_what_is_recorded_is_the_training_of_a_run():
    record = probes.first_updates(NAMES[0], TEXT, scale="smoke")
    assert record["update"].tolist() == [0, 1, 2, 3, 5]
    network, task = trained(NAMES[0])
    whole = probes.first_updates(NAMES[0], TEXT, scale="smoke", updates=[6])
    read = probes.trace(network, TEXT)
    expected = np.tanh(read["c"].sel(memory="inner").transpose("unit", "time"))
    np.testing.assert_allclose(unpacked_cells(whole)[0] / LEVELS, expected, atol=0.51 / LEVELS)
    bits = [-read["log_p"].sel(vocabulary=TEXT[t + 1])[t].item() / np.log(2) for t in range(len(TEXT) - 1)]
    np.testing.assert_allclose([*map(float, whole["bits"][0].split())], bits, atol=0.006)
    batch = next(iter(task.evaluate("valid", "blocks"))).inputs
    with torch.inference_mode():
        shares = training.liveness.shares(network, batch)
    for memory in ("outer", "inner"):
        lives = whole[f"lives/{memory}"][0]
        assert lives.count("l") / len(lives) == pytest.approx(shares[f"latched_share/{memory}"])
        assert lives.count("s") / len(lives) == pytest.approx(shares[f"silent_share/{memory}"])
    with pytest.raises(UsageError, match="7"):
        probes.first_updates(NAMES[0], TEXT, scale="smoke", updates=[7])


def test_the_widget_holds_the_records_and_draws_the_nearest_update():
    widget = lab.widgets.TrainingExplorer(NAMES, TEXT, scale="smoke", update=1000, unit=3)
    records = [probes.first_updates(name, TEXT, scale="smoke") for name in NAMES]
    assert (widget.update, widget.updates) == (5, [0, 1, 2, 3, 5])
    shape = 2, 5, len(widget.lives[0]["inner"][0]), len(TEXT)
    cells = np.frombuffer(widget.cells, np.int8).reshape(shape)
    for k, record in enumerate(records):
        np.testing.assert_array_equal(cells[k], unpacked_cells(record))
    np.testing.assert_array_equal(cells[0, 0], cells[1, 0])  # before the first update only the output bias differs
    assert (cells[0, -1] != cells[1, -1]).any()
    frame = lab.figures.data(widget.figure())
    assert set(frame["memory"]) == {"baseline initialization", "initialized to the log-frequencies"}
    with pytest.raises(UsageError, match="unit"):
        lab.widgets.TrainingExplorer(NAMES, TEXT, scale="smoke", unit=12)
    with pytest.raises(UsageError, match="at least one"):
        lab.widgets.TrainingExplorer([], TEXT)
