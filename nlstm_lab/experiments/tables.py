"""Read the documents' rows from the TOML files beside this module.

A file has `[tables.NAME]`, each with `rows`, `scales`, `printed` (its targets) and `sources`. What an experiment is
made of, its `task`, `model` and `training`, is given for the whole file, a table and a scale, each over the ones
before; a row gives the fields of its model. Besides:

    name: A pattern of the experiments' names, `NAME_{}` where none is given.
    like: The table whose values, scales and sources this one starts from; `only` names those of the scales that it has.
    rescued: Every row also with its output bias started at the log-frequencies.
    units, printed_parameters, annealed: Of a row: hidden_size at each scale; what is printed; with the scale's `slope`.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from nlstm_lab import paths
from nlstm_lab.datasets.glimpses import MNISTGlimpses
from nlstm_lab.datasets.handwriting import Handwriting
from nlstm_lab.datasets.poetry import ChinesePoetry
from nlstm_lab.datasets.synthetic import NestedLanguage
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.datasets.words import Autocomplete, TextGeneration
from nlstm_lab.experiments.base import Experiment
from nlstm_lab.models import ModelConfig
from nlstm_lab.training import TrainingConfig

LANGUAGES = (CharacterModelling, ChinesePoetry, NestedLanguage, Autocomplete, TextGeneration)
TASKS: dict[str, Any] = {kind.__name__: kind for kind in (*LANGUAGES, MNISTGlimpses, Handwriting)}
INHERITED = ("task", "model", "training", "scales", "sources")
NONE = "none"  # TOML has no such value


def rows(document: str) -> list[Experiment]:
    """Every row of a document's tables at every scale, in the order of the file."""
    shared = tomllib.loads((paths.PACKAGE / "experiments" / f"{document}.toml").read_text(encoding="utf-8"))
    tables: dict[str, Any] = {}
    for name, own in shared.pop("tables").items():
        start = tables[own["like"]] if "like" in own else shared
        tables[name] = _over({key: start[key] for key in INHERITED if key in start}, {"name": f"{name}_{{}}"} | own)
    return [row for table in tables.values() for row in _rows(table)]


def _rows(table: Mapping[str, Any]) -> Iterator[Experiment]:
    scales = {scale: table["scales"][scale] for scale in table.get("only", table["scales"])}
    for name, row in table["rows"].items():
        for place, (scale, own) in enumerate(scales.items()):
            experiment = _experiment(table["name"].format(name), scale, place, _over(table, own), dict(row))
            yield experiment
            if table.get("rescued"):
                model = replace(experiment.model, output_bias="log_frequencies")
                rescued = {"name": f"{experiment.name}_logfreq", "printed": None, "printed_parameters": None}
                yield replace(experiment, model=model, **rescued)  # type: ignore[arg-type]


def _experiment(name: str, scale: Any, place: int, table: dict[str, Any], row: dict[str, Any]) -> Experiment:
    task, training = table["task"], dict(table["training"])
    if row.pop("annealed", False):
        training["slope"] = table["slope"]
    if "units" in row:
        row["hidden_size"] = row.pop("units")[place]
    printed = row.pop("printed_parameters", None)
    sections = table["sources"].items()
    return Experiment(
        name=name,
        scale=scale,
        task=TASKS[task["kind"]](**{field: value for field, value in task.items() if field != "kind"}),
        model=ModelConfig(**_frozen(_over(table.get("model", {}), row))),
        training=TrainingConfig(**_frozen({k: None if value == NONE else value for k, value in training.items()})),
        printed=table.get("printed"),
        printed_parameters=printed,
        sources={f"{section}.{field}": source for section, of in sections for field, source in of.items()},
    )


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The values of two tables, those above first; tables within them likewise."""
    both = {key: _over(below[key], above[key]) for key in above if isinstance(below.get(key), dict)}
    return {**below, **above, **both}


def _frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with tuples in the place of lists."""
    return {
        key: tuple(value) if isinstance(value, list) else _frozen(value) if isinstance(value, dict) else value
        for key, value in values.items()
    }
