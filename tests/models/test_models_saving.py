"""A network is kept in one folder and comes back the same; trained ones come with the package."""

import json
import sys

import pytest
import safetensors.torch
import torch
from torch import nn

from nlstm_lab import experiments, models, runs, widgets
from nlstm_lab.datasets.base import Mixture, Symbols, Vectors, Vocabulary
from nlstm_lab.errors import DamagedFile, LabError, MissingRun, StaleRun, UsageError
from nlstm_lab.models import Interface, ModelConfig

ABC = Vocabulary(tuple(" abc."))
ENDS = Interface(Symbols(5), Symbols(5), ABC)
NETWORKS = {
    "nested": (ModelConfig("nlstm", 6, flags={"initialization": "madsen"}), ENDS),
    "hmlstm": (ModelConfig("hmlstm", 6, 2, {"layer_norm": True}, embedding_size=3, output_embedding_size=4), ENDS),
    "clockwork": (ModelConfig("cwrnn", 6, flags={"periods": (1, 2)}), ENDS),
    "given": (ModelConfig("hrnn", 6, 2, boundaries=(" .",)), ENDS),
    "words": (ModelConfig("gru", 6), Interface(Symbols(5, True), Symbols(2, names=("a b", "c")), ABC)),
    "points": (ModelConfig("lstm", 6, initial_state="learned"), Interface(Vectors(3), Mixture(2))),
    "classes": (ModelConfig("lstm", 6), Interface(Vectors(3), Symbols(4), per_sequence=True)),
    "pieces": (ModelConfig("gru", 6), Interface(Symbols(5), Symbols(5), Vocabulary(("un", "able", "s", "re", "do")))),
}


