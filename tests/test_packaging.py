"""pyproject.toml, environment.yml and constraints.txt agree; a clone stays small."""

import re
import subprocess
import sys
import tomllib

import yaml
from packaging.requirements import Requirement

from nlstm_lab import paths

CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base", "seaborn": "seaborn-base"}


def project() -> dict[str, Requirement]:
    content = tomllib.loads((paths.root() / "pyproject.toml").read_text())
    requirements = [Requirement(line) for line in content["project"]["dependencies"]]
    return {requirement.name: requirement for requirement in requirements}


def test_environment_names_the_same_packages_and_ranges() -> None:
    environment = yaml.safe_load((paths.root() / "environment.yml").read_text())
    listed = [line for line in environment["dependencies"] if isinstance(line, str) and line != "pip"]
    conda = {requirement.name: requirement.specifier for requirement in map(Requirement, listed)}
    python = conda.pop("python")
    content = tomllib.loads((paths.root() / "pyproject.toml").read_text())
    assert str(python) == content["project"]["requires-python"]
    assert conda == {CONDA_NAMES.get(name, name): known.specifier for name, known in project().items()}


def test_every_dependency_is_locked_inside_its_range() -> None:
    lines = (paths.root() / "constraints.txt").read_text().split()
    locked = dict(line.lower().split("==") for line in lines)
    for name, requirement in project().items():
        assert requirement.specifier.contains(locked[re.sub("[-_.]+", "-", name)]), name


def test_the_guide_asks_for_the_pinned_torch() -> None:
    asked = re.findall(r"torch==[0-9.]+", (paths.root() / "REPLICATING.md").read_text())
    assert asked
    assert set(asked) <= set((paths.root() / "constraints.txt").read_text().split())


def test_the_help_and_the_package_come_without_torch() -> None:
    """Whoever asks for help, or imports the package, waits for nothing."""
    code = (
        "import sys, nlstm_lab, nlstm_lab.cli; from typer.testing import CliRunner;"
        "out = CliRunner().invoke(nlstm_lab.cli.app, ['--help']); assert out.exit_code == 0, out.output;"
        "sys.exit(bool({'torch', 'pandas', 'matplotlib'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_committed_weights_stay_within_their_room() -> None:
    """10 MB a file, 40 MB together."""
    asked = ["git", "ls-files", "-z", "--", "*.safetensors"]
    listed = subprocess.run(asked, cwd=paths.root(), capture_output=True, check=True, text=True).stdout
    sizes = [(paths.root() / name).stat().st_size for name in listed.split("\0") if name]
    assert sizes
    assert max(sizes) <= 10_000_000
    assert sum(sizes) <= 40_000_000
