"""Boundaries, segments and scores: what is drawn is what was found, and bad input gets a sentence."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import nlstm_lab as lab
from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.hierarchical import FOUND, TEXT, WORDS
from nlstm_lab.statistics import t_interval

LONG = "a text of some length, that is read by a network of three layers, and fills a row or two of the figure" * 2


@pytest.fixture
def found():
    """What the boundary probe returns, of a text or of points."""

    def make(text=LONG, boundary="step", length=200) -> xr.Dataset:
        rng = np.random.default_rng(0)
        length = length if text is None else len(text)
        z = (rng.random((length, 3)) < (0.4, 0.1, 0)).astype(np.float32)
        operation = rng.integers(0, 3, (length, 3)).astype(np.int8)
        dims = ("time", "layer")
        data = {"z": (dims, z), "operation": (dims, operation), "norm": (dims, rng.random((length, 3)))}
        coords = {"time": np.arange(length), "layer": [1, 2, 3]}
        symbols = {} if text is None else {"symbol": ("time", list(text))}
        return xr.Dataset(data, coords | symbols, {"boundary": boundary, "threshold": 0.5})

    return make


def test_rows_show_every_boundary_white_and_everything_else_black(found):
    told = found()
    figure = figures.boundary_rows(told)
    (ax,) = figure.axes
    bands = [np.asarray(mesh.get_array()).ravel() for mesh in ax.collections]
    assert "$z=1$: a segment ends" in {text.get_text() for text in ax.texts}
    rows = -(-len(LONG) // 90)
    assert len(bands) == 2 * rows, "two layers with detectors"
    np.testing.assert_array_equal(np.concatenate(bands[1::2]), told.z.sel(layer=1))
    np.testing.assert_array_equal(np.concatenate(bands[::2]), told.z.sel(layer=2))
    assert ax.collections[0].get_cmap()(1.0)[:3] == (1, 1, 1)
    assert ax.collections[0].get_cmap()(0.0)[:3] == (0, 0, 0)
    drawn = figures.data(figure)
    assert len(drawn) == 3 * len(LONG)
    assert "".join(drawn.loc[drawn["layer"] == 1, "symbol"]) == LONG


@pytest.mark.slow
def test_several_readings_of_a_text_stand_under_each_other_by_their_letters(found):
    readings = {"printed": found(), "chance": lab.probes.by_chance(found())}
    figure = figures.boundary_rows(readings)
    (ax,) = figure.axes
    bands = [np.asarray(mesh.get_array()).ravel() for mesh in ax.collections]
    for k, reading in enumerate(readings.values()):
        for place, layer in ((2 * k, 2), (2 * k + 1, 1)):
            np.testing.assert_array_equal(np.concatenate(bands[place::4]), reading.z.sel(layer=layer))
    words = [text.get_text() for text in ax.texts]
    assert "a: printed; b: chance" in words
    assert {"a $z^1$", "b $z^2$"} <= set(words)
    drawn = figures.data(figure)
    assert drawn.groupby("reading").size().to_dict() == {name: 2 * len(LONG) for name in readings}
    figure.draw_without_rendering()
    assert figure.get_tightbbox().x0 >= 0


@pytest.mark.slow
def test_norms_name_the_operations_and_count_the_updates(found):
    told = found()
    figure = figures.hidden_norms(told, printed=(270, 56, 9))
    words = [text.get_text() for text in figure.axes[0].texts]
    assert {"COPY", "UPDATE", "FLUSH"} <= set(words)
    counts = {layer: int((told.operation.sel(layer=layer) != 0).sum()) for layer in (1, 2, 3)}
    assert figures.update_counts(told) == counts
    assert any(f"layer 2: {counts[2]} (paper 56)" in word for word in words)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.x1 <= figures.PAGE + 1e-9


def test_the_scale_of_a_norm_begins_with_its_layers_first_update(found):
    told = found()
    told["operation"][:, 1:] = 0
    told["operation"][4, 1] = 1
    told["norm"][:4, 1:] = 0.0
    told["norm"][4:, 1] = 1.5 + np.arange(len(LONG) - 4) / 100
    told["norm"][:, 2] = 0.0
    (ax,) = figures.hidden_norms(told).axes
    words = next(text.get_text() for text in ax.texts if "norm: " in text.get_text())
    assert f"layer 2: 1.50–{1.5 + (len(LONG) - 5) / 100:.2f}, layer 3: 0.00" in words
    layer2 = ax.collections[4].get_array().ravel()  # z of layers 2 and 1, then norm and operation of 3, then this
    assert layer2.mask[:4].all()
    assert layer2[4] == 0


def test_bad_texts_are_refused(found):
    with pytest.raises(UsageError, match=r"204.*300"):
        figures.boundary_rows(found(), row=300)
    with pytest.raises(UsageError):
        figures.hidden_norms(found(None))
    assert figures.boundary_rows(found(boundary="soft")).axes


@pytest.mark.slow
@pytest.mark.parametrize("draw", [figures.hierarchical_architectures, figures.hierarchical_gating])
def test_a_diagram_stays_within_its_page(draw):
    figure = draw()
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= -1e-9
    assert box.x1 <= figures.PAGE + 1e-9
    assert box.y1 <= figure.get_figheight() + 1e-9


@pytest.mark.slow
def test_the_architectures_boundaries_are_drawn_as_given():
    drawn = figures.data(figures.hierarchical_architectures())
    squares = drawn[drawn["kind"] == "boundary"]["text"].astype(int).tolist()[:-2]  # without the legend's
    half = len(TEXT)
    assert squares[:half] == WORDS[0]
    assert squares[half::2] == FOUND[0]
    assert squares[half + 1 :: 2] == FOUND[1]


@pytest.fixture
def written(found):
    told = found(None)
    path = np.cumsum(np.random.default_rng(1).integers(-3, 9, (200, 2)), 0)
    lifted = np.zeros(200, int)
    lifted[[20, 80, 199]] = 1
    return told.assign(x=("time", path[:, 0]), y=("time", path[:, 1]), lifted=("time", lifted))


def test_a_new_colour_begins_behind_every_boundary_and_no_stroke_crosses_a_lifted_pen(written):
    figure = figures.handwriting_segments(written)
    by_pen, by_z = (panel.collections[0] for panel in figure.axes)
    assert len(by_pen.get_segments()) == 199 - 2
    colours = [tuple(colour) for colour in by_pen.get_colors()]
    changes = [k for k in range(1, len(colours)) if colours[k] != colours[k - 1]]
    assert changes == [20, 79]  # strokes 20 -> 21 and 80 -> 81 are missing
    fired = written.z.sel(layer=2).values[:-1].sum()
    assert len({tuple(colour) for colour in by_z.get_colors()}) == min(6, int(fired) + 1)
    assert [panel.get_title(loc="left") for panel in figure.axes] == [
        "pen lifted: 3 times",
        f"$z^2=1$ at {int(written.z.sel(layer=2).sum())} of 200 points: {int(fired) + 1} segments",
    ]
    never = written.assign(z=0 * written.z)
    assert figures.handwriting_segments(never).axes[1].get_title(loc="left").endswith("0 of 200 points: one segment")
    with pytest.raises(UsageError):
        figures.handwriting_segments(written.isel(time=slice(1)))
    with pytest.raises(UsageError, match="layer 3"):
        figures.handwriting_segments(written, layer=3)


def test_samples_are_drawn_by_their_setting(written):
    line = {name: written[name].values for name in ("x", "y", "lifted")}
    figure = figures.handwriting_samples({"temperature 0.5": [line, line], "temperature 1": [line]})
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["temperature 0.5", "temperature 1"]
    assert len(figures.data(figure)) == 600
    figure.draw_without_rendering()
    scales = [panel.get_window_extent().width / np.ptp(panel.get_xlim()) for panel in figure.axes]
    assert scales[0] == pytest.approx(scales[1], rel=1e-3), "what is written larger is larger"
    with pytest.raises(UsageError):
        figures.handwriting_samples({})


@pytest.mark.parametrize("points", [1, 2])
def test_a_line_that_is_one_dot_is_drawn(points):
    nowhere = np.zeros(points, int)
    figure = figures.handwriting_samples({"warm": [{"x": nowhere, "y": nowhere, "lifted": nowhere}]})
    figure.draw_without_rendering()
    assert len(figures.data(figure)) == points


@pytest.fixture
def scores():
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        [
            ("an experiment", layer, truth, "0", detector, seed, 0.2 / layer**4, 0.2, rng.random() / layer**4)
            for layer in (1, 2)
            for truth in ("spaces", "word ends")
            for detector in ("network", "random", "periodic", "surprise")
            for seed in range(3)
        ],
        columns=["experiment", "layer", "truth", "within", "detector", "seed", "rate", "base", "f1"],
    )


@pytest.mark.slow
def test_scores_show_the_seeds_and_the_rivals(scores):
    figure = figures.boundary_scores(scores)
    first, second = figure.axes
    seeds = scores.query("layer == 1 and truth == 'spaces' and detector == 'network'")["f1"]
    assert any(list(line.get_xdata()) == list(seeds) for line in first.lines)
    rival = scores.query("layer == 1 and truth == 'spaces' and detector == 'random'")["f1"].mean()
    assert any(line.get_marker() == "x" and line.get_xdata()[0] == pytest.approx(rival) for line in first.lines)
    assert [text.get_text() for text in first.get_yticklabels()] == ["spaces", "word ends"]
    marks = {line.get_marker(): line.get_ydata()[0] for line in first.lines if line.get_marker() in "oD|x"}
    assert len(set(marks.values())) == 4, "no detector stands on another"
    assert second.get_xlim()[1] < 0.5 < first.get_xlim()[1], "each layer has an axis of its own"
    assert second.get_title(loc="left") == "$z^2$ fires at 1.2 % of steps"
    assert "95 % t interval" in figure.legends[0].get_texts()[0].get_text()
    later = scores[scores["truth"] == "spaces"].assign(within="or one after", f1=0.4)
    first, _ = figures.boundary_scores(pd.concat([scores, later])).axes
    assert [text.get_text() for text in first.get_yticklabels()] == ["spaces, or one after", "spaces", "word ends"]
    rare = scores.assign(rate=scores["rate"].where(scores["layer"] == 1, 0.001))
    (only,) = figures.boundary_scores(rare).axes
    assert "$z^2$ at 0.1 % of steps" in only.get_title(loc="left")
    uneven = scores.assign(rate=scores["seed"] / 2)
    assert figures.boundary_scores(uneven).axes[0].get_title(loc="left") == "$z^1$ fires at 0, 50, 100 % of steps"
    with pytest.raises(UsageError, match="'±9'"):
        figures.boundary_scores(scores, within="±9")
    with pytest.raises(UsageError):
        figures.boundary_scores(pd.concat([scores, scores.assign(experiment="another")]))


def test_segments_have_shares_that_sum_to_one():
    lengths = pd.DataFrame(
        [(f"layer {k}", seed, length, 5 + length) for k in (1, 2) for seed in range(3) for length in (1, 3, 40)],
        columns=["series", "seed", "length", "count"],
    )
    since = pd.DataFrame(
        [(k, seed, s, 2.0, 30 - 15 * (s == 4)) for k in (1, 2) for seed in range(3) for s in range(5)],
        columns=["layer", "seed", "since", "bits", "count"],
    )
    turned = pd.DataFrame(
        [(1, kind, seed, d, np.log(2), 20) for kind in ("withheld", "forced") for seed in range(3) for d in range(5)],
        columns=["layer", "kind", "seed", "distance", "loss_increase", "number"],
    )
    figure = figures.segment_lengths(lengths, since, turned)
    drawn = figures.data(figure)
    shares = drawn[drawn["panel"] == "lengths"]
    assert shares.groupby(["series", "seed"])["value"].sum().to_numpy() == pytest.approx(1)
    assert shares.loc[(shares["series"] == "layer 1") & (shares["x"] == 20), "value"].iloc[0] == 45 / 59
    assert drawn.loc[drawn["panel"] == "since", "x"].max() == 3, "what was met 15 times only is not drawn"
    assert drawn.loc[drawn["panel"] == "withheld", "value"].tolist() == pytest.approx([1.0] * 15)  # bits, not nats


def test_a_mean_is_drawn_where_every_seed_has_a_value():
    lengths = pd.DataFrame({"series": "layer 1", "seed": range(3), "length": 1, "count": 20})
    since = pd.DataFrame(
        [(1, seed, s, 2.0, 20) for seed in range(3) for s in range(4 + seed)],
        columns=["layer", "seed", "since", "bits", "count"],
    )
    turned = pd.DataFrame(
        [(layer, "forced", seed, 0, 1.0, 20) for layer in (1, 2) for seed in range(3)],
        columns=["layer", "kind", "seed", "distance", "loss_increase", "number"],
    )
    figure = figures.segment_lengths(lengths, since, turned)
    (mean,) = [line for line in figure.axes[1].lines if line.get_alpha() is None]
    assert mean.get_xdata()[np.isfinite(mean.get_ydata())].tolist() == [0, 1, 2, 3]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "segments of layer 1",
        "layer 2 (right panel alone: too few segments for the others)",
        "words: fewer than 20 in a run, not drawn",
    ]


def ablated(**values: list[float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"setting": name, "seed": seed, "value": value, "model": "lstm" if name == "b" else "hmlstm"}
            for name, some in values.items()
            for seed, value in enumerate(some)
        ]
    )


def test_an_ablation_has_a_reference():
    frame = ablated(a=[1, 2, 3], b=[4, 5, 6])
    figure = figures.ablation(frame, "a")
    means = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in means] == [2, 5]
    assert [line.get_color() for line in means] == [figures.look(name).colour for name in ("hmlstm", "lstm")]
    with pytest.raises(UsageError, match=r"'c'.*a, b"):
        figures.ablation(frame, "c")


def test_what_overflowed_or_lies_far_off_is_named_in_words():
    frame = ablated(a=[1, 1.1, 1.2], b=[1.1, 1.2, 1.3], c=[9, 9.1, 9.2], d=[np.nan] * 3, e=[1, 1.1, np.nan])
    (panel,) = figures.ablation(frame, "a").axes
    assert [text.get_text() for text in panel.texts] == [
        "9.10 (8.85 to 9.35)",
        "overflowed in every seed",
        "overflowed in 1 of 3 seeds",
    ]
    assert panel.get_xlim()[1] < 2


def test_the_ladder_shows_every_setting_s_seeds_above_chance() -> None:
    scores = pd.DataFrame(
        [
            {"text": text, "setting": setting, "seed": seed, "rate": 0.3, "base": 0.2, "f1": 0.4 + seed / 100,
             "chance": 0.3, "bits": 0.1, "shuffled": 0.02}
            for text, setting, seed in product(("one", "another"), ("as printed", "a"), range(3))
        ]
    )  # fmt: skip
    figure = figures.boundary_ladder(scores)
    assert len(figure.axes) == 6
    drawn = figures.data(figure).query("quantity == 'f1' and setting == 'a' and text == 'one'")
    assert drawn["value"].tolist() == pytest.approx([0.1, 0.11, 0.12])
    interval = next(line for line in figure.axes[0].lines if len(line.get_xdata()) == 2)
    assert list(interval.get_xdata()) == pytest.approx(list(t_interval([0.1, 0.11, 0.12])[1:]))
    few = scores[(scores["text"] == "one") | ((scores["setting"] == "a") & (scores["seed"] == 0))]
    figure = figures.boundary_ladder(few)  # a setting without a run, and one of one seed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()
    assert figure.get_tightbbox().x0 >= 0


def test_detectors_in_training_are_means_of_the_first_layer() -> None:
    rows = [
        {"setting": "as printed", "seed": seed, "split": split, "evaluation": "streams", "update": update,
         "metric": f"{quantity}/layer {layer}", "value": 0.1 * layer + seed / 100}
        for seed, layer, quantity in product(range(3), (1, 2), ("boundary_rate", "clamped_share", "explained_share"))
        for split, update in (("early", 1), ("early", 10), ("valid", 100), ("train", 100))
    ]  # fmt: skip
    figure = figures.detector_training(pd.DataFrame(rows))
    rate = figure.axes[0].lines[0]
    assert list(rate.get_xdata()) == [1, 10, 100]
    assert list(rate.get_ydata()) == pytest.approx([0.11] * 3)
    assert len(figures.data(figure)) == 3 * 3 * 3
