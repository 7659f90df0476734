"""A widget as one page that needs nothing: its state, its script and its style in one file."""

import base64
import json
from html import escape
from pathlib import Path
from typing import Any

from nlstm_lab import paths
from nlstm_lab.widgets import source

# nothing may be fetched, whatever a text or a name in the state says
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body class="nl-page">
<main id="widget"></main>
<noscript><img alt="{title}" src="data:image/png;base64,{picture}"></noscript>
<script type="application/json" id="state">{state}</script>
<script type="module">
{script}
</script>
</body>
</html>
"""


def write(path: Path, title: str, state: dict[str, Any], script: str, picture: bytes) -> Path:
    """Write the page; returns its path. LabError: it cannot be written."""
    content = PAGE.format(
        policy=POLICY,
        title=escape(title),
        style=source.style(),
        picture=base64.b64encode(picture).decode(),
        state=_embedded(state),
        script=script,
    )
    paths.write(path, content)
    return path


def _embedded(state: dict[str, Any]) -> str:
    """JSON that no text in it can end: no `<` is left. Bytes become {"base64": ...}."""
    return json.dumps(state, default=_bytes, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _bytes(value: Any) -> dict[str, str]:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{type(value).__name__} is nothing that a page can hold")
    return {"base64": base64.b64encode(bytes(value)).decode()}
