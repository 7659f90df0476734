"""What is recorded of every unit on a long text, as CellExplorer shows it: timescales, and a page a unit."""

from typing import Any

import numpy as np
import pandas as pd

from nlstm_lab.datasets import Excerpt
from nlstm_lab.errors import LabError
from nlstm_lab.probes.decoding import cell_cuts
from nlstm_lab.probes.slowness import timescales
from nlstm_lab.probes.unit_statistics import BEFORE, counterparts, units
from nlstm_lab.widgets.reading import Networks

COLUMNS = ("low", "high", "histogram", "label", "effect", "untrained", "shuffled", "still_since", "places", "courses")
Rows = list[tuple[str, int]]  # (memory, unit)


class UnitRecords:
    """The records of several networks on one excerpt, each read once."""

    def __init__(self, text: Excerpt | None) -> None:
        self._text = text
        self._read: dict[str, dict[str, Any]] = {}

    def __call__(self, networks: Networks, run: str, memories: list[str], size: int) -> dict[str, Any]:
        """CellExplorer's traits known, reasons, known_on and pages, of a run's memories in this order."""
        if run not in self._read:
            traits: dict[str, Any] = {"known": b"", "reasons": [], "known_on": "", "pages": {}}
            if self._text is not None:
                rows = [(memory, unit) for memory in memories for unit in range(size)]
                traits |= _timescales(networks, run, self._text, rows)
                traits["pages"] = _pages(networks, run, self._text, rows)
            self._read[run] = traits
        return self._read[run]


def _timescales(networks: Networks, run: str, text: Excerpt, rows: Rows) -> dict[str, Any]:
    """The timescales, and where they were measured; nothing where nothing is recorded."""
    record = timescales.find(networks[run], text, seed=getattr(networks.given[run], "seed", 0))
    if record is None:
        return {}
    ordered = [_ordered(record[record["value"] == value], rows) for value in ("raw", "tanh")]
    numbers = np.stack([frame[["timescale", "low", "high"]].to_numpy().T for frame in ordered])
    reasons = [frame["reason"].tolist() for frame in ordered]
    return {"known": numbers.astype("<f4").tobytes(), "reasons": reasons, "known_on": _where(text)}


def _pages(networks: Networks, run: str, text: Excerpt, rows: Rows) -> dict[str, Any]:
    """Columns with a row a unit, and the text itself where it is here; nothing where nothing is recorded."""
    record = units.find(networks[run], text)
    if record is None:
        return {}
    table = _ordered(record, rows).replace({np.nan: None})
    pages: dict[str, Any] = {name: table[name].tolist() for name in COLUMNS}
    cuts = cell_cuts.find(networks[run], text)
    if cuts is not None:
        pages |= {name: _ordered(cuts, rows)[name].tolist() for name in ("kl", "loss_increase")}
    try:
        words = text.read()
    except LabError:  # the corpus is not here
        words = ""
    counted = _counterparts(networks, run, text, rows)
    return pages | {"on": _where(text), "before": BEFORE, "text": words, "counterparts": counted}


def _counterparts(networks: Networks, run: str, text: Excerpt, rows: Rows) -> list[list[list[Any]]]:
    """Of every unit: the run, the unit and the correlation of its counterpart in each other seed."""
    siblings = networks.siblings(run)
    names, found = list(siblings), {row: list[list[Any]]() for row in rows}
    record = counterparts.find(list(siblings.values()), text) if len(siblings) > 1 else None
    if record is not None:
        own: Any = record[(record["network"] == names.index(run)) & (record["r"] != 0)]
        for one in own.itertuples():
            found[one.memory, one.unit].append([names[one.other], int(one.counterpart), one.r])
    return [*found.values()]


def quoted(pages: dict[str, Any], shown: list[int]) -> dict[str, Any]:
    """The same with the passages of these rows alone: a page that leaves this machine must not carry the corpus."""
    if not pages:
        return {}
    places = [int(place) for row in shown for place in pages["places"][row].split()]
    length = len(pages["courses"][0].split()[0])
    passages = {str(at): pages["text"][at - pages["before"] :][:length] for at in places if pages["text"]}
    return {**pages, "text": "", "passages": passages}


def _ordered(frame: pd.DataFrame, rows: Rows) -> pd.DataFrame:
    return frame.set_index(["memory", "unit"]).loc[rows]


def _where(text: Excerpt) -> str:
    return f"{text.length:,} characters of {text.corpus} ({text.split})"
