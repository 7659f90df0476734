"""A whole training step as one CUDA graph: the launches are recorded once and replayed without the interpreter."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

WARM_UP = 3  # calls before the recording, in which libraries choose kernels and inductor compiles

Step = Callable[..., tuple[Tensor, ...]]


@dataclass
class _Recording:
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...] = ()
    graph: torch.cuda.CUDAGraph | None = None
    calls: int = 0


class Captured:
    """`step(*inputs) -> outputs`, recorded for each layout of its inputs at its fourth call, and replayed from then on.

    `step` is everything of one update: clear the gradients (to None), forward, backward, clip, optimizer. It must not
    wait for the device, and what changes between calls must be an input or live in tensors: an optimizer is made with
    `capturable=True` and, where a schedule changes it, a tensor as its learning rate. Every call trains, the first
    ones too. Outputs are valid until the next call. On a CPU the step runs plainly, on the same buffers.
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self.recordings: dict[tuple[object, ...], _Recording] = {}

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        layout = tuple((part.shape, part.dtype, part.device) for part in inputs)
        if layout not in self.recordings:
            self.recordings[layout] = _Recording(tuple(torch.empty_like(part) for part in inputs))
        recording = self.recordings[layout]
        for buffer, part in zip(recording.inputs, inputs, strict=True):
            buffer.copy_(part, non_blocking=True)
        recording.calls += 1
        if recording.graph is not None:
            recording.graph.replay()
        elif inputs[0].device.type != "cuda":
            recording.outputs = self.step(*recording.inputs)
        elif recording.calls <= WARM_UP:
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                recording.outputs = self.step(*recording.inputs)
            torch.cuda.current_stream().wait_stream(aside)
        else:
            recording.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(recording.graph):
                recording.outputs = self.step(*recording.inputs)
            recording.graph.replay()
        return recording.outputs
