"""What is noted of a claim is what the verdicts read."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from forking import server, started

from nlstm_lab import targets
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.probes.claims import measured_claims, record_claim, record_claims
from nlstm_lab.settings import SCALES
from nlstm_lab.statistics import Interval, compare
from nlstm_lab.targets.verdicts import CLAIMS, TABLE


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NLSTM_LAB_PROBES", str(tmp_path))
    return tmp_path


def note_every_other(first: int, ready: Any) -> None:
    claims = [f"{name}.{claim.name}" for name in targets.DOCUMENTS for claim in targets.load(name).claims]
    both = [(claim, scale) for claim in claims for scale in SCALES][:40]
    ready.wait()
    for claim, scale in both[first::2]:
        record_claim(claim, scale, Interval(1.0, 0.5, 1.5), 3)


@pytest.mark.slow
def test_two_notebooks_that_note_at_once_lose_nothing(folder):
    ready = server.Barrier(2)
    both = [started(note_every_other, k, ready) for k in range(2)]
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert len(measured_claims()) == 40
    assert {path.name for path in folder.iterdir()} == {"claims.csv", ".claims.csv.lock"}


@pytest.mark.parametrize(
    ("claim", "scale", "told"),
    [
        ("nested_lstm.inner_slower_than_outer", "smal", "'smal'"),
        ("nested_lstm.inner_slower_then_outer", "small", "inner_slower_then_outer.*inner_slower_than_outer"),
    ],
)
def test_what_no_verdict_could_read_is_not_noted(folder, claim, scale, told):
    record_claim("nested_lstm.inner_slower_than_outer", "small", Interval(1.0, 0.5, 1.5), 3)
    before = (folder / "claims.csv").read_bytes()
    with pytest.raises(UsageError, match=told):
        record_claim(claim, scale, Interval(1.0, 0.5, 1.5), 3)
    assert (folder / "claims.csv").read_bytes() == before


def test_several_claims_are_entered_each_as_one_alone(folder):
    names = ["inner_slower_than_outer", "inner_slower_than_stack_upper"]
    measured = {"verdict": "holds", "difference": 1.0, "low": 0.5, "high": 1.5, "seeds": 4, "df": 3.0}
    table = record_claims("nested_lstm", "small", pd.DataFrame([{"comparison": name} | measured for name in names]))
    several = (folder / "claims.csv").read_bytes()
    assert table["claim"].tolist() == [f"nested_lstm.{name}" for name in names]
    (folder / "claims.csv").unlink()
    for name in names:
        record_claim(f"nested_lstm.{name}", "small", Interval(1.0, 0.5, 1.5), 4, 3.0)
    assert (folder / "claims.csv").read_bytes() == several


def test_a_table_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "probes").write_text("a file where the folder should be")
    monkeypatch.setenv("NLSTM_LAB_PROBES", str(tmp_path / "probes"))
    with pytest.raises(LabError, match="probes"):
        record_claim("nested_lstm.inner_slower_than_outer", "small", Interval(1.0, 0.5, 1.5), 3)


def test_nothing_measured_is_an_empty_table():
    assert measured_claims().empty
    assert list(measured_claims().columns) == CLAIMS


def test_an_entry_is_replaced_and_others_stay():
    name = "nested_lstm.inner_slower_than_outer"
    record_claim(name, "small", Interval(1.0, 0.5, 1.5), 3)
    record_claim(name, "smoke", Interval(9.0, np.nan, np.nan), 1)
    record_claim(name, "small", compare(dict.fromkeys(range(5), 2.0), dict.fromkeys(range(5), 4.0)).difference, 5)
    told = measured_claims().set_index("scale")
    assert told.loc["small", ["value", "low", "high", "n"]].tolist() == [-2, -2, -2, 5]
    assert np.isnan(told.low["smoke"])


def test_a_verdict_is_computed_from_it():
    record_claim("nested_lstm.inner_slower_than_outer", "small", Interval(-2.0, -3.0, -1.0), 5)
    told = targets.verdicts(pd.DataFrame(columns=TABLE), measured_claims()).set_index("place")
    assert told.loc["inner_slower_than_outer", "verdict"] == "fails"
    assert told.loc["inner_slower_than_stack_upper", "verdict"] == "not run"
