"""Time constants of modes beside those of units, drawn from given numbers."""

import numpy as np
import pandas as pd
import pytest

from nlstm_lab import figures
from nlstm_lab.errors import UsageError


def test_time_constants_are_ranked_and_those_without_end_stand_at_the_edge() -> None:
    about = {"model": "nlstm", "start": "zero", "seed": 0, "memory": "inner"}
    modes = pd.DataFrame([{**about, "point": 0, "timescale": time} for time in (5.0, np.inf, 50.0)])
    units = pd.DataFrame([{**about, "value": "tanh", "timescale": time} for time in (2.0, 20.0)])
    drawn = figures.data(figures.time_constants(modes, units))
    assert drawn.sort_values(["kind", "rank"])["steps"].tolist() == [20, 2, 1000, 50, 5]
    with pytest.raises(UsageError, match="mode"):
        figures.time_constants(modes.assign(timescale=0.5), units)
