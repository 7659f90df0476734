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

COLUMNS = ["low", "high", "histogram", "label", "effect", "untrained", "shuffled", "still_since", "places", "courses"]


def recorded(networks: Networks, run: str, text: Excerpt | None, memories: list[str], size: int) -> dict[str, Any]:
    """CellExplorer's traits known, reasons, known_on and pages, of a run's memories in this order; what there is."""
    traits: dict[str, Any] = {"known": b"", "reasons": [], "known_on": "", "pages": {}}
    if text is None:
        return traits
    rows = pd.MultiIndex.from_product([memories, range(size)], names=["memory", "unit"])
    on = f"{text.length:,} characters of {text.corpus} ({text.split})"
    record = timescales.find(networks[run], text, seed=getattr(networks.given[run], "seed", 0))
    if record is not None:
        ordered = [record[record["value"] == value].set_index(rows.names).loc[rows] for value in ("raw", "tanh")]
        numbers = np.stack([frame[["timescale", "low", "high"]].to_numpy().T for frame in ordered])
        traits["reasons"] = [frame["reason"].tolist() for frame in ordered]
        traits |= {"known": numbers.astype("<f4").tobytes(), "known_on": on}
    record = units.find(networks[run], text)
    if record is not None:
        pages: dict[Any, Any] = record.set_index(rows.names).loc[rows, COLUMNS].replace({np.nan: None}).to_dict("list")
        cuts = cell_cuts.find(networks[run], text)
        if cuts is not None:
            pages.update(cuts.set_index(rows.names).loc[rows, ["kl", "loss_increase"]].to_dict("list"))
        try:
            words = text.read()
        except LabError:  # the corpus is not here
            words = ""
        found = _counterparts(networks, run, text)
        pages |= {"on": on, "before": BEFORE, "text": words, "counterparts": [found.get(row, []) for row in rows]}
        traits["pages"] = pages
    return traits


def _counterparts(networks: Networks, run: str, text: Excerpt) -> dict[tuple[str, int], list[list[Any]]]:
    """Of a unit: the run, the unit and the correlation of its counterpart in each other seed."""
    siblings = networks.siblings(run)
    names, found = list(siblings), dict[tuple[str, int], list[list[Any]]]()
    record = counterparts.find(list(siblings.values()), text) if len(siblings) > 1 else None
    if record is not None:
        own: Any = record[(record["network"] == names.index(run)) & (record["r"] != 0)]
        for one in own.itertuples():
            found.setdefault((one.memory, one.unit), []).append([names[one.other], int(one.counterpart), one.r])
    return found


def quoted(pages: dict[str, Any], shown: list[int]) -> dict[str, Any]:
    """The same with the passages of these rows alone: a page that leaves this machine must not carry the corpus."""
    if not pages:
        return {}
    places = [int(place) for row in shown for place in pages["places"][row].split()]
    length = len(pages["courses"][0].split()[0])
    passages = {str(at): pages["text"][at - pages["before"] :][:length] for at in places if pages["text"]}
    return {**pages, "text": "", "passages": passages}
