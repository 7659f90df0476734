"""Fetching against a real HTTP server on loopback: cut connections, wrong bytes, dead mirrors, a full disk."""

import gzip
import io
import resource
import signal
import tarfile
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.registry import fetch
from nlstm_lab.errors import LabError, UsageError

CONTENT = b" a text of twenty-six" * 5000


class Mirror:
    """A server whose answers a test sets: the bytes of a path, and how many of its first answers are cut short."""

    def __init__(self):
        self.answers = {}
        self.cut = Counter()
        self.asked = []
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                mirror.asked.append(self.path)
                body = mirror.answers.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if mirror.cut[self.path]:
                    mirror.cut[self.path] -= 1
                    body = body[: len(body) // 2]
                self.wfile.write(body)

            def log_message(self, format, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server.server_port}{path}"


@pytest.fixture
def mirror():
    mirror = Mirror()
    yield mirror
    mirror.server.shutdown()
    mirror.server.server_close()


@pytest.fixture
def offer(home, mirror, publish):
    """text8 as CONTENT, on the mirror at the given paths; returns where it will lie."""

    def offer_at(*paths):
        publish("text8", [CONTENT], {"text8": tuple(mirror.url(path) for path in paths)}, store=False)
        return home / "data" / "text8"

    return offer_at


def leftovers(home):
    return [path.name for path in (home / "data").rglob("*") if path.name.startswith(".")]


def test_a_file_is_fetched_verified_and_unpacked(home, mirror, offer):
    folder = offer("/text8.gz")
    mirror.answers["/text8.gz"] = gzip.compress(CONTENT)
    assert fetch("text8", progress=False) == [folder / "text8"]
    assert registry.contents("text8") == [CONTENT]
    assert registry.check("text8").state == "present"
    assert not leftovers(home)
    assert fetch("text8", progress=False) == []  # nothing is missing any more
    assert mirror.asked == ["/text8.gz"]


def test_a_cut_connection_starts_over(mirror, offer):
    offer("/text8")
    mirror.answers["/text8"] = CONTENT
    mirror.cut["/text8"] = 1
    fetch("text8", progress=False)
    assert registry.contents("text8") == [CONTENT]
    assert mirror.asked == ["/text8", "/text8"]


def test_dead_and_lying_mirrors_are_passed_over(home, mirror, offer):
    offer("/gone", "/wrong", "/cut", "/page.gz", "/text8")
    mirror.answers["/wrong"] = CONTENT[:-1] + b"!"
    mirror.answers["/cut"] = CONTENT
    mirror.cut["/cut"] = 99
    mirror.answers["/page.gz"] = b"<html>log in first</html>"
    mirror.answers["/text8"] = CONTENT
    fetch("text8", progress=False)
    assert registry.contents("text8") == [CONTENT]
    assert mirror.asked == ["/gone", "/wrong", "/cut", "/page.gz", "/text8"]
    assert not leftovers(home)


def test_where_no_mirror_has_it_one_sentence_says_what_to_do(home, mirror, offer):
    offer("/gone", "/wrong")
    mirror.answers["/wrong"] = CONTENT[:-1] + b"!"
    with pytest.raises(LabError) as caught:
        fetch("text8", progress=False)
    sentence = str(caught.value)
    assert "404" in sentence
    assert "sha256" in sentence
    assert "nlstm-lab data import text8" in sentence
    assert "\n" not in sentence
    assert registry.check("text8").state == "absent"
    assert not leftovers(home)


def test_an_archive_is_downloaded_once_for_all_its_files(mirror, publish):
    contents = [b" one two \n", b" three \n", b" four \n"]
    names = [file.name for file in registry.get("ptb").files]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in zip(names, contents, strict=True):
            member = tarfile.TarInfo(f"./simple-examples/data/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    mirror.answers["/simple-examples.tgz"] = packed.getvalue()
    publish("ptb", contents, {name: (mirror.url(f"/simple-examples.tgz#{name}"),) for name in names}, store=False)
    assert len(fetch("ptb", progress=False)) == 3
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
            fetch("text8", progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (folder / "text8").read_bytes() == b"an older copy"
    assert not leftovers(home)


def test_a_data_folder_that_cannot_be_written_is_said(home, offer):
    offer("/text8")
    (home / "data").write_text("a file where the folder should be")
    with pytest.raises(LabError, match="NLSTM_LAB_ROOT"):
        fetch("text8", progress=False)


@pytest.mark.parametrize("name", ["iamondb", "poetry", "enwiki2015_plain", "madsen"])
def test_what_nobody_may_download_is_imported(home, name):
    with pytest.raises(UsageError, match=f"nlstm-lab data import {name} PATH"):
        fetch(name, progress=False)
