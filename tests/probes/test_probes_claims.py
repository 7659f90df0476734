"""What is recorded of a claim is what the verdicts read."""

import numpy as np
import pandas as pd
import pytest
from forking import server, started

from nlstm_lab import targets
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import measured_claims, record_claims
from nlstm_lab.settings import SCALES
from nlstm_lab.statistics import Compared, Interval, compare
from nlstm_lab.targets.verdicts import CLAIMS, TABLE

NAME = "inner_slower_than_outer"
SLOWER = Compared(Interval(1.0, 0.5, 1.5), 3, "holds", 2.0)
pytestmark = pytest.mark.usefixtures("probes_folder")


def record_every_other(first, ready):
    claims = [(name, claim.name) for name in targets.DOCUMENTS for claim in targets.load(name).claims]
    both = [(claim, scale) for claim in claims for scale in SCALES][:40]
    ready.wait()
    for (document, claim), scale in both[first::2]:
        record_claims(document, scale, {claim: SLOWER})


@pytest.mark.slow
def test_two_notebooks_that_record_at_once_lose_nothing(probes_folder):
    ready = server.Barrier(2)
    both = [started(record_every_other, k, ready) for k in range(2)]
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert len(measured_claims()) == 40
    assert {path.name for path in probes_folder.iterdir()} == {"claims.csv", ".claims.csv.lock"}


@pytest.mark.parametrize(
    ("claim", "scale", "said"),
    [
        (NAME, "smal", "'smal'"),
        ("inner_slower_then_outer", "small", "inner_slower_then_outer.*inner_slower_than_outer"),
    ],
)
def test_what_no_verdict_could_read_is_not_recorded(probes_folder, claim, scale, said):
    record_claims("nested_lstm", "small", {NAME: SLOWER})
    before = (probes_folder / "claims.csv").read_bytes()
    with pytest.raises(UsageError, match=said):
        record_claims("nested_lstm", scale, {claim: SLOWER})
    assert (probes_folder / "claims.csv").read_bytes() == before


def test_an_entry_is_replaced_and_others_stay():
    assert measured_claims().empty
    assert list(measured_claims().columns) == CLAIMS
    record_claims("nested_lstm", "small", {NAME: SLOWER})
    record_claims("nested_lstm", "smoke", {NAME: compare({0: 9.0}, {0: 0.0}, paired=True)})
    record_claims("nested_lstm", "small", {NAME: compare(dict.fromkeys(range(5), 2.0), dict.fromkeys(range(5), 4.0))})
    result = measured_claims().set_index("scale")
    assert result.loc["small", ["value", "low", "high", "n"]].tolist() == [-2, -2, -2, 5]
    assert np.isnan(result.low["smoke"])


def test_a_verdict_is_computed_from_it():
    record_claims("nested_lstm", "small", {NAME: Compared(Interval(-2.0, -3.0, -1.0), 5, "fails", 4.0)})
    result = targets.verdicts(pd.DataFrame(columns=TABLE), measured_claims()).set_index("place")
    assert result.loc[NAME, "verdict"] == "fails"
    assert result.loc["inner_slower_than_stack_upper", "verdict"] == "not run"
