"""What is typed into a workflow's form reaches a shell as a value, never as a part of its line."""

import re
from pathlib import Path

import pytest
import yaml

from nlstm_lab import paths

WORKFLOWS = sorted((paths.PACKAGE.parent / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_no_expression_stands_in_a_shell_line(file: Path) -> None:
    jobs = yaml.safe_load(file.read_text())["jobs"]
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert lines
    assert not [line for line in lines if re.search(r"\$\{\{", line)]
