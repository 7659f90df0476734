"""Figures on disk: pdf, svg, png, the plotted numbers as CSV, and a sidecar that says what made them.

A figure carries what it shows as a frame. Saved again with the same numbers and the same look (a fingerprint), the
stored files stay as they are: `git status` is a test.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Tick
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from nlstm_lab import parameters, paths
from nlstm_lab.errors import UsageError
from nlstm_lab.figures import style

FORMATS = ("pdf", "svg", "png")
DIGITS = 7  # of a number from a record
LONG = 1000  # rows of a frame from which on its curves are stored with a row each, in a fifth of the space
CURVES = (("epoch", "value"), ("update", "value"), ("x", "share"))  # columns along a curve, and of its height
PLACES = re.compile(rb'\b(?:d|x|y|points)="[^"]*"')  # of an SVG: attributes that hold coordinates alone
UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML, and so an SVG, forbids
FRACTION = re.compile(rb"-?\d+\.\d{3,}")
LIVE = 4  # decimals of an activation that float32 carries on any processor: processors differ in the sixth
MEASURED = re.compile(r"\d+\.\d+|\d+ %")  # numbers in a text that were measured
RECORDED, COMPUTED = 1e-6, 1e-5  # how far a number may differ, as a share of it: from a record, and of float32

NO_DATA = "this figure carries no data: draw it with a function of lab.figures, or save it with `data`"
_carried: WeakKeyDictionary[Figure, tuple[pd.DataFrame, dict[str, int]]] = WeakKeyDictionary()


def attach(figure: Figure, frame: pd.DataFrame, decimals: Mapping[str, int] | None = None) -> Figure:
    """Let `figure` carry the numbers that were drawn, a row for each mark, and `decimals` as `save` takes them."""
    _carried[figure] = frame.reset_index(drop=frame.index.names == [None]), dict(decimals or {})
    find_letters(figure)
    return figure


def data(figure: Figure) -> pd.DataFrame:
    """Every number plotted in `figure`; ValueError where it was not drawn here.

    Args:
        figure: A figure of this package.

    >>> import nlstm_lab as lab
    >>> table = data(lab.figures.nested_architecture())  # of a diagram its parts
    >>> "arrow" in set(table["kind"])
    True
    """
    if figure not in _carried:
        raise UsageError(NO_DATA)
    return _carried[figure][0]


def find_letters(figure: Figure) -> None:
    """Let what DejaVu has no letters for, such as Chinese, be drawn in the installed font that has most of them."""
    for words in figure.findobj(Text):
        strange = {ord(letter) for letter in words.get_text() if ord(letter) > 0x2FF}
        if strange and (lacking := strange - _letters(findfont(words.get_fontproperties()))):
            # matplotlib's last resort has a box for every letter
            fonts = {font.name for font in fontManager.ttflist if not font.name.startswith("Last Resort")}
            held = {name: len(lacking & _letters(findfont(FontProperties(family=[name])))) for name in sorted(fonts)}
            if held[best := max(held, key=lambda name: held[name])]:
                words.set_fontfamily([*dict.fromkeys([*words.get_fontfamily(), best])])


@cache
def _letters(font: str) -> set[int]:
    return set(get_font(font).get_charmap())


def fingerprint(figure: Figure) -> str:
    """A digest of size, words, colours, lines, markers and scales: the look, as far as it is no consequence of data,
    nor, as positions and ticks are, of the machine's font metrics; without measured numbers in words."""
    size = tuple(round(float(inch), 3) for inch in figure.get_size_inches())
    ticks = {id(element) for tick in figure.findobj(Tick) for element in tick.findobj()}
    computed = bool(_carried[figure][1])
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
        look = artist.get_linestyle(), round(artist.get_linewidth(), 3), artist.get_marker(), artist.get_alpha()
        return f"line {to_hex(artist.get_color())} {look}"
    if isinstance(artist, Patch):
        colours = to_hex(artist.get_facecolor(), True), to_hex(artist.get_edgecolor(), True)
        return f"{type(artist).__name__} {colours} {artist.get_linewidth():.3f} {artist.get_hatch()}"
    if isinstance(artist, Axes):
        return f"axes {artist.get_xscale()} {artist.get_yscale()}"
    shades: Any = ""
    if isinstance(artist, ScalarMappable) and artist.get_array() is not None:
        shades = artist.get_cmap().name  # the colours themselves are consequences of data
    elif isinstance(artist, Collection):
        shades = sorted({to_hex(colour, True) for colour in (*artist.get_facecolor(), *artist.get_edgecolor())})
    return f"{type(artist).__name__} {shades} {artist.get_alpha()}"


