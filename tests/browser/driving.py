"""What a person does in a browser, in words: open, run, look, click, press, resize, change the theme."""

from pathlib import Path
from typing import Any, NamedTuple

SCREENSHOTS = Path(__file__).parent / "screenshots"
HARMLESS = ("favicon", "ResizeObserver loop")  # what says nothing of a widget
SECOND = 1000  # milliseconds
PATIENCE = 30  # seconds until an answer counts as none: machines may be busy


class Desk(NamedTuple):
    """A running JupyterLab: its address, its token, the folder that it serves."""

    address: str
    token: str
    root: Path


class Page:
    """One window. `tab` is Playwright's own page, for what is not said here."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.errors: list[str] = []
        self.fetched: list[str] = []
        self._clock: Any = None
        tab.set_default_timeout(PATIENCE * SECOND)
        tab.on("console", self._heard)
        tab.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        tab.on("request", lambda request: self.fetched.append(request.url))

    def _heard(self, message: Any) -> None:
        if message.type == "error" and not any(word in message.text for word in HARMLESS):
            self.errors.append(message.text)

    def open_notebook(self, desk: Desk, name: str) -> None:
        self.tab.goto(f"{desk.address}/lab/tree/notebooks/{name}.ipynb?token={desk.token}&reset")
        self.tab.wait_for_function(
            "window.jupyterapp?.shell.currentWidget?.context?.isReady", timeout=2 * PATIENCE * SECOND
        )
        self.tab.wait_for_function(
            "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'",
        )
        self.tab.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area').catch(() => null)")
        self.errors.clear()  # of JupyterLab's own start

    def run_all(self, seconds: float = 240) -> None:
        """Run all cells and wait; an error in any of them fails the test."""
        self.tab.evaluate(
            """() => {
                window.ranAll = false;
                window.jupyterapp.commands.execute('notebook:run-all-cells').finally(() => { window.ranAll = true; });
            }"""
        )
        self.tab.wait_for_function("window.ranAll", timeout=seconds * SECOND)
        failed = self.tab.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
                .filter((cell) => cell.type === 'code').flatMap((cell) => cell.outputs.toJSON())
                .filter((output) => output.output_type === 'error')
                .map((output) => output.ename + ': ' + output.evalue)"""
        )
        assert not failed, failed

    def open_file(self, path: Path) -> None:
        """A page from a file, with the network off."""
        self.tab.context.set_offline(True)
        self.fetched.clear()
        self.tab.goto(path.resolve().as_uri())
        self.tab.wait_for_selector(".nl-widget .nl-body > *")

    def fetched_elsewhere(self) -> list[str]:
        """What was asked for that is not the file itself."""
        return [url for url in self.fetched if not url.startswith(("file:", "data:", "blob:"))]

    def widget(self, number: int = 0) -> Any:
        """The place of a widget in the page, scrolled into view."""
        found = self.tab.locator(".nl-widget").nth(number)
        found.wait_for()
        found.scroll_into_view_if_needed()
        return found

    def theme(self, dark: bool) -> None:
        """JupyterLab's theme, or that of the system for a page that stands alone."""
        name = "JupyterLab Dark" if dark else "JupyterLab Light"
        self.tab.emulate_media(color_scheme="dark" if dark else "light")
        if self.tab.evaluate("typeof window.jupyterapp") != "undefined":
            self.tab.evaluate(
                f"() => {{ window.jupyterapp.commands.execute('apputils:change-theme', {{theme: '{name}'}}); }}"
            )
        self.tab.wait_for_selector(f".nl-widget[data-theme='{'dark' if dark else 'light'}']")
        self.tab.wait_for_timeout(300)

    def resize(self, width: int, height: int = 1000) -> None:
        self.tab.set_viewport_size({"width": width, "height": height})
        self.tab.wait_for_timeout(250)

    def see(self, selector: str, words: str, number: int = 0) -> None:
        """Wait until what a selector finds first in a widget holds these words."""
        self.widget(number).locator(selector).filter(has_text=words).first.wait_for()

    def idle(self) -> None:
        """Until no widget waits for Python."""
        self.tab.wait_for_timeout(120)  # a burst is settled
        self.tab.wait_for_function("!document.querySelector('.nl-widget[aria-busy]')")

    def look(self, name: str, number: int = 0) -> bytes:
        """A screenshot of a widget, kept under this name; equal bytes are an equal picture."""
        SCREENSHOTS.mkdir(exist_ok=True)
        picture: bytes = self.widget(number).screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")
        return picture

    def milliseconds(self, script: str) -> float:
        """What a click or key costs until it is painted: `script` acts on the page.

        Counted is the time of the page's own thread (script, style, layout, painting), so that what else the machine
        does is not held against the widget.
        """
        if self._clock is None:
            self._clock = self.tab.context.new_cdp_session(self.tab)
            self._clock.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = self._busy()
        self.tab.evaluate(
            f"() => new Promise((done) => {{ {script}; requestAnimationFrame(() => setTimeout(done)); }})"
        )
        return 1000 * (self._busy() - before)

    def _busy(self) -> float:
        """Seconds that the page's thread has worked so far."""
        metrics = self._clock.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))

    def busy(self, script: str, times: int = 10) -> float:
        """Milliseconds of its own thread that the page needs for `script` and its next frame, whatever else runs here.

        `script` acts on the page; K in it counts the times, of which the mean is taken.
        """
        session = self.tab.context.new_cdp_session(self.tab)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

        def spent() -> float:
            told = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
            return 1000 * float(told["TaskDuration"])

        began = spent()
        for k in range(times):
            self.milliseconds(script.replace("K", str(k)))
        return (spent() - began) / times

    def cut_off(self, number: int = 0) -> list[str]:
        """Parts of a widget that reach beyond its right edge, or whose text does not fit into them."""
        return list(
            self.widget(number).evaluate(
                """(root) => {
                    const edge = root.getBoundingClientRect().right + 1;
                    return [...root.querySelectorAll('*')].filter((node) => {
                        const box = node.getBoundingClientRect();
                        if (!box.width || node.closest('.nl-heard')) return false;
                        let clip = node.parentElement;
                        const open = (each) => getComputedStyle(each).overflowX === 'visible';
                        while (clip !== root && open(clip)) clip = clip.parentElement;
                        return clip === root && box.right > edge;
                    }).map((node) => `${node.tagName}.${node.getAttribute('class')} ${node.textContent.slice(0, 30)}`);
                }"""
            )
        )
