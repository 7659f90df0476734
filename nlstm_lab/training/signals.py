"""SIGINT, SIGTERM and SIGHUP while a training runs: the first asks it to save and stop, a later one acts as always."""

import signal
import threading
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
    request, before = Request(), dict[int, Any]()

    def handle(number: int, frame: Any) -> None:
        if request.name is None:
            request.name, request.at = signal.Signals(number).name, time.monotonic()
        elif time.monotonic() - request.at > ECHO:
            signal.signal(number, before[number])
            signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN:  # as nohup has it
                before[one] = signal.signal(one, handle)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
