"""What only some machines have, and the fast paths at every size."""

import pytest

from nlstm_lab.cells import fast
from nlstm_lab.cells.fast import lacking, unrolled


@pytest.fixture(autouse=True, scope="module")
def _however_small():
    """The small layers of tests take the fast paths, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unrolled, "EAGER_FROM", 0)
        yield


@pytest.fixture
def compiler(device, monkeypatch):
    """Skips where inductor cannot compile (importing it takes seconds), and sees to it that something was compiled."""
    if what := lacking(device.type):
        pytest.skip(f"inductor does not compile here: {what}")
    monkeypatch.setattr(fast, "_compiled", {})
    yield
    assert fast._compiled
