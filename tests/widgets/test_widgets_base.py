"""Who asks gets an answer to the last question; what leaves a widget holds text as text, and fetches nothing."""

import json
import re
import threading
from typing import Any

import matplotlib.pyplot as plt
import pytest
import traitlets

from nlstm_lab import paths
from nlstm_lab.errors import UsageError
from nlstm_lab.widgets.base import LabWidget

HOSTILE = "</script><script>alert(1)</script> \u2028 'x' \"y\" é e\u0301 👩‍🚀 שלום 漢字"


class Doubling(LabWidget):
    """Twice a number, which may take until `gate` is opened; 13 is refused and 0 is a bug."""

    title = "Doubling"
    scripts = ()
    inputs = ("number",)
    number = traitlets.Int().tag(sync=True)
    twice = traitlets.Int().tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
    raw = traitlets.Bytes().tag(sync=True)
    table_of = traitlets.Dict().tag(sync=True)

    def __init__(self, number=1):
        self.gate, self.computed, self.began = threading.Event(), [], threading.Event()
        self.gate.set()
        super().__init__(number=number, words=HOSTILE, raw=b"\x00\xff")

    def compute(self, given, step):
        number = given["number"]
        self.began.set()
        if number == 13:
            raise UsageError("13 is not for doubling: choose another number")
        while not self.gate.wait(0.01):
            step(0.5, "doubling")
        step(1.0, "doubling")
        self.computed.append(number)
        return {"number": number, "twice": 2 * number // (1 if number else 0)}

    def draw(self):
        figure = plt.figure(figsize=(1, 1))
        plt.close(figure)
        return figure


def browser(widget, **changes):
    """A change as it comes from the browser."""
    widget.set_state({**changes, "asked": widget.asked + 1})


@pytest.mark.parametrize("number", [5, 13])
def test_an_assignment_answers_what_the_browser_waited_for(number):
    widget = Doubling(4)
    widget.gate.clear()
    widget.began.clear()
    result = threading.Event()
    widget.observe(lambda change: result.set(), "progress")
    browser(widget, number=7)
    assert result.wait(300)
    threading.Timer(0.1, widget.gate.set).start()
    if number == 13:
        with pytest.raises(UsageError):
            widget.number = number
    else:
        widget.number = number
    widget.wait()
    assert (widget.number, widget.twice) == ((5, 10) if number == 5 else (4, 8))
    assert (widget.answered, widget.asked, widget.progress, widget.error) == (1, 1, {}, "")


def test_it_is_computed_when_made_when_assigned_and_when_asked():
    widget = Doubling(4)
    assert widget.twice == 8
    widget.number = 5
    assert widget.twice == 10
    with pytest.raises(UsageError, match="13"):
        widget.number = 13
    assert (widget.number, widget.twice, widget.error) == (5, 10, "")
    for asked in (1, 2):  # the same again
        browser(widget, number=6)
        widget.wait()
        assert (widget.twice, widget.answered, widget.asked, widget.progress) == (12, asked, asked, {})


def test_an_error_is_a_sentence_and_the_next_answer_takes_it_away():
    widget = Doubling(4)
    browser(widget, number=13)
    widget.wait()
    assert widget.error == "13 is not for doubling: choose another number"
    assert (widget.twice, widget.answered, widget.shown()["number"]) == (8, 1, 4)
    browser(widget, number=0)
    widget.wait()
    assert widget.error.startswith("ZeroDivisionError: ")
    browser(widget, number=3)
    widget.wait()
    assert (widget.twice, widget.error) == (6, "")


def test_a_widget_with_nothing_to_draw_is_displayed_without_a_picture(monkeypatch):
    def refuse(self):
        raise UsageError("there is nothing to draw")

    data, _ = Doubling(4)._repr_mimebundle_()
    assert data["image/png"].startswith("iVBORw0KGgo")
    assert data["text/plain"] == "Doubling(number=4)"
    monkeypatch.setattr(Doubling, "draw", refuse)
    data, _ = Doubling(4)._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "image/png" not in data


def test_of_a_burst_only_the_last_is_computed():
    widget = Doubling(1)
    widget.gate.clear()
    for number in range(2, 60):
        browser(widget, number=number)
    widget.gate.set()
    widget.wait()
    assert widget.twice == 118
    assert widget.computed[0] == 1
    assert len(widget.computed) <= 3, "the first of them may have got through"


def test_an_answer_does_not_take_back_what_was_chosen_meanwhile():
    widget = Doubling(1)
    widget.gate.clear()
    widget.began.clear()
    browser(widget, number=2)
    assert widget.began.wait(300)
    widget.set_state({"number": 3})  # moved on, and not asked yet
    widget.gate.set()
    widget.wait()
    assert (widget.number, widget.twice) == (3, 4)
    assert (widget.settled, widget.shown()["number"]) == ({"number": 2}, 2)  # what a page would say


def test_a_long_computation_tells_how_far_it_is_and_is_cancelled():
    widget = Doubling(1)
    widget.gate.clear()
    result: list[Any] = []
    moved = threading.Event()
    widget.observe(lambda change: (result.append(change.new), moved.set()), "progress")
    browser(widget, number=7)
    assert moved.wait(300)
    assert result[0] == {"share": 0.5, "doing": "doubling"}
    widget._handle_custom_msg("cancel", [])
    widget.wait()
    assert (widget.number, widget.twice, widget.progress, widget.answered) == (1, 2, {}, widget.asked)
    assert widget.computed == [1]


def test_who_cancels_while_an_answer_is_written_does_not_lock_it():
    def cancel(_):  # in the middle of writing, from the kernel's own thread
        one = threading.Thread(target=widget._handle_custom_msg, args=("cancel", []))
        one.start()
        one.join(60)

    widget = Doubling(1)
    widget.compute = lambda given, step: {"twice": 40, "number": 20}  # the number is corrected last
    widget.observe(cancel, "twice")
    browser(widget, number=40)
    widget._worker.join(60)
    assert not widget._worker.is_alive()


def state(page):
    """What the file of a page holds, in JSON."""
    text = page.read_text(encoding="utf-8")
    (held,) = re.findall(r'<script type="application/json" id="state">(.*?)</script>', text, re.DOTALL)
    return json.loads(held, parse_constant=pytest.fail)


def test_a_page_holds_any_text_and_fetches_nothing(tmp_path):
    widget = Doubling(4)
    widget.table_of = {"a": [float("nan"), 1.0], "b": float("-inf")}  # JSON has none of these
    file = widget.to_html(tmp_path / "page.html")
    page = file.read_text(encoding="utf-8")
    of_pages = {"notice": "", "paper": {}, "_looks": {}, "table_of": {"a": [None, 1.0], "b": None}}
    assert state(file) == of_pages | {"number": 4, "twice": 8, "words": HOSTILE, "raw": {"base64": "AP8="}}
    assert page.count("<script") == 2
    assert "default-src 'none'" in page
    fetched = re.findall(
        r"""(?:src|href)=["'](?!data:)|@import|url\((?!data:)|https?://(?!www\.w3\.org/2000/svg)""", page
    )
    assert not fetched


def test_no_script_parses_text():
    """Markup is built of text nodes alone."""
    folder = paths.PACKAGE / "widgets"
    for path in folder.rglob("*.js"):
        forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://(?!www\.w3)"
        assert not re.search(forbidden, path.read_text(encoding="utf-8")), path
