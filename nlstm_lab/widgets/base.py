"""What every widget is: choices that are made in the browser, and results that Python computes from them.

When one of its *inputs* changes, `compute` gives the *results*: at once where it was assigned from Python; changed in
the browser, in a thread, where the newest choice ends older computations, and an error becomes a sentence.

There is no bundler: a widget's script is one module, the text of the shared files `page/*.js`, then of its own, then a
line that hands its `render` to whoever shows it, anywidget or a page that needs nothing else.
"""

import base64
import io
import json
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import anywidget
import numpy as np
import traitlets
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from traitlets import Bytes, Dict, Int, Unicode

from nlstm_lab import paths
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.figures.style import DIVERGING, MEMORIES, MODELS, NORMS, OPERATIONS, STRENGTH, context
from nlstm_lab.runs import Run

Step = Callable[[float, str], None]  # (share of the work that is done, what is being done); raises Cancelled

PACE = 0.1  # seconds between two moves of a progress bar
DPI = 110  # of the static picture
SHARED = ("dom.js", "colours.js", "text.js", "chart.js", "paper.js", "frame.js")
EXPORT = "export default { render: ({ model, el }) => start(model, el, render) };\n"
SHADES = 256

# on a dark page nothing is dark, and what is large is bright; the hues stay
BLUE = ["#1a1a1a", "#1b3a5c", "#3578b8", "#7fbcec", "#d6eaff"]
RED = ["#ffd9c9", "#f79a7c", "#c94f38", "#64241a"]
DARK_STRENGTH, DARK_DIVERGING = (LinearSegmentedColormap.from_list("dark", each) for each in (BLUE, RED + BLUE))

# nothing may be fetched, whatever a text or a name in the state says
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


class Cancelled(Exception):
    """Nobody waits for this computation any more."""


