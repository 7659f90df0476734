"""A widget as one page that needs nothing, and what a paper takes from it: caption, citation, call and table."""

import base64
import json
from collections.abc import Mapping
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from nlstm_lab import paths, runs, targets
from nlstm_lab.runs import Run
from nlstm_lab.widgets import source

# nothing may be fetched, whatever a text or a name in the state says
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body class="nl-page">
<main id="widget"></main>
<noscript><img alt="{title}" src="data:image/png;base64,{picture}"></noscript>
<script type="application/json" id="state">{state}</script>
<script type="module">
{script}
</script>
</body>
</html>
"""


def write(path: Path, title: str, state: dict[str, Any], script: str, picture: bytes) -> Path:
    """Write the page; LabError: it cannot be written."""
    said = json.dumps(state, default=_bytes, ensure_ascii=False)
    content = PAGE.format(
        policy=POLICY,
        title=escape(title),
        style=source.read("page/widgets.css"),
        picture=base64.b64encode(picture).decode(),
        # no text can end it: no `<` is left
        state=said.replace("<", "\\u003c").replace("\u2028", "\\u2028"),
        script=script,
    )
    paths.write(path, content)
    return path


def _bytes(value: Any) -> dict[str, str]:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{type(value).__name__} is nothing that a page can hold")
    return {"base64": base64.b64encode(bytes(value)).decode()}


def about(widget: Any) -> dict[str, Any]:
    """A widget's templates, and of each run that may be shown its call and its commit; nothing without a snippet."""
    loads = {}
    for name, run in widget.made_of.items():
        call = f'lab.runs.load("{run.experiment.name}", seed={run.seed}, scale="{run.experiment.scale}")'
        loads[name] = {"load": call, "commit": run.result.get("commit", "")[:10]}
    known = {name: getattr(widget, name) for name in ("title", "caption", "snippet")}
    return {**known, "version": version("nlstm-lab"), "runs": loads} if widget.snippet else {}


def table(shown: Mapping[str, Run]) -> str:
    """The rows of the documents' tables that these runs are of, printed beside ours, for LaTeX; "" without any."""
    known = targets.verdicts(runs.table(""))
    known = known[known["kind"].eq("number")].set_index(["document", "place", "subject"])
    rows = known.index.isin(known.index[known["experiment"].isin({run.experiment.name for run in shown.values()})])
    if not rows.any():
        return ""
    measured = pd.concat([runs.table(name) for name in known.loc[rows, "experiment"].unique()])
    judged = targets.verdicts(measured)
    return targets.booktabs(judged[judged["kind"].eq("number")][rows].assign(verdict=""))
