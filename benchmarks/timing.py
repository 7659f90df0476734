"""What the benchmarks share: steps that take turns, peaks of arithmetic and memory, and where a record goes."""

import argparse
import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from nlstm_lab import paths
from nlstm_lab.training.state import machine

PEAK_SIZE = {"cpu": 1024, "cuda": 8192}  # rows and columns: of a GPU's time for fewer, launching takes the most


def arguments(description: str, rounds: int = 5) -> argparse.ArgumentParser:
    """The options of every benchmark: how often each variant runs, and the name under which the result is kept."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=_positive, default=rounds, help="times that every variant runs, in turn")
    parser.add_argument("--record", type=_word, metavar="NAME", help="a word for this machine: keeps the result")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return int(text)


def _word(text: str) -> str:
    if not re.fullmatch(r"\w+", text):
        raise argparse.ArgumentTypeError(f"must be a word of letters, digits and underscores, not {text!r}")
    paths.writable(paths.bench())  # before anything is measured
    return text


def write_csv(rows: list[dict[str, Any]], path: Path) -> None:
    """Keep measured rows, each with the machine and the version that it is of."""
    here = machine()
    here |= {"cuda": ", ".join(here["cuda"]), "nlstm_lab": version("nlstm-lab")}
    frame = pd.DataFrame([row if "torch" in row else row | here for row in rows])  # of kept rows their own
    paths.write(path, frame.to_csv(index=False, float_format="%.3g", lineterminator="\n"))


def update(network: nn.Module, x: Tensor, weight: Tensor) -> None:
    """Forward, and the gradient of a weighted sum of the outputs with respect to every parameter."""
    for parameter in network.parameters():
        parameter.grad = None
    result = network(x)
    output = result[0] if isinstance(result, tuple) else result
    output.backward(weight.to(output.dtype))


def inside(step: Callable[[], Any], *contexts: Callable[[], Any]) -> Callable[[], None]:
    """The step, run inside of contexts that are made anew each time."""

    def wrapped() -> None:
        with ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            step()

    return wrapped


def alternate(
    steps: Sequence[Callable[[], Any]], rounds: int, device: torch.device, again: bool = False
) -> list[list[float]]:
    """Seconds of each step in each of `rounds` rounds, after a run alone; compare within a round.

    With `again`, a step is run twice in its turn and the second is timed: as in training, it follows its own kind.
    """
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    for step in steps:
        for _ in range(5 if device.type == "cuda" else 1):
            step()
    seconds: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for step, measured in zip(steps, seconds, strict=True):
            if again:
                step()
            wait()
            begin = time.perf_counter()
            step()
            wait()
            measured.append(time.perf_counter() - begin)
    return seconds


def ratio(theirs: list[float], ours: list[float]) -> float:
    """How many times faster ours is, the median over rounds."""
    return median(a / b for a, b in zip(theirs, ours, strict=True))


def product_peak(dtype: torch.dtype, device: torch.device) -> float:
    """GFLOP/s of a large square product: what no recurrent step can exceed."""
    size = PEAK_SIZE[device.type]
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    return 2 * size**3 / 1e9 / median(alternate([lambda: left @ right], 5, device)[0])


def peak_memory(step: Callable[[], Any], device: torch.device) -> int:
    """The most bytes that a step holds at a time, beyond what is there before it."""
    step()  # whatever is done once, is done
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
