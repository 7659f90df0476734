"""Data in, figure out: a function takes data first, draws into `ax` or a new figure, and returns the figure.

`data(figure)` gives every plotted number as a frame, `save` puts a figure on disk with what made it, and
`override` lays one's own style over the project's.

What these arguments mean wherever they are taken:

    width: Inches.
    ax: The axes to draw on; None makes a new figure.
    metric: A metric's name, such as bpc.
    evaluation: How a text is read: blocks or streams.
    splits: Some of train, valid and test.
    row: Characters a row.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
