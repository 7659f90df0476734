"""One training step of a Nested LSTM computed in different ways, beside nn.LSTM; and an HM-LSTM that reads one text.

python benchmarks/steps.py --rounds 7 --record two_cores   # keeps data/bench/two_cores.json for notebook 92
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from statistics import median
from typing import Any

import pandas as pd
import torch
import torch.nn.functional as F
from timing import alternate, arguments, inside, peak_memory, product_peak, ratio, update
from torch import Tensor, nn

from nlstm_lab import paths
from nlstm_lab.cells import HMLSTM, LSTM, NestedLSTM, precision
from nlstm_lab.cells.fast import compiled, disabled, exact_kernels, has_bf16, lacking
from nlstm_lab.training.state import machine
from nlstm_lab.training.updating import WARM, aside, captured


@dataclass(frozen=True)
class Size:
    """A training step's size; the default is the paper's Penn Treebank network."""

    hidden_size: int = 600
    vocabulary: int = 50
    batch: int = 32
    steps: int = 99

    @property
    def gflop(self) -> float:
        """Multiplications and additions of the products, forward and backward, of a Nested LSTM of depth 2."""
        return 6 * 4 * self.hidden_size * (self.vocabulary + 3 * self.hidden_size) * self.batch * self.steps / 1e9


SIZES = (Size(), Size(hidden_size=200), Size(hidden_size=100, vocabulary=49, batch=128, steps=20))
# shares of boundaries in layers 1 and 2 of an HM-LSTM that reads: many, those of figure 4 of its paper, few
RATES = ((0.5, 0.2), (0.21, 0.033), (0.1, 0.01))


class NaiveNestedLSTM(nn.Module):
    """Depth 2, one layer, with the parameters of `network`: input [T, B, input_size] to h of every step."""

    def __init__(self, network: NestedLSTM) -> None:
        super().__init__()
        self.outer: Any = network.cells[0]
        self.inner = self.outer.memory

    def forward(self, x: Tensor) -> Tensor:
        outer, inner = self.outer, self.inner
        h = c = n = x.new_zeros(x.shape[1], outer.hidden_size)
        hidden = []
        for t in range(x.shape[0]):
            gates = F.linear(x[t], outer.weight_ih, outer.bias) + F.linear(h, outer.weight_hh)
            i, f, g, o = gates.chunk(4, 1)
            i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)
            gates = F.linear(i * g, inner.weight_ih, inner.bias) + F.linear(f * c, inner.weight_hh)
            ii, ff, gg, oo = gates.chunk(4, 1)
            n = torch.sigmoid(ff) * n + torch.sigmoid(ii) * torch.tanh(gg)
            c = torch.sigmoid(oo) * torch.tanh(n)
            h = o * torch.tanh(c)
            hidden.append(h)
        return torch.stack(hidden)


def graph(step: Any, device: torch.device) -> Any:
    """The step as one CUDA graph."""
    for _ in range(WARM):
        with aside(device):
            step()
    return captured(step)


def variants(size: Size, device: torch.device) -> Iterator[tuple[str, str, str, Any]]:
    """Every way this machine can compute a step: its name, the network, the products' type, and the step."""
    torch.manual_seed(0)
    symbols = torch.randint(size.vocabulary, (size.steps, size.batch), device=device)
    vectors = F.one_hot(symbols, size.vocabulary).float()
    weight = torch.randn(size.steps, size.batch, size.hidden_size, device=device)
    nested = NestedLSTM(size.vocabulary, size.hidden_size, device=device)
    stacked = LSTM(size.vocabulary, size.hidden_size, 2, device=device)
    naive = partial(update, NaiveNestedLSTM(nested), vectors, weight)
    kernel = partial(update, nn.LSTM(size.vocabulary, size.hidden_size, 2, device=device), vectors, weight)
    autocast = partial(torch.autocast, device.type, torch.bfloat16)  # fp16 in cuDNN's kernels, where torch has it so
    bf16 = has_bf16(device)

    yield "naive loop", "NestedLSTM", "fp32", naive
    if bf16:
        yield "naive loop, autocast", "NestedLSTM", "bf16", inside(naive, autocast)
    for products in ("fp32", "bf16") if bf16 else ("fp32",):
        at: Any = partial(precision, products)
        step = partial(update, nested, symbols, weight)
        yield "fast", "NestedLSTM", products, inside(step, at)
        if not lacking(device.type):
            yield "fast, compiled", "NestedLSTM", products, inside(step, at, compiled)
        if device.type == "cuda":  # as training makes its updates there
            yield "fast, one graph", "NestedLSTM", products, graph(inside(step, at, compiled), device)
        yield "fast", "2-layer LSTM", products, inside(partial(update, stacked, symbols, weight), at)
    yield "nn.LSTM", "2-layer LSTM", "fp32", inside(kernel, exact_kernels)
    if bf16:
        yield "nn.LSTM, autocast", "2-layer LSTM", "bf16", inside(kernel, autocast)


