"""Executed notebooks as static pages beside the gallery: they open from a file, with the network off.

Formulas become pictures drawn by matplotlib, widgets what they show without a kernel; nothing is fetched.
"""

import base64
import io
import json
import re
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

from nlstm_lab import paths
from nlstm_lab.errors import LabError
from nlstm_lab.notebooks.jobs import Job, names

WIDGET = "application/vnd.jupyter.widget-view+json"
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$(?=\S)([^$\n]+?)(?<=\S)\$", re.DOTALL)
# the gallery loads this, where it is, to find out which pages there are
HERE = """for (const page of {pages})
  for (const link of document.querySelectorAll(`a[href="pages/${{page}}.html"]`)) link.parentElement.hidden = false;
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{css}</style>
</head>
<body>
<nav><a href="../index.html">all figures</a>{others}</nav>
<main>
{body}
</main>
</body>
</html>
"""


def export() -> list[Path]:
    """Write `figures/pages/<notebook>.html` for every notebook that is executed, and remove other pages.

    A page that would not change is not written. LabError: the folder cannot be written.
    """
    executed = [Job(name) for name in names() if Job(name).output.is_file()]
    folder = paths.pages()
    css = (paths.PACKAGE / "notebooks" / "pages.css").read_text(encoding="utf-8")
    css += HtmlFormatter(style="default").get_style_defs(".highlight") + "\n"
    content = {"here.js": HERE.format(pages=json.dumps([job.name for job in executed]))}
    for k, job in enumerate(executed):
        others = [(sign, executed[n].name) for sign, n in (("←", k - 1), ("→", k + 1)) if 0 <= n < len(executed)]
        links = "".join(f' <a href="{name}.html">{sign} {name}</a>' for sign, name in others)
        notebook = nbformat.read(job.output, as_version=4)  # type: ignore[no-untyped-call]
        content[f"{job.name}.html"] = PAGE.format(title=escape(job.name), css=css, others=links, body=body(notebook))
    try:
        for stale in {path.name for path in folder.glob("*.html")} - content.keys():
            (folder / stale).unlink()
        for name, text in content.items():
            paths.write(folder / name, text)
    except OSError as error:
        raise LabError(f"cannot write into {folder} ({paths.reason(error)})") from error
    return [folder / f"{job.name}.html" for job in executed]


def body(notebook: NotebookNode) -> str:
    """An executed notebook's cells as HTML that needs nothing else."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = FORMULA.sub(_formula, cell.source.replace("](../figures/", "](../"))
        for output in cell.get("outputs", []):
            shown = output.get("data", {})
            if shown.pop(WIDGET, None) and set(shown) <= {"text/plain"}:
                output.data = {"text/html": "<p class='widget'>An interactive widget: open the notebook to use it.</p>"}
    exporter: Any = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="basic", anchor_link_text="", exclude_input_prompt=True, exclude_output_prompt=True
    )
    text: str = exporter.from_notebook_node(notebook)[0]
    return text


def _formula(found: re.Match[str]) -> str:
    """A formula as a picture on the line; one that matplotlib cannot draw as its source."""
    tex = " ".join((found[1] or found[2]).split())
    drawn = io.BytesIO()
    try:
        depth = math_to_image(f"${tex}$", drawn, prop=FontProperties(size=12), format="svg")
    except ValueError:
        return f"<code>{escape(tex)}</code>"
    picture = re.sub(rb"<metadata>.*?</metadata>", b"", drawn.getvalue(), flags=re.DOTALL)
    source = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
    image = f'<img class="formula" style="vertical-align:-{depth:.1f}pt" alt="{escape(tex)}" src="{source}">'
    return f'<div class="formula">{image}</div>' if found[1] else image
