"""Processes forked off one that has imported everything: each costs a fraction of a second, and starts as a fresh one.

That one is started by whoever needs it first in a process of pytest. Workers of dask are forked off it, too, where a
test asks for it with `forked_workers`.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlstm_lab import paths

if TYPE_CHECKING:
    import pytest

OWN = sorted(path.relative_to(paths.PACKAGE.parent).with_suffix("") for path in paths.PACKAGE.rglob("*.py"))
server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload(
    [
        "torch._dynamo",  # what an optimizer imports when it is made, for seconds
        *("safetensors.torch", "matplotlib.pyplot", "seaborn", "captum.attr", "IPython.core.interactiveshell"),
        "distributed.nanny",
        *(".".join(path.parts).removesuffix(".__init__") for path in OWN if path.name != "__main__"),
    ]
)


class _Forked:
    """What dask starts its workers with: processes in the environment and folder of now."""

    Process = staticmethod(
        lambda target, args=(), name=None: server.Process(
            target=_run, name=name, args=(dict(os.environ), os.getcwd(), None, target, args)
        )
    )

    def __getattr__(self, name: str) -> Any:
        return getattr(server, name)


def forked_workers(monkeypatch: "pytest.MonkeyPatch") -> None:
    """Until the test ends, dask forks its workers off what has imported everything."""
    for module in ("distributed.nanny", "distributed.process"):
        monkeypatch.setattr(f"{module}.get_mp_context", _Forked)


def started(target: Callable[..., None], *arguments: Any, output: Path | None = None) -> BaseProcess:
    """A process that runs `target` in the environment and folder of now; what it prints goes into a file."""
    process = server.Process(target=_run, args=(dict(os.environ), os.getcwd(), output, target, arguments))
    process.start()
    return process


def _run(
    environment: dict[str, str],
    folder: str,
    output: Path | None,
    target: Callable[..., None],
    arguments: tuple[Any, ...],
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if output is not None:
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
    import torch

    torch.set_num_threads(1)
    target(*arguments)


def command_line(*arguments: str) -> None:
    """`nlstm-lab` with these arguments."""
    from nlstm_lab import cli

    sys.argv = ["nlstm-lab", *arguments]
    cli.main()
