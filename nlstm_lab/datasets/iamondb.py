"""IAM-OnDB as its distributor packs it: line XMLs in one archive, transcripts of whole forms in another.

lineStrokes/a01/a01-000/a01-000u-01.xml    strokes of points (x, y, time); y grows downward
ascii/a01/a01-000/a01-000u.txt             after "CSR:" the form's lines, top to bottom
"""

import re
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from nlstm_lab.datasets import content, registry
from nlstm_lab.datasets.cache import Parsed, cached
from nlstm_lab.errors import DamagedFile

LINE = re.compile(r"(.+)-(\d+)\.xml")


def lines() -> Parsed:
    """Every line of the database, parsed once.

    Arrays: `points` [all points, 2] int32 (x, y), `lifted` [all points] uint8 (1 where a stroke ends), `ends`
    [lines] int64. Facts: `names`, `transcripts` (empty where the form's text has fewer lines) and `sha256`.
    """
    files = registry.locate("iamondb")
    return cached("iamondb", files, lambda: _parse(*files))


def _parse(strokes: Path, forms: Path) -> Parsed:
    texts = {Path(name).stem: _transcript(data) for name, data in content.members(forms)}
    names, transcripts, points, lifted = [], [], [], []
    for name, data in content.members(strokes):
        match = LINE.fullmatch(Path(name).name)
        if match is None:
            raise DamagedFile(f"{strokes}: {name} is not named after a form and a line; get the archive again")
        xy, pen = _line(data, name)
        text = texts.get(match[1], [])
        number = int(match[2]) - 1
        names.append(Path(name).stem)
        transcripts.append(text[number] if number < len(text) else "")
        points.append(xy)
        lifted.append(pen)
    if not names:
        raise DamagedFile(f"{strokes} holds no lines; get the archive again")
    order = sorted(range(len(names)), key=names.__getitem__)  # whatever order an archive has
    arrays = {
        "points": np.concatenate([points[k] for k in order]),
        "lifted": np.concatenate([lifted[k] for k in order]),
        "ends": np.cumsum([len(points[k]) for k in order]),
    }
    digest = registry.combined([array.tobytes() for array in arrays.values()])
    facts = {"names": [names[k] for k in order], "transcripts": [transcripts[k] for k in order], "sha256": digest}
    return Parsed(arrays, facts)


def _transcript(data: bytes) -> list[str]:
    _, _, text = data.decode("latin-1").partition("CSR:")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _line(data: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points [n, 2] int32 and pen-ups [n] uint8 of one line."""
    points: list[tuple[int, int]] = []
    ends: list[int] = []

    def start(tag: str, attributes: dict[str, Any]) -> None:
        if tag == "Point":
            points.append((int(attributes["x"]), int(attributes["y"])))

    def end(tag: str) -> None:
        if tag == "Stroke" and points:
            ends.append(len(points) - 1)

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(data, True)
    except KeyError as error:
        raise DamagedFile(f"{name} has a point without {error.args[0]}; get the archive again") from None
    except (expat.ExpatError, ValueError) as error:
        raise DamagedFile(f"{name} is no line of strokes ({error}); get the archive again") from None
    if not points:
        raise DamagedFile(f"{name} has no points; get the archive again")
    lifted = np.zeros(len(points), np.uint8)
    lifted[ends] = 1
    return np.array(points, np.int32), lifted
