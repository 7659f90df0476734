"""Every figure and table of the three documents has its notebook, or a stated reason why it has none."""

import json
import re
from operator import attrgetter

import build
import links
import pytest
from catalogue import notebooks_by_figure

import nlstm_lab as lab
from nlstm_lab import paths, targets
from nlstm_lab.figures import saving

# Not drawn: Madsen's demo in five steps, an animation, which is the widget of notebook 30, typed into and answered; and
# his plain recurrent unit, one arrow, which is drawn unrolled in notebook 33.
# Places of data/targets that no notebook sets beside our runs, and why.
NOT_COMPARED = {
    "madsen.autocomplete_published": "what the article became after the draft that is in hand, with two passes, "
    "which have no small scale; notebook 00 lists its rows, and notebook 30 draws its published curves"
}

# What a document shows, the notebook that shows it here, and what that saves: the start of a figure, or a target
ENTRIES = (
    ("Nested LSTMs, figure 1: the architecture", "10", "nlstm_fig1_"),
    ("Nested LSTMs, figure 2: computational graphs", "10", "nlstm_fig2_"),
    ("Nested LSTMs, figure 3: cell activations", "12", "nlstm_fig3_"),
    ("Nested LSTMs, figure 4: cell activations of a stack", "12", "nlstm_fig4_"),
    ("Nested LSTMs, figure 5: learning curves, Penn Treebank", "11", "nlstm_fig5_"),
    ("Nested LSTMs, figure 6: learning curves, poetry", "13", "nlstm_fig6_"),
    ("Nested LSTMs, figure 7: learning curves, MNIST glimpses", "14", "nlstm_fig7_"),
    ("Nested LSTMs, figure 8: learning curves, text8", "15", "nlstm_fig8_"),
    ("Nested LSTMs, table 1", "11", "nested_lstm.table1"),
    ("Nested LSTMs, table 2", "13", "nested_lstm.table2"),
    ("Nested LSTMs, table 3", "14", "nested_lstm.table3"),
    ("Nested LSTMs, table 4", "15", "nested_lstm.table4"),
    ("HM-RNN, figure 1: two hierarchies", "20", "hmrnn_fig1_"),
    ("HM-RNN, figure 2: gating and output module", "20", "hmrnn_fig2_"),
    ("HM-RNN, figure 3: boundaries, Wikipedia", "22", "hmrnn_fig3_"),
    ("HM-RNN, figure 4: boundaries and norms, Penn Treebank", "22", "hmrnn_fig4_"),
    ("HM-RNN, figure 5: handwriting in segments", "23", "hmrnn_fig5_"),
    ("HM-RNN, table 1, left", "21", "hm_rnn.table1_ptb"),
    ("HM-RNN, table 1, right", "21", "hm_rnn.table1_enwik8"),
    ("HM-RNN, table 2", "21", "hm_rnn.table2"),
    ("HM-RNN, table 3", "23", "hm_rnn.table3"),
    ("Madsen: diagrams of LSTM, GRU and Nested LSTM", "10", "madsen_units_"),
    ("Madsen: the unrolled network and its vanishing gradient", "33", "madsen_unrolled"),
    ("Madsen, autocomplete: training", "30", "madsen_autocomplete_training"),
    ("Madsen, autocomplete: configurations and testing", "30", "madsen.autocomplete_draft"),
    ("Madsen: connectivity of three networks", "32", "madsen_connectivity_"),
    ("Madsen, generation: training", "31", "madsen_textgen_training"),
    ("Madsen, generation: configurations and testing", "31", "madsen.textgen_draft"),
)
SOURCES = {path.name[:2]: path.read_text(encoding="utf-8") for path in paths.notebooks().glob("[0-9]*.ipynb")}


def named(name):
    """The notebooks that call something by its name."""
    return [number for number, source in sorted(SOURCES.items()) if json.dumps(json.dumps(name))[1:-1] in source]


@pytest.mark.parametrize(("shown", "notebook", "saves"), ENTRIES)
def test_a_document_shows_nothing_that_no_notebook_shows(shown, notebook, saves):
    if "." in saves:
        assert notebook in named(saves)
        assert (paths.figures() / f"{saves.replace('.', '_')}.csv").is_file()
    else:
        made = [name for name, number in notebooks_by_figure().items() if number.startswith(notebook)]
        assert any(name.startswith(saves) for name in made), made


def test_every_table_of_targets_is_compared_somewhere():
    places = {f"{name}.{place}" for name in targets.DOCUMENTS for place in targets.load(name).places}
    assert {place for place in places if not named(place)} == set(NOT_COMPARED)


def test_the_manifest_holds_what_the_notebooks_save_and_nothing_else():
    made_in = notebooks_by_figure()
    manifest = json.loads((paths.figures() / "manifest.json").read_text(encoding="utf-8"))
    assert [record["name"] for record in manifest] == sorted(made_in)
    assert manifest == saving.manifest()


def test_the_tables_beside_the_figures_are_those_of_the_notebooks():
    places = {f"{name}.{place}" for name in targets.DOCUMENTS for place in targets.load(name).places}
    saved = {path.stem for path in paths.figures().glob("*.tex")}
    assert saved == {place.replace(".", "_") for place in places if named(place)}


CITED = re.compile(r"`(lab\.[a-z_]+(?:\.\w+)*)")
WORDS = {*paths.notebooks().glob("*.ipynb"), *paths.root().glob("*.md"), *paths.root().glob("docs/**/*.md")}


@pytest.mark.parametrize("path", sorted(WORDS - {paths.root() / "CHANGELOG.md"}), ids=lambda path: path.stem)
def test_names_that_prose_cites_exist(path):
    """`lab.x.y` in a notebook's or a document's words is a name of today; CHANGELOG.md names what is gone."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")
    for name in set(CITED.findall(text)):
        attrgetter(name.removeprefix("lab."))(lab)


@pytest.fixture
def site(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "style.css").write_text("")
    (tmp_path / "index.html").write_text(
        '<link href="style.css?v=1"><a href="notebooks/12.html#cells">cells</a> <a href="https://example.org">out</a>'
    )
    (tmp_path / "notebooks" / "12.html").write_text(
        '<h2 id="cells"></h2><a href="../index.html">back</a><a href="#">top</a>'
    )
    return tmp_path


def test_a_site_whose_links_all_lead_somewhere_has_nothing_wrong(site):
    assert links.broken(site) == []


@pytest.mark.parametrize(
    "added",
    [
        '<a href="gone.html">',
        '<a href="notebooks/12.html#gone">',
        '<a href="#gone">',
        '<img src="gone.png">',
        '<a href="notebooks">',
        '<script src="https://cdn.example.org/x.js"></script>',
        '<iframe src="widgets/gone.html"></iframe>',
    ],
)
def test_dead_and_foreign_links_are_reported(site, added):
    page = site / "index.html"
    page.write_text(page.read_text() + added)
    (wrong,) = links.broken(site)
    assert added.split('"')[1] in wrong


def test_every_link_between_the_sites_pages_leads_to_one():
    assert links.loose(build.sources()) == []
