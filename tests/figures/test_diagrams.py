"""Diagrams: within their width, with letters that can be read, and as the equations say."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from nlstm_lab import figures
from nlstm_lab.errors import UsageError
from nlstm_lab.figures.diagrams import GATES, KEPT, LSTM, NESTED, STACKED, TILDE

DIAGRAMS = ("nested_architecture", "computational_graphs", "unit_diagrams")
DIAGRAMS += ("hierarchical_architectures", "hierarchical_gating")


@pytest.mark.slow
@pytest.mark.parametrize("width", ["80 mm", 3.25, 5.5, 6.75])
@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_stays_within_its_width_and_carries_its_parts(name, width):
    figure = getattr(figures, name)(width=width)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= -1e-9
    assert box.x1 <= figure.get_figwidth() + 1e-9
    assert box.y1 <= figure.get_figheight() + 1e-9
    assert {text.get_fontsize() for text in figure.axes[0].texts} == {7}
    texts = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text().strip()]
    assert not [(a, b) for a, b in combinations(texts, 2) if a.padded(-1).overlaps(b.padded(-1))]
    assert {"text", "arrow"} <= set(figures.data(figure)["kind"])
    with pytest.raises(UsageError, match=r"2\.5"):
        getattr(figures, name)(width=2.5)


def jacobian_pattern(step, states):
    """Which state of a step depends on which, by finite differences in float64 at a random point."""
    rng = np.random.default_rng(0)
    point = {name: rng.normal(size=size) for name, size in states.items()}
    before = step(**point)
    found = set()
    for name in states:
        after = step(**{**point, name: point[name] + 0.1})
        found |= {(name, state) for state in before if np.abs(after[state] - before[state]).max() > 1e-9}
    return found


def test_the_nested_graph_is_that_of_the_equations():
    """Following the arrows must reach exactly what the equations 5-15, written out, depend on."""
    rng = np.random.default_rng(3)
    w = {gate: rng.normal(size=(2, 4, 4)) for gate in ("i", "f", "g", "o", "ii", "ff", "gg", "oo")}

    def sigma(z):
        return 1 / (1 + np.exp(-z))

    def step(x, h, c, d):
        i, f, g, o = (x @ w[gate][0] + h @ w[gate][1] for gate in "ifgo")
        x_tilde, h_tilde = sigma(i) * g, sigma(f) * c
        ii, ff, gg, oo = (x_tilde @ w[gate][0] + h_tilde @ w[gate][1] for gate in ("ii", "ff", "gg", "oo"))
        d = sigma(ff) * d + sigma(ii) * np.tanh(gg)
        c = sigma(oo) * np.tanh(d)
        return {"d": d, "c": c, "h": sigma(o) * np.tanh(c)}

    drawn = {tuple("d" if state == TILDE else state for state in pair) for pair in reachable(NESTED[1])}
    assert drawn == jacobian_pattern(step, dict.fromkeys("xhcd", 4))


def reachable(edges):
    """What a step's new states depend on: the old states (and x) that a path of arrows starts from."""
    found = {(edge.source, edge.target) for edge in edges if edge.past or edge.source == "x"}
    for _ in edges:
        found |= {(a, edge.target) for edge in edges for a, b in found if not edge.past and edge.source == b}
    return found


@pytest.mark.slow
def test_a_memory_has_the_colour_that_it_has_in_every_figure():
    arrows = [patch for patch in figures.computational_graphs().axes[0].patches if patch.get_linewidth() == 1.9]
    kept = {to_hex(arrow.get_edgecolor()) for arrow in arrows[:-1]}  # without the legend's
    assert kept == {figures.look(name).colour for name in ("cell", "layer 1", "layer 2", "inner")}


def test_only_a_memory_with_a_forget_gate_of_its_own_is_kept():
    kept = [{(edge.source, edge.target) for edge in graph[1] if edge.kind == KEPT} for graph in (LSTM, STACKED, NESTED)]
    assert kept == [{("c", "c")}, {("c^1", "c^1"), ("c^2", "c^2")}, {(TILDE, TILDE)}]
    assert ("c", "c", GATES, True) in {edge[:4] for edge in NESTED[1]}
