"""A reader's own text: encodings, packings, shares, normalization, and what is refused with a sentence."""

import bz2
import gzip
import lzma
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from test_datasets_files import tarred

from nlstm_lab import experiments
from nlstm_lab.datasets import corpora, files
from nlstm_lab.datasets.corpora import UNSEEN, TextSource, open_corpus
from nlstm_lab.datasets.text import CharacterModelling
from nlstm_lab.errors import LabError, UsageError

TEXT = "Ein Faß voll Öl, 3 Euro.\n" * 40


def spelled(corpus):
    return corpus.vocabulary.decode(np.concatenate(list(corpus.splits.values())))


@pytest.fixture
def opened(home):
    """`opened(text, encoding, **options)`: a text of one's own, written and opened."""

    def opened(text, encoding="utf-8", **options):
        (home / "text.txt").write_text(text, encoding=encoding)
        return open_corpus(TextSource(str(home / "text.txt"), encoding=encoding, **options))

    return opened


def pack_zip(path, data):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inside.txt", data)
        archive.writestr("__MACOSX/._inside.txt", "Mac OS X")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("text.txt", Path.write_bytes),
        ("text.txt.gz", lambda path, data: path.write_bytes(gzip.compress(data))),
        ("text.txt.xz", lambda path, data: path.write_bytes(lzma.compress(data))),
        ("text.txt.bz2", lambda path, data: path.write_bytes(bz2.compress(data))),
        ("text.txt.zip", pack_zip),
        ("under-any-name", lambda path, data: path.write_bytes(gzip.compress(data))),
    ],
)
def test_own_text_reads_the_same_in_any_packing(home, name, write):
    write(home / name, TEXT.encode())
    for _ in range(2):  # the second time from the cache
        corpus = open_corpus(TextSource(str(home / name)))
        assert spelled(corpus) == TEXT
        assert corpus.vocabulary.symbols == tuple(sorted(set(TEXT)))
        assert corpus.codes.dtype == np.uint8
        assert not corpus.codes.flags.writeable


def test_shares_cut_the_text_in_its_order(opened):
    corpus = opened(TEXT, "latin-1", share=(60, 30, 10))
    assert [len(part) for part in corpus.splits.values()] == [600, 300, 100]
    assert corpus.vocabulary.decode(corpus.splits["valid"]) == TEXT[600:900]
    with pytest.raises(UsageError):
        opened(TEXT, share=(90, 5, 6))


def test_an_edited_text_is_read_anew(opened):
    first, second = opened("ab" * 100), opened("abc" * 100)
    assert spelled(second) == "abc" * 100
    assert first.fingerprint != second.fingerprint
    assert spelled(first) == "ab" * 100  # who has the old one open keeps it


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_smoke_scale_reads_the_beginning_and_says_so(home, monkeypatch, pack):
    monkeypatch.setattr(corpora, "BEGINNING", 501)  # in the middle of an ä
    file = home / ("text.txt" if pack is bytes else "text.txt.gz")
    file.write_bytes(pack(("ä" * 400 + "b" * 100_000).encode()))
    source = TextSource(str(file), share=(50, 25, 25))
    own = experiments.variant("ptb_char_lstm1", "smoke", corpus=str(file), length=10)
    for _ in range(2):
        with pytest.warns(UserWarning, match="smoke"):
            task = own.load()
        assert sum(map(len, task.corpus.splits.values())) == 250
    assert len(open_corpus(source).codes) == 100_400
    file.write_bytes(pack("ä".encode() * 200))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(map(len, own.load().corpus.splits.values())) == 200


def test_symbols_that_training_lacks_become_one_and_are_counted(opened):
    corpus = opened("ab" * 45 + "axxay" + "zabab")
    assert corpus.vocabulary.symbols == ("a", "b", UNSEEN)
    assert corpus.vocabulary.decode(corpus.splits["valid"]) == f"a{UNSEEN}{UNSEEN}a{UNSEEN}"


def test_text8_normalization_leaves_27_symbols(opened):
    corpus = opened("Some Words, 12 of them; and\nMORE.\n" * 50, normalization="text8")
    assert set(corpus.vocabulary.symbols) <= set(" abcdefghijklmnopqrstuvwxyz")
    assert "words one two of them and more some" in spelled(corpus)


WIDE = "The cat sat on the mat. " * 99


