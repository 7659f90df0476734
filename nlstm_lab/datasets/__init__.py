"""The data sets of the documents and the tasks built from them.

What these arguments mean wherever they are taken:

    corpus: The name of a text (`corpora.names`), or the path of one of your own.
    split: train, valid or test.
    start: The first symbol, or line, that is read.
    length, count, number: How many symbols, lines or sequences are read.
    task: The config of a task.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nlstm_lab.datasets.excerpt import Excerpt, KnownText, Lines, Sequences

__all__ = ["Excerpt", "KnownText", "Lines", "Sequences"]


def __getattr__(name: str) -> Any:
    """What is exported, on first use: it needs torch, and listing data sets does not."""
    if name in __all__:
        from nlstm_lab.datasets import excerpt

        return getattr(excerpt, name)
    raise AttributeError(f"module 'nlstm_lab.datasets' has no attribute {name!r}")
