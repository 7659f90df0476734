"""The death of the inner memory: what is plotted is what the histories say."""

import numpy as np
import pandas as pd
import pytest

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import panels
from nlstm_lab.probes.death import doubling_slope, remedy_outcomes, remedy_verdicts

UPDATES = (0, 1, 3, 10, 30, 100)


def share(update: int, seed: int) -> float:
    """A share of latched cells that grows by a tenth a logged update, and by a hundredth a seed."""
    return UPDATES.index(update) / 10 + seed / 100


@pytest.fixture
def history():
    rows = []
    for model, memories in (("nlstm", ("outer", "inner")), ("stacked_lstm", ("layer 1", "layer 2"))):
        for start in ("zero", "log_frequencies"):
            for seed in range(3):
                about = {"experiment": f"{model} {start}", "model": model, "start": start, "seed": seed}
                kept = 0.0 if start == "log_frequencies" else 1.0
                early = [(0, update, "early") for update in UPDATES]
                for epoch, update, split in [*early, (1, 200, "valid"), (2, 400, "valid")]:
                    latched = share(min(update, 100), seed)
                    told = {f"latched_share/{memory}": latched * kept for memory in memories}
                    told |= {f"silent_share/{memory}": 0.25 for memory in memories}
                    told |= {"bpc": 5 - latched} if update else {}
                    rows += [
                        {**about, "epoch": epoch, "update": update, "split": split, "evaluation": "blocks",
                         "metric": metric, "value": value, "best": epoch == 1}
                        for metric, value in told.items()
                    ]  # fmt: skip
    return pd.DataFrame(rows)


def curve(panel, colour, alpha=None):
    return [line for line in panel.lines if line.get_color() == colour and line.get_alpha() == alpha]


@pytest.mark.slow
def test_shares_against_updates_every_seed_and_the_mean(history):
    figure = figures.inner_memory_death(history)
    (latched, silent, bpc), (rescued, *_) = np.array(figure.axes).reshape(2, 3)
    inner = figures.look("inner").colour
    (mean,) = curve(latched, inner)
    assert list(mean.get_xdata()) == [1, 3, 10, 30, 100, 200, 400]
    assert mean.get_ydata() == pytest.approx([0.11, 0.21, 0.31, 0.41, 0.51, 0.51, 0.51])
    assert len(curve(latched, inner, 0.35)) == 3
    assert curve(rescued, inner)[0].get_ydata() == pytest.approx([0.0] * 7)
    assert curve(silent, inner)[0].get_ydata() == pytest.approx([0.25] * 7)
    trained, valid = curve(bpc, figures.look("nlstm").colour)
    assert trained.get_ydata() == pytest.approx([4.89, 4.79, 4.69, 4.59, 4.49])
    assert valid.get_xdata().tolist() == [200, 400]
    assert latched.get_xscale() == "log"
    assert [text.get_text() for text in rescued.texts] == ["at 0 %: all memories"]
    assert not latched.texts
    plotted = figures.data(figure)
    assert set(plotted["quantity"]) == {"latched", "silent", "bpc"}
    assert len(plotted) == 2 * 2 * 3 * (8 * 4 + 7)


@pytest.mark.slow
def test_many_epochs_are_a_line_and_few_are_rings(history):
    valid = history[(history["split"] == "valid") & (history["metric"] == "bpc")]
    last = valid[valid["update"] == valid["update"].max()]
    more = pd.concat([history, *(last.assign(update=last["update"] + k) for k in range(1, 12))])
    for told, styles in ((history, {"None"}), (more, {"--"})):
        loss = figures.inner_memory_death(told).axes[2]
        drawn = [line for line in loss.lines if line.get_zorder() == 4]
        assert {line.get_linestyle() for line in drawn} == styles


@pytest.mark.slow
def test_the_loss_may_be_a_perplexity(history):
    figure = figures.inner_memory_death(history.replace({"metric": {"bpc": "perplexity"}}), metric="perplexity")
    assert [panel.get_yscale() for panel in figure.axes] == ["linear", "linear", "log"] * 2
    assert set(figures.data(figure)["quantity"]) == {"latched", "silent", "perplexity"}


