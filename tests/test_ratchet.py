"""The library stays thin: it may shrink, and these numbers with it, but not grow."""

from pathlib import Path

import nlstm_lab as lab
from nlstm_lab import paths

LINES, MODULES, LINES_OF_TESTS, NAMES = 16981, 98, 15500, 77


def sizes(folder: Path) -> list[int]:
    return [len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(folder.rglob("*.py"))]


def test_the_library_does_not_grow() -> None:
    modules = sizes(Path(lab.__file__).parent)
    assert sum(modules) <= LINES
    assert len(modules) <= MODULES


def test_the_tests_do_not_grow() -> None:
    assert sum(sizes(paths.root() / "tests")) <= LINES_OF_TESTS


def test_probes_and_figures_have_few_names() -> None:
    assert len(lab.probes.__all__) + len(lab.figures.__all__) <= NAMES
