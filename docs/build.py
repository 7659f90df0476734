"""Build the site: write its pages from docs/site, the records and the executed notebooks; run Sphinx; check every link.

`make site` executes the notebooks first. One that is not executed is shown without its results.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import catalogue
import links
import nbformat
import written

from nlstm_lab import execute, paths, targets

SOURCE, BUILT, SITE = paths.workspaces() / "site", paths.workspaces() / "built" / "html", paths.root() / "site"
WIDGET = "application/vnd.jupyter.widget-view+json"
COLOURS = {"holds": "success", "match": "success", "close": "info", "fails": "danger", "differs": "danger"}
PAGES = {  # the committed pages, as they are called on the site
    "VERDICTS.md": "verdicts",
    "REPLICATING.md": "replicate",
    "CONTRIBUTING.md": "contribute",
    "CHANGELOG.md": "changelog",
    "data/README.md": "data",
    "data/targets/protocol.md": "protocol",
}


def build() -> int:
    """Write the sources, build, copy what is downloaded, check: the exit code."""
    from sphinx.cmd.build import main as sphinx  # the tests of what this module writes need no Sphinx

    for folder in (SOURCE, BUILT.parent):  # what MyST-NB extracts lies beside what is built
        shutil.rmtree(folder, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    (SOURCE / "figures").symlink_to(paths.figures())
    print("writing the pages", flush=True)
    for path, text in sources().items():
        paths.write(SOURCE / path, text)
    print("building them with Sphinx", flush=True)
    config = ["-c", str(catalogue.DOCS), "-b", "html", "-W", "--keep-going", "-E"]
    if code := sphinx([*config, "-d", str(SOURCE / ".doctrees"), str(SOURCE), str(BUILT)]):
        return code
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(BUILT, SITE)
    shutil.copytree(paths.figures(), SITE / "figures")
    if (live := paths.executed() / "widgets").is_dir():  # made by the notebooks that were executed
        shutil.copytree(live, SITE / "widgets", dirs_exist_ok=True)
    for path in paths.notebooks().glob("*.ipynb"):
        shutil.copy(path, SITE / "notebooks")
    print("checking every link", flush=True)
    if wrong := links.broken(SITE):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    print(f"the site is in {SITE}: open index.html")
    return 0


def sources() -> dict[str, str]:
    """Every page of the site by its path: Markdown and notebooks."""
    readme = relinked((paths.root() / "README.md").read_text(encoding="utf-8"))
    names: dict[str, Any] = {
        "documents": readme.split("notebooks:\n\n")[1].split("\n\nEvery figure")[0],
        "legend": readme.split("<!-- findings:end -->\n\n")[1].split("\n\n<!-- results:begin -->")[0],
        "limits": readme.split("## Limits\n\n")[1].split("\n\n## Citing")[0],
        "findings": catalogue.findings(),
        "order": catalogue.reading_order(),
        "listing": written.listed("notebooks/", "figures/"),
        "widgets": widgets(),
        "sections": gallery(),
        "believe": written.believe("findings/{slug}.md"),
        "results": written.results()[0],
        "report": targets.report(written.numbers.verdicts()),
    }
    folder = catalogue.DOCS / "site"
    pages = {
        str(path.relative_to(folder)): catalogue.rendered(path.read_text(encoding="utf-8"), **names)
        for path in folder.rglob("*.md")
    }
    for path, name in PAGES.items():
        text = (paths.root() / path).read_text(encoding="utf-8")
        pages[f"{name}.md"] = relinked(text)
    rules, _, tables = pages["verdicts.md"].partition("\n**")
    title, rules = rules.split("# Verdicts", 1)
    tables = f"::::{{div}} nl-sortable nl-stacked\n\n**{tables}\n::::\n\n"
    pages["verdicts.md"] = f"{title}# Verdicts\n\n{tables}## The rules\n{rules}"
    pages |= {f"findings/{one.slug}.md": finding(one) for one in catalogue.findings()}
    pages |= {f"notebooks/{name}.ipynb": notebook(name) for name in execute.names()}
    return pages | {"reference/cli.md": command_line()}


def relinked(text: str, up: str = "") -> str:
    """A committed page's links as they are on the site."""
    for path, name in PAGES.items():
        text = text.replace(f"]({path}", f"]({up}{name}.md")
    text = re.sub(r"\]\(FINDINGS\.md[^)]*\)", f"]({up}findings.md)", text)
    text = text.replace("](notebooks/README.md)", f"]({up}notebooks.md)").replace("](notebooks/", f"]({up}notebooks/")
    text = text.replace("](README.md#what-to-believe)", f"]({up}index.md#what-to-believe)")
    return text.replace("](figures/", f"]({up}figures/")


