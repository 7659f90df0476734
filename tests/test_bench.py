"""The benchmark compares like with like, and its tables say what they should."""

import json

import pytest
import torch

from nlstm_lab import paths
from nlstm_lab.bench import Reading, Size, bench, recorded, report, save, table
from nlstm_lab.bench.hmlstm import LOOP, measured, record_steps, recorded_steps
from nlstm_lab.bench.reading import network_with_rates
from nlstm_lab.bench.steps import NaiveNestedLSTM, alternate, peak_memory, product_peak, variants
from nlstm_lab.cells import LSTM, NestedLSTM
from nlstm_lab.errors import UsageError

TINY = Size(hidden_size=6, vocabulary=4, batch=3, steps=5)
CPU = torch.device("cpu")


def test_the_naive_loop_is_the_same_network():
    torch.manual_seed(0)
    unit = NestedLSTM(4, 6, dtype=torch.float64)
    x = torch.randint(4, (7, 3))
    vectors = torch.nn.functional.one_hot(x, 4).double()
    parameters = list(unit.parameters())
    naive, (fast, _) = NaiveNestedLSTM(unit)(vectors), unit(x)
    torch.testing.assert_close(naive, fast, atol=1e-12, rtol=0)
    theirs = torch.autograd.grad(naive.square().sum(), parameters)
    ours = torch.autograd.grad(fast.square().sum(), parameters)
    torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=0)


@pytest.mark.slow
def test_the_compared_lstm_has_the_parameters_of_the_nested_one():
    size = Size()
    nested, stacked = (
        sum(parameter.numel() for parameter in unit.parameters())
        for unit in (NestedLSTM(size.vocabulary, 600), LSTM(size.vocabulary, 600, 2))
    )
    assert nested == stacked
    torchs = sum(p.numel() for p in torch.nn.LSTM(size.vocabulary, 600, 2).parameters())
    assert torchs - nested == 2 * 4 * 600  # its second biases


def test_a_round_runs_every_step_in_turn():
    order = []
    seconds = alternate([lambda: order.append("a"), lambda: order.append("b")], 3, CPU)
    assert order == ["a", "b"] * 4
    assert [len(measured) for measured in seconds] == [3, 3]


@pytest.mark.parametrize(("device", "size"), [("cpu", 1024), ("cuda", 8192)])
def test_the_peak_is_that_of_a_product_which_fills_the_device(device, size, monkeypatch):
    monkeypatch.setattr("nlstm_lab.bench.steps.alternate", lambda steps, rounds, device: [[1.0]])
    monkeypatch.setattr(torch, "randn", lambda *shape, device: torch.empty(shape, device="meta"))
    assert product_peak("fp32", torch.device(device)) == 2 * size**3 / 1e9


def test_the_paper_step_is_83_gflop():
    assert Size(steps=100).gflop == pytest.approx(85.2, abs=0.1)
    assert Size(steps=100, vocabulary=0).gflop == pytest.approx(82.9, abs=0.1)


@pytest.mark.slow
def test_frame_table_and_file(tmp_path, monkeypatch):
    monkeypatch.setattr("nlstm_lab.bench.steps.lacking", lambda device_type: "no compiler")
    frame = bench([TINY], devices=["cpu"], rounds=2)
    naive = frame[frame.variant == "naive loop"].iloc[0]
    assert naive.vs_naive == 1
    assert naive.memory_vs_naive == 1
    assert set(frame.unit) == {"NestedLSTM", "2-layer LSTM"}
    assert frame[["vs_naive", "vs_nn_lstm", "ms", "gflops", "of_peak"]].gt(0).all(axis=None)
    reading = Reading(8, (0.2, 0.03), 5.0, 1.0, 0.2)
    path = tmp_path / "bench.json"
    save(frame, [reading], path, rounds=2)
    monkeypatch.setattr(paths, "bench", lambda: tmp_path)
    record = recorded("bench")
    assert len(record.of(6)) == len(frame)
    assert record.rounds == 2
    assert record.reading[["layer1", "layer2", "ratio"]].to_numpy().tolist() == [[0.2, 0.03, 5.0]]
    with pytest.raises(UsageError, match=r"'elsewhere'.*bench"):
        recorded("elsewhere")
    content = json.loads(path.read_text())
    assert len(content["training"]) == len(frame)
    assert content["reading"][0]["ratio"] == 5.0
    assert content["machine"]["threads"] == torch.get_num_threads()
    assert "6 units, 4 symbols, batch 3, 5 steps, cpu" in table(frame)
    assert "5.00 times as fast" in report([reading])


@pytest.mark.slow
def test_the_table_tells_what_autocast_means_on_a_gpu(monkeypatch):
    monkeypatch.setattr("nlstm_lab.bench.steps.lacking", lambda device_type: "no compiler")
    frame = bench([TINY], devices=["cpu"], rounds=1).head(1).assign(variant="nn.LSTM, autocast")
    assert "fp16" not in table(frame)
    assert "in fp16 here" in table(frame.assign(device="cuda"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to measure")
def test_what_is_not_here_is_marked_and_not_claimed(monkeypatch):
    frame = bench([TINY], devices=["cuda"], rounds=1)
    assert frame.variant.tolist() == ["unmeasured"]
    assert "unmeasured, no such device here" in table(frame)


@pytest.mark.slow
def test_boundaries_come_at_the_rates_asked_for():
    _, _, found = network_with_rates(16, (0.21, 0.05), 100)
    assert found == pytest.approx((0.21, 0.05), abs=0.04)


@pytest.mark.slow
def test_a_training_step_holds_at_most_a_fifth_more_than_the_naive_loop():
    size = Size(hidden_size=200)  # for the rest, the step of the paper
    held = {
        (variant.name, variant.products): peak_memory(variant.step, CPU)
        for variant in variants(size, CPU)
        if variant.name in ("naive loop", "fast") and variant.network == "NestedLSTM"
    }
    naive = held.pop(("naive loop", "fp32"))
    assert held
    assert max(held.values()) <= 1.2 * naive


@pytest.mark.slow
def test_an_hmlstm_is_measured_beside_its_loop_and_the_record_keeps_it(tmp_path, monkeypatch):
    monkeypatch.setattr("nlstm_lab.bench.hmlstm.HIDDEN_SIZES", (8,))
    monkeypatch.setattr("nlstm_lab.bench.hmlstm.STEPS", 5)
    monkeypatch.setattr("nlstm_lab.bench.hmlstm.lacking", lambda device_type: "no compiler")
    monkeypatch.setattr(paths, "bench", lambda: tmp_path)
    rows = list(measured(rounds=2))
    record_steps(rows, "here")
    frame = recorded_steps()
    assert set(frame["machine"]) == {"here"}
    assert frame["variant"].tolist() == [LOOP, "derived backward", LOOP]
    assert frame["network"].tolist() == ["HM-LSTM", "HM-LSTM", "LayerNorm LSTM"]
    loops = frame[frame["variant"] == LOOP]
    assert (loops[["times_loop", "memory_vs_loop"]] == 1).all(axis=None)
    assert frame[["times_loop", "ms", "of_peak", "memory_vs_loop"]].gt(0).all(axis=None)
    assert set(frame["threads"]) == {torch.get_num_threads()}
