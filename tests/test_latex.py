"""Tables for a paper: LaTeX that compiles, with real minus signs, that names what it needs and what made it."""

import re

import pandas as pd
import pytest

from nlstm_lab import paths, targets


def comparison(values):
    """Table 1 with this many seeds of the Nested LSTM."""
    known = {
        "experiment": "ptb_char_nlstm",
        "scale": "paper",
        "split": "valid",
        "evaluation": "blocks",
        "metric": "bpc",
    }
    table = pd.DataFrame([{**known, "seed": seed, "value": value} for seed, value in enumerate(values)])
    return targets.compare("nested_lstm.table1", table)


def columns(tex):
    """The alignment of a LaTeX table, and its rows of cells; its braces and environments must be balanced."""
    code = [line for line in tex.splitlines() if not line.startswith("%")]
    plain = re.sub(r"\\[\\{}&%$#_]", "", "\n".join(code))
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    assert re.findall(r"\\(begin|end)\{(\w+)\}", tex) == [("begin", "tabular"), ("end", "tabular")]
    assert all(rule in code for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    lines = [line.removesuffix(r" \\") for line in code if line.endswith(r"\\")]
    return re.search(r"\\begin\{tabular\}\{([lr]+)\}", tex)[1], [re.split(r"(?<!\\) & ", f" {line} ") for line in lines]


@pytest.mark.parametrize("file", sorted(paths.figures().glob("*.tex")), ids=lambda file: file.stem)
def test_a_committed_table_is_latex_that_compiles(file):
    tex = file.read_text()
    sides, rows = columns(tex)
    assert {len(row) for row in rows} == {len(sides)}
    assert not set("−×†“”") & set(tex.partition(r"\begin")[2].partition(r"\end")[0])
    assert {sides[k] for k, name in enumerate(rows[0]) if name.strip() in ("printed", "seeds")} == {"r"}


def test_a_latex_table_has_minus_signs_and_names_what_made_it():
    frame = comparison([-1.43, -1.44, -1.45]).frame
    rows = frame[frame["experiment"] == "ptb_char_nlstm"].assign(subject="a & b_c 50 %")
    tex = targets.booktabs(rows)
    sides, (head, first, *_) = columns(tex)
    assert len(first) == len(sides)
    assert first[0].strip() == r"a \& b\_c 50 \%"
    place = [name.strip() for name in head].index(r"ours [95 \% interval]")
    assert (sides[place], first[place].strip()) == ("r", r"$-$1.4400 [$-$1.4648, $-$1.4152]")
    assert re.match(r"% .*booktabs.*nlstm_lab \d+\.\d+\.\d+\S* at commit \w+\.", tex)


def test_a_table_that_says_the_same_keeps_the_commit_that_made_it(tmp_path, monkeypatch):
    monkeypatch.setenv("NLSTM_LAB_FIGURES", str(tmp_path))
    one = comparison([1.43, 1.44, 1.45])
    _, tex = one.save()
    before = tex.read_bytes()
    monkeypatch.setattr("nlstm_lab.targets.rendering.commit", lambda: "later")
    one.save()
    assert tex.read_bytes() == before
    targets.Comparison(one.target, "", "", one.frame[1:]).save()
    assert "later" in tex.read_text()