@pytest.mark.parametrize(
    ("data", "encoding", "sentence"),
    [
        (b"", "utf-8", "holds no text"),
        (b"abc\xff" * 99, "utf-8", r"0xff at 3.*--encoding cp1252"),
        (b"\xff\xfea\x00b\x00" * 99, "utf-8", r"--encoding utf-16\b"),
        (b"short", "utf-8", "has 4 symbols"),
        (WIDE.encode("utf-16-le"), "utf-8", "without a byte order mark.*--encoding utf-16-le"),
        (WIDE.encode("utf-16-be"), "utf-16", "without a byte order mark.*--encoding utf-16-be"),
        ("春夏秋冬".encode("utf-16-le") * 99, "utf-16", "without a byte order mark.*utf-16-le or utf-16-be"),
        (WIDE.encode(), "base64", "no text encoding 'base64'"),
        (WIDE.encode() + "ü".encode()[:1], "utf-8", "ends within a character.*0xc3 at 2376"),
        (WIDE.encode() + b"\0", "utf-8", "0x00.*2376"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 9, "utf-8", "is a PDF"),
        (b"\x28\xb5\x2f\xfd" + bytes(99), "utf-8", "zstd"),
        (WIDE.encode("utf-32-le"), "utf-8", "0x00 at 1.*UTF-32.*--encoding"),
        ("春夏秋冬".encode("gb18030") * 99, "utf-8", r"gb18030 \(Chinese\)"),
        (tarred({"text.txt": WIDE.encode()}), "utf-8", "is a tar archive"),
        (gzip.compress(b"a" * (files.SWOLLEN + 1)), "utf-8", "unpacks to more than 100 times"),
        (bz2.compress(WIDE.encode())[:-9], "utf-8", "truncated"),
    ],
)
def test_texts_that_cannot_be_read_are_refused_with_the_reason(home, data, encoding, sentence):
    (home / "text.txt").write_bytes(data)
    with pytest.raises(LabError, match=sentence) as refused:
        CharacterModelling(str(home / "text.txt"), encoding=encoding).load()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-8-sig", "cp1252"])
def test_other_encodings_are_read_where_they_are_named(opened, encoding):
    assert spelled(opened(WIDE, encoding)) == WIDE


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (".", "is a folder"),
        ("/dev/null", r"/dev/null is no regular file"),
        *((corpus, "python_docs") for corpus in ("ptbb", "no/such/file.txt", "")),
    ],
)
def test_what_is_no_corpus_is_named(home, corpus, message):
    with pytest.raises(UsageError, match=message):
        open_corpus(TextSource(corpus))


@pytest.mark.parametrize(
    ("kept", "line"), [("stripped", "a <unk> N\n"), ("trailing", "a <unk> N \n"), ("leading", " a <unk> N\n")]
)
def test_ptb_is_read_as_its_char_files_are_or_with_one_blank_beside_each_line_end(publish, kept, line):
    publish("ptb", [b" a <unk> N \n" * count for count in (30, 6, 6)])
    stripped, corpus = open_corpus(TextSource("ptb")), open_corpus(TextSource("ptb", line_ends=kept))
    assert spelled(corpus) == line * 42
    assert [len(part) for part in corpus.splits.values()] == [count * len(line) for count in (30, 6, 6)]
    assert corpus.vocabulary == stripped.vocabulary
    # so that no attempt goes on with the other text
    assert (corpus.fingerprint == stripped.fingerprint) == (kept == "stripped")
    with pytest.raises(UsageError):
        open_corpus(TextSource("ptb", share=(80, 10, 10)))


def test_only_the_penn_treebank_has_line_ends():
    for make in (TextSource, CharacterModelling):
        with pytest.raises(UsageError, match=r"line_ends=trailing.*'ptb'.*'text8'"):
            make("text8", line_ends="trailing")
    with pytest.raises(UsageError, match=r"line_ends.*'both'"):
        experiments.variant("ptb_char_lstm1", line_ends="both")


def test_a_text_in_another_script_is_read_as_it_is_and_not_cleaned_away(opened):
    text = "".join(chr(0x4E00 + k) for k in range(1000)) * 2 + "abc"
    corpus = opened(text, share=(50, 25, 25))
    assert corpus.codes.dtype == np.uint16
    assert corpus.vocabulary.decode(corpus.codes[:2000]) == text[:2000]
    with pytest.raises(UsageError, match=r'0% of the letters.*normalization="none"'):
        opened(text, normalization="text8")
