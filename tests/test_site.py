"""What checks the site's links: a dead one is found, and whatever would be fetched from elsewhere."""

from pathlib import Path

import links
import pytest


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "style.css").write_text("")
    (tmp_path / "index.html").write_text(
        '<link href="style.css?v=1"><a href="notebooks/12.html#cells">cells</a> <a href="https://example.org">out</a>'
    )
    (tmp_path / "notebooks" / "12.html").write_text(
        '<h2 id="cells"></h2><a href="../index.html">back</a><a href="#">top</a>'
    )
    return tmp_path


def test_a_site_whose_links_all_lead_somewhere_has_nothing_wrong(site: Path) -> None:
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
def test_dead_and_foreign_links_are_reported(site: Path, added: str) -> None:
    page = site / "index.html"
    page.write_text(page.read_text() + added)
    (wrong,) = links.broken(site)
    assert added.split('"')[1] in wrong
