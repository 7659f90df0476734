"""The first signal asks, its echo is nothing, and a later one acts as it always does."""

import signal
import threading

import pytest

from nlstm_lab.training import loop
from nlstm_lab.training.loop import listening

TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def clock(monkeypatch):
    """The time that signals are outcome, in its only element."""
    now = [100.0]
    monkeypatch.setattr(loop.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture(autouse=True)
def usual():
    """Handlers as in a terminal: in the background SIGINT may be ignored, and under nohup SIGHUP is."""
    before = {signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_first_signal_asks_and_its_echo_is_nothing(clock):
    with listening() as request:
        assert request.name is None
        signal.raise_signal(signal.SIGTERM)
        clock[0] += 0.9 * loop.ECHO
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert request.name == "SIGTERM"


def test_a_later_signal_acts_as_it_always_does(clock):
    with listening() as request:
        signal.raise_signal(signal.SIGTERM)
        clock[0] += 1.1 * loop.ECHO
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert request.name == "SIGTERM"


def test_the_handlers_are_put_back_whatever_came():
    before = [signal.getsignal(number) for number in TAKEN]

    def fails():
        with listening():
            assert [signal.getsignal(number) for number in TAKEN] != before
            signal.raise_signal(signal.SIGINT)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert [signal.getsignal(number) for number in TAKEN] == before


def test_a_closed_terminal_asks_unless_nohup_ignores_it():
    with listening() as request:
        signal.raise_signal(signal.SIGHUP)
        assert request.name == "SIGHUP"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with listening() as request:
            signal.raise_signal(signal.SIGHUP)
            assert request.name is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_takes_nothing():
    before, outcome = [signal.getsignal(number) for number in TAKEN], []

    def train():
        with listening() as request:
            outcome.append((request.name, [signal.getsignal(number) for number in TAKEN]))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert outcome == [(None, before)]
