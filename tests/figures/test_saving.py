"""Same data, same bytes, untouched files; what changed is written whole or not at all."""

import json
import re
import shutil
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from PIL import Image
from test_connectivity import measured

from nlstm_lab import figures, paths
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.figures import connectivity_sentence
from nlstm_lab.statistics import t_interval

NAME = "nlstm_fig3_cells"
RUNS = ["ptb_char_nlstm/small-seed0", "ptb_char_nlstm/small-seed2"]
FILES = sorted([*(f"{NAME}.{suffix}" for suffix in ("csv", "json", "pdf", "png", "svg")), "manifest.json"])


def draw(trace):
    return figures.cell_activations(trace, units=np.int64(2))


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def save(figure, **changes):
    return figures.save(figure, NAME, **{"runs": RUNS, "caption": "Cells."} | changes)


@pytest.fixture
def saved(trace, folder, once):
    """The folder, with the figure saved in it; drawn once in a session."""

    def make(made):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(paths, "figures", lambda: made)
            save(draw(trace(text="to be")))

    return Path(shutil.copytree(once("saved", make), folder, dirs_exist_ok=True))


@pytest.mark.slow
def test_the_same_data_gives_the_same_bytes(trace, saved):
    first = contents(saved)
    for path in saved.iterdir():
        path.unlink()
    save(draw(trace(text="to be")))
    assert contents(saved) == first
    assert sorted(first) == FILES


def test_what_did_not_change_is_not_touched(trace, saved):
    before = times(saved)
    data = trace(text="to be")
    data["c"] = data["c"] * (1 + 1e-5)  # another machine's arithmetic
    figure = draw(data)
    figure.draw_without_rendering()  # a notebook showed it first
    save(figure)
    assert times(saved) == before


@pytest.mark.slow
@pytest.mark.parametrize("change", ["data", "words", "map", "scale", "runs", "caption", "damage", "missing"])
def test_what_changed_is_written(trace, saved, change):
    before = contents(saved)
    data, arguments = trace(text="to be"), {}
    if change == "data":
        data["c"] = data["c"] + 1e-3
    elif change == "runs":
        arguments = {"runs": RUNS[:1]}
    elif change == "caption":
        arguments = {"caption": "Other cells."}
    elif change == "damage":
        (saved / f"{NAME}.png").write_bytes(b"half a")
    elif change == "missing":
        (saved / f"{NAME}.svg").unlink()
    figure = draw(data)
    if change == "words":
        figure.axes[0].texts[0].set_color("green")
    elif change == "map":
        figure.axes[0].collections[0].set_cmap("viridis")
    elif change == "scale":
        figure.axes[0].set_xscale("symlog")
    save(figure, **arguments)
    after = contents(saved)
    assert sorted(after) == FILES
    assert (after == before) == (change in ("damage", "missing"))


def test_runs_and_seeds_are_in_every_file(saved):
    expected = "runs: ptb_char_nlstm/small-seed0; ptb_char_nlstm/small-seed2; seeds: 0 2"
    assert expected in Image.open(saved / f"{NAME}.png").text["Description"]
    assert expected in (saved / f"{NAME}.svg").read_text()
    assert expected in (saved / f"{NAME}.pdf").read_bytes().decode("latin-1")
    record = json.loads((saved / f"{NAME}.json").read_text())
    assert (record["runs"], record["seeds"], record["caption"]) == (RUNS, [0, 2], "Cells.")
    assert json.loads((saved / "manifest.json").read_text()) == [record]


def test_files_tell_no_date_and_no_version_and_their_words_are_outlines_or_text(saved):
    """Outlines of type 42, which journals take: type 3 is refused by some. An SVG's words can be set in other fonts."""
    pdf, svg = (saved / f"{NAME}.pdf").read_bytes(), (saved / f"{NAME}.svg").read_text()
    assert b"/Subtype /Type3" not in pdf
    assert ">cell</text>" in svg
    fonts = " ".join(re.findall(r'font(?:-family)?: ([^"]+)', svg))
    assert {"sans-serif", "monospace"} <= set(re.findall(r"[\w-]+", fonts))
    for stream in re.findall(rb"stream\n(.*?)\nendstream", pdf, re.DOTALL):
        pdf += zlib.decompress(stream) if stream[:1] == b"x" else b""
    for content in (pdf, svg.encode(), (saved / f"{NAME}.png").read_bytes()):
        assert not re.search(rb"CreationDate|Producer|dc:date|Matplotlib v", content)


