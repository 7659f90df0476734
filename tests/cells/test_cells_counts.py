"""The parameter counts that the documents print come out of the units and their dense layers."""

import pytest

from nlstm_lab.cells import GRU, HMLSTM, LSTM, ClockworkRNN, NestedLSTM


def count(unit):
    return sum(parameter.numel() for parameter in unit.parameters())


def one_hot_model(unit, inputs, layers, units, classes):
    """One-hot or real inputs, the unit, a dense softmax: Nested LSTMs."""
    return count(unit(inputs, units, layers)) + units * classes + classes


def rounded(number):
    """A count as the paper prints it."""
    if number >= 1e6:
        return {f"{number / 1e6:.2f}M", f"{number / 1e6:.1f}M"}
    return {f"{number / 1e3:.0f}k", f"{number / 1e3:.1f}k"}


NESTED_LSTM_PAPER = [
    ("ptb 50", LSTM, 50, 1, 1000, 50, 4_254_050, "4.25M"),
    ("ptb 50", LSTM, 50, 1, 1050, 50, 4_676_750, "4.68M"),
    ("ptb 50", LSTM, 50, 2, 600, 50, 4_474_850, "4.47M"),
    ("ptb 50", LSTM, 50, 3, 450, 50, 4_167_950, "4.17M"),
    ("ptb 50", NestedLSTM, 50, 1, 600, 50, 4_474_850, "4.47M"),
    ("poetry", LSTM, 5368, 1, 32, 5368, 868_472, "868k"),
    ("poetry", LSTM, 5368, 1, 40, 5368, 1_085_528, "1.1M"),
    ("poetry", LSTM, 5368, 2, 32, 5368, 876_792, "877k"),
    ("poetry", LSTM, 5368, 3, 32, 5368, 885_112, "885k"),
    ("poetry", NestedLSTM, 5368, 1, 32, 5368, 876_792, "877k"),
    ("glimpses", LSTM, 49, 1, 100, 10, 61_010, "61.0k"),
    ("glimpses", LSTM, 49, 1, 130, 10, 94_910, "94.9k"),
    ("glimpses", LSTM, 49, 2, 75, 10, 83_560, "83.6k"),
    ("glimpses", LSTM, 49, 3, 60, 10, 85_090, "85.1k"),  # the row prints 75 units
    ("glimpses", NestedLSTM, 49, 1, 75, 10, 83_560, "83.6k"),
    ("text8", LSTM, 27, 1, 2000, 27, 16_278_027, "16.28M"),
    ("text8", LSTM, 27, 1, 2100, 27, 17_931_927, "17.93M"),
    ("text8", LSTM, 27, 2, 1200, 27, 17_451_627, "17.45M"),
    ("text8", LSTM, 27, 3, 950, 27, 18_189_677, "18.19M"),
    ("text8", NestedLSTM, 27, 1, 1200, 27, 17_451_627, "17.45M"),
]


@pytest.fixture(autouse=True)
def _no_starting_values(monkeypatch):
    """Sizes are what counts here; large orthogonal matrices take seconds."""
    monkeypatch.setattr("nlstm_lab.cells.initialization.fill", lambda *_, **__: None)


@pytest.mark.parametrize(
    ("task", "unit", "inputs", "layers", "units", "classes", "exact", "printed"), NESTED_LSTM_PAPER
)
def test_nested_lstm_paper(task, unit, inputs, layers, units, classes, exact, printed):
    parameters = one_hot_model(unit, inputs, layers, units, classes)
    assert parameters == exact
    assert printed in rounded(parameters)


def test_the_printed_75_units_of_table_3_would_not_be_85_1_thousand():
    assert one_hot_model(LSTM, 49, 3, 75, 10) == 128_860


@pytest.mark.parametrize(
    ("unit", "layers", "units", "recurrent"),
    [
        (GRU, 2, 600, 4_323_600),
        (LSTM, 2, 600, 5_764_800),
        (NestedLSTM, 1, 600, 5_764_800),
        (GRU, 2, 1200, 17_287_200),
        (LSTM, 2, 1200, 23_049_600),
        (NestedLSTM, 1, 1200, 23_049_600),
    ],
)
def test_madsens_article(unit, layers, units, recurrent):
    assert count(unit(units, units, layers)) == recurrent


def test_torchs_gru_has_a_second_bias():
    assert count(GRU(600, 600, 2, reset="after")) == 4_327_200


def test_hm_lstm_and_clockwork_have_the_rows_that_their_equations_give():
    E, N = 128, 512
    lowest, middle, top = (4 * N + 1) * (E + N + N + 1), (4 * N + 1) * (3 * N + 1), 4 * N * (2 * N + 1)
    assert count(HMLSTM(E, N, 3)) == lowest + middle + top
    assert count(ClockworkRNN(E, N)) == E * N + N * N * 10 // 16 + N
