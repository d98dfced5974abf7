"""Submissions: labels of a catalogue data set by anyone's method, scored here and stored in one file each.

Anyone can send a submission, so nothing in it is trusted: its data set is prepared again, its labels are scored again,
and sizes are limited before anything is unpacked.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import math
import re
import warnings
import zlib
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import AfterValidator, Field, ValidationError

from fairclust.datasets.download import fetch_source
from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.spec import Name, is_secure_url
from fairclust.datasets.store import PreparedDataset
from fairclust.messages import nearest
from fairclust.metrics.table import METRICS, score_labels
from fairclust.outputs import atomic_write
from fairclust.pipeline.config import Config
from fairclust.pipeline.models import Strict

NOTIONS = {
    "share": "fairness_error",
    "balance": "balance",
    "social": "worst_group_cost",
    "individual": "individual_fairness",
    "proportional": "proportionality",
}
"""Notions of fairness, and the metric that measures each of them."""
COSTS = ("sse", "ncut")
"""The cost of a clustering: of points, and of a graph without points."""

# A repository should stay small.
MOST_BYTES = 600_000
_MOST_CLUSTERS = 65_535
# Machines round differently.
_TOLERANCE = 1e-9
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


class SubmissionError(ValueError):
    """Labels or a file of a submission cannot be used; the message says what is wrong and where."""


def _check_line(value: str) -> str:
    if value != value.strip() or not value.isprintable():
        raise ValueError("one line of text without blanks around it is expected")
    return value


def _check_url(value: str) -> str:
    if not is_secure_url(value) or not value.isascii() or re.search(r"[\s|<>\"'()\[\]]", value):
        raise ValueError("an https address is expected, such as https://arxiv.org/abs/1906.08207")
    return value


Line = Annotated[str, Field(max_length=120), AfterValidator(_check_line)]


class Submission(Strict):
    """A file in the folder of submissions."""

    format: Literal[1] = 1
    dataset: Name
    n_clusters: Annotated[int, Field(ge=2, le=_MOST_CLUSTERS)]
    method: Annotated[Line, Field(min_length=1, description="Name of the method, for readers.")]
    setting: Annotated[Line, Field(description="Tells several submissions of a method apart.")] = ""
    paper: Annotated[str, Field(max_length=300), AfterValidator(_check_url)]
    hardware: Annotated[Line, Field(description="As the submitter states it; not checked.")] = ""
    seconds: Annotated[float, Field(ge=0)] | None = None
    submitted: date
    version: Annotated[Line, Field(description="Version of fairclust that scored the labels.")]
    data_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    metrics: dict[str, Annotated[float, Field(allow_inf_nan=True)]]
    labels: Annotated[str, Field(description="Cluster of each row: integers, zlib, Base64.")]

    def decoded(self, n_rows: int) -> np.ndarray:
        """Unpack the labels.

        Parameters
        ----------
        n_rows : int
            Rows of the data set.

        Returns
        -------
        ndarray of int64, shape (n_rows,)

        Raises
        ------
        SubmissionError
            The labels cannot be unpacked, are not as many as the rows, or are not in 0 .. n_clusters - 1.
        """
        kind = _label_type(self.n_clusters)
        unpacker = zlib.decompressobj()
        try:
            packed = base64.b64decode(self.labels, validate=True)
            # At most one byte more than expected is unpacked: a small file could unpack to gigabytes.
            content = unpacker.decompress(packed, n_rows * kind.itemsize + 1)
        except (binascii.Error, ValueError, zlib.error) as error:
            raise SubmissionError(
                f"the labels cannot be unpacked: {error}. Fix: write the file with `fairclust submit`"
            ) from None
        expected = n_rows * kind.itemsize
        if len(content) != expected or not unpacker.eof:
            found = (
                f"{len(content) // kind.itemsize:,}"
                if unpacker.eof
                else "more"
                if content[expected:]
                else "fewer"
            )
            raise SubmissionError(
                f"the data set has {n_rows:,} rows, and the submission has {found} labels. Fix: write the file with "
                "`fairclust submit`"
            )
        labels = np.frombuffer(content, kind).astype(np.int64)
        _check_range(labels, self.n_clusters)
        return labels


def _label_type(n_clusters: int) -> np.dtype:
    return np.dtype("<u1" if n_clusters <= 256 else "<u2")


def encode_labels(labels: np.ndarray, n_clusters: int) -> str:
    """Labels as the text that a submission holds, see `Submission.decoded`."""
    packed = zlib.compress(labels.astype(_label_type(n_clusters)).tobytes(), 9)
    return base64.b64encode(packed).decode()


def _check_range(labels: np.ndarray, n_clusters: int) -> None:
    if not 2 <= n_clusters <= len(labels):
        raise SubmissionError(
            f"K must be from 2 to the number of rows, {len(labels):,}; found {n_clusters}. Fix: state another K with "
            "--n-clusters"
        )
    bad = np.flatnonzero((labels < 0) | (labels >= n_clusters))
    if len(bad):
        raise SubmissionError(
            f"with K = {n_clusters}, clusters are 0 to {n_clusters - 1}, but {len(bad):,} labels are not: the first "
            f"is {labels[bad[0]]} in row {bad[0] + 1}. Fix: number the clusters from 0, or state another K with "
            "--n-clusters"
        )
    if labels.min() == labels.max():
        raise SubmissionError("all rows are in one cluster. Fix: submit labels of at least two clusters")


def read_labels(path: Path, n_rows: int, n_clusters: int) -> np.ndarray:
    """Read the labels of a person who submits them.

    Parameters
    ----------
    path : Path
        CSV with the column ``cluster``, and perhaps ``row``, counted from 1, as `fairclust fit --out` writes; or a
        number in each line and no header.
    n_rows : int
        Rows of the data set.
    n_clusters : int
        How many clusters are allowed.

    Returns
    -------
    ndarray of int64, shape (n_rows,)
        Clusters in 0 .. n_clusters - 1, in the order of the rows.

    Raises
    ------
    SubmissionError
        The file cannot be read; a label is no whole number; rows are missing, repeated or too many; a cluster is out
        of range.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        headless = _INTEGER.fullmatch(text.partition("\n")[0]) is not None
        with warnings.catch_warnings():
            # pandas would only warn about lines with more values than the header, and drop the rest of the line.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.StringIO(text),
                header=None if headless else 0,
                names=["cluster"] if headless else None,
                index_col=False,
                dtype=str,
                keep_default_na=False,
            )
    except (OSError, ValueError, pd.errors.ParserWarning) as error:
        raise SubmissionError(
            f"{path} cannot be read: {error}. Fix: write a CSV in UTF-8 with the column 'cluster'"
        ) from None
    if "cluster" not in frame:
        raise SubmissionError(
            f"{path} has no column 'cluster', only {', '.join(map(repr, frame.columns[:5]))}. Fix: write a CSV with "
            "the column 'cluster', and with 'row', counted from 1, where the rows are in another order"
        )
    labels = _whole_numbers(path, frame["cluster"])
    if "row" in frame:
        labels = labels[_in_order(path, _whole_numbers(path, frame["row"]), n_rows)]
    elif len(labels) != n_rows:
        raise SubmissionError(
            f"{path} has {len(labels):,} labels; the data set has {n_rows:,} rows. Fix: write one label for each row"
        )
    try:
        _check_range(labels, n_clusters)
    except SubmissionError as error:
        raise SubmissionError(f"{path}: {error}") from None
    return labels


