"""What a figure shows, as a frame that it carries, and a fingerprint of how it looks."""

import hashlib
from weakref import WeakKeyDictionary

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axis import Tick
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

_frames: WeakKeyDictionary[Figure, list[pd.DataFrame]] = WeakKeyDictionary()


def attach(figure: Figure, frame: pd.DataFrame) -> Figure:
    """Let `figure` carry the numbers that were drawn, one tidy row for each mark; returns the figure."""
    _frames.setdefault(figure, []).append(frame.reset_index(drop=True))
    return figure


def data(figure: Figure) -> pd.DataFrame:
    """Every number plotted in `figure`; where it was drawn in several calls, `panel` counts them.

    ValueError: a figure that was not drawn here.

    >>> import nlstm_lab as lab
    >>> table = data(lab.figures.nested_architecture())  # of a diagram its parts
    >>> "arrow" in set(table["kind"])
    True
    """
    frames = _frames.get(figure, [])
    if not frames:
        raise ValueError(
            "this figure carries no data: draw it with a function of lab.figures, or attach(figure, frame)"
        )
    if len(frames) == 1:
        return frames[0]
    return pd.concat([frame.assign(panel=k) for k, frame in enumerate(frames)], ignore_index=True)


def fingerprint(figure: Figure) -> str:
    """A digest of size, words, colours, lines and markers: the look, as far as it is no consequence of data.

    No position and no tick enters it: those follow from the data and from the machine's font metrics, and a
    figure that was shown before it is saved has more of them. So a drawing has one fingerprint everywhere.
    """
    size = tuple(round(float(inch), 3) for inch in figure.get_size_inches())
    ticks = {id(part) for tick in figure.findobj(Tick) for part in tick.findobj()}
    described = sorted(_describe(artist) for artist in figure.findobj() if id(artist) not in ticks)
    return hashlib.sha256(repr((size, described)).encode()).hexdigest()[:16]


def _describe(artist: Artist) -> str:
    if not artist.get_visible():
        return ""
    if isinstance(artist, Text):
        font = f"{artist.get_fontname()} {artist.get_fontsize():.2f} {artist.get_rotation():.0f}"
        return f"{artist.get_text()!r} {to_hex(artist.get_color())} {font}" if artist.get_text() else ""
    if isinstance(artist, Line2D):
        look = (
            artist.get_linestyle(),
            round(artist.get_linewidth(), 3),
            artist.get_marker(),
            artist.get_alpha(),
        )
        return f"line {to_hex(artist.get_color())} {look}"
    if isinstance(artist, Patch):
        colours = to_hex(artist.get_facecolor(), True), to_hex(artist.get_edgecolor(), True)
        return f"{type(artist).__name__} {colours} {artist.get_linewidth():.3f} {artist.get_hatch()}"
    return f"{type(artist).__name__} {artist.get_alpha()}"
