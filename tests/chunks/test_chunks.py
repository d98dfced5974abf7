"""Rows that are read chunk by chunk give the same results as rows in memory, for every source and number of threads."""

import errno
import gc
import io
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from fairclust import ChunkError, KMeans, PriceFairKMeans, VariationalFairKMeans, open_chunks
from fairclust.base import NotSupported
from fairclust.chunks import passes
from fairclust.chunks.passes import Engine
from fairclust.chunks.rows import ChunkedPoints
from fairclust.chunks.sources import ArrayChunk, array_chunks
from fairclust.chunks.survey import survey
from fairclust.kernels.points import TiledPoints
from fairclust.messages import UserError
from toys import make_grouped_blobs
from twins import counts_of

N, K, J = 6000, 4, 3
SMALL = {"chunk_rows": 1300, "sample_rows": 2000}
PRICES = PriceFairKMeans(K, tolerance=0.1, n_init=1, tol=1e-3, random_state=0)
METHODS = [PRICES, VariationalFairKMeans(K, lam=900.0, random_state=0), KMeans(K, random_state=0)]
REFERENCE = VariationalFairKMeans(K, lam=900.0, match_reference=True, random_state=0)


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
    return clone(model).fit(open_chunks(*rows, **(SMALL | options)))


def exact_cost(X, model):
    """The sum of squared distances of float64 rows to the centres of their labels, rounded once."""
    centers = model.cluster_centers_[np.asarray(model.labels_).astype(int)].astype(np.float64)
    pairs = zip(X.astype(np.float64).ravel().tolist(), centers.ravel().tolist(), strict=True)
    return float(sum((Fraction(x) - Fraction(c)) ** 2 for x, c in pairs))


# Sums


def test_sums_agree_with_those_of_points_in_memory(blobs, mapped):
    X, codes = blobs
    chunks = open_chunks(*mapped, **SMALL).chunks
    known = survey(chunks, Engine(), sample_rows=2000, seed=0)
    far = ChunkedPoints(chunks, Engine(), known, K, dtype=np.float64)
    near = TiledPoints.pack(X, codes.astype(np.int32), J, K, shift=far.shift, dtype=np.float64)
    centers, offset = X[:K].astype(float), np.random.default_rng(0).normal(size=(J, K))
    for points in (far, near):
        points.measure(centers)
    for a, b in zip(far.soft(2.0, offset, curved=True), near.soft(2.0, offset, curved=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert far.row_min_sum == pytest.approx(near.row_min_sum, rel=1e-12)
    least = ((X[:, None].astype(float) - centers) ** 2).sum(axis=2).min(axis=1)
    for limit in np.quantile(least, [0.3, 0.9]):
        assert far.n_beyond(limit) == near.n_beyond(limit) == (least > limit).sum()
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


# Fits


@pytest.mark.parametrize("model", [*METHODS, REFERENCE], ids=[*"pvk", "reference"])
def test_fits_are_as_good_as_in_memory(model, blobs, mapped, tmp_path):
    X, codes = blobs
    here = clone(model).fit(X, sensitive_features=codes)
    there = fitted(model, *mapped, labels=tmp_path / "labels.npy")
    assert isinstance(there.labels_, np.memmap) and there.labels_.dtype == np.uint8
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), there.labels_)
    assert there.history_[-1]["objective"] == pytest.approx(here.history_[-1]["objective"], rel=2e-3)
    np.testing.assert_array_equal(there.groups_, np.unique(codes))
    off = (there.predict(X, codes) != there.labels_).sum()
    assert off <= getattr(there, "n_rounded_", 0)
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_a_sample_that_grows_in_stages_ends_as_well(model):
    X, codes = make_grouped_blobs(n_samples=530_000, n_groups=J, n_clusters=K, seed=3)
    model = clone(model).set_params(**({"lam": 8e4} if "lam" in model.get_params() else {}))
    small, grown = (
        clone(model).fit(open_chunks(X.astype(np.float32), codes, sample_rows=n_rows))
        for n_rows in (10_000, None)
    )
    assert grown.history_[-1]["objective"] == pytest.approx(small.history_[-1]["objective"], rel=1e-3)