def _whole_numbers(path: Path, cells: pd.Series) -> np.ndarray:
    values = pd.to_numeric(cells.str.strip(), errors="coerce").to_numpy(float)
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~(np.abs(values) < 2**53) | (values % 1 != 0))
    if len(bad):
        raise SubmissionError(
            f"{path}: {len(bad):,} cells of the column '{cells.name}' are no whole numbers, the first is "
            f"{cells.iloc[bad[0]]!r} in data row {bad[0] + 1}. Fix: write whole numbers"
        )
    return values.astype(np.int64)


def _in_order(path: Path, rows: np.ndarray, n_rows: int) -> np.ndarray:
    """The position in the file of each row of the data set."""
    outside = rows[(rows < 1) | (rows > n_rows)]
    if len(outside):
        raise SubmissionError(
            f"{path} has a row {outside[0]}; rows of the data set are 1 to {n_rows:,}. Fix: count rows from 1"
        )
    counts = np.bincount(rows, minlength=n_rows + 1)[1:]
    for wrong, words in ((counts > 1, "are there more than once"), (counts == 0, "are missing")):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0]) + 1
            raise SubmissionError(
                f"{path}: {wrong.sum():,} of {n_rows:,} rows {words}, the first is row {first}. Fix: write each once"
            )
    return np.argsort(rows)


def load_data(config: Config, dataset: str, mirrors: Sequence[str] = ()) -> PreparedDataset:
    """Prepare a data set of the catalogue, without using prepared data of earlier runs.

    Parameters
    ----------
    config : Config
    dataset : str
        Its name.
    mirrors : sequence of str
        Folders or base URLs, tried before those of the configuration.

    Returns
    -------
    PreparedDataset

    Raises
    ------
    SubmissionError
        There is no such data set.
    DatasetError
        Its file cannot be obtained, has another hash than the catalogue states, or cannot be read.
    """
    if dataset not in config.datasets:
        raise SubmissionError(
            f"there is no data set {dataset!r}; {nearest(dataset, sorted(config.datasets))}"
        )
    sources, results = config.sources_of(dataset), Path(config.results)
    paths = {}
    for name, spec in sources.items():
        # The folder with the downloads of a run serves as another mirror; hashes are checked as for every mirror.
        places: list[str | Path] = [*mirrors, *config.mirrors, results / "data" / "raw" / name]
        paths[name] = fetch_source(name, spec, results / "submissions", places)
    return prepare_dataset(dataset, config.datasets[dataset], paths, sources)


