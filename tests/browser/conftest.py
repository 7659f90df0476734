"""JupyterLab, opened once for all tests, and headless Chromium; a test that cannot have them says why and is skipped.

Screenshots lie in `screenshots/`: with SCREENSHOTS=1, as `make browser-test` sets it, of every stage, for a person.
"""

import ast
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from driving import SCREENSHOTS, START, Desk, Page
from forking import kernelspec

from nlstm_lab import execute, paths

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
VIEWPORT = {"width": 1280, "height": 1200}


def pytest_collection_modifyitems(items):
    """The tests that need JupyterLab share it, and so run in one process; those of pages of their own in another."""
    for item in items:
        if item.get_closest_marker("browser"):
            group = "jupyterlab" if "desk" in getattr(item, "fixturenames", ()) else "pages in a browser"
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="package")
def chromium():
    """A headless browser; gone before other tests, which can start no event loop beside its driver's."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make browser-test`")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium on this machine: install your system's package `chromium`, then `make browser-test`")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def desk(tmp_path_factory, kernel_address):
    """JupyterLab over copies of the notebooks and figures, with settings, kernels and caches of its own."""
    folder = tmp_path_factory.mktemp("desk")
    root = folder / "root"
    shutil.copytree(paths.notebooks(), root / "notebooks")
    shutil.copytree(paths.figures(), root / "figures")
    for name, content in SETTINGS.items():
        file = folder / "settings" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    kernelspec(folder / "share", kernel_address)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        **{f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")},
        "JUPYTER_PATH": str(folder / "share"),
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


def _wait_for(address, log, server):
    for _ in range(4 * START):
        try:
            with urllib.request.urlopen(address, timeout=10):
                return
        except OSError:
            assert server.poll() is None, f"JupyterLab did not start:\n{log.read_text()[-3000:]}"
            time.sleep(0.25)
    raise AssertionError(f"JupyterLab did not answer within {START} seconds:\n{log.read_text()[-3000:]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What a failed test saw last is kept, too."""
    report = yield
    if report.failed and call.when == "call" and "page" in getattr(item, "funcargs", {}):
        SCREENSHOTS.mkdir(exist_ok=True)
        item.funcargs["page"].tab.screenshot(path=SCREENSHOTS / f"failed-{item.path.stem}-{item.name}.png")
    return report


def _of_widgets(name):
    """The cells of a notebook with its widgets, and those that assign what they use; `test_notebooks.py` runs all."""
    (job,) = execute.plan([name])
    cells = [cell.source for cell in job.read().cells if cell.cell_type == "code"]
    head, cells = cells[:3], cells[3:]  # the import, the parameters, their check
    chosen: list[str] = []
    used: set[str] = set()
    for cell in reversed(cells):
        nodes = list(ast.walk(ast.parse(cell)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        assigned |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        if "lab.widgets." in cell or assigned & used:
            chosen.insert(0, cell)
            used = (used | {node.id for node in names if isinstance(node.ctx, ast.Load)}) - assigned
    return head + chosen


def _window(chromium):
    return Page(chromium.new_context(viewport=VIEWPORT).new_page())


@pytest.fixture(scope="package")
def laboratory(chromium, desk):
    """JupyterLab in a window, in which one test after the other opens its notebook."""
    window = _window(chromium)
    window.open_jupyterlab(desk)
    return window


@pytest.fixture
def page(request, chromium):
    """JupyterLab's window for who needs it, or a fresh one, whose files fetch nothing from elsewhere; in both no text
    has run as a script, and no error was logged, when the test ends."""
    shared = "desk" in request.fixturenames
    window = request.getfixturevalue("laboratory") if shared else _window(chromium)
    yield window
    errors, hacked = list(window.errors), window.tab.evaluate("window.hacked")
    window.close_all() if shared else window.tab.context.close()
    assert hacked is None
    assert shared or all(url.startswith(("file:", "data:", "blob:")) for url in window.fetched)
    assert not errors, "the browser's console holds errors:\n" + "\n".join(errors)


@pytest.fixture
def notebook(desk, page):
    """A notebook of these cells, or of what the widgets of one of the collection need; run in JupyterLab to its end."""

    def opened(name, cells=None):
        chosen = _of_widgets(name) if cells is None else cells
        written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in chosen])
        written.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(written, desk.root / "notebooks" / f"of_widgets_{name}.ipynb")
        page.open_notebook(f"of_widgets_{name}")
        page.run_all()
        return page

    return opened
