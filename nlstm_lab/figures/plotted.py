"""What a figure shows, as a frame that it carries, and a fingerprint of how it looks."""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axis import Tick
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, fontManager, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

LIVE = 4  # decimals of an activation that float32 carries on any processor: processors differ in the sixth
MEASURED = re.compile(r"\d+\.\d+|\d+ %")  # numbers in a text that were measured
RECORDED, COMPUTED = 1e-6, 1e-5  # how far a number may differ, as a share of it: from a record, and of float32

_carried: WeakKeyDictionary[Figure, tuple[pd.DataFrame, dict[str, int]]] = WeakKeyDictionary()


def attach(figure: Figure, frame: pd.DataFrame, decimals: Mapping[str, int] | None = None) -> Figure:
    """Let `figure` carry the numbers that were drawn, one tidy row for each mark; returns the figure.

    Args:
        frame: What is plotted.
        decimals: Of the columns that a network computes for this figure, which are stored with so many decimals: those
            that do not depend on the processor. Other columns come from records.
    """
    _carried[figure] = frame.reset_index(drop=True), dict(decimals or {})
    find_letters(figure)
    return figure


def decimals(figure: Figure) -> dict[str, int]:
    """The columns of `data(figure)` that a network computed for it, and with how many decimals they are stored."""
    return _carried[figure][1] if figure in _carried else {}


def data(figure: Figure) -> pd.DataFrame:
    """Every number plotted in `figure`.

    Args:
        figure: A figure of this package.

    Raises:
        ValueError: The figure was not drawn here.

    >>> import nlstm_lab as lab
    >>> table = data(lab.figures.nested_architecture())  # of a diagram its parts
    >>> "arrow" in set(table["kind"])
    True
    """
    if figure not in _carried:
        raise ValueError("this figure carries no data: draw it with a function of lab.figures, or save it with `data`")
    return _carried[figure][0]


def find_letters(figure: Figure) -> None:
    """Let what DejaVu has no letters for, such as Chinese, be drawn in an installed font that has them."""
    for words in figure.findobj(Text):
        strange = "".join(sorted({letter for letter in words.get_text() if ord(letter) > 0x2FF}))
        if strange and (font := _font_for(strange, findfont(words.get_fontproperties()))):
            words.set_fontfamily([*dict.fromkeys([*words.get_fontfamily(), font])])


@cache
def _font_for(letters: str, own: str) -> str | None:
    """The installed font that has most of the letters that the file `own` lacks."""
    lacking = set(map(ord, letters)) - set(get_font(own).get_charmap())
    if not lacking:
        return None
    # matplotlib's last resort has a box for every letter
    fonts = {font.name: font.fname for font in fontManager.ttflist if not font.name.startswith("Last Resort")}
    held = {name: len(lacking & set(get_font(path).get_charmap())) for name, path in sorted(fonts.items())}
    best = max(held, key=lambda name: held[name])
    return best if held[best] else None


def agree(old: pd.DataFrame, new: pd.DataFrame, decimals: Mapping[str, int]) -> bool:
    """Whether stored numbers are those of `new`, which is not rounded, within a unit of their last digit."""
    if old.shape != new.shape or list(old.columns) != list(new.columns):
        return False
    for column in old.columns:
        a, b = old[column], new[column]
        if column in decimals or pd.api.types.is_float_dtype(a) or pd.api.types.is_float_dtype(b):
            a, b = pd.to_numeric(a, errors="coerce"), pd.to_numeric(b, errors="coerce")
            share, unit = (COMPUTED, 10.0 ** -decimals[column]) if column in decimals else (RECORDED, 1e-12)
            if not np.allclose(b, a, rtol=share, atol=unit, equal_nan=True):
                return False
        elif not a.equals(b):
            return False
    return True


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
        fonts = " ".join([artist.get_fontname(), *artist.get_fontfamily()[1:]])
        font = f"{fonts} {artist.get_fontsize():.2f} {artist.get_rotation():.0f}"
        words = MEASURED.sub("#", artist.get_text()) if computed else artist.get_text()
        return f"{words!r} {to_hex(artist.get_color())} {font}" if words else ""
    if isinstance(artist, Line2D):
        width = round(artist.get_linewidth(), 3)
        look = artist.get_linestyle(), width, artist.get_marker(), artist.get_alpha()
        return f"line {to_hex(artist.get_color())} {look}"
    if isinstance(artist, Patch):
        colours = to_hex(artist.get_facecolor(), True), to_hex(artist.get_edgecolor(), True)
        return f"{type(artist).__name__} {colours} {artist.get_linewidth():.3f} {artist.get_hatch()}"
    return f"{type(artist).__name__} {artist.get_alpha()}"
