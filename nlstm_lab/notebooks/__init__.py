"""The strict executor: papermill, but wrong parameters are refused and unfinished notebooks leave no output.

outcomes = execute_all(plan(["12"], {"seeds": "0,1"}))
"""

from nlstm_lab.notebooks.collection import Outcome, execute_all, time_left
from nlstm_lab.notebooks.executor import execute
from nlstm_lab.notebooks.jobs import Job, names, plan, resolve
from nlstm_lab.notebooks.listing import listing_is_fresh, update_listing
from nlstm_lab.notebooks.pages import export
from nlstm_lab.parameters import Parameter, convert, declared

__all__ = [
    "Job",
    "Outcome",
    "Parameter",
    "convert",
    "declared",
    "execute",
    "execute_all",
    "export",
    "listing_is_fresh",
    "names",
    "plan",
    "resolve",
    "time_left",
    "update_listing",
]
