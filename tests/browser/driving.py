"""What a person does in a browser, in words: open, run, look, click, press, resize, change the theme."""

import os
from pathlib import Path
from typing import NamedTuple

SCREENSHOTS = Path(__file__).parent / "screenshots"
ASKED = bool(os.environ.get("SCREENSHOTS"))  # whether a person is going to look at pictures that no test compares
HARMLESS = ("favicon", "ResizeObserver loop")  # what says nothing of a widget
SECOND = 1000  # milliseconds
PATIENCE = 100  # seconds until an answer counts as none: machines may be busy
START = 900  # seconds for JupyterLab, a kernel and the cells of a notebook

# resolves when nothing has moved or changed for so many frames
STILL = """() => new Promise((done) => {
    const look = () => [...document.querySelectorAll('.nl-widget')]
        .map((node) => node.getBoundingClientRect()).map((box) => [box.x, box.y, box.width, box.height]).join();
    let before = null, alike = 0;
    const frame = () => {
        const now = look();
        alike = now === before ? alike + 1 : 0;
        before = now;
        if (alike < 6) requestAnimationFrame(frame); else done();
    };
    frame();
})"""

# of a widget: what reaches beyond its edges, what does not fit into itself, words in a chart that meet others
CUT_OFF = """(root) => {
    const say = (why, node) =>
        `${why}: ${node.tagName}.${node.getAttribute('class')} ${node.textContent.slice(0, 30)}`;
    const shown = (node) => node.getClientRects().length && !node.closest('.nl-heard');
    const style = (node) => getComputedStyle(node).overflowX;
    const frame = root.getBoundingClientRect(), found = [];
    for (const node of [...root.querySelectorAll('*')].filter(shown)) {
        const box = node.getBoundingClientRect();
        let clip = node.parentElement;
        while (clip !== root && style(clip) === 'visible') clip = clip.parentElement;
        const beyond = box.right > frame.right + 1 || box.left < frame.left - 1;
        if (clip === root && box.width && beyond) found.push(say('beyond', node));
        const clips = ['hidden', 'clip'].includes(style(node)) && !node.closest('svg');
        if (clips && node.scrollWidth > node.clientWidth + 1) found.push(say('too wide', node));
    }
    for (const svg of root.querySelectorAll('.nl-chart svg[role]')) {
        const edge = svg.getBoundingClientRect();
        const words = [...svg.querySelectorAll('text')].map((node) => [node, node.getBoundingClientRect()]);
        words.forEach(([node, a], k) => {
            const within = a.left > edge.left - 1 && a.right < edge.right + 1;
            if (!within || a.top < edge.top - 1 || a.bottom > edge.bottom + 1) found.push(say('cut', node));
            for (const [other, b] of words.slice(k + 1)) {
                const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (wide > 1 && high > 3) found.push(`${say('meets', node)} and ${other.textContent}`);
            }
        });
    }
    return found;
}"""

# of a widget whose parts have the focus one after the other: [what has it, its name, whether it is outlined] or null
FOCUSED = """(root) => {
    const node = document.activeElement;
    if (!root.contains(node)) return null;
    const name = node.getAttribute('aria-label') || node.labels?.[0]?.innerText || node.innerText || '';
    const around = [node, node.nextElementSibling].filter(Boolean).map((each) => getComputedStyle(each));
    const outlined = around.some((style) => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 1);
    return [node.outerHTML.slice(0, 120), name.trim(), outlined];
}"""


class Desk(NamedTuple):
    """A running JupyterLab: its address, its token, the folder that it serves."""

    address: str
    token: str
    root: Path


