"""Rows that are read chunk by chunk give the same results as rows in memory, for every source and number of threads."""

import errno
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairclust import ChunkError, KMeans, PriceFairKMeans, VariationalFairKMeans, open_chunks
from fairclust.chunks import checkpoint, engines, labels, table
from fairclust.chunks.engines import Threads
from fairclust.chunks.passes import group_codes
from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.scores import score_chunks
from fairclust.chunks.sources import ArrayChunk, MappedArray, Values
from fairclust.chunks.survey import survey
from fairclust.kernels.points import TiledPoints
from fairclust.methods import _in_chunks
from fairclust.metrics import contingency
from toys import make_grouped_blobs

N, K, J = 6000, 4, 3
SMALL = {"chunk_rows": 1300, "sample_rows": 2000}
PRICES = PriceFairKMeans(K, tolerance=0.1, n_init=1, tol=1e-3, random_state=0)
METHODS = [PRICES, VariationalFairKMeans(K, lam=900.0, random_state=0), KMeans(K, random_state=0)]


@pytest.fixture(scope="module")
def blobs():
    X, codes = make_grouped_blobs(n_samples=N, n_groups=J, n_clusters=K, seed=3)
    return X.astype(np.float32), codes.astype(np.uint8)


@pytest.fixture
def mapped(blobs, tmp_path):
    """Write rows and groups to .npy files."""
    paths = tmp_path / "X.npy", tmp_path / "groups.npy"
    for path, array in zip(paths, blobs, strict=True):
        np.save(path, array)
    return paths


def arrow(X, groups, names="xyz"):
    columns = {name: X[:, f] for f, name in enumerate(names)}
    return pa.table(columns | {"sex": groups})


@pytest.fixture
def parquet(blobs, tmp_path):
    """Write the same rows to two Parquet files, with groups as text. Row groups and chunks differ in length."""
    X, codes = blobs
    names = np.array(["a", "b", "c"])[codes]
    folder = tmp_path / "parts"
    folder.mkdir()
    for part, rows in enumerate((slice(2600), slice(2600, N))):
        pq.write_table(arrow(X[rows], names[rows]), folder / f"{part}.parquet", row_group_size=650)
    return folder


def fitted(model, *rows, **options):
    return model.__class__(**model.get_params()).fit(open_chunks(*rows, **(SMALL | options)))


def counts_of(model, codes):
    return contingency(np.asarray(model.labels_).astype(int), codes.astype(int), K, J)


# Sums


