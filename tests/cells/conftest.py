"""What only some machines have."""

import pytest

from nlstm_lab.cells.fast.compiling import lacking


@pytest.fixture
def compiler() -> None:
    """Skips where inductor cannot compile; asked by the test, since the answer takes seconds of importing."""
    if what := lacking("cpu"):
        pytest.skip(f"inductor does not compile here: {what}")