def test_a_history_without_memory_cells_or_the_metric_is_refused(history):
    with pytest.raises(UsageError):
        figures.inner_memory_death(history[history["metric"] == "bpc"])
    for metric in ("perplexity", "nll_nats"):
        with pytest.raises(UsageError, match=rf"'{metric}'.*bpc, perplexity"):
            figures.inner_memory_death(history, metric=metric)


@pytest.mark.slow
def test_it_draws_into_axes_that_are_given(history):
    figure, ax = figures.canvas(None, figures.PAGE, 4)
    assert figures.inner_memory_death(history, ax=ax) is figure
    assert len(figure.axes) == 1 + 6
    assert figure.axes[1].get_shared_x_axes().joined(figure.axes[1], figure.axes[6])


def test_panels_share_axes_as_in_a_figure_of_their_own():
    _, ax = figures.canvas(None, 4, 4)
    _, axes = panels(ax, 2, 2, 4, 4, sharex="col", sharey="row")
    axes[0, 0].set(xlim=(2, 3), ylim=(4, 5))
    assert (axes[1, 0].get_xlim(), axes[0, 1].get_ylim()) == ((2, 3), (4, 5))
    assert axes[1, 1].get_xlim() != (2, 3)


def test_panels_keep_their_widths_in_axes_that_are_given():
    for ax in (None, figures.canvas(None, 6, 3)[1]):
        figure, axes = panels(ax, 1, 2, 6, 3, width_ratios=(3, 1))
        figure.set_layout_engine("none")
        wide, narrow = (panel.get_position().width for panel in axes[0])
        assert wide == pytest.approx(3 * narrow)


@pytest.fixture
def outcomes():
    """Two settings of three seeds, judged at different updates; the second is better and alive."""
    settings = {"as printed": (10, 0.6, 0.3, 4.0), "b": (30, 0.0, 0.1, 3.0)}
    rows = [
        (setting, seed, update, latched + seed / 100, silent, latched + silent + seed / 100, bpc, bpc - 4 + seed / 10)
        for seed in range(3)
        for setting, (update, latched, silent, bpc) in settings.items()
    ]
    return pd.DataFrame(rows, columns=["setting", "seed", "update", "latched", "silent", "dead", "bpc", "gain"])


def test_one_page_of_widths_remedies_costs_and_order(outcomes):
    widths = pd.DataFrame(
        [(w, s, u, w * u / 1000 + s / 100) for w in (10, 20) for s in range(3) for u in (0, 10, 30)],
        columns=["width", "seed", "update", "dead"],
    )
    order = pd.DataFrame(
        [(row, start, seed, value - (start != "zero") + seed / 100)
         for row, value in (("LSTM", 2.0), ("Nested LSTM", 2.5), ("stack", 1.9))
         for start in ("zero", "log_frequencies") for seed in range(3)]
        + [("remedy", "zero", seed, 1.2) for seed in range(3)],
        columns=["row", "start", "seed", "value"],
    )  # fmt: skip
    figure = figures.inner_memory_remedies(widths, outcomes, order)
    titled = {panel.get_title(loc="left")[:1]: panel for panel in figure.axes}
    dying, bars, costs, rows = (titled[letter] for letter in "ABCD")
    assert [text.get_text() for text in dying.get_legend().get_texts()] == ["10", "20"]
    means = [line for line in dying.lines if line.get_alpha() is None and line.get_zorder() == 3]
    assert [line.get_ydata().tolist() for line in means] == [pytest.approx([0.11, 0.31]), pytest.approx([0.21, 0.61])]
    assert [tick.get_text() for tick in bars.get_yticklabels()] == ["as printed", "b"]
    assert [bar.get_width() for bar in bars.patches] == pytest.approx([0.61, 0.3, 0.01, 0.1])
    dots = [line.get_xdata().tolist() for line in costs.lines if line.get_marker() == "o"]
    assert dots == [pytest.approx([0, 0.1, 0.2]), pytest.approx([-1, -0.9, -0.8])]
    assert [tick.get_text() for tick in rows.get_yticklabels()] == ["stack", "LSTM", "remedy", "Nested LSTM"]
    low, high = bars.lines[0].get_xdata()
    assert high - low == pytest.approx(2 * 4.302653 * 0.01 / np.sqrt(3), rel=1e-5)
    assert figures.data(figure)["panel"].value_counts().to_dict() == {"widths": 18, "remedies": 6, "order": 21}