def save(
    figure: Figure,
    name: str,
    runs: Any = (),
    caption: str = "",
    data: pd.DataFrame | None = None,
    decimals: Mapping[str, int] | None = None,
    folder: str | Path | None = None,
) -> Path:
    """Write `figures/<name>.{pdf,svg,png,csv,json}` and the manifest.

    The CSV file has a row for each mark, or, of more than a thousand, for each curve. Where its numbers agree with
    the stored ones within a unit of their last digit, and words, colours and lines do, no file is touched; delete the
    JSON file to draw anew. A figure that a notebook stored with other parameters stays, too: the new one goes to
    `workspaces/figures`, which is printed, unless `nlstm-lab figures --replace` says otherwise.

    Args:
        figure: What is drawn; functions of this package leave the plotted numbers with it.
        name: `paper_figure_slug`, in lower case.
        runs: What it shows, one or several, recorded with their seeds in every file's metadata.
        caption: One sentence for the gallery.
        data: The plotted numbers of a figure that seaborn or matplotlib drew, instead of any that it carries.
        decimals: Of columns of `data` that a network computes here, as many as do not depend on the processor.
        folder: Where to; None for the project's `figures`.

    Returns:
        The path of the PDF; UsageError where the name has another form, LabError where the folder cannot be written.

    >>> import nlstm_lab as lab
    >>> lab.figures.save(lab.figures.nested_architecture(), "my_fig1_architecture", caption="A cell in a cell.").name
    'my_fig1_architecture.pdf'
    """
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", name):
        raise UsageError(f"a figure's name is <paper>_<figure>_<slug>, like nlstm_fig3_cells, not {name!r}")
    if data is not None:
        attach(figure, data, decimals)
    elif figure not in _carried:
        raise UsageError(NO_DATA)
    for words in figure.findobj(Text):
        words.set_text(UNPRINTABLE.sub("\ufffd", words.get_text()))
    find_letters(figure)
    caption = UNPRINTABLE.sub("\ufffd", caption)
    target = Path(folder or paths.figures()).expanduser() / f"{name}.pdf"
    made_with = read_json(target.with_suffix(".json")).get("parameters", {})
    if (place := parameters.output_path(target, made_with)) != target:
        changes = ", ".join(f"{name} = {value!r}" for name, value in parameters.changed(target, made_with).items())
        target, caption = place, f"{caption} Here {changes}.".strip()
    several = runs if isinstance(runs, Iterable) and not isinstance(runs, str) else [runs]
    names = [UNPRINTABLE.sub("\ufffd", run if isinstance(run, str) else run.name) for run in several]
    seeds = sorted({int(match[1]) for run in names if (match := re.search(r"seed(\d+)$", run))})
    record = {"name": name, "caption": caption, "parameters": parameters.current(), "runs": names, "seeds": seeds}
    record["look"] = fingerprint(figure)
    if not _unchanged(target, record, figure):
        _write(figure, target, record)
    # two processes may save at once: whoever writes last looks again whether it knew every sidecar
    while paths.write(target.parent / "manifest.json", as_json(manifest(target.parent))):
        pass
    return target


def _csv(frame: pd.DataFrame, digits: int) -> str:
    text = paths.as_csv(_by_curve(frame), float_format=f"%.{digits}g")
    return text.encode(errors="replace").decode()  # a lone surrogate is no character


def _by_curve(frame: pd.DataFrame) -> pd.DataFrame:
    """A long frame of curves with a row for each curve; any other as it is."""
    for along, height in CURVES if len(frame) > LONG else ():
        which = [name for name in frame if name not in (along, height)]
        if which and {along, height} <= set(frame) and not frame.duplicated([*which, along]).any():
            if len(frame[which].drop_duplicates()) * frame[along].nunique() > 2 * len(frame):
                return frame  # another column moves along the curve, too
            wide = frame.set_index([*which, along])[height].unstack()
            places = wide.columns.to_numpy(float)
            names = [f"no {along}" if np.isnan(place) else f"{along} {place:.{DIGITS}g}" for place in places]
            return wide.set_axis(names, axis=1).reset_index()
    return frame


