"""One training in several processes: each takes its rows of every batch, and all take the same step."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nlstm_lab.datasets.base import Batch


@dataclass(frozen=True)
class Group:
    """The processes of one training. Alone, every method gives back what it is given."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes what there is to write."""
        return self.rank == 0

    def wrap(self, network: nn.Module) -> nn.Module:
        """The network whose backward averages the gradients over all processes."""
        if self.size == 1:
            return network
        # Its group's threads outlive `joined`. Were it the group that talks last, one of them could still hold a tensor
        # when Python ends, and abort the process.
        return DistributedDataParallel(network, process_group=dist.new_group())

    def rows(self, batch: Batch) -> tuple[Batch, float]:
        """This process's rows of a batch, and the weight of what they count.

        Where a batch has fewer rows than there are processes, those without one read the first row at weight 0.
        """
        if self.size == 1:
            return batch, 1.0
        places = torch.arange(batch.inputs.shape[1]).tensor_split(self.size)[self.rank]
        weight = float(len(places) > 0)
        chosen = places if weight else torch.zeros(1, dtype=torch.int64)
        mask = None if batch.mask is None else _columns(batch.mask, chosen)
        return Batch(_columns(batch.inputs, chosen), _columns(batch.targets, chosen), mask, batch.fresh), weight

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.size > 1:
            values = values.clone()
            dist.all_reduce(values)
        return values

    def gather(self, value: Any) -> list[Any]:
        """What every process holds, in the order of their ranks; only the first process gets the list."""
        if self.size == 1:
            return [value]
        gathered: list[Any] = [None] * self.size
        dist.gather_object(value, gathered if self.first else None)
        return gathered

    def broadcast(self, value: Any) -> Any:
        """What the first process holds."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box)
        return box[0]


ALONE = Group()


@contextmanager
def joined(device: torch.device) -> Iterator[tuple[Group, torch.device]]:
    """Join the processes that torchrun started (`ALONE` where it did not), each on a GPU of its own where it is GPUs.

    The processes must see the same folder of runs.
    """
    if not dist.is_available() or not dist.is_torchelastic_launched():
        yield ALONE, device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    group = Group(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=_store(), rank=group.rank, world_size=group.size)
    try:
        yield group, device
    finally:
        dist.destroy_process_group()


def _store() -> Any:
    """Where the processes find each other.

    torchrun's own store outlives a restart, and with it the addresses of processes that are gone: every attempt gets
    a part of its own. (Agents on several machines may count attempts differently: there let torchrun start a new store
    each time, TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1.)
    """
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    c10d: Any = dist  # the stores are not declared among its names
    store = c10d.TCPStore(address, port, is_master=not shared and os.environ["RANK"] == "0", multi_tenant=not shared)
    return c10d.PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"] if shared else "", store)


def _columns(values: Tensor, places: Tensor) -> Tensor:
    """Sequences of a batch: the second dimension of [T, B, ...], the first of [B]."""
    return values.index_select(min(1, values.dim() - 1), places)
