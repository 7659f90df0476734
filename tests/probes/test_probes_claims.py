"""What is noted of a claim is what the verdicts read."""

import numpy as np
import pandas as pd
import pytest

from nlstm_lab import paths, targets
from nlstm_lab.probes.claims import claims, note
from nlstm_lab.probes.statistics import compare
from nlstm_lab.statistics import Interval
from nlstm_lab.targets.evidence import CLAIMS, TABLE


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "probes", lambda: tmp_path)


def test_nothing_measured_is_an_empty_table():
    assert claims().empty
    assert list(claims().columns) == CLAIMS


def test_an_entry_is_replaced_and_others_stay():
    name = "nested_lstm.inner_slower_than_outer"
    note(name, "small", Interval(1.0, 0.5, 1.5), 3)
    note(name, "smoke", Interval(9.0, np.nan, np.nan), 1)
    note(name, "small", compare(dict.fromkeys(range(5), 2.0), dict.fromkeys(range(5), 4.0)).difference, 5)
    told = claims().set_index("scale")
    assert told.loc["small", ["value", "low", "high", "n"]].tolist() == [-2, -2, -2, 5]
    assert np.isnan(told.low["smoke"])


def test_a_verdict_is_computed_from_it():
    note("nested_lstm.inner_slower_than_outer", "small", Interval(-2.0, -3.0, -1.0), 5)
    told = targets.verdicts(pd.DataFrame(columns=TABLE), claims()).set_index("place")
    assert told.loc["inner_slower_than_outer", "verdict"] == "fails"
    assert told.loc["inner_slower_than_stack_upper", "verdict"] == "not run"
