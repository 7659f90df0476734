"""The networks among which a widget's user chooses, by name: runs, networks, or what a RunBrowser picks."""

from collections.abc import Iterable
from typing import Any

import torch

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.runs import Run
from nlstm_lab.widgets.runs import RunBrowser

Given = Run | Network | RunBrowser | Iterable[Run | Network]


class Networks:
    """Runs and networks by name; a run's weights are read when it is first chosen."""

    def __init__(self, given: Given) -> None:
        self._browser = given if isinstance(given, RunBrowser) else None
        self._read: dict[str, Network] = {}
        self._given: dict[str, Run | Network] = {}
        self._offer(given)

    def _offer(self, given: Given) -> None:
        if isinstance(given, Run | Network):
            each: list[Run | Network] = [given]
        else:
            offered = given.chosen() if isinstance(given, RunBrowser) else given
            each = [one for one in offered if isinstance(one, Network) or one.has_weights]
        if not each:
            raise UsageError("there is no run with weights to choose from: hand in a run, or pick one")
        self._given = {one.name: one for one in each}

    def follow(self, widget: Any) -> None:
        """Let a widget with `runs` and `run` offer what is picked in the browser, if its networks come from one."""

        def changed(change: Any) -> None:
            if any(run.has_weights for run in self._browser.chosen()):  # type: ignore[union-attr]
                self._offer(self._browser)  # type: ignore[arg-type]
                widget.runs = self.names
                if widget.run not in self.names:
                    widget.run = self.names[0]

        if self._browser is not None:
            self._browser.observe(changed, "picked")

    @property
    def names(self) -> list[str]:
        """All names, in the order in which they were given."""
        return list(self._given)

    def __getitem__(self, name: str) -> Network:
        """The network of that name; UsageError where it was not given."""
        one = self._of(name)
        if isinstance(one, Network):
            return one
        if name not in self._read:
            self._read[name] = _laid_out(one.model())
        return self._read[name]

    def seed(self, name: str) -> int:
        """The seed of a run, 0 for a network of one's own."""
        one = self._of(name)
        return one.seed if isinstance(one, Run) else 0

    def _of(self, name: str) -> Run | Network:
        if name not in self._given:
            raise UsageError(f"there is no run {name!r} to choose here; there is {', '.join(self._given)}")
        return self._given[name]


def _laid_out(network: Network) -> Network:
    """The same network, its matrices lying the other way round in memory.

    A text is read one step at a time, and a step multiplies a single row: so it takes half as long. A network that
    was handed in stays as it is, since others hold it too.
    """
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 2:
                parameter.data = parameter.data.t().contiguous().t()
    return network