def badge(said: catalogue.Statement) -> str:
    """A statement's verdicts as a badge of sphinx-design, in the colour of the worst."""
    return f"{{bdg-{COLOURS.get(said.worst, 'secondary')}}}`{said.verdict}`"


def finding(one: catalogue.Finding) -> str:
    """A finding's page: the prose, each claim with its verdict and runs, the figures, the notebook."""
    body = re.sub("^###", "##", relinked(one.body, "../"), flags=re.MULTILINE)  # a title is a level higher than there
    lines = [f"# {one.title}", "", one.line, "", body, ""]
    for said in one.statements:
        asked = f"{said.document}, {said.where}" if said.document else f"Our own question, {said.where}"
        lines += [f"> {said.says}", ">", f"> {asked}", "", f"{badge(said)} **{said.ours or 'no run yet'}**", ""]
        lines += [f"- Runs: {said.runs}."]
        lines += [f"- Measured: {said.measure}."] if said.measure else []
        lines += [f"- {said.note}"] if said.note else []
        lines.append("")
    for figure in one.figures:
        record = next(record for record in catalogue.manifest() if record["name"] == figure)
        lines += [f"```{{figure}} ../figures/{figure}.png", f":alt: {record['caption']}", ""]
        lines += [f"{record['caption']} <a href='../gallery.html#{figure}'>Files and runs</a>", "```", ""]
    number = one.notebook.partition("_")[0]
    lines += [
        "## The evidence",
        "",
        f"Notebook [{one.notebook}](../notebooks/{one.notebook}.ipynb) measures and draws it:",
    ]
    return "\n".join([*lines, "", "```sh", f".venv/bin/nlstm-lab figures {number}", "```", ""])


def notebook(name: str) -> str:
    """A notebook as it was executed (as it is where it was not), with its widgets' pages in frames."""
    job = execute.Job(name)
    shown = nbformat.read(job.output, as_version=4) if job.output.is_file() else job.read()  # type: ignore[no-untyped-call]
    for cell in shown.cells:
        if cell.cell_type == "markdown":  # places that only the widget in JupyterLab knows
            cell.source = re.sub(r"\[([^\]]+)\]\(#(?:connectivity|unit)-[^)]*\)", r"\1", cell.source)
            cell.source = cell.source.replace("](README.md)", "](../notebooks.md)")
        for output in cell.get("outputs", []):
            data, about = output.get("data", {}), output.get("metadata", {}).get("nlstm_lab", {})
            data.pop(WIDGET, None)
            if about:
                output.data = {"text/html": frame(about["page"], "../")}
    run = (
        f'<p class="nl-open"><a href="{name}.ipynb" download>Download this notebook</a>, or in a clone type'
        f" <code>make lab</code> and open <code>{name}.ipynb</code> in JupyterLab.</p>"
    )
    shown.cells.insert(1, nbformat.v4.new_markdown_cell(run))  # type: ignore[no-untyped-call]
    for k, cell in enumerate(shown.cells):
        cell.id = f"cell-{k}"
    return str(nbformat.writes(shown))  # type: ignore[no-untyped-call]


def frame(page: str, up: str = "") -> str:
    """A widget's page within another."""
    name = Path(page).stem
    return (
        f'<iframe class="nl-live" title="{name}, live" loading="lazy" src="{up}widgets/{page}"></iframe>'
        f'<p><a href="{up}widgets/{page}">{name} on a page of its own</a></p>'
    )


def widgets() -> dict[str, str]:
    """The widgets that executed notebooks left pages of: a name and the frame that shows it.

    Where two notebooks have one, it is that of the notebook to read first.
    """
    pages = paths.executed() / "widgets"
    found = [path for name in catalogue.reading_order() for path in (pages / name).glob("*.html")]
    shown = {path.stem: frame(f"{path.parent.name}/{path.name}") for path in reversed(found)}
    return dict(sorted(shown.items()))


