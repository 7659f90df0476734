"""The registry: what it says of each data set, and that data/README.md says the same."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

import nlstm_lab
from nlstm_lab.datasets import registry
from nlstm_lab.datasets.registry import DATASETS

README = Path(nlstm_lab.__file__).parents[1] / "data" / "README.md"


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=lambda dataset: dataset.name)
def test_the_readme_says_what_the_record_says(dataset):
    text = README.read_text(encoding="utf-8")
    assert f"## {dataset.name}" in text
    section = text.split(f"## {dataset.name}\n")[1].split("\n## ")[0]
    for said in (dataset.origin, dataset.licence, dataset.citation, dataset.how, dataset.note):
        assert said in section
    for file in dataset.files:
        assert file.path in section
        assert (file.sha256 or file.md5 or "") in section
    for count in dataset.counts.values():
        assert f"{count:,}" in section


def test_what_has_no_sha256_comes_by_https_alone():
    files = [file for dataset in registry.DATASETS.values() for file in dataset.files if not file.sha256]
    assert all(url.startswith("https://") for file in files for url in file.urls)


def test_states_follow_the_files(home, publish):
    def state():
        return next(row.state for row in registry.status() if row.name == "text8")

    publish("text8", [b" a text"], store=False)
    file = home / "data" / "text8" / "text8.gz"
    assert state() == "absent"
    file.parent.mkdir(parents=True)
    file.write_bytes(gzip.compress(b" a text"))
    assert state() == "present"
    file.write_bytes(gzip.compress(b" another"))
    assert state() == "damaged"
    file.write_bytes(gzip.compress(b" a text")[:-4])
    assert state() == registry.check("text8").state == "damaged"


def test_the_folder_that_the_environment_names_comes_first(home, publish, monkeypatch):
    publish("text8", [b" a text"])
    elsewhere = home / "elsewhere" / "text8" / "text8"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(b" a text")
    monkeypatch.setenv("NLSTM_LAB_DATA", str(home / "elsewhere"))
    assert registry.locate("text8") == (elsewhere,)


@pytest.mark.data
@pytest.mark.slow
def test_the_real_files_are_what_was_published():
    """By their checksums; of a file that has not changed since it was last read, by those of then."""
    assert [row.name for row in registry.status() if row.state == "damaged"] == []


@pytest.mark.slow
def test_training_needs_no_pooch_and_listing_needs_no_torch():
    lines = (
        "import sys; sys.modules['pooch'] = sys.modules['requests'] = None",
        "from nlstm_lab.datasets import registry",
        "assert 'torch' not in sys.modules",
        "from nlstm_lab.datasets import text",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