def test_sums_agree_with_those_of_points_in_memory(blobs, mapped):
    X, codes = blobs
    chunks = open_chunks(*mapped, **SMALL).chunks
    known = survey(chunks, Threads(), sample_rows=2000, seed=0)
    far = ChunkedPoints(chunks, Threads(), known, K, dtype=np.float64)
    near = TiledPoints.pack(X, codes.astype(np.int32), J, K, shift=far.shift, dtype=np.float64)
    centers, offset = X[:K].astype(float), np.random.default_rng(0).normal(size=(J, K))
    for points in (far, near):
        points.measure(centers)
    for a, b in zip(far.soft_moments(2.0, offset), near.soft_moments(2.0, offset), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert far.row_min_sum == pytest.approx(near.row_min_sum, rel=1e-12)
    for a, b in zip(far.soft(2.0, offset), near.soft(2.0, offset), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    for ours, theirs in (
        (far.hard(2.0, offset), near.hard(2.0, offset)),
        (far.priced(offset), near.priced(offset)),
    ):
        np.testing.assert_array_equal(np.concatenate(list(far.written(ours[0]))), theirs[0])
        for a, b in zip(ours[1:], theirs[1:], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        for a, b in zip(far.sums(ours[0]), near.sums(theirs[0]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


def test_rows_that_may_move_include_the_nearest(blobs, mapped):
    X, codes = blobs
    chunks = open_chunks(*mapped, **SMALL).chunks
    far = ChunkedPoints(chunks, Threads(), survey(chunks, Threads(), sample_rows=500, seed=0), K)
    near = TiledPoints.pack(X, codes.astype(np.int32), J, K, shift=far.shift)
    prices, units = np.random.default_rng(1).normal(scale=0.3, size=(J, K)), np.array([40, 0, 3])
    for points in (far, near):
        points.measure(X[:K].astype(float))
    lazy, own = far.priced(prices)[0], near.priced(prices)[0]
    found = {j: (rows, excess) for j, rows, excess in far.movable(prices, lazy, units)}
    assert set(found) == {0, 2}
    for j, rows, excess in near.movable(prices, own, units):
        at = {row: i for i, row in enumerate(found[j][0].tolist())}
        assert set(rows.tolist()) <= set(at)
        np.testing.assert_array_equal(found[j][1][[at[row] for row in rows.tolist()]], excess)
        np.testing.assert_array_equal(lazy[rows], own[rows])


# Fits


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_fits_are_as_good_as_in_memory(model, blobs, mapped, tmp_path):
    X, codes = blobs
    here = model.__class__(**model.get_params()).fit(X, sensitive_features=codes)
    there = fitted(model, *mapped, labels=tmp_path / "labels.npy")
    assert isinstance(there.labels_, np.memmap) and there.labels_.dtype == np.uint8
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), there.labels_)
    assert there.history_[-1]["objective"] == pytest.approx(here.history_[-1]["objective"], rel=2e-3)
    np.testing.assert_array_equal(there.groups_, np.unique(codes))
    off = (there.predict(X, codes) != there.labels_).sum()
    assert off <= getattr(there, "n_rounded_", 0)
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_a_sample_that_grows_in_stages_ends_as_well(model, mapped, monkeypatch):
    known = survey(open_chunks(*mapped, **SMALL).chunks, Threads(), sample_rows=2000, seed=0)
    assert _in_chunks.stages(known) == [len(known.codes)]
    at_once = fitted(model, *mapped)
    monkeypatch.setattr(_in_chunks, "_FIRST_ROWS", 150)
    assert _in_chunks.stages(known) == [150, 600, len(known.codes)]
    part = _in_chunks.first_rows(ChunkedPoints([], Threads(), known, K), known, 150)
    np.testing.assert_array_equal(part.X, known.X[:150])
    np.testing.assert_array_equal(part.group_sizes, np.bincount(known.codes[:150], minlength=J))
    np.testing.assert_array_equal(part.layout.group.repeat(part.layout.count), np.sort(known.codes[:150]))
    np.testing.assert_array_equal(known.codes[part.layout.order], np.sort(known.codes[:150]))
    in_stages = fitted(model, *mapped)
    assert in_stages.history_[-1]["objective"] == pytest.approx(at_once.history_[-1]["objective"], rel=1e-3)


def test_labels_keep_the_bounds_and_the_certificate_is_that_of_the_labels(blobs, mapped):
    X, codes = blobs
    model = fitted(PRICES, *mapped)
    table = counts_of(model, codes)
    shares, sizes = np.bincount(codes)[:, None] / N, table.sum(axis=0)
    assert (table <= shares / 0.9 * sizes + 1e-9).all() and (table >= 0.9 * shares * sizes - 1e-9).all()
    assert model.violation_ == 0 and 0 < model.gap_ < 1e-2
    cost = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
    assert model.cost_ == pytest.approx(cost, rel=1e-6)
    assert model.n_rounded_ > 0 and model.n_passes_ > 5


def test_numbers_do_not_depend_on_threads_nor_on_the_kind_of_file(blobs, mapped, parquet, monkeypatch):
    models = []
    for threads in (1, 3):
        monkeypatch.setattr(engines.numba, "get_num_threads", lambda n=threads: n)
        models.append(fitted(PRICES, *mapped))
    monkeypatch.undo()
    models += [fitted(PRICES, *blobs), fitted(PRICES, parquet, "sex"), fitted(PRICES, f"{parquet}/*", "sex")]
    for model in models[1:]:
        assert model.cost_ == models[0].cost_ and model.gap_ == models[0].gap_
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
    assert models[-1].groups_.tolist() == ["a", "b", "c"]
    assert models[-1].feature_names_in_.tolist() == ["x", "y", "z"]


def test_scores_are_counted_from_rows_and_labels(blobs, mapped):
    X, codes = blobs
    own = np.random.default_rng(0).integers(K, size=N).astype(np.uint8)
    found, cost = score_chunks(open_chunks(*mapped, **SMALL), own, np.arange(J, dtype=np.uint8), K)
    np.testing.assert_array_equal(found, contingency(own.astype(int), codes.astype(int), K, J))
    means = np.stack([X[own == k].mean(axis=0, dtype=float) for k in range(K)])
    assert cost == pytest.approx(((X - means[own]) ** 2).sum(), rel=1e-6)


def test_bounds_that_a_sample_cannot_keep(blobs, mapped):
    codes = blobs[1]
    shares = np.bincount(codes) / N
    target = PriceFairKMeans(K, target=shares, n_init=2, random_state=0)
    table = counts_of(fitted(target, *mapped), codes)
    assert np.abs(table - np.outer(shares, table.sum(axis=0))).max() < 1


def test_a_group_in_one_chunk_only_and_chunks_without_rows(blobs, tmp_path):
    X, codes = blobs
    codes = codes.copy()
    codes[:40] = J  # some of the first chunk
    empty = arrow(X[:0], codes[:0])
    pq.write_table(empty, tmp_path / "0.parquet")
    with pq.ParquetWriter(tmp_path / "1.parquet", empty.schema) as file:
        for rows in (slice(0, 40), slice(0, 0), slice(40, N)):
            file.write_table(arrow(X[rows], codes[rows]), row_group_size=1000)
    model = fitted(PRICES, tmp_path, "sex")
    own = contingency(np.asarray(model.labels_).astype(int), codes.astype(int), K, J + 1)
    assert model.groups_.tolist() == [0, 1, 2, 3] and own[J].sum() == 40
    assert model.violation_ < 1


# Where the rows are


def test_a_part_of_a_mapped_array_is_read_from_its_place(blobs, mapped):
    X, codes = blobs
    whole = np.load(mapped[0], mmap_mode="r")
    place = MappedArray.of(whole[100:200])
    np.testing.assert_array_equal(place.rows(20, 60), X[120:160])
    assert MappedArray.of(whole[:, :2]) is None and MappedArray.of(X) is None
    part = fitted(PRICES, whole[1000:], np.load(mapped[1], mmap_mode="r")[1000:])
    again = fitted(PRICES, X[1000:], codes[1000:])
    np.testing.assert_array_equal(part.labels_, again.labels_)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_chunks_that_were_read_do_not_count_as_memory(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((1_000_000, 8), np.float32))
    np.save(tmp_path / "groups.npy", np.zeros(1_000_000, np.uint8))

    def megabytes_of_files():
        status = Path("/proc/self/status").read_text()
        # The pages of files in a file system in memory count as RssShmem.
        return sum(map(int, re.findall(r"Rss(?:File|Shmem):\s+(\d+) kB", status))) / 1024

    chunks = open_chunks(tmp_path / "X.npy", tmp_path / "groups.npy", chunk_rows=100_000).chunks
    before = megabytes_of_files()
    for chunk in chunks:
        assert chunk.read()[0].sum() == 800_000
    assert megabytes_of_files() - before < 12


def test_mapped_arrays_are_read_into_memory_as_long_as_they_fit(blobs, mapped, monkeypatch):
    X, codes = np.load(mapped[0], mmap_mode="r"), blobs[1]
    assert PRICES.fit(X, sensitive_features=codes).labels_.dtype == np.int32
    monkeypatch.setattr(table, "_IN_MEMORY", 1000)
    assert PRICES.fit(X, sensitive_features=codes).labels_.dtype == np.uint8
    assert PRICES.fit(mapped[0], sensitive_features=mapped[1]).labels_.dtype == np.uint8


@pytest.mark.parametrize(
    "values",
    [
        [7, 9, 7],
        [True, False, True],
        ["x", "y", "x"],
        [b"x", b"y", b"x"],
        [2**40, -5, 2**40],
        [0.5, 2.0, 0.5],
    ],
    ids=str,
)
def test_groups_of_any_type(values):
    values = np.array(values)
    chunk = ArrayChunk(np.zeros((3, 1)), values, 0, 3, "X")
    known = survey([chunk], Threads(), sample_rows=10, seed=0)
    np.testing.assert_array_equal(known.names[group_codes(Values(values), known.names, chunk)], values)
    assert known.sizes.sum() == 3


@pytest.mark.filterwarnings("ignore:sensitive_features.*are one value")
@pytest.mark.parametrize("kind", ["array", "object", "parquet"])
def test_texts_that_differ_in_their_spelling_are_one_group(blobs, tmp_path, kind):
    X, codes = blobs
    # The first chunk has one spelling only, so each chunk must find the same name.
    names = np.array([" f", "é", "m"], dtype=object if kind == "object" else None)[codes]
    names[2000:][codes[2000:] == 1] = "e\u0301"
    if kind == "parquet":
        pq.write_table(arrow(X, names), tmp_path / "t.parquet", row_group_size=650)
    rows = (tmp_path / "t.parquet", "sex") if kind == "parquet" else (X, names)
    model = fitted(PRICES, *rows)
    assert model.groups_.tolist() == ["f", "m", "é"]
    np.testing.assert_array_equal(model.labels_, fitted(PRICES, X, codes).labels_)


# Bad input


def test_a_number_that_is_not_finite_is_reported_with_file_and_row(blobs, mapped, parquet):
    X = np.load(mapped[0], mmap_mode="r+")
    X[4321, 1] = np.nan
    X.flush()
    with pytest.raises(ChunkError, match=r"X\.npy, row 4321: feature 1 is nan"):
        fitted(PRICES, *mapped)
    part = pq.read_table(parquet / "1.parquet")
    y = part["y"].to_pylist()
    y[1500] = None
    pq.write_table(
        part.set_column(1, "y", pa.array(y, pa.float32())), parquet / "1.parquet", row_group_size=650
    )
    with pytest.raises(ChunkError, match=r"1\.parquet, row 1500: column 'y' is nan"):
        fitted(PRICES, parquet, "sex")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns("y"), "1.parquet has no column 'y'; it has x, z, sex"),
        (
            lambda t: t.append_column("w", t["x"]),
            "1.parquet has the column 'w', but .*0.parquet does not have it",
        ),
        (
            lambda t: t.set_column(1, "y", t["y"].cast("float64")),
            "column 'y' is of type double, but in .* it is of type float",
        ),
        (
            lambda t: t.set_column(3, "sex", pa.array([None] * len(t), "string")),
            "row 0: column 'sex' is missing",
        ),
    ],
)
def test_files_that_do_not_fit_together(change, message, parquet):
    path = parquet / "1.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(ChunkError, match=message):
        fitted(PRICES, parquet, "sex")