def test_labels_keep_the_bounds_and_the_certificate_is_that_of_the_labels(blobs, mapped):
    X, codes = blobs
    model = fitted(PRICES, *mapped)
    table = counts_of(model.labels_, codes, K)
    shares, sizes = np.bincount(codes)[:, None] / N, table.sum(axis=0)
    assert (table <= shares / 0.9 * sizes + 1e-9).all() and (table >= 0.9 * shares * sizes - 1e-9).all()
    assert model.violation_ == 0 and 0 < model.gap_ < 1e-2
    cost = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
    assert model.cost_ == pytest.approx(cost, rel=1e-6)
    assert model.n_rounded_ > 0 and model.n_passes_ > 5


def test_numbers_do_not_depend_on_threads_nor_on_the_kind_of_file(blobs, mapped, parquet, monkeypatch):
    models = []
    for threads in (1, 3):
        monkeypatch.setattr(passes.numba, "get_num_threads", lambda n=threads: n)
        models.append(fitted(PRICES, *mapped))
    monkeypatch.undo()
    np.save(mapped[0], np.asfortranarray(blobs[0]))
    for rows in (mapped, blobs, (parquet, "sex"), (f"{parquet}/*", "sex")):
        models.append(fitted(PRICES, *rows))
    for model in models[1:]:
        assert model.cost_ == models[0].cost_ and model.gap_ == models[0].gap_
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
    assert models[-1].groups_.tolist() == ["a", "b", "c"]
    assert models[-1].feature_names_in_.tolist() == ["x", "y", "z"]
    again = models[-1].fit(blobs[0], sensitive_features=blobs[1])
    assert not hasattr(again, "feature_names_in_") and not hasattr(again, "n_passes_")


def test_bounds_that_a_sample_cannot_keep(blobs, mapped):
    codes = blobs[1]
    shares = np.bincount(codes) / N
    target = PriceFairKMeans(K, target=shares, n_init=2, random_state=0)
    table = counts_of(fitted(target, *mapped).labels_, codes, K)
    assert np.abs(table - np.outer(shares, table.sum(axis=0))).max() < 1


@pytest.mark.parametrize("size_max", [1600, [1600, 1500, 1500, 1400]])
def test_sizes_in_rows_are_those_of_all_rows_and_not_of_a_sample(blobs, size_max):
    with open_chunks(blobs[0], sample_rows=600) as table:
        model = PriceFairKMeans(K, size_max=size_max, random_state=0).fit(table)
    assert (np.bincount(model.labels_) <= size_max).all() and model.gap_ < 1e-3


def test_a_sample_may_have_more_bounds_than_all_rows(blobs):
    """The share of a group can be above its bound in all rows only, because samples have more rows of small groups."""
    codes = np.r_[np.ones(20, int), np.full(20, 2), np.zeros(N - 40, int)]
    with open_chunks(blobs[0], codes, sample_rows=600) as table:
        model = PriceFairKMeans(K, tolerance=0.01, n_init=1, random_state=0).fit(table)
    assert model.violation_ < 1


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
    assert model.groups_.tolist() == [0, 1, 2, 3] and len(model.labels_) == N
    assert model.violation_ < 1


def test_an_index_without_a_name_is_no_feature_and_folders_may_be_called_as_files(blobs, tmp_path):
    X, codes = blobs
    table = arrow(X, codes)
    (tmp_path / "data/b.parquet").mkdir(parents=True)
    for name in ("a", "b.parquet/__null_dask_index__", "b.parquet/__index_level_0__"):
        indexed = table.append_column(Path(name).name, pa.array(range(N)))
        pq.write_table(table if name == "a" else indexed, tmp_path / f"data/{name}.parquet")
    for pattern in ("data", "data/*.parquet", "**/*.parquet"):
        chunks = open_chunks(tmp_path / pattern, "sex", chunk_rows=N).chunks
        assert [chunk.first for chunk in chunks] == [0, 0, 0] and len({chunk.name for chunk in chunks}) == 3
        for chunk in chunks:
            assert open_chunks(chunk.name, "sex").features == ("x", "y", "z")


# Numbers of different size


