"""How a trace shows itself in a notebook."""

import base64
import io
from html import escape

import numpy as np
import xarray as xr
from PIL import Image

UNITS, STEPS = 24, 160  # of each memory, and of the text, that the picture has
BLUE, RED = (33, 102, 172), (178, 24, 43)  # above and below 0


class Trace(xr.Dataset):  # type: ignore[no-untyped-call]
    """A dataset whose first lines in a notebook say what was read, with a picture of the memories."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        full = super()._repr_html_()
        if "h" not in self or self.sizes.get("time", 0) == 0:
            return full
        names = (
            [str(name) for name in self["memory"].values] if "c" in self else [f"h {k}" for k in self["layer"].values]
        )
        first = self.isel(text=0) if "text" in self.dims else self
        read = "".join(map(str, first["symbol"].values[:STEPS])) if "symbol" in first.coords else ""
        texts = f"{self.sizes['text']} texts of up to " if "text" in self.dims else ""
        about = f"{self.attrs.get('run') or self.attrs.get('model', '')}: {texts}{self.sizes['time']} steps"
        size = f"{', '.join(names)}, {self.sizes['unit']} units each"
        return (
            f"<p><b>{escape(about)}</b>; {escape(size)}</p><pre>{escape(read)}</pre>"
            f'<img alt="tanh of the states, a band a memory" style="width: 100%; max-width: 50em; height: '
            f'{4 * len(names)}em; image-rendering: pixelated" src="data:image/png;base64,{_picture(first)}">'
            f"<details><summary>variables</summary>{full}</details>"
        )


def _picture(trace: xr.Dataset) -> str:
    """The first units of each memory, a band each, against time: a PNG."""
    states: xr.DataArray = np.tanh(trace["c"]) if "c" in trace else trace["h"]  # type: ignore[assignment]
    values = np.nan_to_num(states.transpose(..., "unit", "time").values[:, :UNITS, :STEPS])
    gap = np.zeros((len(values), 1, values.shape[-1]))
    bands = np.concatenate([values, gap], 1).reshape(-1, values.shape[-1])[:, :, None]
    ends = np.where(bands > 0, np.array(BLUE), np.array(RED))
    file = io.BytesIO()
    Image.fromarray((255 + (ends - 255) * np.abs(bands).clip(0, 1)).astype(np.uint8)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()
