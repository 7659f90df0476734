"""Figures on disk: pdf, svg, png, the plotted numbers as CSV, and a sidecar that says what made them.

Saved again with the same numbers and the same look, the stored files stay as they are: `git status` is a test.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from nlstm_lab import parameters, paths
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.figures import plotted, style

FORMATS = ("pdf", "svg", "png")
FINE = 300  # dots an inch of what is a picture within a pdf or svg: thousands of marks
DIGITS = 7  # of a number from a record
LONG = 1000  # rows of a frame from which on its curves are stored with a row each, in a fifth of the space
CURVES = (("epoch", "value"), ("update", "value"), ("x", "share"))  # columns along a curve, and of its height
PLACES = re.compile(rb'\b(?:d|x|y|points)="[^"]*"')  # of an SVG: attributes that hold coordinates alone
UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML, and so an SVG, forbids
FRACTION = re.compile(rb"-?\d+\.\d{3,}")


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

    The CSV file has a row for each mark; of more than a thousand marks on curves it has a row for each curve, with a
    column for each epoch, update or x.

    Where the numbers agree with the stored ones, within a unit of their last digit (and 1e-5 of their size, where a
    network computed them), and nothing else changed, no file is touched. What that does not see (the place of a label)
    is redrawn after the JSON file has been deleted. A figure that a notebook stored with other parameters stays, too:
    the new one goes to `workspaces/figures`, which is printed, with what differs in its caption, unless
    `nlstm-lab figures --replace` says otherwise.

    Args:
        figure: What is drawn; functions of this package leave the plotted numbers with it.
        name: `paper_figure_slug`, in lower case.
        runs: What it shows, one or several, recorded with their seeds in every file's metadata.
        caption: One sentence for the gallery.
        data: The plotted numbers of a figure that seaborn or matplotlib drew, instead of any that it carries.
        decimals: Of columns of `data` that a network computes for this figure, as many as do not depend on the
            processor; other columns come from records.
        folder: Where to; None for the project's `figures`.

    Returns:
        The path of the PDF.

    Raises:
        UsageError: The name has another form.
        LabError: The folder cannot be written.

    >>> import nlstm_lab as lab
    >>> lab.figures.save(lab.figures.nested_architecture(), "my_fig1_architecture", caption="A cell in a cell.").name
    'my_fig1_architecture.pdf'
    """
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", name):
        raise UsageError(f"a figure's name is <paper>_<figure>_<slug>, like nlstm_fig3_cells, not {name!r}")
    if data is not None:
        plotted.attach(figure, data, decimals)
    for words in figure.findobj(Text):
        words.set_text(UNPRINTABLE.sub("\ufffd", words.get_text()))
    plotted.find_letters(figure)
    caption = UNPRINTABLE.sub("\ufffd", caption)
    target = Path(folder or paths.figures()) / f"{name}.pdf"
    made_with = read_json(target.with_suffix(".json")).get("parameters", {})
    if (place := parameters.output_path(target, made_with)) != target:
        changes = ", ".join(f"{name} = {value!r}" for name, value in parameters.changed(made_with).items())
        target, caption = place, f"{caption} Here {changes}.".strip()
    several = runs if isinstance(runs, Iterable) and not isinstance(runs, str) else [runs]
    names = [UNPRINTABLE.sub("\ufffd", run if isinstance(run, str) else run.name) for run in several]
    seeds = sorted({int(match[1]) for run in names if (match := re.search(r"seed(\d+)$", run))})
    record = {"name": name, "caption": caption, "parameters": parameters.current(), "runs": names, "seeds": seeds}
    record["look"] = plotted.fingerprint(figure)
    if not _unchanged(target, record, figure):
        try:
            _write(figure, target, record)
        except OSError as error:
            raise LabError(f"cannot write {target.name} into {target.parent} ({paths.reason(error)})") from error
    # two processes may save at once: whoever writes last looks again whether it knew every sidecar
    while paths.write(target.parent / "manifest.json", as_json(manifest(target.parent)).decode()):
        pass
    return target


def _csv(frame: pd.DataFrame, digits: int) -> str:
    text = _by_curve(frame).to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n")
    return text.encode(errors="replace").decode()  # a lone surrogate is no character


def _by_curve(frame: pd.DataFrame) -> pd.DataFrame:
    """A long frame of curves with a row for each curve; any other as it is."""
    for along, height in CURVES if len(frame) > LONG else ():
        if {along, height} <= set(frame):
            which = [name for name in frame if name not in (along, height)]
            wide = frame.set_index([*which, along])[height].unstack()
            places = wide.columns.to_numpy(float)
            names = [f"no {along}" if np.isnan(place) else f"{along} {place:.{DIGITS}g}" for place in places]
            return wide.set_axis(names, axis=1).reset_index()
    return frame


