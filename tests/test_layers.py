"""Imports run one way: a module imports only from modules listed above it."""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import nlstm_lab
from nlstm_lab import paths

# the first column of CONTRIBUTING's table of the architecture, from above to below
ROWS = re.findall(r"^\| (`.+?`) \|", (paths.root() / "CONTRIBUTING.md").read_text(), re.MULTILINE)
LAYERS = [*re.findall(r"`(\w+)`", " ".join(ROWS)), "__main__"]
PACKAGE = Path(nlstm_lab.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def layer(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """Every module of this package that a file imports, also inside functions; relative imports are not used."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names} if module == "nlstm_lab" else {module}
    return {name for name in found if name.split(".")[0] == "nlstm_lab"}


def test_a_module_imports_only_from_layers_above_it():
    below = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in MODULES
        for name in imported(path)
        if LAYERS.index(name.split(".")[1]) > LAYERS.index(layer(path))
    ]
    assert below == []


def test_a_file_is_read_in_one_sitting():
    assert [path for path in MODULES if len(path.read_text().splitlines()) > 350] == []


def test_drawing_imports_no_torch():
    torch = re.compile(r"(?m)^\s*(from|import) torch\b")
    assert [path for path in MODULES if layer(path) == "figures" and torch.search(path.read_text())] == []


def test_only_paths_knows_a_directory():
    """No other module asks where it lies or what the working folder is."""
    for path in MODULES:
        if layer(path) != "paths":
            exports = path.read_text().replace("attach_stub(__name__, __file__)", "")
            assert not re.search(r"(?<!\.)__file__|getcwd|Path\.cwd", exports), path


@pytest.mark.parametrize("name", ["", ".datasets", ".figures", ".probes"])
def test_every_exported_name_is_there_and_no_module_hides_it(name):
    package = importlib.import_module(f"nlstm_lab{name}")
    assert all(getattr(package, exported) is not None for exported in package.__all__)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert not {one for one in package.__all__ if one in modules and not inspect.ismodule(getattr(package, one))}
