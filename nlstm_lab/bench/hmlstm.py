"""A training step of an HM-LSTM, its readable steps one after the other and its derived backward: ratios of the two."""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch import nn

from nlstm_lab import paths
from nlstm_lab.bench.steps import alternate, inside, peak_memory, product_peak, ratio, update
from nlstm_lab.cells import HMLSTM, LayerNormLSTM
from nlstm_lab.cells.fast import disabled
from nlstm_lab.cells.fast.compiling import compiled, lacking
from nlstm_lab.training.state import machine

HIDDEN_SIZES = (64, 128, 256, 512)
LAYERS, EMBEDDING, BATCH, STEPS = 3, 128, 64, 100  # of the HM-RNN paper's rows on the Penn Treebank
LOOP = "loop over the readable step"


def measured(rounds: int = 5) -> Iterator[dict[str, Any]]:
    """Measure a training step, forward and backward, of each network of three normalized layers, on the CPU.

    The LayerNorm LSTM has the loop alone: as a baseline of one row it was not worth a derived backward of its own.

    Yields:
        A row for each network, width and variant: `times_loop` is the median over rounds of the loop's seconds by the
        variant's, `of_peak` the share of the measured peak of one large product, `memory_vs_loop` that of the most
        bytes held.
    """
    device = torch.device("cpu")
    peak = product_peak("fp32", device)
    for size in HIDDEN_SIZES:
        torch.manual_seed(0)
        x, weight = torch.randn(STEPS, BATCH, EMBEDDING), torch.randn(STEPS, BATCH, size)
        networks: dict[str, nn.Module] = {
            "HM-LSTM": HMLSTM(EMBEDDING, size, LAYERS, layer_norm=True),
            "LayerNorm LSTM": LayerNormLSTM(EMBEDDING, size, LAYERS),
        }
        for name, network in networks.items():
            step = partial(update, network, x, weight)
            steps: dict[str, Callable[[], None]] = {LOOP: inside(step, disabled)}
            if name == "HM-LSTM":
                steps["derived backward"] = step
                if not lacking("cpu"):
                    steps["derived backward, compiled"] = inside(step, compiled)
            seconds = dict(zip(steps, alternate(list(steps.values()), rounds, device, again=True), strict=True))
            held = {variant: peak_memory(steps[variant], device) for variant in steps}
            gflop = 6 * sum(p.numel() for p in network.parameters() if p.dim() == 2) * BATCH * STEPS / 1e9
            for variant, taken in seconds.items():
                yield {
                    "network": name,
                    "hidden_size": size,
                    "variant": variant,
                    "times_loop": ratio(seconds[LOOP], taken),
                    "ms": 1e3 * median(taken),
                    "of_peak": gflop / median(taken) / peak,
                    "memory_vs_loop": held[variant] / held[LOOP],
                }


def record_steps(rows: list[dict[str, Any]], name: str) -> None:
    """Keep measured rows, and the machine that they are of, as `data/bench/hmlstm-<name>.csv`."""
    here = machine()
    frame = pd.DataFrame([row | here | {"cuda": ", ".join(here["cuda"])} for row in rows])
    text = frame.to_csv(index=False, float_format="%.3g", lineterminator="\n")
    paths.write(paths.bench() / f"hmlstm-{name}.csv", text)


def recorded_steps() -> pd.DataFrame:
    """Read what `nlstm-lab bench hmlstm --record NAME` measured on each machine.

    Returns:
        The rows of `measured` under `machine`, its name, with columns that tell of it; one machine after the other.
    """
    files = {file.stem.removeprefix("hmlstm-"): file for file in sorted(paths.bench().glob("hmlstm-*.csv"))}
    frames = {name: pd.read_csv(file, keep_default_na=False) for name, file in files.items()}
    return pd.concat(frames, names=["machine"]).reset_index("machine").reset_index(drop=True)
