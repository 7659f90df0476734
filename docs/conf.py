"""How Sphinx builds the site from what `build.py` has written. Nothing is fetched when a page is read."""

import re
from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

from nlstm_lab.paths import root

project = "nlstm_lab"
author = "The nlstm_lab developers"
copyright = f"2026, {author}; text and figures CC BY 4.0, code MIT"
release = re.search(r'^version = "(.+)"', (root() / "pyproject.toml").read_text(), re.MULTILINE)[1]  # type: ignore[index]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"]
exclude_patterns = ["figures"]
myst_enable_extensions = ["colon_fence", "dollarmath", "amsmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # they were executed with papermill
nb_render_markdown_format = "myst"
default_role = "code"  # docstrings write `names` with one backtick
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 100
smartquotes_action = "qe"  # no dashes: two hyphens begin an option
html_theme = "pydata_sphinx_theme"
html_title = "nlstm_lab"
html_static_path = [str(root() / "docs" / "_static")]
templates_path = [str(root() / "docs" / "_templates")]
html_css_files = ["site.css"]
html_js_files = ["frames.js", ("tables.js", {"defer": "defer"})]
html_math_renderer = "mathml"
html_copy_source = False
html_show_search_summary = False  # a browser refuses to read other pages for it where the site is opened from a folder
html_context = {"default_mode": "auto"}
# pages of a section without others; and notebooks, whose code takes the width
alone = ("index", "gallery", "widgets", "verdicts", "replicate", "contribute", "notebooks/*")
html_sidebars: dict[str, list[str]] = {page: [] for page in alone}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}


KNOWN_AS = {"dots": r"\ldots", "Big": "", "big": "", "iff": r"\Leftrightarrow"}  # commands that docutils' MathML lacks


def _mathml(tex: str, as_block: bool) -> str:
    known = re.sub(r"\\(dots|Big|big|iff)(?![a-zA-Z])", lambda name: KNOWN_AS[name[1]], tex)
    return str(tex2mathml(known, as_block=as_block))


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(_mathml(node.astext(), as_block=False))
    raise SkipNode


def _display(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="math">{_mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def _argument(line: str) -> str:
    """A line of a module's list of arguments, which napoleon does not read, as one of a list."""
    return re.sub(r"^    (?:    |(\w+(?:, \w+)*):(?= ))", lambda name: f"- `{name[1]}`:" if name[1] else "  ", line)


def plain(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings hold plain words and `code`: what reStructuredText would read as markup is escaped."""
    text, verbatim = list[str](), False
    item = -1  # the indentation of a list's items, -1 outside a list
    for line in map(_argument, lines) if what == "module" else lines:
        bare = line.lstrip()
        indent = len(line) - len(bare)
        verbatim = bare.startswith(">>>") or (verbatim and bool(bare))
        starts = bare.startswith("- ")
        ends = bool(bare) and not starts and indent <= item
        if text and text[-1].strip() and (ends or (starts and item < 0)):
            text.append("")  # what Markdown does without: an empty line before and after a list
        elif text and text[-1].startswith(" ") and bare and not indent:
            text.append("")
        item = indent if starts else item if bare and not ends else -1
        parts = line.split("`")
        if not verbatim:
            parts[::2] = [re.sub(r"([*|])|(?<=\w)(_)(?=\W|$)", r"\\\1\2", part) for part in parts[::2]]
        text.append("`".join(parts))
    lines[:] = text


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.connect("autodoc-process-docstring", plain, priority=400)
