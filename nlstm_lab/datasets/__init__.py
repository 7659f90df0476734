"""The data sets of the documents and the tasks built from them.

What these arguments mean wherever they are taken:

    corpus: The name of a text (`corpora.names`), or the path of one of your own.
    split: train, valid or test.
    start: The first symbol, or line, that is read.
    length, count, number: How many symbols, lines or sequences are read.
    task: The config of a task.
"""

from nlstm_lab.door import door

# on first use: it needs torch, and listing data sets does not
__getattr__, __all__ = door(__name__, {"datasets.excerpt": ["Excerpt", "KnownText", "Lines", "Sequences"]})
