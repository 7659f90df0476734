"""Parameter counts that no row of an experiment shows."""

from nlstm_lab.cells import GRU, HMLSTM, ClockworkRNN


def count(unit):
    return sum(parameter.numel() for parameter in unit.parameters())


def test_torchs_gru_has_a_second_bias():
    with_one = 4_323_600  # Madsen's article
    assert (count(GRU(600, 600, 2)), count(GRU(600, 600, 2, reset="after"))) == (with_one, 4_327_200)


def test_hm_lstm_and_clockwork_have_the_rows_that_their_equations_give():
    E, N = 128, 512
    lowest, middle, top = (4 * N + 1) * (E + N + N + 1), (4 * N + 1) * (3 * N + 1), 4 * N * (2 * N + 1)
    assert count(HMLSTM(E, N, 3)) == lowest + middle + top
    assert count(ClockworkRNN(E, N)) == E * N + N * N * 10 // 16 + N