@pytest.mark.parametrize("far", [1e6, 9999999999.0])
@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_a_far_value_has_its_part_of_the_cost(model, far, blobs):
    X, codes = blobs[0].astype(np.float64), blobs[1]
    X[77, 1] = far
    found = fitted(model, X, codes)
    cost = exact_cost(X, found)
    reported = found.inertia_ if model is METHODS[2] else found.history_[-1]["clustering"]
    if model is PRICES:
        reported = found.cost_
        # Labels within the bounds cost far more than labels that are off them by a part of a row.
        assert 0 < found.violation_ < 1 and cost < 0.1 * found.lower_bound_
    assert reported == pytest.approx(cost, rel=1e-12)
    assert (found.predict(X, codes) != found.labels_).sum() <= getattr(found, "n_rounded_", 0)


@pytest.mark.parametrize(
    "change",
    [lambda X: X * 1e-30, lambda X: X + 1e6, lambda X: np.round(X) + 1e-6 * X],
    ids=["small", "offset", "tight"],
)
@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_costs_do_not_depend_on_the_unit_or_the_origin(model, change, blobs):
    X = change(blobs[0].astype(np.float64))
    found = fitted(model, X, blobs[1])
    reported = found.cost_ if model is PRICES else found.history_[-1]["clustering"]
    assert reported == pytest.approx(exact_cost(X, found), rel=1e-7) and reported > 0
    assert (found.predict(X, blobs[1]) != found.labels_).sum() <= getattr(found, "n_rounded_", 0)


# Where the rows are


def test_threads_may_map_files_while_memory_is_collected(mapped):
    chunks, wait = array_chunks(*mapped, 100), lambda *_: time.sleep(0)
    before = gc.get_threshold()
    gc.set_threshold(20)
    gc.callbacks.append(wait)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert sum(len(X) for X, _ in pool.map(ArrayChunk.read, chunks * 20)) == 20 * N
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(wait)


def test_a_part_of_a_mapped_array_is_read_from_its_place(blobs, mapped):
    X, codes = blobs
    whole = np.load(mapped[0], mmap_mode="r")
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


def test_fit_reads_arrays_into_memory_and_files_in_chunks(blobs, mapped):
    X, codes = np.load(mapped[0], mmap_mode="r"), blobs[1]
    assert PRICES.fit(X, sensitive_features=codes).labels_.dtype == np.int32
    assert PRICES.fit(mapped[0], sensitive_features=mapped[1]).labels_.dtype == np.uint8


@pytest.mark.filterwarnings("ignore:sensitive_features.*are one value")
@pytest.mark.parametrize("is_parquet", [False, True])
def test_texts_that_differ_in_their_spelling_are_one_group(blobs, tmp_path, is_parquet):
    X, codes = blobs
    # The first chunk has one spelling only, so each chunk must find the same name.
    names = np.array([" f", "é", "m"], dtype=object)[codes]
    names[2000:][codes[2000:] == 1] = "e\u0301"
    pq.write_table(arrow(X, names), tmp_path / "t.parquet", row_group_size=650)
    model = fitted(PRICES, *((tmp_path / "t.parquet", "sex") if is_parquet else (X, names)))
    assert model.groups_.tolist() == ["f", "m", "é"]
    np.testing.assert_array_equal(model.labels_, fitted(PRICES, X, codes).labels_)


# Bad input


def test_a_column_of_measurements_is_not_a_column_of_groups(blobs):
    X, codes = blobs
    refused = pytest.raises(ValueError, match="holds 80 different numbers, and each would be a group")
    for groups, expected in (
        (np.random.default_rng(0).normal(size=80)[np.arange(N) % 80], refused),
        (np.arange(N) % 80 * 3, refused),
        (np.arange(N) % 30, nullcontext()),
        (np.char.add("g", (np.arange(N) % 30).astype(str)), nullcontext()),
    ):
        model = PriceFairKMeans(K, tolerance=0.5, n_init=1, max_iter=1, random_state=0)
        with expected:
            model.fit(X, sensitive_features=groups)
        with expected:
            model.fit(open_chunks(X, groups, **SMALL))
    with pytest.raises(NotSupported, match="mean_tolerance is for rows in memory"):
        fitted(PriceFairKMeans(K, mean_tolerance={}), X, codes)


