"""What COPY saves: a layer's updates along a text, and the multiplications and additions that they need."""

import pandas as pd
import xarray as xr

from nlstm_lab.cells.multiscale import MultiscaleCell
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.studies.boundaries.measure import OPERATIONS


def updates(model: Network, data: xr.Dataset) -> pd.DataFrame:
    """One row a layer: what it did along a text, and what that costs beside doing it at every step.

    data: `boundaries(model, text)`. Columns: layer, steps; updates, the steps at which it did not COPY, and of these
    `flushes`; multiply-adds of matrices with states, in all: `sparse`, where a layer that copies computes nothing, one
    that acts hears the layer below where z of that is 1 and the layer above where it flushes (equations 5 to 7), a
    detector looks once at an h that stays; `dense`, all three products at every step; `stack`, an LSTM of as many
    units. Embedding and output module are left out, and products with gates. UsageError: a network without boundaries.
    """
    table = []
    for k, cell in enumerate(model.recurrent.cells):
        if not isinstance(cell, MultiscaleCell):
            raise UsageError(
                f"{model.name or 'this network'} has no boundaries to count updates by: hand in the network whose "
                "boundaries were read"
            )
        operation = data["operation"].values[:, k]
        acts, flushed = operation != OPERATIONS.index("COPY"), operation == OPERATIONS.index("FLUSH")
        heard = int(acts.sum()) if k == 0 else int((data["z"].values[:, k - 1] > 0).sum())
        rows, units = cell.weight_hh.shape
        below, own = cell.weight_ih.numel(), cell.weight_hh.numel()
        above = 0 if cell.weight_th is None else cell.weight_th.numel()
        steps, number, anew = len(operation), int(acts.sum()), int(flushed.sum())
        # where boundaries are given, a new segment has h of the layer above in the place of its own
        given = data.attrs["boundary"] == "given"
        stands = int((acts[:-1] & ~acts[1:]).sum()) * (rows - 4 * units) * units  # of a new h, at its first COPY
        table.append(
            {
                "layer": k + 1,
                "steps": steps,
                "updates": number,
                "flushes": anew,
                "sparse": heard * below + (number - (anew if given else 0)) * own + anew * above + stands,
                "dense": steps * (below + own + above),
                "stack": steps * 4 * units * (cell.input_size + units),
            }
        )
    return pd.DataFrame(table)
