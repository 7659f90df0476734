"""What is left of what was written is a product of forget gates, and the parts sum to the state."""

import numpy as np
import pytest

from nlstm_lab.cells import LSTM, LayerNormLSTM, NestedLSTM
from nlstm_lab.probes import retention, trace


@pytest.mark.parametrize(
    ("kind", "flags", "memory"),
    [
        (LSTM, {}, "cell"),
        (LSTM, {"num_layers": 2}, "layer 1"),
        (LayerNormLSTM, {}, "cell"),
        (NestedLSTM, {}, "inner"),
        (NestedLSTM, {"depth": 3, "num_layers": 2}, "layer 2 inner"),
    ],
)
def test_it_is_numpys_product_and_the_parts_sum_to_the_state(network, text, kind, flags, memory):
    traced = trace(network(kind, scale=3.0, **flags), text[:120])
    found = retention(traced, memory, [3, -1, 60], [1, 6])
    assert found.attrs["memory"] == memory
    i, f, g, c = (traced[gate].sel(memory=memory).values.astype(np.float64)[:, [1, 6]] for gate in "ifgc")
    for row, step in enumerate((3, 119, 60)):
        for source in range(120):
            left = np.prod(f[source + 1 : step + 1], 0) if source <= step else 0.0
            np.testing.assert_allclose(found.left[row, source], np.broadcast_to(left, 2), rtol=1e-5, atol=1e-12)
            np.testing.assert_allclose(found.part[row, source], left * i[source] * g[source], rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(found.part[row].sum("source"), c[step], atol=3e-6)
    assert "".join(found.symbol.values) == text[:120]
