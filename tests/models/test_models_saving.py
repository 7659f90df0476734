"""A network is kept in one folder and comes back the same; trained ones come with the package."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn

import nlstm_lab as lab
from nlstm_lab import models, paths
from nlstm_lab.datasets.base import Mixture, Symbols, Vectors, Vocabulary
from nlstm_lab.errors import DamagedFile, LabError, MissingRun, UsageError
from nlstm_lab.models import Interface, ModelConfig

ABC = Vocabulary(tuple(" abc."))
NETWORKS = {
    "nested": (ModelConfig("nlstm", 6, flags={"initialization": "madsen"}), Interface(Symbols(5), Symbols(5), ABC)),
    "hmlstm": (
        ModelConfig("hmlstm", 6, 2, {"layer_norm": True}, embedding_size=3, output_embedding_size=4),
        Interface(Symbols(5), Symbols(5), ABC),
    ),
    "clockwork": (ModelConfig("cwrnn", 6, flags={"periods": (1, 2)}), Interface(Symbols(5), Symbols(5), ABC)),
    "given": (ModelConfig("hrnn", 6, 2, boundaries=(" .",)), Interface(Symbols(5), Symbols(5), ABC)),
    "words": (
        ModelConfig("gru", 6, embedding_size=3),
        Interface(Symbols(5, True), Symbols(2, names=("a b", "c")), ABC),
    ),
    "points": (ModelConfig("lstm", 6, initial_state="learned"), Interface(Vectors(3), Mixture(2))),
}


@pytest.mark.parametrize(("config", "ends"), NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_network_comes_back_the_same(config, ends, dtype, tmp_path):
    network = models.build(config, ends, seed=3, name="mine").to(dtype).eval()
    again = models.load(models.save(network, tmp_path / "new" / "folder"))
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        "config.json",
        "weights.safetensors",
    ]
    symbols = isinstance(ends.input, Symbols)
    x = torch.randint(1, 5, (7, 2)) if symbols else torch.randn(7, 2, 3, dtype=dtype)
    with torch.no_grad():
        torch.testing.assert_close(again(x)[0], network(x)[0], rtol=0, atol=0)
    assert (again.name, again.words, again.config.record()) == ("mine", network.words, config.record())
    assert not again.training


def test_half_precision_is_kept_in_the_file_and_read_wide(tmp_path):
    config, ends = NETWORKS["nested"]
    models.save(models.build(config, ends, seed=0).half(), tmp_path)
    assert models.load(tmp_path).device == torch.device("cpu")
    assert next(models.load(tmp_path).parameters()).dtype == torch.float32


def test_what_is_no_network_is_refused_in_a_sentence(tmp_path):
    config, ends = NETWORKS["nested"]
    with pytest.raises(MissingRun, match=r"config\.json is missing"):
        models.load(tmp_path)
    models.save(models.build(config, ends, seed=0), tmp_path)
    known = json.loads((tmp_path / "config.json").read_text())
    for change in (
        {"model": {**known["model"], "colour": 1}},
        {"interface": None},
        {"weights_sha256": "0"},
        {"model": 7},
    ):
        (tmp_path / "config.json").write_text(json.dumps(known | change))
        with pytest.raises(DamagedFile, match=str(tmp_path)):
            models.load(tmp_path)
    other = known["model"] | {"hidden_size": 7}
    (tmp_path / "config.json").write_text(json.dumps(known | {"model": other}))
    with pytest.raises(DamagedFile, match="another network"):
        models.load(tmp_path)
    foreign = known["model"] | {"unit": "os:system"}
    (tmp_path / "config.json").write_text(json.dumps(known | {"model": foreign}))
    with pytest.raises(ValueError, match="cell_type"):
        models.load(tmp_path)
    wrapped = models.wrap(nn.LSTM(3, 4), readout=nn.Linear(4, 3))
    with pytest.raises(UsageError, match=r"torch\.save"):
        models.save(wrapped, tmp_path / "w")
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="file"):
        models.save(models.build(config, ends, seed=0), tmp_path / "file")


@pytest.mark.parametrize("name", models.PRETRAINED)
def test_a_pretrained_network_is_its_run_and_the_card_its_record(name):
    experiment, _, place = models.PRETRAINED[name]["run"].partition("/")
    scale, _, seed = place.partition("-seed")
    run = lab.runs.load(experiment, int(seed), scale)
    network, told = models.pretrained(name), models.card(name)
    assert network.name == run.name
    assert models.digest(network.state_dict()) == run.result["weights_sha256"]
    codes = torch.randint(50, (9, 1))
    assert torch.equal(network(codes)[0], run.model()(codes)[0])
    assert f"{run.result['parameters']:,} parameters" in told
    for one in run.result["metrics"]:
        if one["metric"] == "bpc" and one["split"] != "train":
            assert f"| bpc | {one['evaluation']} | {one['split']} | {one['value']:.3f} |" in told
    assert "no redistribution" in told


def test_an_unknown_pretrained_network_is_answered_with_those_there_are():
    with pytest.raises(UsageError, match="did you mean ptb_char_nlstm_logfreq"):
        models.pretrained("ptb_char_nlstm_logfrq")
    with pytest.raises(UsageError, match="called None; there are: ptb_char_nlstm_logfreq"):
        models.pretrained(None)


@pytest.mark.slow
def test_a_wheel_brings_the_pretrained_networks(tmp_path):
    build = "from setuptools import build_meta; import sys; print(build_meta.build_wheel(sys.argv[1]))"
    copy = tmp_path / "source"
    names = ["pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "nlstm_lab"]
    runs = [f"data/runs/{known['run']}" for known in models.PRETRAINED.values()]
    files = subprocess.run(
        ["git", "ls-files", *names, *runs], cwd=paths.root(), capture_output=True, text=True, check=True
    )
    for file in files.stdout.splitlines():
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        (copy / file).write_bytes((paths.root() / file).read_bytes())
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=copy, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, tmp_path / "site"], check=True)
    ask = "import nlstm_lab as lab; print(lab.models.pretrained('ptb_char_hmlstm_step').name, lab.__file__)"
    (tmp_path / "empty").mkdir()
    environment = {"PYTHONPATH": str(tmp_path / "site"), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=tmp_path / "empty", env=environment, capture_output=True, text=True, check=True
    )
    assert "ptb_char_hmlstm_step/small-seed0" in done.stdout
    assert str(tmp_path) in done.stdout
