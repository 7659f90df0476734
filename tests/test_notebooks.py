"""Every notebook has the one anatomy: a reader who knows one knows them all."""

import ast
import json
import re
import shutil
from functools import cache

import heads
import nbformat
import pytest
from forking import started

from nlstm_lab import paths
from nlstm_lab.parameters import declared

NAMES = sorted(path.stem for path in paths.notebooks().glob("*.ipynb"))
SECTIONS = ("Runs", "Probe", "Figure", "Comparison with the paper", "Discussion")
REQUIRED = SECTIONS[2:]
STRIP = "strip it: .venv/bin/pre-commit run --all-files, then make pages"
ALLOWED = {"nlstm_lab", "IPython", "numpy", "pandas", "xarray", "torch", "captum", "seaborn", "matplotlib", "scipy"}
MEASURES_NOTHING = {"00_verdicts"}
each = pytest.mark.parametrize("name", NAMES)


@cache
def read(name):
    return nbformat.read(paths.notebooks() / f"{name}.ipynb", as_version=4)


def code(name):
    return [cell.source for cell in read(name).cells if cell.cell_type == "code"]


def prose(name):
    return [cell.source for cell in read(name).cells if cell.cell_type == "markdown"]


def saved(name):
    """The names of the figures that a notebook saves, which must be literals."""
    return [
        ast.literal_eval(call.args[1])
        for call in ast.walk(ast.parse("\n".join(code(name))))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "lab.figures.save"
    ]


def test_numbers_are_two_digits_and_stand_for_one_notebook():
    assert NAMES
    assert all(re.fullmatch(r"\d\d_[a-z0-9_]+", name) for name in NAMES)
    assert len({name[:2] for name in NAMES}) == len(NAMES)


@each
def test_it_opens_with_title_claim_and_result(name):
    first = read(name).cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert re.search(r"^> \S", first.source, re.MULTILINE), "the claim is quoted"
    shown = re.findall(r"!\[[^\]]+\]\(\.\./figures/(\w+)\.png\)", first.source)
    assert 1 <= len(shown) <= 2, "a visitor who runs nothing sees the result, and not all of it"
    assert set(shown) <= set(saved(name))


@each
def test_imports_then_typed_parameters(name):
    """All imports stand in the first cell, of packages that the project depends on; the parameters follow."""
    nodes = [
        node for node in ast.walk(ast.parse("\n".join(code(name)))) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    first = ast.parse(code(name)[0])
    assert sum(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(first)) == len(nodes)
    roots = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    roots |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert "import nlstm_lab as lab" in code(name)[0]
    assert {root.split(".")[0] for root in roots} <= ALLOWED
    tagged = [cell for cell in read(name).cells if cell.metadata.get("tags")]
    assert [cell.metadata.tags for cell in tagged] == [["parameters"]]
    assert tagged[0].source == code(name)[1]
    assert code(name)[2] == "lab.check_parameters()", "plain papermill checks nothing"
    assert declared(read(name))


@each
def test_what_is_measured_is_displayed_as_an_equation(name):
    if name not in MEASURES_NOTHING:
        assert re.search(r"\$\$[^$]+\$\$", "\n".join(prose(name))), "show the quantity, with symbols and units"


@each
def test_sections_come_in_their_order(name):
    headings = re.findall(r"^## (.*)$", "\n".join(prose(name)), re.MULTILINE)
    kinds = [next((section for section in SECTIONS if heading.startswith(section)), heading) for heading in headings]
    assert set(kinds) <= set(SECTIONS)
    assert set(REQUIRED) <= set(kinds)
    assert kinds == sorted(kinds, key=SECTIONS.index)


@each
def test_code_is_short_and_plain(name):
    for cell in code(name):
        lines = cell.splitlines()
        assert len(lines) <= 25, cell
        assert max(map(len, lines)) <= 120, cell
        assert not re.search(r"^\s*[%!]", cell, re.MULTILINE), f"magic in {cell}"
        assert "savefig" not in cell
        for node in ast.walk(ast.parse(cell)):
            assert not isinstance(node, ast.AsyncFunctionDef | ast.ClassDef), cell
            if isinstance(node, ast.FunctionDef):
                assert len(ast.unparse(node).splitlines()) <= 12, f"a function that long is the library's: {cell}"
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("open", "print", "eval", "exec", "__import__"), cell
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"^[~/]|\.\.?/|\.(csv|json|png|pdf|svg|toml|npz)$", node.value), (
                    f"a path: {node.value}"
                )


@each
def test_numbers_in_prose_are_computed(name):
    """A measured number is never typed; what is quoted, and the papers' own numbering, may be."""
    first, *others = prose(name)
    for cell in [heads.without_generated(first), *others]:
        own = "\n".join(line for line in cell.splitlines() if not line.startswith(">"))
        own = re.sub(r"`[^`]*`|\$[^$]*\$|[Ss]ections? \d+(\.\d+)?", "", own)
        assert not re.search(r"\d\.\d|\d\s?%|±\d", own), own


@each
def test_it_is_stripped(name):
    notebook = read(name)
    assert set(notebook.metadata) <= {"kernelspec", "language_info"}, STRIP
    assert notebook.metadata.language_info == {"name": "python"}, STRIP
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}  # as JupyterLab has it
    assert notebook.metadata.kernelspec == kernel
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}
        assert not cell.get("outputs"), STRIP
        assert cell.get("execution_count") is None, STRIP


@each
def test_it_is_stored_as_nbformat_writes_it(name):
    path = paths.notebooks() / f"{name}.ipynb"
    assert path.read_text(encoding="utf-8") == nbformat.writes(read(name)) + "\n", STRIP
    ids = [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert ids == [str(k) for k in range(len(ids))], "nbstripout counts the cells"


def run_cells(name):
    """What a kernel does with a notebook: its cells one after the other in a shell of its own."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    for k, cell in enumerate(code(name)):
        shell.run_cell(cell).raise_error()
        if k == 1:  # after its own, as papermill does
            shell.run_cell(GIVEN.get(name, "")).raise_error()


# it trains in a workspace of its own, where any training changes nothing committed
GIVEN = {"01_your_own": "epochs, updates_per_epoch = 2, 10"}


def contents(folder):
    """Without locks, which stay, and which git ignores, and the manifest, which `test_documents.py` holds."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file: file.read_bytes() for file in files if file.suffix != ".lock" and file.name != "manifest.json"}


@pytest.mark.slow
@each
def test_executed_again_it_changes_no_committed_figure(name, tmp_path, monkeypatch):
    """Nor what probes recorded: a notebook may write tables and claims, too."""
    for kind in ("figures", "probes"):
        shutil.copytree(getattr(paths, kind)(), tmp_path / "copies" / kind)
        monkeypatch.setenv(f"NLSTM_LAB_{kind.upper()}", str(tmp_path / "copies" / kind))
    before = contents(tmp_path / "copies")
    monkeypatch.chdir(paths.notebooks())
    process = started(run_cells, name, output=tmp_path / "said")
    process.join()
    assert process.exitcode == 0, (tmp_path / "said").read_text()
    after = contents(tmp_path / "copies")
    assert sorted(after) == sorted(before)
    assert [path.name for path in after if after[path] != before[path]] == []
