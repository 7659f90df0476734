"""Data in, figure out: a function takes data and a `width` (inches, or "85 mm") and returns a figure.

`data(figure)` gives every plotted number as a frame, `save` puts a figure on disk with what made it, and
`override` lays one's own style over the project's.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