def test_the_csv_holds_every_plotted_number(trace, saved):
    figure = draw(trace(text="to be"))
    stored = pd.read_csv(saved / f"{NAME}.csv", keep_default_na=False)
    expected = figures.data(figure).round(figures.saving.LIVE)
    pd.testing.assert_frame_equal(stored, expected, check_dtype=False, rtol=1e-6)


@pytest.mark.slow
def test_many_curves_are_stored_with_a_row_each(folder):
    rows = [
        ("nlstm", seed, epoch, "valid", "bpc", 3 / (epoch + seed / 7), "blocks")
        for seed in range(3) for epoch in range(1, 401)
    ]  # fmt: skip
    history = pd.DataFrame(rows, columns=["model", "seed", "epoch", "split", "metric", "value", "evaluation"])

    save(figures.lines(history, "epoch", "value")[0])
    stored = pd.read_csv(folder / f"{NAME}.csv")
    assert list(stored["seed"]) == [0, 1, 2]
    np.testing.assert_allclose(stored.filter(like="epoch").to_numpy().ravel(), history["value"], rtol=1e-6)


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_half_written(trace, saved, monkeypatch):
    before = contents(saved)
    changed = trace(text="to be")
    changed["c"] = changed["c"] * 2

    def full(self, content):
        if ".png." in self.name:
            raise OSError(28, "No space left on device")
        return write(self, content)

    figure, write = draw(changed), Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(LabError, match="nlstm_fig3_cells"):
        save(figure)
    after = contents(saved)
    assert after.keys() == before.keys()
    assert after[f"{NAME}.json"] == before[f"{NAME}.json"]  # which vouches for none of the new files


@pytest.mark.parametrize("name", ["cells", "Nlstm_fig3", "nlstm/fig3_cells", "nlstm_fig3_cells.pdf", ""])
def test_a_name_that_says_too_little_is_refused(trace, folder, name):
    with pytest.raises(UsageError):
        figures.save(draw(trace(text="to be")), name)
    assert not folder.exists()


def test_a_figure_without_data_is_refused(folder):
    import matplotlib.pyplot as plt

    with pytest.raises(ValueError, match="data"):
        figures.save(plt.figure(), NAME)
    plt.close("all")


def test_what_xml_forbids_gives_an_svg_that_opens(folder):
    figure, axes = figures.subplots()
    axes[0, 0].set_title("a\x1bb\x01c\ufffe\ud800")
    frame = pd.DataFrame({"symbol": ["\ud800\x1b"], "x": [1.0]})
    path = figures.save(figure, "test_fig1_xml", runs="mine\ud800/small-seed1", caption="a\x1b\ud800", data=frame)
    assert ElementTree.parse(path.with_suffix(".svg")).getroot().tag.endswith("svg")


TEXT = "to be or not to be"


def moved(found, relative=0.0, absolute=0.0):
    """The same with every floating value moved, up or down."""
    rng = np.random.default_rng(1)
    result = found.copy(deep=True)
    for name, values in found.data_vars.items():
        if np.issubdtype(values.dtype, np.floating):
            sign = rng.choice([-1.0, 1.0], values.shape)
            result[name] = values.dims, values.values * (1 + sign * relative) + sign * absolute
    return result


def boundaries():
    rng = np.random.default_rng(0)
    dims, shape = ("time", "layer"), (len(TEXT), 3)
    operation = rng.integers(0, 3, shape).astype(np.int8)
    data = {"z": rng.random(shape), "operation": operation, "norm": 3 * rng.random(shape)}
    coords = {"time": np.arange(len(TEXT)), "layer": [1, 2, 3], "symbol": ("time", list(TEXT))}
    return xr.Dataset({k: (dims, v) for k, v in data.items()}, coords, {"boundary": "soft", "threshold": 0.5})