def test_arrays_are_checked_as_those_in_memory(blobs):
    X, codes = blobs
    masked = np.ma.masked_array(X, mask=np.arange(N)[:, None] == [2000, -1, -1])
    frame, sex = pd.DataFrame(X), pd.Series(np.array([*"abc"])[codes])
    absent = "sensitive_features has 1 missing value .first in row 700"
    for rows, message in (
        ((masked, codes), "X, row 2000: feature 0 is nan"),
        ((frame.astype("Float64").mask(masked.mask), codes), "X, row 2000: feature 0 is nan"),
        ((X, np.ma.masked_array(codes, mask=masked.mask[:, 0])), absent),
        ((X, sex.mask(masked.mask[:, 0], np.nan).tolist()), absent),
        ((frame, sex[::-1]), "X and sensitive_features have one index in different orders"),
        ((frame.assign(day=pd.Timestamp("2020-01-01")), sex), "X holds dates or durations in column 'day'"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(PRICES, *rows)
    assert fitted(PRICES, frame, sex.tolist()).cost_ == fitted(PRICES, X, codes).cost_


def file_of(save, *given, **named):
    """Return the bytes that `np.save` or `np.savez` writes."""
    file = io.BytesIO()
    save(file, *given, **named)
    return file.getvalue()


CUT = r"X\.npy cannot be mapped as an array"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be mapped as an array: EOF"),
        (np.array([[1, None]]), "cannot be mapped as an array: .* Python objects"),
        (np.zeros((N, 3))[:-1], "sensitive_features has shape|groups.npy has shape"),
        (np.zeros((N, 3)) + 1j, r"X\.npy must be a matrix of numbers, found shape \(6000, 3\) of complex128"),
        (lambda whole: whole[:-100], CUT),
        # The header of the file is a dictionary in braces, of which the closing one is missing here.
        (lambda whole: whole.replace(b"}", b"("), CUT),
        (lambda whole: file_of(np.savez, X=whole), CUT),
    ],
    ids=["empty", "objects", "shorter", "complex", "cut", "brace", "npz"],
)
def test_npy_files_that_cannot_be_used(content, message, mapped):
    if callable(content):
        content = content(mapped[0].read_bytes())
    mapped[0].write_bytes(content if isinstance(content, bytes) else file_of(np.save, content))
    with pytest.raises(ChunkError, match=message):
        fitted(PRICES, *mapped)


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("name", ["chunk_rows", "sample_rows"])
def test_numbers_of_rows_that_are_none(name, number, mapped):
    with pytest.raises(ChunkError, match=rf"{name}={number} .*must be at least 1"):
        open_chunks(*mapped, **{name: number})


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
            lambda t: t.set_column(3, "sex", pa.array(range(len(t)))),
            "text in some chunks and numbers in others",
        ),
        (lambda t: t.set_column(3, "sex", pa.nulls(len(t), "string")), "row 0: column 'sex' is missing"),
        (lambda t: t.append_column("x", t["x"]), "1.parquet has two columns 'x'"),
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
    lists = arrow(X, codes).set_column(3, "sex", pa.array([[1, 2]] * N))
    pq.write_table(lists, tmp_path / "lists.parquet")
    pq.write_table(arrow(X, np.where(codes, np.nan, 1.0)), tmp_path / "nan.parquet")
    pq.write_table(pa.table({"sex": codes}), tmp_path / "only.parquet")
    pq.write_table(arrow(X, codes), tmp_path / "damaged.parquet", compression="snappy")
    damaged = bytearray((tmp_path / "damaged.parquet").read_bytes())
    damaged[4:400] = bytes(396)
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    for rows, message in (
        ((mapped[0],), "sensitive_features is missing"),
        ((X, codes[1:]), r"sensitive_features has shape \(5999,\), X has 6,000 rows"),
        ((tmp_path / "nothing*.parquet", "sex"), "there is no Parquet file at"),
        ((tmp_path / "broken.parquet", "sex"), "cannot be read as Parquet"),
        ((tmp_path / "lists.parquet", "sex"), "column 'sex' is of type list.* not a type of groups"),
        ((tmp_path / "nan.parquet", "sex"), "row .*: column 'sex' is missing"),
        ((tmp_path / "only.parquet", "sex"), "has only the column 'sex'"),
        ((tmp_path / "damaged.parquet", "sex"), r"damaged\.parquet, row 0 and after cannot be read"),
        ((parquet, codes), "is the name of their column"),
        ((parquet, "x"), "column 'sex' is of type string, which is not a type of numbers"),
        ((X[:0], codes[:0]), "there are no rows"),
    ):
        with pytest.raises(ChunkError, match=message):
            fitted(PRICES, *rows)
    with pytest.raises(ValueError, match="n_clusters=4 is more than n_samples=3"):
        fitted(PRICES, X[:3], codes[:3])


