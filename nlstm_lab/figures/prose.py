"""Sentences with computed numbers, shown by a notebook as text."""


class Prose(str):
    """A string that JupyterLab shows as Markdown."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def prose(text: str) -> Prose:
    """Let the value of a cell read as a paragraph, so that numbers in a notebook's prose come from the data.

    >>> prose(f"The mean over {3} seeds is {1.5:.2f}.")
    'The mean over 3 seeds is 1.50.'
    """
    return Prose(text)