def test_input_that_cannot_be_used(blobs, mapped, parquet, tmp_path):
    X, codes = blobs
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no more")
    for rows, message in (
        ((mapped[0],), "sensitive_features is missing"),
        ((X[:, 0], codes), "X must be a matrix of numbers"),
        ((X, codes[1:]), r"sensitive_features has shape \(5999,\), X has 6000 rows"),
        ((tmp_path / "no.npy", codes), "cannot be mapped"),
        ((tmp_path / "nothing*.parquet", "sex"), "there is no Parquet file at"),
        ((tmp_path / "broken.parquet", "sex"), "cannot be read as Parquet"),
        ((parquet, codes), "is the name of their column"),
        ((parquet, "x"), "column 'sex' is of type string, which is not a type of numbers"),
        ((X[:0], codes[:0]), "there are no rows"),
    ):
        with pytest.raises(ChunkError, match=message):
            fitted(PRICES, *rows)
    with pytest.raises(ValueError, match="n_clusters=4 is more than n_samples=3"):
        fitted(PRICES, X[:3], codes[:3])


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_full_disk_leaves_no_file(when, mapped, tmp_path, monkeypatch):
    target = tmp_path / "out" / "labels.npy"
    target.parent.mkdir()

    def full(*_):
        # The checkpoint, in another folder, is written before the labels.
        if any(target.parent.iterdir()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if when == "before":
        monkeypatch.setattr(labels.os, "posix_fallocate", full)
    else:
        monkeypatch.setattr(labels.os, "fsync", full)
    kept = tmp_path / "fit.npz"
    with pytest.raises(ChunkError, match=r"6,000 bytes of labels cannot be written .* No space left"):
        fitted(PRICES, *mapped, labels=target, checkpoint=kept)
    assert list(target.parent.iterdir()) == [] and kept.exists()
    monkeypatch.undo()
    model = fitted(PRICES, *mapped, labels=target, checkpoint=kept)
    np.testing.assert_array_equal(np.load(target), fitted(PRICES, *mapped).labels_)
    assert model.violation_ == 0 and not kept.exists()


def test_room_that_cannot_be_reserved_is_written_all_the_same(tmp_path, monkeypatch):
    def unknown(*_):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(labels.os, "posix_fallocate", unknown)
    parts = [np.arange(3, dtype=np.uint8), np.arange(2, dtype=np.uint8)]
    found = labels.write_labels(iter(parts), 5, np.dtype(np.uint8), tmp_path / "labels.npy")
    assert found.tolist() == np.load(tmp_path / "labels.npy").tolist() == [0, 1, 2, 0, 1]


# Fits that were stopped and continue


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_a_fit_that_was_stopped_goes_on_to_the_same_labels(model, mapped, tmp_path, monkeypatch):
    whole = fitted(model, *mapped)
    assert whole.n_iter_ > 1
    save = checkpoint.Checkpoint.save

    def stop(self, run):
        save(self, run)
        raise KeyboardInterrupt

    path = tmp_path / "fit.npz"
    monkeypatch.setattr(checkpoint.Checkpoint, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        fitted(model, *mapped, checkpoint=path)
    monkeypatch.undo()
    again = fitted(model, *mapped, checkpoint=path)
    np.testing.assert_array_equal(again.labels_, whole.labels_)
    assert [record["objective"] for record in again.history_] == [r["objective"] for r in whole.history_]
    assert not path.exists()


def test_the_checkpoint_of_another_fit_is_an_error(mapped, tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    monkeypatch.setattr(checkpoint.Checkpoint, "remove", lambda self: None)
    fitted(PRICES, *mapped, checkpoint=path)
    other = PriceFairKMeans(K, tolerance=0.2, random_state=0)
    with pytest.raises(ChunkError, match="checkpoint of another fit"):
        fitted(other, *mapped, checkpoint=path)
    path.write_bytes(b"nothing")
    with pytest.raises(ChunkError, match="is no checkpoint"):
        fitted(PRICES, *mapped, checkpoint=path)


def test_outputs_are_looked_at_before_the_fit(mapped, tmp_path, monkeypatch):
    for option in ("labels", "checkpoint"):
        with pytest.raises(ChunkError, match=rf"{option}: there is no folder .*nowhere"):
            fitted(PRICES, *mapped, **{option: tmp_path / "nowhere" / "it.npy"})
    monkeypatch.setattr(labels.shutil, "disk_usage", lambda folder: SimpleNamespace(free=5999))
    with pytest.raises(ChunkError, match="would take 6,000 bytes, and its disk has 5,999 bytes left"):
        fitted(PRICES, *mapped, labels=tmp_path / "labels.npy")


@pytest.mark.parametrize("option", ["labels", "checkpoint"])
def test_an_output_that_is_an_input_is_refused(option, mapped, parquet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    soft, hard, scheduler = tmp_path / "soft.npy", tmp_path / "hard.npy", tmp_path / "scheduler.json"
    soft.symlink_to(mapped[0])
    hard.hardlink_to(mapped[1])
    arrays = [np.load(path, mmap_mode="r") for path in mapped]
    part = next(parquet.glob("*.parquet"))
    monkeypatch.setattr(table, "_engine", lambda client, X: Threads())
    scheduler.write_text("{}")
    for rows, options, output in (
        (mapped, {}, mapped[0]),
        (mapped, {}, "groups.npy"),
        (mapped, {}, soft),
        (mapped, {}, hard),
        # A part of the columns is not contiguous, and is no `MappedArray`.
        ((arrays[0][:, :2], arrays[1]), {}, "./X.npy"),
        ((parquet, "sex"), {}, part),
        ((f"{parquet}/*.parquet", "sex"), {}, f"parts/../parts/{part.name}"),
        (mapped, {"client": str(scheduler)}, scheduler),
    ):
        before = Path(output).read_bytes()
        with pytest.raises(ChunkError, match=f"{option}: .* is read and would be overwritten"):
            open_chunks(*rows, **options, **{option: output})
        assert Path(output).read_bytes() == before
    with pytest.raises(ChunkError, match="checkpoint: it is also the file of labels"):
        open_chunks(*mapped, labels=tmp_path / "it", checkpoint="it")
    assert open_chunks(*mapped, labels="it", checkpoint="other").n_rows == N
