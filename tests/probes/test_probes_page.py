"""The page that says which probe answers what: its code runs, and what it calls exists."""

import re

import numpy as np
import pytest

from nlstm_lab import paths, probes

PAGE = paths.root() / "docs/site/reference/probes.md"


@pytest.mark.slow
def test_the_tasks_and_the_way_to_captum_run() -> None:
    found: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, found)
    assert not np.allclose(found["ablated"][50:], found["patched"][50:])
    assert found["characters"].attrs["missing"] < 0.01
    assert len(found["passages"]) == 6


def test_every_call_of_the_table_is_a_probe() -> None:
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    calls = {name for row in rows for name in re.findall(r"`([a-z_]+)\(", row)}
    assert len(calls) > 12
    assert calls <= set(probes.__all__)
