"""Importing what was obtained by hand: files, archives, folders, and malice in them."""

import bz2
import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.registry import import_
from nlstm_lab.errors import DamagedFile, LabError, UsageError

POEMS = [b"train", b"valid", b"test"]


def tar(path, members, links=None):
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for name, target in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def zipped(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def folder(path, members):
    for name, content in members.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("make", "name"), [(tar, "data.tar.gz"), (tar, "data.tar"), (zipped, "data.zip"), (folder, "unpacked")]
)
def test_files_are_located_anywhere(home, publish, make, name):
    files = publish("poetry", POEMS, store=False)
    place = make(home / name, {f"some/where/{file}": content for file, content in files.items()} | {"LIES": b"x"})
    assert [path.name for path in import_("poetry", place)] == ["qtrain5", "qvalid5", "qtest5"]
    assert registry.contents("poetry") == POEMS
    assert not list((home / "data").rglob("LIES"))


def test_packed_files_are_known_by_their_names_or_checksums_and_unpacked(home, publish):
    contents = [b"one", b"two", b"three", b"four"]
    names = list(publish("mnist", contents, store=False))
    files = {
        **{f"{names[0]}.gz": gzip.compress(contents[0]), "train-labels.idx1-ubyte": contents[1]},
        **{"something": contents[2], "._something": contents[2], f"{names[3]}.bz2": bz2.compress(contents[3])},
    }
    assert [path.name for path in import_("mnist", folder(home / "mine", files))] == names
    assert registry.check("mnist").state == "present"
    assert registry.contents("mnist") == contents


@pytest.mark.parametrize("name", ["qtrain5.gz", "lineStrokes-all.tar.gz"])
def test_a_damaged_file_is_called_by_the_name_that_the_user_knows(home, publish, name):
    """And not by that of the temporary copy."""
    publish("poetry", POEMS, store=False)
    (home / name).write_bytes(gzip.compress(os.urandom(9000))[:5000])
    with pytest.raises(DamagedFile) as refused:
        import_("poetry" if name.startswith("q") else "iamondb", home / name)
    assert str(refused.value).startswith(f"{home / name} ")
    assert not [path for path in (home / "data").rglob("*") if path.is_file()]


def test_a_folder_that_cannot_be_read_is_said(home, publish, monkeypatch):
    publish("poetry", POEMS, store=False)
    shut = folder(home / "shut", {"poetry/qtrain5": b"train"}) / "poetry"
    monkeypatch.setenv("NLSTM_LAB_DATA", str(home / "shut"))
    shut.chmod(0)
    for parent in (home, *home.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o055)
    root = os.geteuid() == 0
    try:
        if root:  # who may read everything
            os.seteuid(65534)
        with pytest.raises(LabError) as located:
            registry.locate("poetry")
        with pytest.raises(LabError) as imported:
            import_("poetry", home / "shut")
    finally:
        if root:
            os.seteuid(0)
        shut.chmod(0o755)
    for refused in (located, imported):
        assert str(refused.value).startswith(f"{shut} cannot be read: permission denied")


def test_a_single_file_is_taken_under_any_name(home, publish):
    publish("text8", [b" a text"], store=False)
    (home / "my-copy.txt").write_bytes(b" a text")
    assert import_("text8", home / "my-copy.txt") == [home / "data/text8/text8"]
    assert import_("text8", zipped(home / "text8.zip", {"text8": b" a text"}))
    assert registry.contents("text8") == [b" a text"]


@pytest.mark.parametrize("make", [folder, lambda path, members: tar(path.with_suffix(".tar"), members)])
def test_wrong_bytes_of_one_file_change_none_and_are_named(home, publish, make):
    publish("poetry", POEMS, store=False)
    place = make(home / "mine", {"qtrain5": b"train", "qvalid5": b"valid", "qtest5": b"tes!"})
    with pytest.raises(DamagedFile, match="qtest5") as refused:
        import_("poetry", place)
    assert str(place) in str(refused.value)
    assert not [path for path in (home / "data").rglob("*") if path.is_file()]


def test_members_that_point_outside_land_where_they_belong(home, publish):
    files = publish("poetry", POEMS, store=False)
    evil = tar(home / "evil.tar", {f"../../../{name}": content for name, content in files.items()})
    before = set(home.parent.iterdir())
    placed = import_("poetry", evil)
    assert all(path.parent == home / "data/poetry" for path in placed)
    assert set(home.parent.iterdir()) == before


def test_links_in_archives_are_not_followed(home, publish):
    publish("text8", [b"secret"], store=False)
    (home / "secret").write_bytes(b"secret")
    with pytest.raises(UsageError):
        import_("text8", tar(home / "evil.tar", {"LIES": b"x"}, {"text8": str(home / "secret")}))


def test_what_holds_nothing_or_is_not_there_is_said(home, publish):
    publish("poetry", POEMS, store=False)
    with pytest.raises(UsageError, match="qtrain5, qvalid5, qtest5"):
        import_("poetry", folder(home / "mine", {"README": b""}))
    for place, said in ((home / "nowhere", "there is nothing"), (Path("/dev/null"), "no regular file")):
        with pytest.raises(UsageError, match=said):
            import_("poetry", place)
    with pytest.raises(DamagedFile, match=r"qtrain5 in .*far larger"):
        import_("poetry", zipped(home / "large.zip", {"qtrain5": b"train" * 9}))


def test_a_copy_that_hides_the_new_one_is_named(home, publish, monkeypatch):
    publish("text8", [b" a text"], store=False)
    folder(home / "elsewhere", {"text8/text8": b"damaged"})
    monkeypatch.setenv("NLSTM_LAB_DATA", str(home / "elsewhere"))
    (home / "text8").write_bytes(b" a text")
    with pytest.raises(DamagedFile, match="elsewhere/text8/text8"):
        import_("text8", home / "text8")
