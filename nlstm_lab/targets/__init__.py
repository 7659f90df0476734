"""What the documents print, and whether our runs agree: numbers, orderings and claims with computed verdicts.

The entries lie in `data/targets/*.toml`; one written after its runs says so. `protocol.md` there has the rules.

What these arguments mean wherever they are taken:

    table: `lab.runs.table(...)`.
    frame: `lab.targets.verdicts(...)`.
    verdicts: `lab.targets.verdicts(...)`.
    target: A table of a document, such as "nested_lstm.table1".
"""

from nlstm_lab.targets.entries import DOCUMENTS, load
from nlstm_lab.targets.rendering import Comparison, compare, readme_block, report, shown
from nlstm_lab.targets.verdicts import printed_numbers, remaining, verdicts

__all__ = [
    "DOCUMENTS",
    "Comparison",
    "compare",
    "load",
    "printed_numbers",
    "readme_block",
    "remaining",
    "report",
    "shown",
    "verdicts",
]
