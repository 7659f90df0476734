"""JupyterLab, served once for all tests, and headless Chromium; a test that cannot have them says why and is skipped.

Screenshots of every stage lie in `screenshots/`, for a person to look at.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from driving import SCREENSHOTS, START, Desk, Page

from nlstm_lab import paths

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-color-profile=srgb"),
]
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
        "fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True
    },
    "@jupyterlab/docmanager-extension/plugin.jupyterlab-settings": {"autosave": False},
}  # fmt: skip
TOKEN = "open"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests share a browser, and so run in one process."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless browser; gone with its module, since other tests can start no event loop beside its driver's."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make browser-test`")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium on this machine: install your system's package `chromium`, then `make browser-test`")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """JupyterLab over copies of the notebooks and figures, with settings and caches of its own."""
    folder = tmp_path_factory.mktemp("desk")
    root = folder / "root"
    shutil.copytree(paths.notebooks(), root / "notebooks")
    shutil.copytree(paths.figures(), root / "figures")
    for name, content in SETTINGS.items():
        file = folder / "settings" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        **{f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")},
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
        "NLSTM_LAB_FIGURES": str(root / "figures"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(paths.PACKAGE.parent), os.environ.get("PYTHONPATH")])),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root",
               "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
               f"--ServerApp.root_dir={root}", "--LabApp.expose_app_in_browser=True",
               "--LabApp.news_url=None"]  # fmt: skip
    with (folder / "log.txt").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=root)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(f"{address}/api?token={TOKEN}", folder / "log.txt", server)
        yield Desk(address, TOKEN, root)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def _wait_for(address: str, log: Path, server: subprocess.Popen[bytes]) -> None:
    for _ in range(4 * START):
        try:
            with urllib.request.urlopen(address, timeout=10):
                return
        except OSError:
            assert server.poll() is None, f"JupyterLab did not start:\n{log.read_text()[-3000:]}"
            time.sleep(0.25)
    raise AssertionError(f"JupyterLab did not answer within {START} seconds:\n{log.read_text()[-3000:]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """What a failed test saw last is kept, too."""
    report = yield
    if report.failed and call.when == "call" and "page" in getattr(item, "funcargs", {}):
        SCREENSHOTS.mkdir(exist_ok=True)
        item.funcargs["page"].tab.screenshot(path=SCREENSHOTS / f"failed-{item.path.stem}-{item.name}.png")
    return report


@pytest.fixture
def page(chromium: Any) -> Iterator[Page]:
    """A fresh window, whose console must hold no error when the test ends."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1200})
    window = Page(context.new_page())
    yield window
    window.shut_down()
    context.close()
    assert not window.errors, "the browser's console holds errors:\n" + "\n".join(window.errors)


@pytest.fixture
def notebook(desk: Desk, page: Page) -> Any:
    """A notebook of the collection by its name, or one of these cells; opened in JupyterLab and run to its end."""

    def opened(name: str, cells: list[str] | None = None) -> Page:
        if cells is not None:
            written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
            written.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            nbformat.write(written, desk.root / "notebooks" / f"{name}.ipynb")
        page.open_notebook(desk, name)
        page.run_all()
        return page

    return opened