def test_a_full_disk_leaves_no_file(mapped, tmp_path, monkeypatch):
    target = tmp_path / "out" / "labels.npy"
    target.parent.mkdir()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ChunkError, match=r"6,000 bytes of labels cannot be written .* No space left"):
        fitted(PRICES, *mapped, labels=target)
    assert list(target.parent.iterdir()) == []
    monkeypatch.undo()
    model = fitted(PRICES, *mapped, labels=target)
    np.testing.assert_array_equal(np.load(target), fitted(PRICES, *mapped).labels_)
    assert model.violation_ == 0


def test_rows_that_vanish_before_the_last_pass_are_named(mapped, tmp_path, monkeypatch):
    write = ChunkedPoints.written

    def gone(*given):
        mapped[0].unlink()
        return write(*given)

    monkeypatch.setattr(ChunkedPoints, "written", gone)
    with pytest.raises(ChunkError, match=r"X\.npy cannot be mapped as an array: .* No such file"):
        fitted(PRICES, *mapped, labels=tmp_path / "labels.npy")


def test_an_output_that_is_an_input_is_refused(blobs, mapped, parquet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arrays = [np.load(path, mmap_mode="r") for path in mapped]
    part = next(parquet.glob("*.parquet"))
    for rows, output in (
        (mapped, mapped[0]),
        (mapped, "groups.npy"),
        # A slice or a view of a mapped array belongs to its file, too.
        ((arrays[0][:, :2], arrays[1]), "./X.npy"),
        ((blobs[0], np.asarray(arrays[1])), mapped[1]),
        ((parquet, "sex"), part),
        ((f"{parquet}/*.parquet", "sex"), f"parts/../parts/{part.name}"),
    ):
        before = Path(output).read_bytes()
        with pytest.raises(UserError, match=r"labels: .* is read and would be overwritten"):
            open_chunks(*rows, labels=output)
        assert Path(output).read_bytes() == before
    assert sum(chunk.n_rows for chunk in open_chunks(*mapped, labels="it").chunks) == N


@pytest.mark.parametrize("params", [{"size_min": 28, "size_max": 32}, {"n_clusters": 12, "max_gap": 0.05}])
def test_few_rows_in_chunks_are_rounded_as_in_memory(params):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(120, 3)), rng.integers(6, size=120)
    model = PriceFairKMeans(**{"n_clusters": 4, "random_state": 0, **params})
    with open_chunks(X, groups, chunk_rows=50) as table:
        model.fit(table)
    costs = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
    assert model.violation_ < 1 and model.cost_ == pytest.approx(costs, rel=1e-5)


def test_a_lower_bound_is_that_of_the_rows(blobs):
    X, codes = blobs[0].astype(np.float64), blobs[1]
    X[77] = 1e12
    chunks = open_chunks(X, codes, **SMALL).chunks
    known = survey(chunks, Engine(), sample_rows=2000, seed=0)
    assert known.needs_double
    points = ChunkedPoints(chunks, Engine(), known, K, dtype=np.float64)
    prices = np.random.default_rng(0).normal(size=(J, K))
    points.measure(X[:K])
    _, counts, cost, least = points.priced(prices)
    apart = ((X[:, None].astype(np.longdouble) - X[:K]) ** 2).sum(axis=2) + prices[codes]
    assert least == pytest.approx(float(apart.min(axis=1).sum()), rel=1e-14)
    assert cost == pytest.approx(least - (counts * prices).sum(), rel=1e-14)
