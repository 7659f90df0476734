"""A widget's script; the widget as a page that needs nothing; what a paper takes: caption, citation, call.

There is no bundler: one module is the text of the shared files `page/*.js`, then the widget's own, then a line that
hands its `render` to whoever shows it. Colour maps are those of the figures.
"""

import base64
import json
import math
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex

from nlstm_lab import paths
from nlstm_lab.figures.style import DIVERGING, MEMORIES, MODELS, NORMS, OPERATIONS, STRENGTH

SHARED = ("dom.js", "colours.js", "text.js", "chart.js", "paper.js", "frame.js")
EXPORT = "export default { render: ({ model, el }) => start(model, el, render) };\n"
SHADES = 256

# on a dark page nothing is dark, and what is large is bright; the hues stay
BLUE = ["#1a1a1a", "#1b3a5c", "#3578b8", "#7fbcec", "#d6eaff"]
RED = ["#ffd9c9", "#f79a7c", "#c94f38", "#64241a"]
DARK_STRENGTH, DARK_DIVERGING = (LinearSegmentedColormap.from_list("dark", each) for each in (BLUE, RED + BLUE))

# nothing may be fetched, whatever a text or a name in the state says
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


@cache
def read(name: str) -> str:
    """A file of JavaScript or CSS in this package."""
    return (paths.PACKAGE / "widgets" / name).read_text(encoding="utf-8")


def script(scripts: tuple[str, ...], alone: bool = False) -> str:
    """The ES module that anywidget loads, or of a page that stands `alone`, where it finds its state."""
    names = [f"page/{name}" for name in SHARED] + list(scripts)
    last = read("page/alone.js") if alone else EXPORT
    return "\n".join([_constants(), *map(read, names), last])


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


def write(path: Path, title: str, state: dict[str, Any], script: str, picture: bytes) -> Path:
    """Write the page; LabError: it cannot be written."""
    held = json.dumps(_plain(state), ensure_ascii=False, allow_nan=False)
    content = read("page/page.html").format(
        policy=POLICY,
        title=escape(title),
        style=read("page/widgets.css"),
        picture=base64.b64encode(picture).decode(),
        # no text can end it: no `<` is left
        state=held.replace("<", "\\u003c").replace("\u2028", "\\u2028"),
        script=script,
    )
    paths.write(path, content)
    return path


def _plain(value: Any) -> Any:
    """As JSON holds it: bytes in base64, and null where a number is not finite, which the page says."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def about(widget: Any) -> dict[str, Any]:
    """A widget's templates, and of each run that may be shown its call and its commit; nothing without a snippet."""
    loads = {}
    for name, run in widget.made_of.items():
        quoted = json.dumps(run.experiment.name, ensure_ascii=False)  # a corpus may have any path
        call = f'lab.runs.load({quoted}, seed={run.seed}, scale="{run.experiment.scale}")'
        loads[name] = {"load": call, "commit": run.result.get("commit", "")[:10]}
    known = {name: getattr(widget, name) for name in ("title", "caption", "snippet")}
    return {**known, "version": version("nlstm-lab"), "runs": loads} if widget.snippet else {}
