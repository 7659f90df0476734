"""Every internal link, picture, script and frame of the site: whether it leads to something that is there."""

import json
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The addresses that a page asks for, those that it loads, and the names in it that an address may end with."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.names.add(value)
            elif name in ("href", "src") and value:
                (self.links if tag == "a" else self.loaded).append(value)


def broken(site: Path) -> list[str]:
    """What is wrong, a sentence each: dead internal links, and whatever a page would fetch from elsewhere."""
    html = [
        path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    ]  # there: the theme's own parts
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in html}
    wrong = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    wrong.append(f"{path.name} loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{path.relative_to(site.resolve())} links to {link}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                wrong.append(f"{path.relative_to(site.resolve())} links to {link}, where nothing has this name")
    return wrong


def loose(pages: dict[str, str]) -> list[str]:
    """The links of the site's sources, Markdown and notebooks by their paths, that no page or heading answers."""
    found = []
    for page, text in pages.items():
        if page.endswith(".ipynb"):
            cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
            text = "\n\n".join("".join(lines) for lines in cells)
        headings = {heading.lower().replace(" ", "-") for heading in re.findall("^#+ (.+)$", text, re.MULTILINE)}
        for path, heading in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
            lost = target not in pages if path.endswith((".md", ".ipynb")) else not path and heading not in headings
            if lost:
                found.append(f"{page}: {path}#{heading}")
    return found
