"""The machine that computes: what the last digits of a training, and all of its speed, depend on."""

import platform
from pathlib import Path
from typing import Any

import torch


def machine() -> dict[str, Any]:
    """The processor, the instructions and threads that torch uses, the GPUs, and torch's version."""
    cards = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    return {
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cuda": cards,
        "torch": str(torch.__version__),  # a plain string, as checkpoints hold
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
