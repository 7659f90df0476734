"""Files of data sets: what their records say, fetching, importing, and the cache; malice and accidents on the way."""

import bz2
import gzip
import io
import os
import re
import resource
import signal
import tarfile
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from nlstm_lab import paths
from nlstm_lab.datasets import registry
from nlstm_lab.datasets.files import Parsed, cached
from nlstm_lab.datasets.registry import DATASETS, fetch, import_
from nlstm_lab.errors import DamagedFile, LabError, UsageError


def tarred(members, links=None, mode="w"):
    """An archive of files, and of links to places."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, target in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def tar(path, members, links=None):
    path.write_bytes(tarred(members, links, "w:gz" if path.name.endswith("gz") else "w"))
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


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=lambda dataset: dataset.name)
def test_the_readme_says_what_the_record_says(dataset):
    text = (paths.root() / "data" / "README.md").read_text(encoding="utf-8")
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
    publish("text8", [b" a text"], store=False)
    assert registry.status("text8", whole=True)[0] == "absent"
    whole = gzip.compress(b" a text")
    for content, state in ((whole, "present"), (gzip.compress(b" another"), "damaged"), (whole[:-4], "damaged")):
        folder(home / "data", {"text8/text8.gz": content})
        assert registry.status("text8", whole=True)[0] == state


def test_the_folder_that_the_environment_names_comes_first(home, publish, monkeypatch):
    publish("text8", [b" a text"])
    elsewhere = folder(home / "elsewhere", {"text8/text8": b" a text"})
    monkeypatch.setenv("NLSTM_LAB_DATA", str(elsewhere))
    assert registry.locate("text8") == (elsewhere / "text8" / "text8",)


@pytest.mark.data
@pytest.mark.slow
def test_the_real_files_are_what_was_published():
    assert "damaged" not in {registry.status(name, whole=True)[0] for name in DATASETS}


# Fetching, against a real server on loopback.

CONTENT = b" a text of twenty-six" * 5000


class Handler(BaseHTTPRequestHandler):
    """Answers as its server says: the bytes of a path, and how many of its first answers are cut short."""

    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        if (body := server.answers.get(self.path)) is None:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        server.cut[self.path] = server.cut.get(self.path, 0) - 1
        self.wfile.write(body[: len(body) // 2] if server.cut[self.path] >= 0 else body)

    def log_message(self, *_):
        pass


@pytest.fixture
def mirror():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answers, server.cut, server.asked = {}, {}, []
    server.url = lambda path: f"http://127.0.0.1:{server.server_port}{path}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def offer(home, mirror, publish):
    """text8 as CONTENT, on the mirror at the given paths; returns where it will lie, and nothing else may be left."""

    def offer_at(*paths):
        publish("text8", [CONTENT], {"text8": tuple(mirror.url(path) for path in paths)}, store=False)
        return home / "data" / "text8"

    yield offer_at
    assert not [path for path in (home / "data").rglob("*") if path.name.startswith(".")]


def test_a_file_is_fetched_verified_and_unpacked(home, mirror, offer):
    folder = offer("/text8.gz")
    mirror.answers["/text8.gz"] = gzip.compress(CONTENT)
    assert fetch("text8") == [folder / "text8"]
    assert registry.contents("text8") == [CONTENT]
    assert registry.status("text8", whole=True)[0] == "present"
    assert fetch("text8") == []  # nothing is missing any more
    assert mirror.asked == ["/text8.gz"]


def test_a_cut_connection_starts_over(mirror, offer):
    offer("/text8")
    mirror.answers["/text8"] = CONTENT
    mirror.cut["/text8"] = 1
    fetch("text8")
    assert registry.contents("text8") == [CONTENT]
    assert mirror.asked == ["/text8", "/text8"]


def test_dead_and_lying_mirrors_are_passed_over(home, mirror, offer):
    offer("/gone", "/wrong", "/cut", "/page.gz", "/text8")
    mirror.answers["/wrong"] = CONTENT[:-1] + b"!"
    mirror.answers["/cut"] = CONTENT
    mirror.cut["/cut"] = 99
    mirror.answers["/page.gz"] = b"<html>log in first</html>"
    mirror.answers["/text8"] = CONTENT
    fetch("text8")
    assert registry.contents("text8") == [CONTENT]
    assert mirror.asked == ["/gone", "/wrong", "/cut", "/page.gz", "/text8"]


def test_where_no_mirror_has_it_one_sentence_says_what_to_do(home, mirror, offer):
    offer("/gone", "/wrong")
    mirror.answers["/wrong"] = CONTENT[:-1] + b"!"
    with pytest.raises(LabError) as caught:
        fetch("text8")
    sentence = str(caught.value)
    assert "404" in sentence
    assert "sha256" in sentence
    assert "nlstm-lab data import text8" in sentence
    assert "\n" not in sentence
    assert registry.status("text8", whole=True)[0] == "absent"


def test_an_archive_is_downloaded_once_for_all_its_files(mirror, publish):
    contents = [b" one two \n", b" three \n", b" four \n"]
    names = [file.name for file in registry.get("ptb").files]
    members = {f"./simple-examples/data/{name}": content for name, content in zip(names, contents, strict=True)}
    mirror.answers["/simple-examples.tgz"] = tarred(members, mode="w:gz")
    publish("ptb", contents, {name: (mirror.url(f"/simple-examples.tgz#{name}"),) for name in names}, store=False)
    assert len(fetch("ptb")) == 3
    assert registry.contents("ptb") == contents
    assert mirror.asked == ["/simple-examples.tgz"]


def test_a_full_disk_is_said_and_changes_nothing(home, mirror, offer):
    folder = offer("/text8")
    mirror.answers["/text8"] = CONTENT
    folder.mkdir(parents=True)
    (folder / "text8").write_bytes(b"an older copy")
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails, as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(CONTENT) // 2, limits[1]))
    try:
        with pytest.raises(LabError):
            fetch("text8")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (folder / "text8").read_bytes() == b"an older copy"


def test_what_is_damaged_in_the_folder_that_comes_first_is_named_and_nothing_is_fetched(
    mirror, offer, tmp_path, monkeypatch
):
    monkeypatch.setenv("NLSTM_LAB_DATA", str(tmp_path))
    (tmp_path / "text8").mkdir()
    (tmp_path / "text8" / "text8").write_bytes(CONTENT[:-1])
    offer("/text8")
    mirror.answers["/text8"] = CONTENT
    with pytest.raises(DamagedFile, match=str(tmp_path)):
        fetch("text8")
    assert not mirror.asked


@pytest.mark.parametrize("name", ["iamondb", "poetry", "enwiki2015_plain", "madsen"])
def test_what_nobody_may_download_is_imported(home, name):
    with pytest.raises(UsageError, match=f"nlstm-lab data import {name} PATH"):
        fetch(name)


# Importing what was obtained by hand.

POEMS = [b"train", b"valid", b"test"]


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
    assert registry.status("mnist", whole=True)[0] == "present"
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
        assert re.match(rf"{shut}(/qtrain5)? cannot be read: permission denied", str(refused.value))


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
        import_("poetry", zipped(home / "large.zip", {"qtrain5": b"train" * 10**6}))


# The cache: at once or not at all, whatever happens in between.


def numbers():
    return Parsed({"numbers": np.arange(1000)}, {"what": "numbers", "text": "ä"})


def never():
    raise AssertionError("the cache should have been used")


def test_the_second_opening_maps_what_the_first_has_built(home):
    built = cached("set", (), numbers, length=3)
    again = cached("set", (), never, length=3)
    assert isinstance(again.arrays["numbers"], np.memmap)
    assert again.facts == built.facts == {"what": "numbers", "text": "ä"}
    np.testing.assert_array_equal(again.arrays["numbers"], np.arange(1000))


def test_other_settings_and_changed_sources_are_other_entries(home):
    source = home / "source"
    source.write_bytes(b"1")
    os.utime(source, (1e9, 1e9))
    cached("set", [source], numbers, length=3)
    with pytest.raises(AssertionError):
        cached("set", [source], never, length=4)
    source.write_bytes(b"2")  # of the same size and time
    os.utime(source, (1e9, 1e9))
    with pytest.raises(AssertionError):
        cached("set", [source], never, length=3)


@pytest.mark.parametrize("what", ["manifest.json", "numbers.npy"])
@pytest.mark.parametrize("damage", ["gone", "cut", "empty"])
def test_a_damaged_entry_is_built_anew(home, what, damage):
    cached("set", (), numbers)
    (file,) = (home / "cache").glob(f"set-*/{what}")
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:50] if damage == "cut" else b"")
    np.testing.assert_array_equal(cached("set", (), numbers).arrays["numbers"], np.arange(1000))
    np.testing.assert_array_equal(cached("set", (), never).arrays["numbers"], np.arange(1000))
    assert len(list((home / "cache").iterdir())) == 1  # nothing is left over


def test_a_copy_is_imported_and_checked_by_the_command_line(say, home, publish):
    publish("text8", [b" a text"], store=False)
    (home / "mine").write_bytes(b" a text")
    assert say("data", "import", "text8", str(home / "mine"))[0] == 0
    assert say("data", "check", "text8")[0] == 0
    (home / "data" / "text8" / "text8").write_bytes(b" a tex!")
    assert say("data", "check")[0] == 1


def test_a_cache_that_cannot_be_written_says_where_to_turn(home):
    (home / "cache").write_text("a file where the folder should be")
    with pytest.raises(LabError, match="NLSTM_LAB_CACHE") as caught:
        cached("set", (), numbers)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_two_that_build_one_entry_at_once_both_have_it(home):
    barrier = threading.Barrier(2)

    def opened(_):
        return cached("set", (), lambda: barrier.wait() < 2 and numbers()).arrays["numbers"].sum()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(opened, range(2))) == [sum(range(1000))] * 2
    assert len(list((home / "cache").iterdir())) == 1
