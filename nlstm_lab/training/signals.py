"""SIGINT, SIGTERM and SIGHUP while a training runs: the first asks it to save and stop, a later one acts as always."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# launchers, such as `timeout`, may send a signal to their process twice: the second one at once is not a wish
ECHO = 1.0  # seconds


@dataclass
class Request:
    """Whether a signal has asked to stop: its name, or None."""

    name: str | None = None
    at: float = 0.0


@contextmanager
def listening() -> Iterator[Request]:
    """Take signals as a request while the block runs; in another than the main thread nothing is taken."""
    request = Request()
    before: dict[signal.Signals, Any] = {}

    def handle(number: int, frame: Any) -> None:
        now = time.monotonic()
        if request.name is None:
            request.name, request.at = signal.Signals(number).name, now
        elif now - request.at > ECHO:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)

    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, handle)
    except ValueError:  # not the main thread: whoever started this thread handles signals
        yield request
        return
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
