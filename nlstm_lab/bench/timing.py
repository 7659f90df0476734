"""Medians of variants that take turns in one process, the memory of a step, and the machine's product peak."""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch

from nlstm_lab.cells.fast import memory
from nlstm_lab.cells.precision import Precision, exact_products

PEAK_SIZE = {"cpu": 1024, "cuda": 8192}  # rows and columns: of a GPU's time for fewer, launching takes the most


def alternate(steps: Sequence[Callable[[], Any]], rounds: int, device: torch.device) -> list[list[float]]:
    """Seconds of each step in each of `rounds` rounds, after a run alone; compare within a round."""
    for step in steps:
        for _ in range(5 if device.type == "cuda" else 1):
            step()
    seconds: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for step, measured in zip(steps, seconds, strict=True):
            _wait(device)
            begin = time.perf_counter()
            step()
            _wait(device)
            measured.append(time.perf_counter() - begin)
    return seconds


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