@pytest.mark.parametrize(("config", "ends"), NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_network_comes_back_the_same(config, ends, dtype, tmp_path):
    network = models.build(config, ends, seed=3, name="mine").to(dtype).eval()
    again = models.load(models.save(network, tmp_path / "new" / "folder"))
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == {"config.json", "weights.safetensors"}
    symbols = isinstance(ends.input, Symbols)
    x = torch.randint(1, 5, (7, 2)) if symbols else torch.randn(7, 2, 3, dtype=dtype)
    with torch.no_grad():
        torch.testing.assert_close(again(x)[0], network(x)[0], rtol=0, atol=0)
    assert (again.name, again.words, again.config.record()) == ("mine", network.words, config.record())
    assert (again.vocabulary, again.per_sequence) == (network.vocabulary, network.per_sequence)
    assert not again.training


def test_half_precision_is_kept_in_the_file_and_read_wide(tmp_path):
    config, ends = NETWORKS["nested"]
    models.save(models.build(config, ends, seed=0).half(), tmp_path)
    with pytest.raises(TypeError):  # JSON has no sets; what is there stays
        models.save(models.build(config, ends, seed=1, name={"set"}), tmp_path)
    stored = safetensors.torch.load_file(tmp_path / "weights.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    assert models.load(tmp_path).device == torch.device("cpu")
    assert next(models.load(tmp_path).parameters()).dtype == torch.float32


def test_what_is_no_network_is_refused_in_a_sentence(tmp_path):
    config, ends = NETWORKS["nested"]
    with pytest.raises(MissingRun, match=r"config\.json is missing"):
        models.load(tmp_path)
    models.save(models.build(config, ends, seed=0), tmp_path)
    known = json.loads((tmp_path / "config.json").read_text())
    model, sentence = known["model"], str(tmp_path)
    for change, error, message in (
        ({"model": {**model, "colour": 1}}, DamagedFile, sentence),
        ({"interface": None}, DamagedFile, sentence),
        ({"weights_sha256": "0"}, DamagedFile, sentence),
        ({"model": 7}, DamagedFile, sentence),
        ({"model": model | {"hidden_size": 7}}, DamagedFile, "another network"),
        ({"model": model | {"unit": "os:system"}}, DamagedFile, "cell_type"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(known | change))
        with pytest.raises(error, match=message):
            models.load(tmp_path)
    changed = models.build(*NETWORKS["hmlstm"], seed=0)
    changed.name = "mine"  # which is written
    models.save(changed, tmp_path / "named")
    changed.recurrent.cells[0].threshold = 0.3  # which nothing written would say
    with pytest.raises(UsageError, match="changed after it was built"):
        models.save(changed, tmp_path / "named")
    assert models.load(tmp_path / "named").recurrent.cells[0].threshold == 0.5
    with pytest.raises(UsageError, match=r"torch\.save"):
        models.save(models.wrap(nn.LSTM(3, 4), readout=nn.Linear(4, 3)), tmp_path / "w")
    (tmp_path / "file").touch()
    (tmp_path / "result.json").touch()
    for folder, error in ((tmp_path / "file", LabError), (tmp_path, UsageError)):  # a run's record lies in the second
        with pytest.raises(error, match=str(folder)):
            models.save(models.build(config, ends, seed=0), folder)


@pytest.mark.parametrize("name", models.PRETRAINED)
def test_a_pretrained_network_is_its_run_and_the_card_its_record(name):
    experiment, _, place = models.PRETRAINED[name]["run"].partition("/")
    scale, _, seed = place.partition("-seed")
    run = runs.load(experiment, int(seed), scale)
    network, card = models.pretrained(name), models.card(name)
    assert network.name == run.name
    assert models.digest(network.state_dict()) == run.result["weights_sha256"]
    codes = torch.randint(50, (9, 1))
    assert torch.equal(network(codes)[0], run.model()(codes)[0])
    assert f"{run.result['parameters']:,} parameters" in card
    for one in run.result["metrics"]:
        if one["metric"] == "bpc" and one["split"] != "train":
            assert f"| bpc | {one['evaluation']} | {one['split']} | {one['value']:.3f} |" in card
    assert "no redistribution" in card


def test_an_unknown_pretrained_network_is_answered_with_those_there_are():
    for name, said in (("ptb_char_nlstm_logfrq", "did you mean"), (None, "called None; there are:")):
        with pytest.raises(UsageError, match=f"{said} ptb_char_nlstm_logfreq"):
            models.pretrained(name)


# A unit of one's own is named by its class, and trains like any other.

MODULE = """
from nlstm_lab.cells import NestedLSTMCell, Recurrent

class DeeperCell(NestedLSTMCell):
    def __init__(self, input_size, hidden_size, depth=3, **flags):
        super().__init__(input_size, hidden_size, depth=depth, **flags)

class Deeper(Recurrent):
    cell_class = DeeperCell

class NoUnit:
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "deeper_units.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(models.network, "CELL_TYPES", models.CELL_TYPES)
    yield "deeper_units"
    sys.modules.pop("deeper_units", None)
    models.CELL_TYPES.pop("deeper_units:Deeper", None)


@pytest.mark.slow
def test_a_class_of_ones_own_trains_and_a_process_without_it_has_its_runs_in_tables(module, runs_folder):
    name = models.cell_type(f"{module}:Deeper")
    own = runs.ensure(experiments.variant("ptb_char_nlstm", "smoke", cell_type=name, epochs=1, depth=4), progress=False)
    assert type(own.model().recurrent).__name__ == "Deeper"
    assert own.name.startswith("ptb_char_nlstm+cell_type=deeper_units:Deeper")
    kept = runs.ensure(experiments.variant("ptb_char_nlstm", "smoke", epochs=1), progress=False)
    assert len(widgets.RunBrowser().rows) == 2
    models.CELL_TYPES.pop(name)
    assert set(runs.table().experiment) == {own.experiment.name, kept.experiment.name}
    assert [row["name"] for row in widgets.RunBrowser().rows] == [kept.name]


def test_an_unfinished_attempt_does_not_go_on_with_another_class(module, tmp_path):
    one = experiments.variant("ptb_char_nlstm", "smoke", cell_type=models.cell_type(f"{module}:Deeper"), depth=4)
    attempt = runs.attempt.Attempt(tmp_path / one.name / "smoke-seed0")
    attempt.begin(one, "a text", again=False)
    attempt.checkpoint.touch()
    attempt.begin(one, "a text", again=False)  # the same class goes on, as after a kill
    assert attempt.checkpoint.exists()
    (tmp_path / "deeper_units.py").write_text(MODULE.replace("depth=3", "depth=2"))
    with pytest.raises(StaleRun, match=r"code_sha256.*--again"):
        attempt.begin(one, "a text", again=False)
    attempt.begin(one, "a text", again=True)
    assert not attempt.checkpoint.exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nlstn", "'nlstn'.*rnn, lstm"),
        ("deeper_units:Nobody", "Nobody"),
        ("nowhere:Nobody", "nowhere"),
        ("deeper_units:NoUnit", "NoUnit.*nlstm_lab.cells.Recurrent"),
    ],
)
def test_what_is_no_unit_is_refused(module, name, sentence):
    with pytest.raises(UsageError, match=sentence):
        models.cell_type(name)
