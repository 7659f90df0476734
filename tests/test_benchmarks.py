"""The benchmarks run, compare like with like, keep what they measure, and what they keep is found again."""

import os
import subprocess
import sys
import tarfile

import gpu
import hmlstm
import pytest
import steps
import timing
import torch
import trainings

from nlstm_lab import experiments, paths, runs
from nlstm_lab.cells import LSTM, NestedLSTM
from nlstm_lab.errors import UsageError

CPU = torch.device("cpu")


def test_the_naive_loop_is_the_same_network_and_the_stack_has_its_parameters():
    torch.manual_seed(0)
    unit = NestedLSTM(4, 6, dtype=torch.float64)
    x = torch.randint(4, (7, 3))
    vectors = torch.nn.functional.one_hot(x, 4).double()
    naive, (fast, _) = steps.NaiveNestedLSTM(unit)(vectors), unit(x)
    torch.testing.assert_close(naive, fast, atol=1e-12, rtol=0)
    theirs = torch.autograd.grad(naive.square().sum(), list(unit.parameters()))
    ours = torch.autograd.grad(fast.square().sum(), list(unit.parameters()))
    torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=0)
    counts = [sum(p.numel() for p in network.parameters()) for network in (unit, LSTM(4, 6, 2))]
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_every_benchmark_runs_and_leaves_a_record_that_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "bench", lambda: tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for module in (steps, hmlstm):
        monkeypatch.setattr(module, "lacking", lambda device_type: "no compiler")
    monkeypatch.setattr(steps, "SIZES", (steps.Size(6, 4, 3, 5),))
    monkeypatch.setattr(steps.read, "__defaults__", (16, 100))
    monkeypatch.setattr(hmlstm, "HIDDEN_SIZES", (8,))
    monkeypatch.setattr(hmlstm, "STEPS", 5)
    for module, words in ((steps, ()), (hmlstm, ()), (trainings, ("mnist_lstm1",))):
        monkeypatch.setattr(sys, "argv", ["benchmark", *words, "--rounds", "2", "--record", "here"])
        module.main()
    record = runs.benchmark("here")
    naive = record["training"].iloc[0]
    assert (naive["vs_naive"], naive["memory_vs_naive"], record["rounds"]) == (1, 1, 2)
    made = record["training"].query("variant != 'unmeasured'")
    assert made[["vs_naive", "vs_nn_lstm", "ms", "gflops", "of_peak"]].gt(0).all(axis=None)
    assert record["reading"]["rates"].iloc[1] == pytest.approx([0.21, 0.033], abs=0.02)
    with pytest.raises(UsageError, match=r"'elsewhere'.*here"):
        runs.benchmark("elsewhere")
    frame = runs.benchmark("hmlstm-here")
    assert frame["variant"].tolist() == [hmlstm.LOOP, "fast", hmlstm.LOOP]
    assert (frame.loc[frame["variant"] == hmlstm.LOOP, ["times_loop", "memory_vs_loop"]] == 1).all(axis=None)
    known = runs.outlook("mnist_lstm*", [99]).set_index("experiment")["here"]
    assert known[["mnist_lstm1", "mnist_lstm2"]].isna().tolist() == [False, True]
    assert 0 < known["mnist_lstm1"] < 100
    assert "naive loop" in capsys.readouterr().out


@pytest.mark.slow
def test_the_first_hour_on_a_gpu_runs_at_smoke_scale_stops_and_is_packed(runs_folder, tmp_path, monkeypatch, capfd):
    assert all(experiments.get(name, "paper") for names in gpu.GROUPS.values() for name in names)
    line = ["gpu", "train", "ptb_char_lstm1", "--scale", "smoke", "--seeds", "0", "1", "--side-by-side", "2"]
    monkeypatch.setattr(sys, "argv", [*line, "--minutes", "5"])
    assert gpu.main() == 0
    assert sorted(path.parent.name for path in runs_folder.glob("*/*/result.json")) == ["smoke-seed0", "smoke-seed1"]
    assert capfd.readouterr().out.count("ended with 0") == 2
    subprocess.run(["git", "init", "-q", runs_folder], check=True)
    monkeypatch.setattr(sys, "argv", ["gpu", "pack", str(tmp_path / "records.tar.gz")])
    gpu.main()
    with tarfile.open(tmp_path / "records.tar.gz") as archive:
        assert "ptb_char_lstm1/smoke-seed1/result.json" in archive.getnames()


@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        ("steps", ("--record", "/x/../../escaped"), "must be a word"),
        ("hmlstm", ("--rounds", "0"), "at least 1"),
        ("trainings", ("zzz*",), "no experiment"),
        ("gpu", ("train", "zzz*"), "no group"),
    ],
)
def test_a_benchmark_that_leads_to_nothing_is_not_begun(script, words, said):
    path = paths.root() / "benchmarks" / f"{script}.py"
    environment = os.environ | {"PYTHONPATH": str(paths.root())}
    done = subprocess.run([sys.executable, path, *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.slow
def test_a_training_step_holds_at_most_a_fifth_more_than_the_naive_loop():
    size = steps.Size(hidden_size=200)  # for the rest, the step of the paper
    held = {
        (name, products): timing.peak_memory(step, CPU)
        for name, network, products, step in steps.variants(size, CPU)
        if name in ("naive loop", "fast") and network == "NestedLSTM"
    }
    naive = held.pop(("naive loop", "fp32"))
    assert held
    assert max(held.values()) <= 1.2 * naive
