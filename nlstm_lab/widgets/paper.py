"""What a paper takes from a widget beside its picture: caption, citation, call and table, filled in by `paper.js`."""

from importlib.metadata import version
from typing import Any

import pandas as pd

from nlstm_lab import runs, targets
from nlstm_lab.runs import Run


def about(title: str, caption: str, snippet: str, shown: dict[str, Run]) -> dict[str, Any]:
    """The templates, and of each run that may be shown its call and its commit; nothing without a snippet."""
    loads = {
        name: {"load": _call(run), "commit": run.result.get("commit", "")[:10]} for name, run in shown.items()
    }  # fmt: skip
    known = {"title": title, "caption": caption, "snippet": snippet, "version": version("nlstm-lab")}
    return {**known, "runs": loads} if snippet else {}


def table(shown: dict[str, Run]) -> str:
    """The rows of the documents' tables that these runs are of, printed beside ours, for LaTeX; "" without any."""
    known = targets.verdicts(runs.table(""))
    known = known[known["kind"].eq("number")].set_index(["document", "place", "subject"])
    rows = known.index.isin(known.index[known["experiment"].isin({run.experiment.name for run in shown.values()})])
    if not rows.any():
        return ""
    measured = pd.concat([runs.table(name) for name in known.loc[rows, "experiment"].unique()])
    judged = targets.verdicts(measured)
    return targets.booktabs(judged[judged["kind"].eq("number")][rows].assign(verdict=""))


def _call(run: Run) -> str:
    """The call that loads a run."""
    return f'lab.runs.load("{run.experiment.name}", seed={run.seed}, scale="{run.experiment.scale}")'
