"""What a figure shows, as a frame that it carries, and a fingerprint of how it looks."""

import hashlib
import re
from collections.abc import Mapping
from weakref import WeakKeyDictionary

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axis import Tick
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

LIVE = 4  # decimals of an activation that float32 carries on any processor: processors differ in the sixth
COMPUTED = re.compile(r"\d+\.\d+|\d+ %")  # numbers in a text that were measured

_frames: WeakKeyDictionary[Figure, list[pd.DataFrame]] = WeakKeyDictionary()
_decimals: WeakKeyDictionary[Figure, dict[str, int]] = WeakKeyDictionary()


def attach(
    figure: Figure, frame: pd.DataFrame, decimals: Mapping[str, int] | None = None, replace: bool = False
) -> Figure:
    """Let `figure` carry the numbers that were drawn, one tidy row for each mark; returns the figure.

    Args:
        figure: A figure of this package.
        frame: What is plotted.
        decimals: Of the columns that a network computes for this figure, which are stored with so many decimals: those
            that do not depend on the processor. Other columns come from records.
        replace: What the figure carries already is dropped.
    """
    if replace:
        _frames.pop(figure, None)
    _frames.setdefault(figure, []).append(frame.reset_index(drop=True))
    _decimals.setdefault(figure, {}).update(decimals or {})
    return figure


def decimals(figure: Figure) -> dict[str, int]:
    """The columns of `data(figure)` that a network computed for it, and with how many decimals they are stored."""
    return _decimals.get(figure, {})


def data(figure: Figure) -> pd.DataFrame:
    """Every number plotted in `figure`; where it was drawn in several calls, `panel` counts them.

    Args:
        figure: A figure of this package.

    Raises:
        ValueError: The figure was not drawn here.

    >>> import nlstm_lab as lab
    >>> table = data(lab.figures.nested_architecture())  # of a diagram its parts
    >>> "arrow" in set(table["kind"])
    True
    """
    frames = _frames.get(figure, [])
    if not frames:
        raise ValueError("this figure carries no data: draw it with a function of lab.figures, or attach a frame")
    if len(frames) == 1:
        return frames[0]
    return pd.concat([frame.assign(panel=k) for k, frame in enumerate(frames)], ignore_index=True)


def fingerprint(figure: Figure) -> str:
    """A digest of size, words, colours, lines and markers: the look, as far as it is no consequence of data.

    No position and no tick enters it, which follow from the machine's font metrics, too; nor measured numbers in words.
    """
    size = tuple(round(float(inch), 3) for inch in figure.get_size_inches())
    ticks = {id(element) for tick in figure.findobj(Tick) for element in tick.findobj()}
    computed = bool(decimals(figure))
    described = sorted(_describe(artist, computed) for artist in figure.findobj() if id(artist) not in ticks)
    return hashlib.sha256(repr((size, described)).encode()).hexdigest()[:16]


def _describe(artist: Artist, computed: bool) -> str:
    if not artist.get_visible():
        return ""
    if isinstance(artist, Text):
        font = f"{artist.get_fontname()} {artist.get_fontsize():.2f} {artist.get_rotation():.0f}"
        words = COMPUTED.sub("#", artist.get_text()) if computed else artist.get_text()
        return f"{words!r} {to_hex(artist.get_color())} {font}" if words else ""
    if isinstance(artist, Line2D):
        width = round(artist.get_linewidth(), 3)
        look = artist.get_linestyle(), width, artist.get_marker(), artist.get_alpha()
        return f"line {to_hex(artist.get_color())} {look}"
    if isinstance(artist, Patch):
        colours = to_hex(artist.get_facecolor(), True), to_hex(artist.get_edgecolor(), True)
        return f"{type(artist).__name__} {colours} {artist.get_linewidth():.3f} {artist.get_hatch()}"
    return f"{type(artist).__name__} {artist.get_alpha()}"
