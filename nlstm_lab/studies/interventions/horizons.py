"""How far back a network looks: its loss against the context that it was allowed to see."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
import xarray as xr

from nlstm_lab.datasets.excerpt import Excerpt
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.reading import Text, encode_symbols, reading
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.seeds import RUN

POSITIONS = 500  # of a text that are predicted
SETTLED = 0.01  # nats within which a loss counts as settled
ROWS = 64  # positions that are read up to side by side


def horizon(
    model: Network, text: Text, *, contexts: Sequence[int] = (1, 2, 5, 10, 20, 50, 100, 200, 500), positions: int = 200
) -> xr.DataArray:
    """The loss, in nats, of predicting a symbol from the last so many symbols alone, (context, position).

    Each reading starts from a zero state `context` symbols before the position; the positions are the same for all
    contexts, evenly spread over the text. Where the loss no longer falls, the network's memory ends.

    Args:
        contexts: Numbers of symbols that are read before a prediction.
        positions: How many positions are predicted.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> text = "the company said that it would not sell the old bank " * 20
    >>> loss = lab.probes.horizon(model, text, contexts=(1, 5, 20), positions=50).mean("position")
    >>> bool(loss.sel(context=20) < loss.sel(context=1))
    True
    """
    codes = encode_symbols(model, text)
    if not len(contexts) or min(contexts) < 1 or positions < 1:
        raise UsageError("at least one context is needed, each of at least one symbol, and at least one position")
    longest = max(contexts)
    if len(codes) < longest + positions:
        raise UsageError(
            f"contexts from 1 to {longest} symbols at {positions} positions need a text of at least "
            f"{longest + positions} symbols, not {len(codes)}"
        )
    where = np.linspace(longest, len(codes) - 1, positions).round().astype(int)
    loss = np.empty((len(contexts), positions))
    with reading(model):
        for row, context in enumerate(contexts):
            for start in range(0, positions, ROWS):
                at = where[start : start + ROWS]
                x = torch.stack([codes[p - context : p] for p in at], 1)
                hidden = model.recurrent(*model.recurrent_arguments(x))[0][-1:]
                targets = codes[torch.as_tensor(at, device=codes.device)]
                losses = F.cross_entropy(model.readout(hidden)[0].float(), targets, reduction="none")
                loss[row, start : start + ROWS] = losses.cpu().numpy()
    coords = {"context": list(contexts), "position": where}
    return xr.DataArray(loss, coords, ("context", "position"), name="loss", attrs={"model": model.name})


@recorded("horizon", positions=POSITIONS)
def loss_by_context(model: Network, text: Text | Excerpt) -> pd.DataFrame:
    """Measure the mean loss against how much context the network was allowed to see: columns context, loss (nats)."""
    return horizon(model, read(text), positions=POSITIONS).mean("position").to_dataframe().reset_index()


def reach(horizons: pd.DataFrame) -> pd.DataFrame:
    """How far back each run's network looks, from `loss_by_context`, gathered; one row a run.

    Args:
        horizons: `lab.probes.horizon` of one network or several.

    Columns: `reach`, the shortest context from which on the loss stays within `SETTLED` of that with the longest one,
    and `loss` with the longest. Where that is not finite, there is no reach: NaN.
    """
    rows = []
    for key, group in horizons.sort_values("context").groupby(list(RUN), sort=False):
        end = group["loss"].iloc[-1]
        far = group.loc[~((group["loss"] - end).abs() <= SETTLED), "context"]  # NaN is within nothing
        enough = group["context"] if far.empty else group.loc[group["context"] > far.max(), "context"]
        rows.append(dict(zip(RUN, key, strict=True)) | {"reach": enough.min(), "loss": end})
    return pd.DataFrame(rows)
