"""The data sets of the documents and the tasks built from them.

What these arguments mean wherever they are taken:

    corpus: The name of a text (`corpora.NAMES`), or the path of one of your own.
    split: train, valid or test.
    start: The first symbol, or line, that is read.
    length, count, number: How many symbols, lines or sequences are read.
    task: The config of a task.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
