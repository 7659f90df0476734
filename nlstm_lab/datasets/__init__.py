"""The data sets of the documents and the tasks built from them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nlstm_lab.datasets.excerpt import Excerpt

__all__ = ["Excerpt"]


def __getattr__(name: str) -> Any:
    """`Excerpt` on first use: it needs torch, and listing data sets does not."""
    if name == "Excerpt":
        from nlstm_lab.datasets.excerpt import Excerpt

        return Excerpt
    raise AttributeError(f"module 'nlstm_lab.datasets' has no attribute {name!r}")
