"""Every figure and table of the three documents has its notebook, or a stated reason why it has none."""

import json
import re
from dataclasses import dataclass
from operator import attrgetter

import pytest
from catalogue import notebooks_by_figure

import nlstm_lab as lab
from nlstm_lab import paths, targets
from nlstm_lab.figures import saving

# What is not drawn, and why.
LEFT_OUT = {
    "Madsen, introduction: the demo in five steps": "an animation of how a suggestion is made from characters; the "
    "thing itself, typed into and answered, is the widget of notebook 30",
    "Madsen, the recurrent unit": "the plain recurrent unit is one arrow; it is drawn unrolled in notebook 33",
}
# Places of data/targets that no notebook sets beside our runs, and why.
NOT_COMPARED = {
    "madsen.autocomplete_published": "what the article became after the draft that is in hand, with two passes, "
    "which have no small scale; notebook 00 lists its rows, and notebook 30 draws its published curves",
}


@dataclass(frozen=True)
class Entry:
    """What a document shows, the notebook that shows it here, and what that saves: a figure's start, or a target."""

    shown: str
    notebook: str
    saves: str


ENTRIES = (
    Entry("Nested LSTMs, figure 1: the architecture", "10", "nlstm_fig1_"),
    Entry("Nested LSTMs, figure 2: computational graphs", "10", "nlstm_fig2_"),
    Entry("Nested LSTMs, figure 3: cell activations", "12", "nlstm_fig3_"),
    Entry("Nested LSTMs, figure 4: cell activations of a stack", "12", "nlstm_fig4_"),
    Entry("Nested LSTMs, figure 5: learning curves, Penn Treebank", "11", "nlstm_fig5_"),
    Entry("Nested LSTMs, figure 6: learning curves, poetry", "13", "nlstm_fig6_"),
    Entry("Nested LSTMs, figure 7: learning curves, MNIST glimpses", "14", "nlstm_fig7_"),
    Entry("Nested LSTMs, figure 8: learning curves, text8", "15", "nlstm_fig8_"),
    Entry("Nested LSTMs, table 1", "11", "nested_lstm.table1"),
    Entry("Nested LSTMs, table 2", "13", "nested_lstm.table2"),
    Entry("Nested LSTMs, table 3", "14", "nested_lstm.table3"),
    Entry("Nested LSTMs, table 4", "15", "nested_lstm.table4"),
    Entry("HM-RNN, figure 1: two hierarchies", "20", "hmrnn_fig1_"),
    Entry("HM-RNN, figure 2: gating and output module", "20", "hmrnn_fig2_"),
    Entry("HM-RNN, figure 3: boundaries, Wikipedia", "22", "hmrnn_fig3_"),
    Entry("HM-RNN, figure 4: boundaries and norms, Penn Treebank", "22", "hmrnn_fig4_"),
    Entry("HM-RNN, figure 5: handwriting in segments", "23", "hmrnn_fig5_"),
    Entry("HM-RNN, table 1, left", "21", "hm_rnn.table1_ptb"),
    Entry("HM-RNN, table 1, right", "21", "hm_rnn.table1_enwik8"),
    Entry("HM-RNN, table 2", "21", "hm_rnn.table2"),
    Entry("HM-RNN, table 3", "23", "hm_rnn.table3"),
    Entry("Madsen: diagrams of LSTM, GRU and Nested LSTM", "10", "madsen_units_"),
    Entry("Madsen: the unrolled network and its vanishing gradient", "33", "madsen_unrolled"),
    Entry("Madsen, autocomplete: training", "30", "madsen_autocomplete_training"),
    Entry("Madsen, autocomplete: configurations and testing", "30", "madsen.autocomplete_draft"),
    Entry("Madsen: connectivity of three networks", "32", "madsen_connectivity_"),
    Entry("Madsen, generation: training", "31", "madsen_textgen_training"),
    Entry("Madsen, generation: configurations and testing", "31", "madsen.textgen_draft"),
)
SOURCES = {path.name[:2]: path.read_text(encoding="utf-8") for path in paths.notebooks().glob("[0-9]*.ipynb")}


def named(name: str) -> list[str]:
    """The notebooks that call something by its name."""
    return [number for number, source in sorted(SOURCES.items()) if json.dumps(json.dumps(name))[1:-1] in source]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.shown)
def test_a_document_shows_nothing_that_no_notebook_shows(entry: Entry) -> None:
    assert entry.notebook in SOURCES, f"{entry.shown}: there is no notebook {entry.notebook}"
    if "." in entry.saves:
        assert entry.notebook in named(entry.saves)
        for suffix in ("csv", "tex"):
            assert (paths.figures() / f"{entry.saves.replace('.', '_')}.{suffix}").is_file()
        return
    made = [name for name, notebook in notebooks_by_figure().items() if notebook.startswith(entry.notebook)]
    assert any(name.startswith(entry.saves) for name in made), made


def test_every_table_of_targets_is_compared_somewhere() -> None:
    places = {f"{name}.{place}" for name in targets.DOCUMENTS for place in targets.load(name).places}
    assert {place for place in places if not named(place)} == set(NOT_COMPARED)


def test_the_manifest_holds_what_the_notebooks_save_and_nothing_else() -> None:
    made_in = notebooks_by_figure()
    manifest = json.loads((paths.figures() / "manifest.json").read_text(encoding="utf-8"))
    assert [record["name"] for record in manifest] == sorted(made_in)
    assert manifest == saving.manifest()


def test_the_tables_beside_the_figures_are_those_of_the_notebooks() -> None:
    places = {f"{name}.{place}" for name in targets.DOCUMENTS for place in targets.load(name).places}
    saved = {path.stem for path in paths.figures().glob("*.tex")}
    assert saved == {place.replace(".", "_") for place in places if named(place)}


CITED = re.compile(r"`(lab\.[a-z_]+(?:\.\w+)*)")
WORDS = [*paths.notebooks().glob("*.ipynb"), *paths.root().glob("*.md"), *paths.root().glob("docs/**/*.md")]


@pytest.mark.parametrize("path", WORDS, ids=lambda path: path.stem)
def test_names_that_prose_cites_exist(path):
    """`lab.x.y` in a notebook's or a document's words is a name of today; CHANGELOG.md names what is gone."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")
    for name in set(CITED.findall(text)) if path.name != "CHANGELOG.md" else ():
        attrgetter(name.removeprefix("lab."))(lab)