def score(data: PreparedDataset, labels: np.ndarray, n_clusters: int) -> dict[str, float]:
    """Compute the metrics by which submissions are compared, from the labels alone.

    Parameters
    ----------
    data : PreparedDataset
    labels : ndarray of int64, shape (n_rows,)
    n_clusters : int

    Returns
    -------
    dict of str to float
        The cost, the metrics of `NOTIONS`, and every metric that needs only the counts of the groups in the clusters.
        Metrics that are undefined for the data or the labels are left out.
    """
    given = {"table"} | ({"X"} if data.X.shape[1] else set()) | ({"W"} if data.W is not None else set())
    given |= {"numbers"} if data.numbers else set()
    shown = (*COSTS, *NOTIONS.values())
    names = [
        m.name
        for m in METRICS.values()
        if m.needs in given and (m.needs in ("table", "numbers") or m.name in shown)
    ]
    found = score_labels(
        data.X if "X" in given else None,
        labels,
        data.groups,
        n_clusters=n_clusters,
        n_groups=len(data.group_names),
        W=data.W,
        columns=data.columns,
        numbers=data.numbers,
        metrics=names,
    )
    return {name: value for name, value in found.items() if not math.isnan(value)}


def place_of(submission: Submission, folder: Path) -> Path:
    """The path of a submission. There is one file for each combination of data set, K, method and setting."""
    parts = (submission.method, f"k{submission.n_clusters}", submission.setting)
    return folder / submission.dataset / f"{'-'.join(filter(None, map(_plain_name, parts)))}.json"


def _plain_name(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    # A name without Latin letters and digits would be empty, so a part of its hash stands in.
    return plain[:60] or (hashlib.sha256(text.encode()).hexdigest()[:8] if text else "")


def write_submission(submission: Submission, path: Path) -> None:
    """Write a submission; a file of this name is replaced only when the new one is complete.

    Raises
    ------
    SubmissionError
        The file would be too large for the repository.
    """
    content = submission.model_dump(mode="json")
    # JSON has no infinity.
    content["metrics"] = {
        name: value if math.isfinite(value) else "inf" for name, value in submission.metrics.items()
    }
    text = (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    if len(text) > MOST_BYTES:
        raise SubmissionError(
            f"the submission would have {len(text) / 1e6:.1f} MB, and {MOST_BYTES / 1e6:.1f} MB are allowed: this data "
            "set has too many rows for a file of labels. Fix: propose the method itself, which a run can then verify"
        )
    with atomic_write(path) as file:
        file.write(text)


def read_submission(path: Path) -> Submission:
    """Read a submission; its labels and metrics are not checked, see `score_again`.

    Raises
    ------
    SubmissionError
        The file is too large, or is no submission; a line names each key with the reason.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SubmissionError(
                f"{path} is larger than {MOST_BYTES / 1e6:.1f} MB. Fix: write the file with `fairclust submit`"
            )
        return Submission.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SubmissionError(f"{path} cannot be read: {error}") from None
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}" for e in error.errors()]
        raise SubmissionError(
            f"{path} is no submission: {'; '.join(lines)}. Fix: write the file with `fairclust submit`"
        ) from None


def score_again(path: Path, submission: Submission, folder: Path, data: PreparedDataset) -> dict[str, float]:
    """Check everything of a submission except its metrics, and score its labels again.

    Parameters
    ----------
    path : Path
        Where it was found.
    submission : Submission
    folder : Path
        The folder of submissions.
    data : PreparedDataset
        From `load_data`.

    Returns
    -------
    dict of str to float
        See `score`.

    Raises
    ------
    SubmissionError
        `path` is not the submission's `place_of`; the submission was scored on other data; its labels do not fit the
        data set.
    """
    place = place_of(submission, folder)
    if path.resolve() != place.resolve():
        raise SubmissionError(
            f"{path}: a submission of this method and setting belongs into {place}. Fix: move the file there"
        )
    if submission.data_hash != data.card["data_hash"]:
        raise SubmissionError(
            f"{path}: it was scored on other data than '{submission.dataset}' of the catalogue: the hash of the data "
            f"is {submission.data_hash}, expected {data.card['data_hash']}. Fix: cluster the data of the catalogue, "
            "and write the file again with `fairclust submit --replace`"
        )
    try:
        return score(data, submission.decoded(len(data.groups)), submission.n_clusters)
    except SubmissionError as error:
        raise SubmissionError(f"{path}: {error}") from None


def check_metrics(path: Path, stated: Mapping[str, float], again: Mapping[str, float]) -> None:
    """Compare the metrics that a submission states with those of its labels.

    Raises
    ------
    SubmissionError
        A metric differs or is missing, or submissions of this data set have no metric of this name.
    """
    fix = "Fix: run `fairclust check-submissions --rescore`"
    for name in sorted(stated.keys() | again.keys()):
        if name not in again:
            raise SubmissionError(
                f"{path}: metrics.{name}: submissions of this data set have no such metric. {fix}"
            )
        if name not in stated:
            raise SubmissionError(f"{path}: metrics.{name} is missing. {fix}")
        if not math.isclose(again[name], stated[name], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            raise SubmissionError(
                f"{path}: metrics.{name} is {stated[name]:g}, and the labels give {again[name]:g}. {fix}"
            )


def submission_files(folder: Path) -> list[Path]:
    """All submissions in a folder, in order."""
    return sorted(folder.rglob("*.json"))
