"""What is recorded of every unit on a long text, as CellExplorer shows it: timescales, and a page a unit."""

from typing import Any

import numpy as np
import pandas as pd

from nlstm_lab.datasets import Excerpt
from nlstm_lab.errors import LabError
from nlstm_lab.studies.activations.measure import BEFORE, counterparts, units
from nlstm_lab.studies.contents.measure import cell_cuts
from nlstm_lab.studies.timescales.measure import timescales
from nlstm_lab.widgets.reading import Networks

COLUMNS = ("low", "high", "histogram", "label", "effect", "untrained", "shuffled", "still_since", "places", "courses")


class UnitRecords:
    """The records of several networks on one excerpt, each read once."""

    def __init__(self, networks: Networks, text: Excerpt | None) -> None:
        self._networks, self._text = networks, text
        self._read: dict[str, dict[str, Any]] = {}

    def __call__(self, run: str, memories: list[str], size: int) -> dict[str, Any]:
        """CellExplorer's traits known, reasons, known_on and pages, of a run's memories in this order."""
        if run not in self._read:
            rows = [(memory, unit) for memory in memories for unit in range(size)]
            self._read[run] = {**self._timescales(run, rows), "pages": self._pages(run, rows)}
        return self._read[run]

    def _timescales(self, run: str, rows: list[tuple[str, int]]) -> dict[str, Any]:
        """The timescales, and where they were measured."""
        text, network = self._text, self._networks[run]
        record = None if text is None else timescales.find(network, text, seed=self._networks.seed(run))
        if text is None or record is None:
            return {"known": b"", "reasons": [], "known_on": ""}
        ordered = [_ordered(record[record["value"] == value], rows) for value in ("raw", "tanh")]
        numbers = np.stack([frame[["timescale", "low", "high"]].to_numpy().T for frame in ordered])
        reasons = [frame["reason"].tolist() for frame in ordered]
        return {"known": numbers.astype("<f4").tobytes(), "reasons": reasons, "known_on": _where(text)}

    def _pages(self, run: str, rows: list[tuple[str, int]]) -> dict[str, Any]:
        """Columns with a row a unit, and the text itself where it is here; nothing where nothing is recorded."""
        text, network = self._text, self._networks[run]
        record = None if text is None else units.find(network, text)
        if text is None or record is None:
            return {}
        table = _ordered(record, rows).replace({np.nan: None})
        pages: dict[str, Any] = {name: table[name].tolist() for name in COLUMNS}
        cuts = cell_cuts.find(network, text)
        if cuts is not None:
            pages |= {name: _ordered(cuts, rows)[name].tolist() for name in ("kl", "loss_increase")}
        try:
            words = text.read()
        except LabError:  # the corpus is not here
            words = ""
        pages |= {"on": _where(text), "before": BEFORE, "text": words}
        return pages | {"counterparts": self._counterparts(run, text, rows)}

    def _counterparts(self, run: str, text: Excerpt, rows: list[tuple[str, int]]) -> list[list[list[Any]]]:
        """Of every unit: the run, the unit and the correlation of its counterpart in each other seed."""
        siblings = self._networks.siblings(run)
        record = counterparts.find(list(siblings.values()), text) if len(siblings) > 1 else None
        if record is None:
            return [[] for _ in rows]
        names = list(siblings)
        own: Any = record[(record["network"] == names.index(run)) & (record["r"] != 0)]
        found: dict[tuple[str, int], list[list[Any]]] = {row: [] for row in rows}
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


def _ordered(frame: pd.DataFrame, rows: list[tuple[str, int]]) -> pd.DataFrame:
    return frame.set_index(["memory", "unit"]).loc[rows]


def _where(text: Excerpt) -> str:
    return f"{text.length:,} characters of {text.corpus} ({text.split})"
