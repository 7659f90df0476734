"""Handwriting: points, strokes, offsets, and damaged archives."""

import gzip
import io
import tarfile

import numpy as np
import pytest
import torch

from nlstm_lab.datasets import items, registry
from nlstm_lab.datasets.base import Mixture, Vectors
from nlstm_lab.datasets.items import Handwriting, trajectory
from nlstm_lab.errors import DamagedFile

SEEDED = 1


def epoch(task):
    return list(task.train(torch.Generator().manual_seed(SEEDED)))


def line(strokes):
    points = "".join(
        "<Stroke>" + "".join(f'<Point x="{x}" y="{y}" time="0.1"/>' for x, y in stroke) + "</Stroke>"
        for stroke in strokes
    )
    header = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    return f"{header}<WhiteboardCaptureSession><StrokeSet>{points}</StrokeSet></WhiteboardCaptureSession>".encode()


def archive(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def wander(seed, points):
    path = np.random.default_rng(seed).integers(-50, 60, (points, 2)).cumsum(0) + 1000
    pairs = [(int(x), int(y)) for x, y in path]
    return [pairs[: points // 3], pairs[points // 3 :]]


def lines(count=40):
    return {f"lineStrokes/a/a01-000u-{k:02}.xml": line(wander(k, 5 + k)) for k in range(1, count + 1)}


def test_lines_become_normalized_offsets(publish):
    publish("iamondb", [archive(lines(40)), b"transcripts"])
    task = Handwriting(batch_size=4, minimum=10).load()
    assert sum(len(chosen) for chosen in task.rows.values()) == 36  # four lines are shorter than 10 points
    assert (task.input, task.output) == (Vectors(3), Mixture(20))
    batches = epoch(task)
    assert len(batches) == task.updates_per_epoch
    offsets = torch.cat([batch.targets[batch.mask][:, :2] for batch in batches])
    torch.testing.assert_close(offsets.mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(offsets.std(0, correction=0), torch.ones(2), atol=1e-5, rtol=0)
    assert sum(int(batch.mask.sum()) for batch in batches if batch.mask is not None) == sum(
        task.sizes[task.rows["train"]] - 1
    )
    for batch in batches:
        assert torch.equal(batch.inputs[1:], batch.targets[:-1])
        assert batch.inputs[0, :, :2].abs().sum() == 0
        assert batch.targets[~batch.mask].abs().sum() == 0


def test_a_trajectory_is_the_line_that_was_written(publish):
    publish("iamondb", [archive(lines(40)), b"transcripts"])
    task = Handwriting(batch_size=4, minimum=10).load()
    chosen = task.rows["test"][np.argsort(task.sizes[task.rows["test"]], kind="stable")]
    (batch,) = task.evaluate("test", "blocks")
    for column, number in enumerate(chosen):
        begin, size = task.starts[number], task.sizes[number]
        path = trajectory(batch.targets[: size - 1, column], task.mean, task.deviation)
        written = task.points[begin + 1 : begin + size] - task.points[begin]
        np.testing.assert_allclose(path, written, atol=0.01)
        assert batch.targets[: size - 1, column, 2].tolist() == task.lifted[begin + 1 : begin + size].tolist()


def test_in_the_tablets_units_a_density_is_the_normalized_one_over_the_deviations(publish):
    publish("iamondb", [archive(lines(40)), b"transcripts"])
    task = Handwriting(minimum=10).load()
    nats = [-(task.sizes[k] - 1) * np.log(task.deviation).sum() for k in task.rows["valid"]]
    assert task.raw_units_nats("valid") == pytest.approx(float(np.mean(nats)))


@pytest.mark.parametrize(
    "content",
    [
        line([[(1, 2)]]).replace(b'y="2"', b""),
        line([[(1, 2)]])[:-30],
        line([[(1, 2)]]).replace(b'y="2"', b'y="two"'),
        line([]),
    ],
)
def test_damaged_lines_are_named(publish, content):
    publish("iamondb", [archive(lines(40) | {"lineStrokes/a/a01-000u-05.xml": content}), b"transcripts"])
    with pytest.raises(DamagedFile, match=r"a01-000u-05.xml"):
        items.lines()


def test_a_truncated_archive_is_refused(home, publish):
    publish("iamondb", [archive(lines(40)), b"transcripts"])
    file = home / "data/iamondb/lineStrokes-all.tar"
    packed = gzip.compress(file.read_bytes())
    file.unlink()
    file.with_name("lineStrokes-all.tar.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DamagedFile, match="lineStrokes-all"):
        items.lines()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.xdist_group("iamondb")  # parsed once
def test_iamondb_has_the_papers_counts():
    task = Handwriting().load()
    sizes = {split: len(chosen) for split, chosen in task.rows.items()}
    points = int(task.sizes[task.rows["train"]].sum())
    assert sizes | {"lines": len(task.sizes), "points in train": points} == registry.get("iamondb").counts
    kept = np.concatenate(list(task.rows.values()))
    assert len(kept) == 11_628
    assert round(float(task.sizes[kept].mean()), 2) == 648.40
    batch = next(task.train(torch.Generator().manual_seed(SEEDED)))
    assert batch.inputs.shape == batch.targets.shape == (len(batch.inputs), 32, 3)