class LabWidget(anywidget.AnyWidget):
    """The base of the widgets.

    A subclass declares what may be chosen as traits, and writes `compute`, and `draw`, which returns the static figure
    of the results. Its `__init__` keeps what they need, then calls this one with a value for every input. All traits
    are shared with the browser; whatever else is handed in here or computed becomes a trait, too. `settled` holds the
    inputs that the results belong to, by name.
    """

    title: ClassVar[str]
    caption: ClassVar[str] = ""  # of what is shown, with traits in braces
    snippet: str = ""  # the call that draws it; {load} is the run
    scripts: ClassVar[tuple[str, ...]]  # files beside this one that, after `page/*.js`, define `render(lab)`
    inputs: ClassVar[tuple[str, ...]] = ()
    looks: ClassVar[tuple[str, ...]] = ()  # traits that the address of a page repeats
    made_of: Mapping[str, Run] = {}  # the runs that may be shown, by the name under which a trait knows them
    _worker: threading.Thread | None = None

    paper = Dict().tag(sync=True)  # what `paper.js` makes caption, citation and call of
    picture = Bytes().tag(sync=True)  # the static figure, when a browser asks for it
    asked, answered = Int().tag(sync=True), Int().tag(sync=True)  # how many changes of inputs, and answered of these
    progress = Dict().tag(sync=True)  # share and doing, of a computation that takes long
    error, notice = Unicode().tag(sync=True), Unicode().tag(sync=True)  # the second: what was changed of a text

    if TYPE_CHECKING:  # results are traits from their first computation on

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls, **keywords: Any) -> None:
        if "scripts" in cls.__dict__:  # anywidget makes a class for each instance, too
            cls._esm, cls._css = script(cls.scripts), source("page/widgets.css")
        for trait in vars(cls).values():
            if isinstance(trait, traitlets.TraitType):
                trait.tag(sync=True)
        super().__init_subclass__(**keywords)

    def __init__(self, **state: Any) -> None:
        self._from_browser, self._version, self._lock = False, 0, threading.Lock()
        self._applying = set[int]()  # threads that set inputs as results, which asks for nothing
        try:
            for name in self.traits().keys() & state.keys():
                self.traits()[name]._validate(self, state[name])
        except traitlets.TraitError as error:
            raise UsageError(str(error)) from None
        state |= self.compute(state, quietly)
        self.add_traits(**{name: traitlets.Any() for name in state if not self.has_trait(name)})
        super().__init__(**state)
        self.settled = self._given()
        self.paper = self._about()
        self.observe(self._chosen, names=list(self.inputs))
        self.on_msg(self._on_message)

    def compute(self, given: dict[str, Any], step: Step) -> dict[str, Any]:
        """The results that the inputs `given` lead to, and corrected inputs; long work calls `step` now and then."""
        return {}

    def figure(self) -> Figure:
        """Draw what the widget shows now, for a paper: hand it to `lab.figures.save`."""
        self.wait()
        with context():
            drawn: Figure = self.draw()
        return drawn

    def to_html(self, path: str | Path) -> Path:
        """Write one self-contained page that shows the current state in any browser, without Python or a network.

        Args:
            path: The page's file, which is returned.

        Raises:
            LabError: It cannot be written.
        """
        picture = self._png()
        state = {"_looks": self._looked(), **self.shown(), **({"picture": picture} if self.snippet else {})}
        held = json.dumps(_plain(state), ensure_ascii=False, allow_nan=False)
        content = source("page/page.html").format(
            policy=POLICY,
            title=escape(self.title),
            style=source("page/widgets.css"),
            picture=base64.b64encode(picture).decode(),
            # no text can end it: no `<` is left
            state=held.replace("<", "\\u003c").replace("\u2028", "\\u2028"),
            script=script(self.scripts, alone=True),
        )
        target = Path(path).expanduser()
        paths.write(target, content)
        return target

    def shown(self) -> dict[str, Any]:
        """All that a page is made of, by name: results and the inputs that they belong to."""
        skipped = {"picture", "asked", "answered", "progress", "error", "layout", "tabbable", "tooltip"}
        known = (name for name in self.keys if name[0] != "_" and name not in skipped)
        return {name: getattr(self, name) for name in known} | self.settled

    def _looked(self) -> dict[str, Any]:
        """What a page's address may set, with the values that it may have, or else its kind."""
        return {name: getattr(self.traits()[name], "values", type(self.traits()[name]).__name__) for name in self.looks}

    def _about(self) -> dict[str, Any]:
        """Its templates, and of each run that may be shown its call and its commit; nothing without a snippet."""
        loads = {}
        for name, run in self.made_of.items():
            quoted = json.dumps(run.experiment.name, ensure_ascii=False)  # a corpus may have any path
            call = f'lab.runs.load({quoted}, seed={run.seed}, scale="{run.experiment.scale}")'
            loads[name] = {"load": call, "commit": run.result.get("commit", "")[:10]}
        known = {name: getattr(self, name) for name in ("title", "caption", "snippet")}
        return {**known, "version": version("nlstm-lab"), "runs": loads} if self.snippet else {}

    def wait(self) -> None:
        """Return when nothing is being computed."""
        if self._worker is not None:
            self._worker.join()

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the browser has changed; its changes of inputs are answered together, in a thread."""
        self._from_browser = True
        try:
            super().set_state(sync_data)
        except LabError as error:  # of a widget that is linked to this one, and keeps what it had
            self.error = str(error)
        finally:
            self._from_browser = False
        if "asked" in sync_data:
            self._version += 1
            asked = (self._version, self.asked, self._given())
            self._worker = threading.Thread(target=self._answer, args=asked, daemon=True)
            self._worker.start()

    def _given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.inputs}

    def _chosen(self, _: Any) -> None:
        if threading.get_ident() in self._applying or self._from_browser:
            return
        self._version += 1
        with self._lock:
            given, results, settled = self._given(), self.settled, self.settled
            try:
                results, settled = self.compute(given, quietly), given
            finally:  # what the browser waits for has ended, whatever came of this
                self._apply({**results, "error": "", "progress": {}, "answered": self.asked}, settled)

    def _answer(self, number: int, asked: int, given: dict[str, Any]) -> None:
        with self._lock:
            if number != self._version:
                return
            self._told = time.monotonic()
            settled = self.settled
            try:
                computed = self.compute(given, partial(self._step, number))
                # what was given is not said back: the browser may have moved on meanwhile
                results = {name: value for name, value in computed.items() if name not in given or value != given[name]}
                results["error"], settled = "", given
            except Cancelled:
                return
            except Exception as error:  # other than LabError a bug, or a wrapped network's own
                kind = "" if isinstance(error, LabError) else f"{type(error).__name__}: "
                results = {"error": f"{kind}{error}"}
            if number == self._version:
                self._apply({**results, "progress": {}, "answered": asked}, settled)

    def _apply(self, values: dict[str, Any], settled: dict[str, Any]) -> None:
        """Show `values`, results and corrected inputs, that belong to the inputs `settled`."""
        self._applying.add(threading.get_ident())
        try:
            with self.hold_sync():
                for name, value in values.items():
                    setattr(self, name, value)
        finally:
            self._applying.discard(threading.get_ident())
        self.settled = {name: values.get(name, value) for name, value in settled.items()}

    def _step(self, number: int, share: float, doing: str) -> None:
        """Tell the browser how far a computation is, and end it where a newer one waits."""
        if number != self._version:
            raise Cancelled
        if time.monotonic() - self._told > PACE:
            self.progress, self._told = {"share": share, "doing": doing}, time.monotonic()

    def _on_message(self, _: Any, content: Any, buffers: Any) -> None:
        """The browser cancels: what was shown last is shown again. Or it asks for the picture of that."""
        if content == "picture":
            self.picture = self._png()
        if content == "cancel":
            self._version += 1
            self._apply({**self.settled, "progress": {}, "error": "", "answered": self.asked}, self.settled)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.settled.items())})"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and for who cannot run it (a page of an executed notebook) its picture."""
        data, metadata = super()._repr_mimebundle_(**options) or ({}, {})
        if picture := self._png():
            data = {**data, "image/png": base64.b64encode(picture).decode()}
            if folder := os.environ.get("NLSTM_LAB_PAGES"):  # set where a notebook is executed without a reader
                page = self.to_html(Path(folder) / f"{type(self).__name__}.html")
                metadata = {**metadata, "nlstm_lab": {"page": f"{page.parent.name}/{page.name}"}}
        return data, metadata

    def _png(self) -> bytes:
        """The static picture; nothing where there is nothing to draw, which the widget itself says."""
        file = io.BytesIO()
        with context(), suppress(LabError):
            self.figure().savefig(file, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
        return file.getvalue()


def clamped(widget: LabWidget, **last: int) -> dict[str, int]:
    """What corrects places (a character, a unit) that another text or network no longer has; mostly nothing."""
    return {place: end for place, end in last.items() if getattr(widget, place) > end}


def quietly(share: float, doing: str) -> None:
    """A callback that does nothing."""


def source(name: str) -> str:
    """A file of JavaScript or CSS in this package."""
    return (paths.PACKAGE / "widgets" / name).read_text(encoding="utf-8")


def script(scripts: tuple[str, ...], alone: bool = False) -> str:
    """The ES module that anywidget loads, or of a page that stands `alone`, where it finds its state."""
    parts = map(source, [*(f"page/{name}" for name in SHARED), *scripts])
    return "\n".join([_constants(), *parts, source("page/alone.js") if alone else EXPORT])


@cache
def _constants() -> str:
    """Colour maps, and the labels and colours of memories and models."""
    maps = {
        "diverging": {"light": _shades(DIVERGING), "dark": _shades(DARK_DIVERGING)},
        "strength": {"light": _shades(STRENGTH), "dark": _shades(DARK_STRENGTH)},
        "norms": {"light": _shades(NORMS), "dark": _shades(NORMS.reversed())},
    }
    looks = {name: look._asdict() for name, look in (MODELS | MEMORIES | OPERATIONS).items()}
    return f"const MAPS = {json.dumps(maps)};\nconst LOOKS = {json.dumps(looks)};"


def _shades(colours: Colormap) -> list[str]:
    return [to_hex(colours(share)) for share in np.linspace(0, 1, SHADES)]


def _plain(value: Any) -> Any:
    """As JSON holds it: bytes in base64, and null where a number is not finite, which the page says."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
