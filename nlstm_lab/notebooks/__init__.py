"""The strict executor: papermill, but wrong parameters are refused and unfinished notebooks leave no output.

jobs = plan(["12"], {"seeds": "0,1"})
print(summary(execute_all(jobs)))
"""

from nlstm_lab.notebooks.executor import Outcome, execute, execute_all, summary
from nlstm_lab.notebooks.jobs import Job, names, plan, resolve
from nlstm_lab.notebooks.parameters import Parameter, convert, declared

__all__ = [
    "Job",
    "Outcome",
    "Parameter",
    "convert",
    "declared",
    "execute",
    "execute_all",
    "names",
    "plan",
    "resolve",
    "summary",
]
