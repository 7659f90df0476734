"""What is compared: one training step of the same network, forward and backward, computed in different ways."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab.cells import LSTM, LSTMCell, NestedLSTM, NestedLSTMCell, precision
from nlstm_lab.cells.fast import memory
from nlstm_lab.cells.fast.compiling import compiled, lacking
from nlstm_lab.cells.precision import Precision, exact_kernels, exact_products, has_bf16, onednn_is_faster

Step = Callable[[], Any]
PEAK_SIZE = {"cpu": 1024, "cuda": 8192}  # rows and columns: of a GPU's time for fewer, launching takes the most


@dataclass(frozen=True)
class Size:
    """A training step's size; the default is the paper's PTB model."""

    hidden_size: int = 600
    vocabulary: int = 50
    batch: int = 32
    steps: int = 99

    @property
    def gflop(self) -> float:
        """Multiplications and additions of the products, forward and backward, of a Nested LSTM of depth 2."""
        H = self.hidden_size
        weights = 4 * H * (self.vocabulary + 3 * H)
        return 6 * weights * self.batch * self.steps / 1e9


@dataclass(frozen=True)
class Variant:
    """A way to compute the step, and its `products`; on CUDA cuDNN's autocast is in fp16, and counts as bf16."""

    name: str
    network: Literal["NestedLSTM", "2-layer LSTM"]
    products: Precision
    step: Step


class NaiveNestedLSTM(nn.Module):
    """Depth 2, one layer, with the parameters of `network`: input [T, B, input_size] to h of every step."""

    def __init__(self, network: NestedLSTM) -> None:
        super().__init__()
        self.outer = cast(NestedLSTMCell, network.cells[0])
        self.inner = cast(LSTMCell, self.outer.memory)

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


def variants(size: Size, device: torch.device) -> Iterator[Variant]:
    """Every way that this machine can compute a step of this size on `device`."""
    torch.manual_seed(0)
    make = partial(torch.randint, size.vocabulary, (size.steps, size.batch), device=device)
    symbols = make()
    vectors = nn.functional.one_hot(symbols, size.vocabulary).float()
    weight = torch.randn(size.steps, size.batch, size.hidden_size, device=device)
    sizes: Any = {"input_size": size.vocabulary, "hidden_size": size.hidden_size}
    nested, stacked = NestedLSTM(**sizes, device=device), LSTM(**sizes, num_layers=2, device=device)
    plain, torchs = NaiveNestedLSTM(nested), nn.LSTM(**sizes, num_layers=2, device=device)
    naive, kernel = partial(update, plain, vectors, weight), partial(update, torchs, vectors, weight)
    fast, layers = partial(update, nested, symbols, weight), partial(update, stacked, symbols, weight)
    bf16, compiles = has_bf16(device), not lacking(device.type)

    yield Variant("naive loop", "NestedLSTM", "fp32", naive)
    if device.type == "cpu" and onednn_is_faster():
        yield Variant("naive loop, oneDNN", "NestedLSTM", "fp32", inside(naive, lambda: exact_products(device)))
    if bf16:
        yield Variant("naive loop, autocast", "NestedLSTM", "bf16", inside(naive, lambda: _autocast(device)))
    for products in ("fp32", "bf16") if bf16 else ("fp32",):
        chosen: Precision = "bf16" if products == "bf16" else "fp32"
        at = partial(precision, chosen)
        yield Variant("fast", "NestedLSTM", chosen, inside(fast, at))
        if compiles:
            yield Variant("fast, compiled", "NestedLSTM", chosen, inside(fast, at, compiled))
        yield Variant("fast", "2-layer LSTM", chosen, inside(layers, at))
    yield Variant("nn.LSTM", "2-layer LSTM", "fp32", inside(kernel, exact_kernels))
    if bf16:
        yield Variant("nn.LSTM, autocast", "2-layer LSTM", "bf16", inside(kernel, lambda: _autocast(device)))


def update(network: nn.Module, x: Tensor, weight: Tensor) -> None:
    """Forward, and the gradient of a weighed sum of the outputs with respect to every parameter."""
    for parameter in network.parameters():
        parameter.grad = None
    result = network(x)
    output = result[0] if isinstance(result, tuple) else result
    output.backward(weight.to(output.dtype))


def inside(step: Step, *contexts: Callable[[], Any]) -> Step:
    """The step, run inside of contexts that are made anew each time."""

    def wrapped() -> None:
        with ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            step()

    return wrapped


@contextmanager
def _autocast(device: torch.device) -> Iterator[None]:
    with torch.autocast(device.type, torch.bfloat16):
        yield


def alternate(
    steps: Sequence[Callable[[], Any]], rounds: int, device: torch.device, again: bool = False
) -> list[list[float]]:
    """Seconds of each step in each of `rounds` rounds, after a run alone; compare within a round.

    With `again`, a step is run twice in its turn and the second is timed: as in training, it follows its own kind.
    """
    for step in steps:
        for _ in range(5 if device.type == "cuda" else 1):
            step()
    seconds: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for step, measured in zip(steps, seconds, strict=True):
            if again:
                step()
            _wait(device)
            begin = time.perf_counter()
            step()
            _wait(device)
            measured.append(time.perf_counter() - begin)
    return seconds


def ratio(theirs: list[float] | None, ours: list[float]) -> float:
    """How many times faster ours is, the median over rounds; NaN where there is nothing to compare with."""
    return median(a / b for a, b in zip(theirs, ours, strict=True)) if theirs else float("nan")


def product_peak(products: Precision, device: torch.device) -> float:
    """GFLOP/s of a large square product, by the faster library: what no recurrent step can exceed."""
    size = PEAK_SIZE[device.type]
    left, right = (torch.randn(size, size, device=device) for _ in range(2))
    if products == "bf16":
        left, right = left.bfloat16(), right.bfloat16()
    with exact_products(device):
        with_switch = median(alternate([lambda: left @ right], 5, device)[0])
    without = median(alternate([lambda: left @ right], 5, device)[0])
    return 2 * size**3 / 1e9 / min(with_switch, without)


def peak_memory(step: Callable[[], Any], device: torch.device) -> int:
    """The most bytes that a step holds at a time, beyond what is there before it."""
    step()  # whatever is done once, is done
    memory.forget()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        return torch.cuda.max_memory_allocated(device) - before
    with torch.profiler.profile(profile_memory=True) as profile:
        step()
    held = peak = 0
    recorded: Any = profile.profiler
    events = [event for event in recorded.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
