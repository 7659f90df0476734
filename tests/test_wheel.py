"""The built wheel in an environment of its own, outside the repository: units, training, probes and figures work."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from nlstm_lab import models, paths

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

SOURCE = ("nlstm_lab/", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
SOURCE += tuple(f"data/runs/{known['run']}/" for known in models.PRETRAINED.values())
USED = """
import sys
from nlstm_lab import cli

def say(*words):
    sys.argv = ["nlstm-lab", *words]
    try:
        cli.main()
    except SystemExit as ended:
        print(words[0], "ended with", ended.code or 0, flush=True)

for command in ("doctor", "table", "figures"):
    say(command)
say("train", "ptb_char_nlstm", "--scale", "smoke", "--corpus", "mine.txt", "--normalization", "text8")

import nlstm_lab as lab
print(lab.models.pretrained("ptb_char_hmlstm_step").name)
run = lab.runs.load("ptb_char_nlstm+corpus=mine.txt+normalization=text8", scale="smoke")
trace = lab.probes.trace(run.model(), "the cat sat on the mat", run=run.name)
lab.probes.state_timescales(trace)
print(lab.figures.save(lab.figures.cell_activations(trace, units=3), "my_cells", runs=[run]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of a fresh environment that holds the wheel alone; the packages it asks for are lent by this one."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index"]
    source = folder / "source"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=paths.root(), capture_output=True, check=True).stdout
    for name in tracked.decode().split("\0"):
        if name.startswith(SOURCE):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((paths.root() / name).read_bytes())
    subprocess.run([*pip, "wheel", *offline, "--no-build-isolation", "-w", folder, source], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    wheel = next(folder.glob("*.whl"))
    python = folder / "env" / "bin" / "python"
    subprocess.run([*pip, "--python", python, "install", *offline, wheel], check=True)
    packages = next((folder / "env" / "lib").glob("python*/site-packages"))
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib"))
    return python.parent


@pytest.fixture
def do(installed: Path, tmp_path: Path):
    """Run a program of that environment in a folder of one's own; returns what it prints."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NLSTM_LAB", "PYTHON"))}
    env = {**inherited, "NLSTM_LAB_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def run(program: str, *words: str, code: int = 0) -> str:
        done = subprocess.run([installed / program, *words], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


def test_it_brings_everything_but_modules(do) -> None:
    """Style sheets, scripts and the marker of types are in the wheel as they are in the source."""
    where = Path(do("python", "-c", "import nlstm_lab; print(nlstm_lab.__file__)").strip()).parent
    assert where != paths.PACKAGE
    own = {path.relative_to(paths.PACKAGE) for path in paths.PACKAGE.rglob("*") if path.is_file()}
    expected = {path for path in own if "__pycache__" not in path.parts}
    assert {path for path in expected if not (where / path).is_file()} == set()


def test_a_text_of_ones_own_is_trained_on_probed_and_drawn_and_what_needs_the_repository_says_so(
    do, tmp_path: Path
) -> None:
    """In the working folder, by one process that does all of it."""
    (tmp_path / "mine.txt").write_text("the cat sat on the mat, and the bat sat on the hat.\n" * 400)
    assert do("nlstm-lab", "--version").startswith("nlstm-lab ")
    said = do("python", "-c", USED)
    for command, code in {"doctor": 0, "table": 1, "figures": 2, "train": 0}.items():
        assert f"{command} ended with {code}" in said
    assert "clone" in said
    assert "recorded as" in said
    assert "ptb_char_hmlstm_step/small-seed0" in said
    for suffix in ("pdf", "svg", "png", "csv", "json"):
        assert (tmp_path / "figures" / f"my_cells.{suffix}").stat().st_size > 100
