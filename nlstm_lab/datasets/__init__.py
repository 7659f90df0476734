"""The data sets of the documents and the tasks built from them."""

from nlstm_lab.datasets.excerpt import Excerpt

__all__ = ["Excerpt"]
