"""pyproject.toml, environment.yml and constraints.txt agree; a clone stays small; the built wheel works elsewhere."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from nlstm_lab import models, paths

CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base", "seaborn": "seaborn-base"}


def project():
    content = tomllib.loads((paths.root() / "pyproject.toml").read_text())
    requirements = [Requirement(line) for line in content["project"]["dependencies"]]
    return {requirement.name: requirement for requirement in requirements}


def test_environment_names_the_same_packages_and_ranges():
    environment = yaml.safe_load((paths.root() / "environment.yml").read_text())
    listed = [line for line in environment["dependencies"] if isinstance(line, str) and line != "pip"]
    conda = {requirement.name: requirement.specifier for requirement in map(Requirement, listed)}
    python = conda.pop("python")
    content = tomllib.loads((paths.root() / "pyproject.toml").read_text())
    assert str(python) == content["project"]["requires-python"]
    assert conda == {CONDA_NAMES.get(name, name): known.specifier for name, known in project().items()}


def test_every_dependency_is_locked_inside_its_range():
    lines = (paths.root() / "constraints.txt").read_text().split()
    locked = dict(line.lower().split("==") for line in lines)
    for name, requirement in project().items():
        assert requirement.specifier.contains(locked[re.sub("[-_.]+", "-", name)]), name


def test_the_guide_asks_for_the_pinned_torch():
    asked = re.findall(r"torch==[0-9.]+", (paths.root() / "REPLICATING.md").read_text())
    assert asked
    assert set(asked) <= set((paths.root() / "constraints.txt").read_text().split())


def test_no_tracked_file_is_a_link_and_weights_stay_within_their_room():
    """10 MB a file, 40 MB together. A link to an environment would dangle in every other clone."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=paths.root(), capture_output=True, check=True, text=True)
    files = [paths.root() / name for name in listed.stdout.split("\0") if name]
    sizes = [file.stat().st_size for file in files if file.suffix == ".safetensors"]
    assert max(sizes) <= 10_000_000
    assert sum(sizes) <= 40_000_000
    assert not any(file.is_symlink() for file in files)


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
trace = lab.probes.trace(run.model(), "the cat sat on the mat")
lab.probes.state_timescales(trace)
print(lab.figures.save(lab.figures.cell_activations(trace, units=3), "my_cells", runs=[run]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
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
def do(installed, tmp_path):
    """Run a program of that environment in a folder of one's own; returns what it prints."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NLSTM_LAB", "PYTHON"))}
    env = {**inherited, "NLSTM_LAB_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def run(program, *words, code=0):
        done = subprocess.run([installed / program, *words], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_it_brings_everything_but_modules(do):
    """Style sheets, scripts and the marker of types are in the wheel as they are in the source."""
    where = Path(do("python", "-c", "import nlstm_lab; print(nlstm_lab.__file__)").strip()).parent
    assert where != paths.PACKAGE
    own = {path.relative_to(paths.PACKAGE) for path in paths.PACKAGE.rglob("*") if path.is_file()}
    expected = {path for path in own if "__pycache__" not in path.parts}
    assert {path for path in expected if not (where / path).is_file()} == set()


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_a_text_of_ones_own_is_trained_on_probed_and_drawn_and_what_needs_the_repository_says_so(do, tmp_path):
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