def _unchanged(target: Path, record: dict[str, Any], figure: Figure) -> bool:
    """Whether all stored files are whole, say the same of themselves, and hold the same numbers."""
    stored = read_json(target.with_suffix(".json"))
    files = [target.with_suffix(f".{suffix}") for suffix in (*FORMATS, "csv")]
    whole = {path.suffix[1:]: digest(path.read_bytes()) for path in files if path.is_file()}
    return stored == record | {"files": whole} and len(whole) == len(files) and _numbers_agree(target, figure)


def _numbers_agree(target: Path, figure: Figure) -> bool:
    """Whether the stored numbers are the figure's within a unit of their last digit; then they stay as they are."""
    try:
        old = pd.read_csv(target.with_suffix(".csv"))
    except (OSError, ValueError):  # it is missing or damaged
        return False
    frame, decimals = _carried[figure]
    new = pd.read_csv(io.StringIO(_csv(frame, 17)))  # not rounded

    def close(column: Any) -> bool:
        a, b = old[column], new[column]
        if column not in decimals and "f" not in (a.dtype.kind, b.dtype.kind):
            return bool(a.equals(b))
        share, unit = (COMPUTED, 10.0 ** -decimals[column]) if column in decimals else (RECORDED, 1e-12)
        x, y = (pd.to_numeric(values, errors="coerce") for values in (a, b))
        words = a[x.isna()].astype(str).equals(b[y.isna()].astype(str))
        return words and bool(np.allclose(y, x, rtol=share, atol=unit, equal_nan=True))

    return len(old) == len(new) and list(old) == list(new) and all(map(close, old))


def _write(figure: Figure, target: Path, record: dict[str, Any]) -> None:
    """All files, each whole or not at all; the sidecar, which vouches for the others, comes last."""
    name, caption, seeds = record["name"], record["caption"], " ".join(map(str, record["seeds"]))
    described = f"runs: {'; '.join(record['runs'])}; seeds: {seeds}" if record["runs"] else "no runs"
    whole = {"Title": name, "Description": f"{caption} {described}".strip()}
    undated = dict.fromkeys(("CreationDate", "Creator", "Producer"))
    metadata: dict[str, Any] = {
        "pdf": {"Title": name, "Subject": caption, "Keywords": described, **undated},
        "svg": whole | dict.fromkeys(("Date", "Creator")),
        "png": whole | {"Software": None},
    }
    frame, decimals = _carried[figure]
    numbers = _csv(frame.round(decimals), DIGITS).encode()
    contents = {"csv": target.with_suffix(".csv").read_bytes() if _numbers_agree(target, figure) else numbers}
    with style.context():
        for suffix in FORMATS:
            drawn = io.BytesIO()
            figure.savefig(drawn, format=suffix, metadata=metadata[suffix])
            contents[suffix] = {"png": _of_few_colors, "svg": _of_short_numbers}.get(suffix, io.BytesIO.getvalue)(drawn)
    for suffix, content in contents.items():
        paths.write(target.with_suffix(f".{suffix}"), content)
    files = {suffix: digest(content) for suffix, content in contents.items()}
    paths.write(target.with_suffix(".json"), as_json(record | {"files": files}))


def _of_few_colors(png: io.BytesIO) -> bytes:
    """The picture with a palette of 256 colors, a third of its size: pdf and svg have all of them."""
    picture, texts = Image.open(png), PngInfo()
    for key in ("Title", "Description"):
        texts.add_text(key, picture.info[key])
    small = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    stored = io.BytesIO()
    small.save(stored, format="png", optimize=True, dpi=picture.info["dpi"], pnginfo=texts)
    return stored.getvalue()


def _of_short_numbers(svg: io.BytesIO) -> bytes:
    """The drawing with coordinates in hundredths of a point."""
    return PLACES.sub(lambda place: FRACTION.sub(lambda number: b"%.2f" % float(number[0]), place[0]), svg.getvalue())


def manifest(folder: Path | None = None) -> list[dict[str, Any]]:
    """Every saved figure's sidecar: name, caption, parameters, runs, seeds, fingerprint and its files' digests."""
    sidecars = sorted(path for path in (folder or paths.figures()).glob("*.json") if path.name != "manifest.json")
    return [record for path in sidecars if (record := read_json(path))]


def read_json(path: Path) -> dict[str, Any]:
    """What a sidecar holds, or nothing where it is missing or damaged: then the figure is drawn anew."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def as_json(content: Any) -> str:
    """JSON as it is committed: two spaces, readable symbols, a newline at the end."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def digest(content: bytes) -> str:
    """The start of the sha256 of a file's content."""
    return hashlib.sha256(content).hexdigest()[:16]