def gallery() -> list[dict[str, Any]]:
    """The sections of the gallery, each with its figures: card by card what `docs/gallery.toml` and sidecars say."""
    records = {record["name"]: record for record in catalogue.manifest()}
    made_in, commits = catalogue.notebooks_by_figure(), _commits()
    version = tomllib.loads((paths.root() / "pyproject.toml").read_text())["project"]["version"]
    sections = tomllib.loads((catalogue.DOCS / "gallery.toml").read_text(encoding="utf-8"))["section"]
    for section in sections:
        cards = []
        for name, title in section["figures"].items():
            record, commit = records[name], commits.get(name, "")
            about = f"version {version}" + (f", commit {commit}" if commit else "")
            verdicts = [badge(one) for claim in section.get("claims", {}).get(name, [])
                        for one in catalogue.statements(claim)]  # fmt: skip
            copied = {"Caption": record["caption"], "BibTeX": _bibtex(name, title, about),
                      "Command": _command(made_in[name], record["parameters"]), **_tables(made_in[name])}  # fmt: skip
            cards.append(
                record | {"title": title, "notebook": made_in[name], "made_of": catalogue.grouped(record["runs"]),
                          "badges": verdicts, "copied": copied}
            )  # fmt: skip
        section["cards"] = cards
    return list(sections)


def _command(name: str, parameters: dict[str, Any]) -> str:
    """What redraws a notebook's figures with the parameters that drew them."""
    options = []
    for each, value in parameters.items():
        written = "none" if value is None else json.dumps(value, separators=(",", ":"))
        options += ["-p", f"{each}={value if isinstance(value, str) else written}"]
    return shlex.join(["nlstm-lab", "figures", name.partition("_")[0], *options])  # a shell would expand [0,1]


def _tables(name: str) -> dict[str, str]:
    """The LaTeX tables that a notebook saves, by what they are called."""
    source = (paths.notebooks() / f"{name}.ipynb").read_text(encoding="utf-8")
    saved = {target: paths.figures() / f"{target.replace('.', '_')}.tex" for target in catalogue.compared(source)}
    return {f"LaTeX: {target}": file.read_text(encoding="utf-8") for target, file in saved.items() if file.is_file()}


def _bibtex(name: str, title: str, about: str) -> str:
    """The figure by its short title in the gallery, with the repository's address where it has one."""
    remote = _git("config", "--get", "remote.origin.url").strip()
    address = re.sub(r"^git@([^:]+):", r"https://\1/", remote).removesuffix(".git")
    title, called = (re.sub(r"([&%$#_])", r"\\\1", words) for words in (title, name))
    fields = {
        "author": "{The nlstm\\_lab developers}",
        "title": title,
        "howpublished": rf"nlstm\_lab, figure \texttt{{{called}}}",
        "note": about,
        "year": "2026",
        **({"url": address} if address.startswith("https://") else {}),
    }
    entries = ",\n".join(f"  {field} = {{{value}}}" for field, value in fields.items())
    return f"@misc{{{name.replace('_', '-')},\n{entries}\n}}"


def _commits() -> dict[str, str]:
    """The commit that drew each figure last."""
    found: dict[str, str] = {}
    for entry in _git("log", "--format=%x00%h", "--name-only", "--", "figures/*.pdf").split("\0")[1:]:
        commit, *files = entry.split()
        for file in files:
            found.setdefault(Path(file).stem, commit)
    return found


def _git(*words: str) -> str:
    """What git says of this repository; nothing where there is none, or no git."""
    if shutil.which("git") is None or not (paths.root() / ".git").exists():
        return ""
    done = subprocess.run(["git", *words], cwd=paths.root(), capture_output=True, text=True, check=False)
    return done.stdout


def command_line() -> str:
    """The reference of the command line, as typer writes it."""
    command = [sys.executable, "-m", "typer", "nlstm_lab.cli", "utils", "docs", "--name", "nlstm-lab"]
    done = subprocess.run(command, cwd=paths.root(), capture_output=True, text=True, check=True)
    return re.sub(r"(?ms)^\*\*Commands\*\*:\n\n.*?\n\n", "", done.stdout)  # sentences cut short; each has its section


if __name__ == "__main__":
    sys.exit(build())