def test_outcomes_are_read_where_each_setting_is_judged_and_compared_at_that_update(history):
    printed = history[(history["model"] == "nlstm") & (history["start"] == "zero")].assign(setting="as printed")
    rescued = history[(history["model"] == "nlstm") & (history["start"] != "zero")].assign(setting="rescued")
    rescued.loc[rescued["metric"] == "bpc", "value"] -= 0.5
    told = remedy_outcomes(pd.concat([printed, rescued]), {"as printed": 100, "rescued": 10}, "as printed")
    told = told.set_index(["setting", "seed"])
    columns = ["update", "latched", "silent", "dead", "bpc", "gain"]
    assert told.loc[("as printed", 0), columns].tolist() == pytest.approx([100, 0.5, 0.25, 0.75, 4.5, 0])
    assert told.loc[("rescued", 2), columns].tolist() == pytest.approx([10, 0, 0.25, 0.25, 4.18, -0.5])
    assert told.loc[("rescued", 2), "later"] == pytest.approx(0.31 + 0.25 - 0.25)  # ten updates: seeds' mean as printed
    assert len(told) == 6


@pytest.mark.parametrize(
    ("dead", "later", "bpc", "verdict"),
    [
        ([0.1, 0.2, 0.15], 0.8, 3.0, "alive"),
        ([0.0, 0.0, 0.6], 0.8, 3.0, "inconclusive"),  # its interval reaches beyond a half
        ([0.3, 0.31, 0.32], 0.8, 3.0, "inconclusive"),
        ([0.8, 0.9, 0.7], 0.2, 3.0, "dies"),
        ([0.8, 0.9, 0.7], 0.3, 3.0, "dies later"),
        ([0.0, 0.0, 0.0], 0.8, 5.0, "not trained"),
        ([0.1, 0.2], 0.8, 3.0, "inconclusive"),  # no interval
    ],
)
def test_a_setting_is_judged_as_the_protocol_says(dead, later, bpc, verdict):
    rows = pd.DataFrame({"setting": "one", "dead": dead, "later": later, "bpc": bpc, "gain": 0.0})
    told = remedy_verdicts(rows, entropy=4.3)
    assert told.loc["one", "verdict"] == verdict
    assert told.loc["one", "dead"] == pytest.approx(np.mean(dead))


def test_the_slope_is_per_doubling_and_of_seeds_that_every_width_has():
    rows = [(w, s, 10, (0.1 + s / 50) * np.log2(w)) for w in (50, 100, 400) for s in range(3)]
    shares = pd.DataFrame([*rows, (50, 9, 10, 0.9)], columns=["width", "seed", "update", "dead"])
    told = doubling_slope(shares, "width", 10)
    assert (told.seeds, told.ordering) == (3, "holds")
    assert told.difference.mean == pytest.approx(0.12)
    assert told.difference.high - 0.12 == pytest.approx(4.302653 * 0.02 / np.sqrt(3), rel=1e-5)


def test_first_updates_above_epochs_below(history):
    figure = figures.first_updates_and_epochs(history)
    above, rescued, below, _ = figure.axes
    blue = figures.look("nlstm").colour
    assert curve(above, blue)[0].get_ydata() == pytest.approx([4.89, 4.79, 4.69, 4.59, 4.49])
    assert curve(below, blue)[0].get_ydata() == pytest.approx([4.49, 4.49])
    assert below.get_ylim() == pytest.approx(figure.axes[3].get_ylim())
    assert rescued.get_title(loc="left") == "output bias at log-frequencies"
    with pytest.raises(UsageError, match="'perplexity'"):
        figures.first_updates_and_epochs(history, "perplexity")
