"""JavaScript and style of the widgets, as a notebook and as a page need them.

There is no bundler: one module is the text of the shared files `page/*.js`, then the widget's own, then a line that
hands its `render` to whoever shows it. Colour maps are those of the figures.
"""

import json
from functools import cache

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex

from nlstm_lab import paths
from nlstm_lab.figures.style import DIVERGING, MEMORIES, MODELS, NORMS, OPERATIONS
from nlstm_lab.studies.connectivity.draw import STRENGTH

SHARED = ("dom.js", "colours.js", "text.js", "chart.js", "paper.js", "frame.js")
SHADES = 256

# on a dark page nothing is dark, and what is large is bright; the hues stay
BLUE = ["#1a1a1a", "#1b3a5c", "#3578b8", "#7fbcec", "#d6eaff"]
RED = ["#ffd9c9", "#f79a7c", "#c94f38", "#64241a"]
DARK_STRENGTH, DARK_DIVERGING = (LinearSegmentedColormap.from_list("dark", each) for each in (BLUE, RED + BLUE))


@cache
def read(name: str) -> str:
    """A file of JavaScript or CSS in this package."""
    return (paths.PACKAGE / "widgets" / name).read_text(encoding="utf-8")


def module(scripts: tuple[str, ...]) -> str:
    """The ES module that anywidget loads."""
    return _functions(scripts) + "\nexport default { render: ({ model, el }) => start(model, el, render) };\n"


def page(scripts: tuple[str, ...]) -> str:
    """The script of a page that stands alone; it finds its state in the page."""
    return _functions(scripts) + "\n" + read("page/alone.js")


def _functions(scripts: tuple[str, ...]) -> str:
    names = [f"page/{name}" for name in SHARED] + list(scripts)
    return "\n".join([_constants(), *map(read, names)])


@cache
def _constants() -> str:
    """Colour maps, and the labels and colours of memories and models."""
    maps = {
        "diverging": {"light": _shades(DIVERGING), "dark": _shades(DARK_DIVERGING)},
        "strength": {"light": _shades(STRENGTH), "dark": _shades(DARK_STRENGTH)},
        "norms": {"light": _shades(NORMS), "dark": _shades(NORMS.reversed())},
    }
    every = MODELS | MEMORIES | OPERATIONS
    looks = {name: {"label": look.label, "colour": look.colour} for name, look in every.items()}
    return f"const MAPS = {json.dumps(maps)};\nconst LOOKS = {json.dumps(looks)};"


def _shades(colours: Colormap) -> list[str]:
    return [to_hex(colours(share)) for share in np.linspace(0, 1, SHADES)]
