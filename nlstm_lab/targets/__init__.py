"""What the documents print, and whether our runs agree: numbers, orderings and claims with computed verdicts.

The entries lie in `data/targets/*.toml`, tolerances included, and were written before anything was run.

What these arguments mean wherever they are taken:

    table: `lab.runs.table(...)`.
    frame: `lab.targets.verdicts(...)`.
    verdicts: `lab.targets.verdicts(...)`.
    target: A table of a document, such as "nested_lstm.table1".
    name, title, caption, where: Of an entry or document, as the document has it.
    says: The sentence that is judged.
    note: What must be known of it.
    model: What a row is called.
    metric, metrics: With their units in the names, such as "bpc".
    split, splits: "valid" and "test".
    evaluation: How the text is cut: "blocks" or "streams".
    printed: The number of the document, with its digits; None where it prints none.
    ours: Our number; of a place or claim, whether the document does not ask this.
    tolerance, tolerances: How far a number may lie from the printed one.
    folder: Where files are read, or written; None for the project's own.
"""

from nlstm_lab.targets.comparison import Comparison, booktabs, compare, shown
from nlstm_lab.targets.entries import DOCUMENTS, Claim, Document, Number, Ordering, Place, Tolerance, load
from nlstm_lab.targets.report import grouped, readme_block, report
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
    "booktabs",
    "compare",
    "grouped",
    "load",
    "printed_numbers",
    "readme_block",
    "report",
    "shown",
    "verdicts",
]