def measured(size: Size, device: torch.device, rounds: int) -> list[dict[str, Any]]:
    """A row for each variant: ratios are medians over rounds of the other's seconds by ours."""
    ways = list(variants(size, device))
    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16}
    peaks = {products: product_peak(dtypes[products], device) for products in {way[2] for way in ways}}
    held = [peak_memory(step, device) for *_, step in ways]
    seconds = alternate([step for *_, step in ways], rounds, device)
    by_name = {(name, products): taken for (name, _, products, _), taken in zip(ways, seconds, strict=True)}
    return [
        {
            **asdict(size),
            "device": device.type,
            "variant": name,
            "unit": network,
            "products": products,
            "vs_naive": ratio(seconds[0], taken),
            "vs_nn_lstm": ratio(by_name["nn.LSTM" if products == "fp32" else "nn.LSTM, autocast", products], taken),
            "ms": 1e3 * median(taken),
            "gflops": size.gflop / median(taken),
            "of_peak": size.gflop / median(taken) / peaks[products],
            "memory_vs_naive": most / held[0],
        }
        for (name, network, products, _), taken, most in zip(ways, seconds, held, strict=True)
    ]


def read(rates: tuple[float, ...], rounds: int, hidden_size: int = 512, steps: int = 300) -> dict[str, Any]:
    """Sparse against dense reading, batch 1, of an untrained HM-LSTM whose z = 1 at about these rates."""
    torch.manual_seed(0)
    network, x = HMLSTM(hidden_size, hidden_size, len(rates) + 1), torch.randn(steps, 1, hidden_size)

    def fired() -> tuple[float, ...]:  # step by step: the state says it, and the sparse reader is quick
        state, z = None, []
        for step in torch.split(x, 1):
            state = network(step, state)[1]
            z.append(state[2][:-1, 0])
        return tuple(torch.stack(z).mean(0).tolist())

    with torch.no_grad():
        for k, rate in enumerate(rates):  # the detectors' biases are halved in on, lowest layer first
            bias: Any = network.cells[k].bias
            low, high = -8.0, 8.0
            for _ in range(12):
                bias[-1] = (low + high) / 2
                low, high = ((low + high) / 2, high) if fired()[k] < rate else (low, (low + high) / 2)
        slow, fast = alternate([inside(lambda: network(x), disabled), lambda: network(x)], rounds, x.device)
        found = {"hidden_size": hidden_size, "rates": fired(), "ratio": ratio(slow, fast)}
    return found | {"dense_ms_per_step": 1e3 * median(slow) / steps, "sparse_ms_per_step": 1e3 * median(fast) / steps}


def main() -> None:
    given = arguments(__doc__ or "", rounds=7).parse_args()
    devices = [torch.device("cpu")] + [torch.device("cuda")] * torch.cuda.is_available()
    rows = [row for size in SIZES for device in devices for row in measured(size, device, given.rounds)]
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.2f}".format, na_rep=""))
    readings = [read(rates, given.rounds) for rates in RATES]
    print(pd.DataFrame(readings).to_string(index=False, float_format="{:.3f}".format))
    if given.record:
        measured_with = machine() | {"nlstm_lab": version("nlstm-lab")}
        content = {"machine": measured_with, "rounds": given.rounds, "training": rows, "reading": readings}
        text = json.dumps(content, indent=1).replace("NaN", "null")
        paths.write(paths.bench() / f"{given.record}.json", text + "\n")


if __name__ == "__main__":
    main()