class Page:
    """One window. `tab` is Playwright's own page, for what is not said here."""

    def __init__(self, tab):
        self.tab = tab
        self.errors: list[str] = []
        self.fetched: list[str] = []
        tab.set_default_timeout(PATIENCE * SECOND)
        tab.on("console", self._heard)
        tab.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        tab.on("request", lambda request: self.fetched.append(request.url))

    def _heard(self, message):
        if message.type == "error" and not any(word in message.text for word in HARMLESS):
            self.errors.append(message.text)

    def until(self, condition, arg=None, timeout=PATIENCE * SECOND):
        """Wait until a condition holds; asked twenty times a second, and not in every frame."""
        self.tab.wait_for_function(condition, arg=arg, timeout=timeout, polling=50)

    # --- notebooks and files

    def open_jupyterlab(self, desk):
        self.tab.goto(f"{desk.address}/lab?token={desk.token}&reset", timeout=START * SECOND)
        self.until("window.jupyterapp?.shell.currentWidget", timeout=START * SECOND)
        self.execute("application:toggle-left-area")

    def execute(self, command, **arguments):
        """A command of JupyterLab's, to its end."""
        self.tab.evaluate("([name, given]) => window.jupyterapp.commands.execute(name, given).then(() => null)",
                          [command, arguments])  # fmt: skip

    def open_notebook(self, name):
        self.errors.clear()  # of JupyterLab's own start
        self.tab.set_viewport_size({"width": 1280, "height": 1200})
        self.tab.mouse.move(0, 0)  # where the last test left it, a widget might come to lie under it
        self.execute("apputils:change-theme", theme="JupyterLab Light")
        self.execute("docmanager:open", path=f"notebooks/{name}.ipynb")
        for there in ("context?.isReady", "sessionContext.session?.kernel?.status === 'idle'"):
            opened = f"window.jupyterapp.shell.currentWidget?.context?.path.endsWith('/{name}.ipynb')"
            self.until(f"{opened} && window.jupyterapp.shell.currentWidget.{there}", timeout=START * SECOND)

    def run_all(self):
        """Run all cells and wait; an error in any of them fails the test."""
        self.tab.evaluate(
            """() => {
                window.ranAll = false;
                window.jupyterapp.commands.execute('notebook:run-all-cells').finally(() => { window.ranAll = true; });
            }"""
        )
        self.until("window.ranAll", timeout=START * SECOND)
        failed = self.tab.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
                .filter((cell) => cell.type === 'code').flatMap((cell) => cell.outputs.toJSON())
                .filter((output) => output.output_type === 'error')
                .map((output) => output.ename + ': ' + output.evalue)"""
        )
        assert not failed, failed

    def close_all(self):
        """Close every notebook without saving it, and end its kernel: memory is for the next one."""
        self.tab.evaluate(
            """async () => {
                for (const widget of [...window.jupyterapp.shell.widgets('main')]) {
                    await widget.sessionContext?.shutdown();
                    if (widget.context) widget.context.model.dirty = false;
                    widget.close();
                }
            }"""
        )

    def open_file(self, path, place=""):
        """A page from a file, with the network off, at a place that its address names."""
        self.tab.context.set_offline(True)
        self.fetched.clear()
        self.tab.goto("about:blank")  # or another place of the same page would not load it anew
        self.tab.goto(path.resolve().as_uri() + f"#{place}" * bool(place))
        self.tab.wait_for_selector(".nl-widget .nl-body > *")

    # --- widgets

    def widget(self, number=0):
        """The place of a widget in the page, scrolled into view."""
        found = self.tab.locator(".nl-widget").nth(number)
        found.wait_for()
        found.scroll_into_view_if_needed()
        return found

    def see(self, selector, words, number=0):
        """Wait until what a selector finds first in a widget holds these words."""
        self.widget(number).locator(selector).filter(has_text=words).first.wait_for()

    def filled(self, label):
        """The text of a box, once it has one: a folded panel fills its boxes after it has opened."""
        box = self.tab.get_by_label(label, exact=True)
        self.until("(box) => box.value", arg=box.element_handle())
        return str(box.input_value())

    def error(self):
        """The sentence that a widget says an error with, once there is one."""
        said = self.tab.locator(".nl-error:visible").first
        said.wait_for()
        return str(said.inner_text())

    def no_error(self):
        self.until("[...document.querySelectorAll('.nl-error')].every((node) => node.hidden)")

    def idle(self):
        """Until no widget waits for Python, and what it answered is drawn."""
        self.until("!document.querySelector('.nl-widget[aria-busy]')")
        self.still()

    def still(self):
        """Until nothing moves any more."""
        self.tab.evaluate(STILL)

    def tour(self, name, widths=(1280, 620)):
        """Look around, walk through, and come back to a wide light window; returns what it looks like."""
        self.look_around(name, widths)
        self.theme(dark=False)
        self.resize(1280)
        assert self.walk() >= 3
        return self.look(f"{name}-before")

    def walk(self, number=0):
        """Go through a widget by the tab key: every stop must be named and outlined. Returns how many there are."""
        widget, stops = self.widget(number), 0
        widget.evaluate("(root) => root.querySelector('input, select, textarea, button, [tabindex=\"0\"]').focus()")
        while True:
            self.tab.keyboard.press("Tab")
            focused = widget.evaluate(FOCUSED)
            if focused is None:
                return stops
            stops += 1
            assert focused[1], f"nameless: {focused[0]}"
            assert focused[2], f"not outlined: {focused[0]}"

    def theme(self, dark):
        """JupyterLab's theme, or that of the system for a page that stands alone."""
        name = "JupyterLab Dark" if dark else "JupyterLab Light"
        self.tab.emulate_media(color_scheme="dark" if dark else "light")
        if self.tab.evaluate("typeof window.jupyterapp !== 'undefined'"):
            self.tab.evaluate(
                f"() => {{ window.jupyterapp.commands.execute('apputils:change-theme', {{theme: '{name}'}}); }}"
            )
        self.tab.wait_for_selector(f".nl-widget[data-theme='{'dark' if dark else 'light'}']")
        self.until(  # the style itself comes later
            """(dark) => {
                const paper = getComputedStyle(document.querySelector('.nl-widget')).backgroundColor;
                return (Number(/\\d+/.exec(paper)[0]) < 128) === dark;
            }""",
            arg=dark,
        )
        self.still()

    def resize(self, width, height=1200):
        self.tab.set_viewport_size({"width": width, "height": height})
        self.still()

    # --- pictures

    def look(self, name, number=0):
        """A screenshot of a widget, kept under this name, to compare: equal bytes are an equal picture."""
        SCREENSHOTS.mkdir(exist_ok=True)
        self.still()
        picture: bytes = self.widget(number).screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")
        return picture

    def look_around(self, name, widths=(1280, 620), number=0):
        """The widget light and dark, wide and narrow: each another paper or width, and nothing is cut off."""
        seen = set()
        for dark in (False, True):
            self.theme(dark)
            for width in widths:
                self.resize(width, 1900)
                widget = self.widget(number)
                cut_off = widget.evaluate(CUT_OFF)
                seen.add(widget.evaluate("(root) => `${getComputedStyle(root).backgroundColor} ${root.clientWidth}`"))
                assert not cut_off, (width, cut_off)
                if ASKED:
                    self.look(f"{name}-{'dark' if dark else 'light'}-{width}", number)
        assert len(seen) == 2 * len(widths)
