"""The cache: at once or not at all, whatever happens in between."""

import multiprocessing
import os

import numpy as np
import pytest

from nlstm_lab.datasets.files import Parsed, cached
from nlstm_lab.errors import LabError


def numbers():
    return Parsed({"numbers": np.arange(1000)}, {"what": "numbers", "text": "ä"})


def never():
    raise AssertionError("the cache should have been used")


def test_the_second_opening_maps_what_the_first_has_built(home):
    built = cached("set", (), numbers, length=3)
    again = cached("set", (), never, length=3)
    assert isinstance(again.arrays["numbers"], np.memmap)
    assert again.facts == built.facts == {"what": "numbers", "text": "ä"}
    np.testing.assert_array_equal(again.arrays["numbers"], np.arange(1000))


def test_other_settings_and_changed_sources_are_other_entries(home):
    source = home / "source"
    source.write_bytes(b"1")
    os.utime(source, (1e9, 1e9))
    cached("set", [source], numbers, length=3)
    with pytest.raises(AssertionError):
        cached("set", [source], never, length=4)
    source.write_bytes(b"2")  # of the same size and time
    os.utime(source, (1e9, 1e9))
    with pytest.raises(AssertionError):
        cached("set", [source], never, length=3)


@pytest.mark.parametrize("what", ["manifest.json", "numbers.npy"])
@pytest.mark.parametrize("damage", ["gone", "cut", "empty"])
def test_a_damaged_entry_is_built_anew(home, what, damage):
    cached("set", (), numbers)
    (file,) = (home / "cache").glob(f"set-*/{what}")
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:50] if damage == "cut" else b"")
    np.testing.assert_array_equal(cached("set", (), numbers).arrays["numbers"], np.arange(1000))
    np.testing.assert_array_equal(cached("set", (), never).arrays["numbers"], np.arange(1000))
    assert len(list((home / "cache").iterdir())) == 1  # nothing is left over


def test_a_cache_that_cannot_be_written_says_where_to_turn(home):
    (home / "cache").write_text("a file where the folder should be")
    with pytest.raises(LabError, match="NLSTM_LAB_CACHE") as caught:
        cached("set", (), numbers)
    assert "\n" not in str(caught.value)


def _open(barrier, results):
    def build():
        barrier.wait()
        return Parsed({"numbers": np.arange(200_000)}, {})

    results.put(int(cached("set", (), build).arrays["numbers"].sum()))


@pytest.mark.slow
def test_two_processes_that_build_one_entry_at_once_both_have_it(home):
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(2), context.SimpleQueue()
    processes = [context.Process(target=_open, args=(barrier, results)) for _ in range(2)]
    for process in processes:
        process.start()
    sums = [results.get() for _ in processes]
    for process in processes:
        process.join()
    assert sums == [sum(range(200_000))] * 2
    assert len(list((home / "cache").iterdir())) == 1
