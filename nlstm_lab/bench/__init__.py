"""How fast the cell types are: `nlstm-lab bench`. Ratios first, because they carry over to other machines.

What these arguments mean wherever they are taken:

    size, sizes: Of a training step: symbols in, `batch` sequences of `steps`.
    hidden_size, vocabulary, batch, steps: A network's width, its symbols, sequences side by side, their length.
    device, devices: cpu and cuda.
    rounds: How often each variant is run, in turn; a single one is a trial of the machinery and no measurement.
    rates: The shares of z = 1 in layers 1 and 2 of an HM-LSTM.
    readings: What `read` measured.
    frame: What `bench` measured.
    name: A word for the machine.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import torch

from nlstm_lab import paths
from nlstm_lab.bench.hmlstm import recorded_steps
from nlstm_lab.bench.reading import Reading, read
from nlstm_lab.bench.steps import Size, alternate, peak_memory, product_peak, ratio, variants
from nlstm_lab.bench.trainings import recorded_hours
from nlstm_lab.errors import UsageError
from nlstm_lab.training.state import machine

SIZES = (Size(), Size(hidden_size=200), Size(hidden_size=100, vocabulary=49, batch=128, steps=20))
# shares of boundaries in layers 1 and 2 of an HM-LSTM that reads: many, those of figure 4 of its paper, few
RATES = ((0.5, 0.2), (0.21, 0.033), (0.1, 0.01))

__all__ = [
    "RATES",
    "SIZES",
    "Reading",
    "Record",
    "Size",
    "bench",
    "read",
    "recorded",
    "recorded_hours",
    "recorded_steps",
    "report",
    "save",
    "table",
]


def bench(sizes: Sequence[Size] = SIZES, devices: Sequence[str] = ("cpu", "cuda"), rounds: int = 7) -> pd.DataFrame:
    """Measure each variant of the training step, at each size and on each device.

    Returns:
        A row for each size, device and variant. `vs_naive`, `vs_naive_onednn` and `vs_nn_lstm` are medians over rounds
        of the other's seconds by ours, the last in the same precision; `ms` the median; `gflops` what the products'
        arithmetic comes to a second, `of_peak` its share of the measured peak; `memory_vs_naive` that of the most bytes
        held. A device that is not here has one row, "unmeasured".
    """
    rows: list[dict[str, Any]] = []
    for size in sizes:
        for name in devices:
            if name == "cuda" and not torch.cuda.is_available():
                rows.append({**asdict(size), "device": name, "variant": "unmeasured"})
            else:
                rows += _measure(size, torch.device(name), rounds)
    return pd.DataFrame(rows)


def _measure(size: Size, device: torch.device, rounds: int) -> list[dict[str, Any]]:
    measured = list(variants(size, device))
    peaks = {products: product_peak(products, device) for products in {v.products for v in measured}}
    held = [peak_memory(variant.step, device) for variant in measured]
    seconds = alternate([variant.step for variant in measured], rounds, device)
    by_name = {(v.name, v.products): taken for v, taken in zip(measured, seconds, strict=True)}
    rows = []
    for variant, taken, size_held in zip(measured, seconds, held, strict=True):
        theirs = by_name["nn.LSTM" if variant.products == "fp32" else "nn.LSTM, autocast", variant.products]
        gflops = size.gflop / median(taken)
        row = {
            **asdict(size),
            "device": device.type,
            "variant": variant.name,
            "unit": variant.network,
            "products": variant.products,
            "vs_naive": ratio(seconds[0], taken),
            "vs_naive_onednn": ratio(by_name.get(("naive loop, oneDNN", "fp32")), taken),
            "vs_nn_lstm": ratio(theirs, taken),
            "ms": 1e3 * median(taken),
            "gflops": gflops,
            "of_peak": gflops / peaks[variant.products],
            "memory_vs_naive": size_held / held[0],
        }
        rows.append(row)
    return rows


def table(frame: pd.DataFrame) -> str:
    """Write the frame as text, a block for each size and device; below those of a GPU, what autocast means there."""
    shown = {"vs_naive": "{:.2f}", "vs_naive_onednn": "{:.2f}", "vs_nn_lstm": "{:.2f}", "ms": "{:.1f}"}
    shown |= {"gflops": "{:.0f}", "of_peak": "{:.0%}", "memory_vs_naive": "{:.2f}"}
    blocks = []
    keys = ["hidden_size", "vocabulary", "batch", "steps", "device"]
    for (hidden, vocabulary, batch, steps, device), block in frame.groupby(keys, sort=False):
        title = f"{hidden} units, {vocabulary} symbols, batch {batch}, {steps} steps, {device}"
        if (block["variant"] == "unmeasured").all():
            blocks.append(f"{title}: unmeasured, no such device here")
            continue
        body = block.drop(columns=keys)
        formatters = {name: (lambda value, form=form: form.format(value)) for name, form in shown.items()}
        text = body.to_string(index=False, formatters=formatters, na_rep="")
        fp16 = device == "cuda" and (block["variant"] == "nn.LSTM, autocast").any()
        note = "\n(nn.LSTM, autocast: in fp16 here, as torch has it for cuDNN's kernels)" if fp16 else ""
        blocks.append(f"{title}\n{text}{note}")
    return "\n\n".join(blocks)


def report(readings: Sequence[Reading]) -> str:
    """Write a line for each reading of one text with an HM-LSTM."""
    return "\n".join(
        f"HM-LSTM reading one text, 3 x {one.hidden_size}, boundary rates "
        f"{' and '.join(f'{rate:.3f}' for rate in one.rates)}: sparse {one.ratio:.2f} times as fast as dense "
        f"({one.sparse_ms_per_step:.3f} and {one.dense_ms_per_step:.3f} ms a step)"
        for one in readings
    )


def save(frame: pd.DataFrame, readings: Sequence[Reading], path: Path, rounds: int) -> None:
    """Write the machine, a record a row, and the readings to a file, as JSON.

    Args:
        path: The file.
    """
    rows = json.loads(frame.to_json(orient="records"))
    content = {
        "machine": machine(),
        "rounds": rounds,
        "training": rows,
        "reading": [asdict(reading) for reading in readings],
    }
    paths.write(path, json.dumps(content, indent=1) + "\n")


@dataclass(frozen=True)
class Record:
    """What `nlstm-lab bench --record NAME` left of a machine.

    Args:
        machine: `training.state.machine`.
        training, reading: Frames, one row a variant, and one a pair of rates.
    """

    name: str
    machine: dict[str, Any]
    rounds: int
    training: pd.DataFrame
    reading: pd.DataFrame

    def of(self, hidden_size: int, device: str = "cpu") -> pd.DataFrame:
        """Select the training steps of one size and device that were measured."""
        mine = self.training[(self.training["hidden_size"] == hidden_size) & (self.training["device"] == device)]
        return mine[mine["variant"] != "unmeasured"].reset_index(drop=True)


def recorded(name: str) -> Record:
    """Load a committed record of a machine.

    Raises:
        UsageError: There is none of that name; the message lists those that there are.
    """
    path = paths.bench() / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(path.stem for path in paths.bench().glob("*.json"))) or "none"
        raise UsageError(f"no benchmark is recorded as {name!r}; there are: {known}")
    content = json.loads(path.read_text())
    reading = pd.DataFrame(content["reading"])
    rates = pd.DataFrame(reading.pop("rates").tolist(), columns=["layer1", "layer2"])
    return Record(
        name,
        content["machine"],
        content["rounds"],
        pd.DataFrame(content["training"]),
        pd.concat([rates, reading], axis=1),
    )