def connectivity():
    found = measured(11.0, TEXT)
    return found.assign(probability=found["probability"] + 0.005)  # on the edge of two percents


FIGURES = {
    "cells": (None, figures.cell_activations),
    "norms": (boundaries, lambda found: figures.hidden_norms(found, width=1.0)),
    "connectivity": (connectivity, lambda found: connectivity_sentence({"nlstm": found}, 10, "log")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_other_last_digits_change_no_file_and_more_than_a_stored_digit_does(name, folder, trace):
    """Every live value moved by 1e-5 of itself, as between processors; then by more than half a stored digit."""
    found, draw = FIGURES[name]
    found = found or trace
    figures.save(draw(found()), "lab_live_figure")
    before = contents(folder)
    figures.save(draw(moved(found(), relative=1e-5)), "lab_live_figure")
    assert contents(folder) == before
    figures.save(draw(moved(found(), absolute=2e-4)), "lab_live_figure")
    after = contents(folder)
    assert {key for key in after if after[key] != before[key]} >= {"lab_live_figure.csv", "lab_live_figure.json"}


@pytest.mark.slow
def test_a_recorded_number_is_drawn_anew_where_its_last_stored_digit_changes(folder):
    """A record is the same everywhere: only the last place of a double may differ."""
    record = pd.DataFrame({"step": [1, 2, 3], "value": [0.1234567, 1234.567, 0.0]})
    figures.save(figures.subplots()[0], data=record, name="lab_recorded_figure")
    before = contents(folder)
    same = record.assign(value=record["value"] * (1 + 1e-15))
    figures.save(figures.subplots()[0], data=same, name="lab_recorded_figure")
    assert contents(folder) == before
    for value in (record["value"] * (1 + 3e-6), [np.nan, 0.5, 0.25], ["dead", 0.5, 0.25]):
        figures.save(figures.subplots()[0], data=record.assign(value=value), name="lab_recorded_figure")
        assert contents(folder) != before
        before = contents(folder)


def test_a_long_curve_of_ones_own_is_saved_as_it_is(folder):
    curve = pd.DataFrame({"update": range(1500), "value": 0.5})
    others = pd.concat([curve.assign(seed=0)] * 2), curve.assign(low=curve["update"] / 7)
    for frame in (curve, *others):  # one curve, places that stand there twice, and what moves along with it
        path = figures.save(figures.subplots()[0], "my_loss", data=frame)
        assert len(pd.read_csv(path.with_suffix(".csv"))) == len(frame)


def test_a_strong_line_is_the_mean_where_every_seed_has_a_value_and_a_bar_its_interval():
    rows = pd.DataFrame({"model": "nlstm", "seed": [0, 0, 0, 1, 1], "epoch": [1, 2, 3, 1, 3], "bpc": [1.0, 9, 2, 4, 8]})
    for log, mean in ((False, [2.5, 5.0]), (True, [2.0, 4.0])):
        _, axes = figures.lines(rows, "epoch", "bpc", log=log)
        assert axes[0, 0].lines[-1].get_ydata() == pytest.approx(mean)
    _, axes = figures.lines(rows.assign(model=["mine", "mine", "yours", "yours", "nlstm"], seed=0), "epoch", "bpc")
    assert len({line.get_color() for line in axes[0, 0].lines}) == 3  # units that the project does not know
    _, axes = figures.points(rows.assign(seed=range(5), place="here"), "bpc", "place")
    assert axes[0, 0].lines[0].get_xdata() == pytest.approx(t_interval(rows["bpc"])[1:])


def test_points_of_one_seed_that_nothing_tells_apart_are_refused(folder):
    rows = pd.DataFrame({"name": "a", "seed": [0, 1, 2] * 2, "value": 1.0, "split": ["valid"] * 3 + ["test"] * 3})
    assert figures.points(rows, "value", "name", hue="split")
    with pytest.raises(UsageError, match="hue"):
        figures.points(rows, "value", "name")
