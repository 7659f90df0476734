"""A training step of an HM-LSTM, its readable steps one after the other and its fast path, at four widths.

python benchmarks/hmlstm.py --record one_thread   # keeps data/bench/hmlstm-one_thread.csv for notebook 92
"""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import torch
from timing import alternate, arguments, inside, peak_memory, product_peak, ratio, update, write_csv
from torch import nn

from nlstm_lab import paths
from nlstm_lab.cells import HMLSTM, LayerNormLSTM
from nlstm_lab.cells.fast import compiled, disabled, lacking

HIDDEN_SIZES = (64, 128, 256, 512)
LAYERS, EMBEDDING, BATCH, STEPS = 3, 128, 64, 100  # of the HM-RNN paper's rows on the Penn Treebank
LOOP = "loop over the readable step"


def measured(rounds: int) -> Iterator[dict[str, Any]]:
    """A row for each network of three normalized layers, width and variant, on the CPU.

    The LayerNorm LSTM has the loop alone: as a baseline of one row it was not worth a fast path of its own.
    """
    device = torch.device("cpu")
    peak = product_peak(torch.float32, device)
    for size in HIDDEN_SIZES:
        torch.manual_seed(0)
        x, weight = torch.randn(STEPS, BATCH, EMBEDDING), torch.randn(STEPS, BATCH, size)
        hmlstm = HMLSTM(EMBEDDING, size, LAYERS, layer_norm=True)
        networks: dict[str, nn.Module] = {"HM-LSTM": hmlstm, "LayerNorm LSTM": LayerNormLSTM(EMBEDDING, size, LAYERS)}
        for name, network in networks.items():
            step = partial(update, network, x, weight)
            steps: dict[str, Callable[[], None]] = {LOOP: inside(step, disabled)}
            if network is hmlstm:
                steps["fast"] = step
                if not lacking("cpu"):
                    steps["fast, compiled"] = inside(step, compiled)
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


def main() -> None:
    given = arguments(__doc__ or "").parse_args()
    rows = []
    for row in measured(given.rounds):
        rows.append(row)
        print(", ".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    if given.record:
        write_csv(rows, paths.bench() / f"hmlstm-{given.record}.csv")


if __name__ == "__main__":
    main()
