"""Signals whose timescales are known."""

import numpy as np
from scipy.signal import lfilter


def signals(timescales: tuple[float, ...], steps: int, seed: int = 0) -> np.ndarray:
    """Stationary Gaussian signals [steps, len(timescales)] of unit variance, autocorrelation exp(-lag / timescale)."""
    decays = np.exp(-1 / np.array(timescales))
    random = np.random.default_rng(seed)
    noise = random.standard_normal((steps, len(decays))) * np.sqrt(1 - decays**2)
    noise[0] /= np.sqrt(1 - decays**2)  # the first value has the stationary variance already
    columns = [lfilter([1.0], [1.0, -decay], noise[:, k]) for k, decay in enumerate(decays)]
    return np.stack(columns, axis=1)
