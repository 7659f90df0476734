"""What the documents print, and whether our runs agree: numbers, orderings and claims with computed verdicts.

The entries lie in `data/targets/*.toml`, tolerances included, and were written before anything was run.

    compare("nested_lstm.table1", table)   a printed table beside ours; .save() as CSV and LaTeX
    verdicts(table, claims)                every entry of every document
    readme_block(verdicts(...))            all of them as Markdown

What these arguments mean wherever they are taken:

    table: `lab.runs.table(...)`.
    frame: `lab.targets.verdicts(...)`.
    verdicts: `lab.targets.verdicts(...)`.
"""

from nlstm_lab.targets.comparison import Comparison, compare, shown
from nlstm_lab.targets.documents import DOCUMENTS, load
from nlstm_lab.targets.entries import Claim, Document, Number, Ordering, Place, Tolerance
from nlstm_lab.targets.grouped import grouped
from nlstm_lab.targets.readme import readme_block
from nlstm_lab.targets.report import report
from nlstm_lab.targets.verdicts import printed_numbers, verdicts

__all__ = [
    "DOCUMENTS",
    "Claim",
    "Comparison",
    "Document",
    "Number",
    "Ordering",
    "Place",
    "Tolerance",
    "compare",
    "grouped",
    "load",
    "printed_numbers",
    "readme_block",
    "report",
    "shown",
    "verdicts",
]