def _unchanged(target: Path, record: dict[str, Any], figure: Figure) -> bool:
    """Whether all stored files are whole, say the same of themselves, and hold the same numbers."""
    stored = read_json(target.with_suffix(".json"))
    files = stored.pop("files", {})
    if stored != record or sorted(files) != sorted((*FORMATS, "csv")):
        return False
    contents = {suffix: target.with_suffix(f".{suffix}") for suffix in files}
    if not all(path.is_file() and digest(path.read_bytes()) == files[suffix] for suffix, path in contents.items()):
        return False
    return _numbers_agree(target, figure)


def _numbers_agree(target: Path, figure: Figure) -> bool:
    """Whether the stored numbers are those of the figure; then they stay, whatever else is drawn anew."""
    try:
        old = pd.read_csv(target.with_suffix(".csv"))
    except (OSError, ValueError):  # it is missing or damaged
        return False
    new = pd.read_csv(io.StringIO(_csv(plotted.data(figure), 17)))
    return plotted.agree(old, new, plotted.decimals(figure))


def _write(figure: Figure, target: Path, record: dict[str, Any]) -> None:
    """All files, each whole or not at all; the sidecar, which vouches for the others, comes last."""
    seeds = " ".join(map(str, record["seeds"]))
    described = f"runs: {'; '.join(record['runs'])}; seeds: {seeds}" if record["runs"] else "no runs"
    title: dict[str, Any] = {"Title": record["name"]}
    whole = title | {"Description": f"{record['caption']} {described}".strip()}
    subject = title | {"Subject": record["caption"], "Keywords": described}
    metadata = {
        "pdf": subject | dict.fromkeys(("CreationDate", "Creator", "Producer")),
        "svg": whole | dict.fromkeys(("Date", "Creator")),
        "png": whole | {"Software": None},
    }
    numbers = _csv(plotted.data(figure).round(plotted.decimals(figure)), DIGITS).encode()
    contents = {"csv": target.with_suffix(".csv").read_bytes() if _numbers_agree(target, figure) else numbers}
    with style.context():
        for suffix in FORMATS:
            drawn = io.BytesIO()
            dpi = None if suffix == "png" else FINE
            figure.savefig(drawn, format=suffix, dpi=dpi, metadata=metadata[suffix])
            stored = {"png": _of_few_colors, "svg": _of_short_numbers}.get(suffix, io.BytesIO.getvalue)
            contents[suffix] = stored(drawn)
    files = {suffix: _store(target.with_suffix(f".{suffix}"), content) for suffix, content in contents.items()}
    _store(target.with_suffix(".json"), as_json(record | {"files": files}))


def _of_few_colors(png: io.BytesIO) -> bytes:
    """The picture with a palette of 256 colors, a third of its size: pdf and svg have all of them."""
    picture, texts = Image.open(png), PngInfo()
    for key, text in picture.info.items():
        if isinstance(key, str) and isinstance(text, str):  # title and description; others are its format's
            texts.add_text(key, text)
    small = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    stored = io.BytesIO()
    small.save(stored, format="png", optimize=True, dpi=picture.info["dpi"], pnginfo=texts)
    return stored.getvalue()


def _of_short_numbers(svg: io.BytesIO) -> bytes:
    """The drawing with coordinates in hundredths of a point."""
    return PLACES.sub(lambda place: FRACTION.sub(lambda number: b"%.2f" % float(number[0]), place[0]), svg.getvalue())


def manifest(folder: Path | None = None) -> list[dict[str, Any]]:
    """Every saved figure's sidecar: name, caption, parameters, runs, seeds, fingerprint and its files' digests.

    Args:
        folder: Where the figures lie.
    """
    sidecars = sorted(path for path in (folder or paths.figures()).glob("*.json") if path.name != "manifest.json")
    return [record for path in sidecars if (record := read_json(path))]


def read_json(path: Path) -> dict[str, Any]:
    """What a sidecar holds, or nothing where it is missing or damaged: then the figure is drawn anew."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def as_json(content: Any) -> bytes:
    """JSON as it is committed: two spaces, readable symbols, a newline at the end."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def digest(content: bytes) -> str:
    """The start of the sha256 of a file's content."""
    return hashlib.sha256(content).hexdigest()[:16]


def _store(path: Path, content: bytes) -> str:
    with paths.atomic(path) as partial:
        partial.write_bytes(content)
    return digest(content)
