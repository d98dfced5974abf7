"""`fairclust verify`: checks that results, yours or somebody else's, are undamaged and that their scores are right."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.cli.options import Verify
from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.datasets.store import load_graph, load_prepared
from fairclust.messages import UserError, count
from fairclust.metrics.table import METRICS, score_labels
from fairclust.outputs import content_digest
from fairclust.pipeline.data import read_record
from fairclust.pipeline.scores import SCORE_COLUMNS, read_arrow, read_fits, unpacked_labels

# Scores that differ by at most this much, relative or absolute, count as equal, because machines round differently.
_TOLERANCE = 1e-9


def run(args: Verify) -> list[str]:
    """Check data and fits for damage, compare the scores with the fits, and score a sample of the fits again.

    UserError if a file is damaged, or a score differs. It has a line for each file or fit.
    """
    results = args.results
    if not any((results / name).is_dir() for name in ("fits", "scores", "data")):
        raise UserError(f"{results} is no folder of results")
    folders = sorted(path for path in results.glob("data/*/*") if not path.name.startswith("."))
    problems = _failures(_check_data, folders)
    paths = sorted(results.glob("fits/*/*.parquet"))
    frames: list[pd.DataFrame] = []
    problems += _failures(lambda path: frames.append(read_fits(path, "labels")), paths)
    fits = (
        pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*SCORE_COLUMNS, "labels"])
    )
    problems += _check_scores(results / "scores" / "scores.parquet", fits)
    fitted = sorted(fits.index[fits.status == "ok"])
    sample = random.Random(args.seed).sample(fitted, min(args.sample, len(fitted)))
    problems += _failures(lambda row: _score_again(results, fits.loc[row]), sample)
    if problems:
        raise UserError("\n".join([f"{results} has failed the verification:", *problems]))
    return [
        f"{count(len(paths), 'file')} of fits and {count(len(folders), 'folder')} of data: all checksums match",
        f"{len(sample)} of {count(len(fitted), 'fit')} scored again from their labels: the scores are the same",
    ]


def _failures(check: Callable[[Any], None], places: Iterable[Any]) -> list[str]:
    messages = []
    for place in places:
        try:
            check(place)
        except (UserError, DatasetError, OSError) as error:
            messages.append(str(error))
    return list(dict.fromkeys(messages))


def _check_data(folder: Path) -> None:
    if folder.parent.name == "raw":
        record = read_record(folder)
        files = [path for path in folder.rglob("*") if path.is_file()]
        if record["status"] != "ok" or record["sha256"] in map(content_digest, files):
            return
        raise DatasetError(f"'{folder}' does not hold the file that was downloaded")
    with suppress(DatasetSkipped):
        (load_graph if folder.parent.name == "graphs" else load_prepared)(folder)


def _check_scores(scores: Path, fits: pd.DataFrame) -> list[str]:
    """A message for each row of the scores that is that of no file of fits, or is there twice."""
    if not scores.is_file():
        return []
    try:
        stated = read_arrow(scores, SCORE_COLUMNS).to_pandas()
    except ValueError as error:
        return [str(error)]
    # Rows of skipped data sets have no key, so the data set and the method name them.
    fitted, stated = (
        frame.assign(key=frame.key.fillna("of " + frame.dataset + "/" + frame.method))
        for frame in (fits[SCORE_COLUMNS], stated.astype(fits[SCORE_COLUMNS].dtypes))
    )
    lost = ~stated.key.isin(fitted.key)
    # Methods can share a fit, and sweeps as well, each with metrics of its own.
    stated_rows, rows = (pd.util.hash_pandas_object(frame, index=False) for frame in (stated, fitted))
    wrong = ~lost & ~stated_rows.isin(rows)
    twice = stated.duplicated(["dataset", "method", "n_clusters", "params", "seed"])
    problems = {
        "no file of fits has the fit {}": stated.key[lost],
        "the row of the fit {} differs from that of its file": stated.key[wrong],
        "the row of the fit {} is there twice": stated.key[twice],
    }
    messages = (f"{scores}: {words.format(key)}" for words, keys in problems.items() for key in keys)
    return list(dict.fromkeys(messages))


def _score_again(results: Path, fit: Any) -> None:
    """Compute the metrics of a row from its labels again; DatasetError if one differs, or none can be computed."""
    where = f"{fit.path}: {fit.key}"
    try:
        prepared = results / "data" / "prepared" / fit.dataset
        data = load_prepared(prepared)
        if not fit.data_hash.startswith(data.content_hash()):
            raise DatasetError(f"{where} was fitted on other data than that in {prepared}")
        stated = {name: fit[name] for name in METRICS if not math.isnan(fit[name])}
        W = load_graph(results / "data" / "graphs" / fit.dataset) if "ncut" in stated else None
        scored = data.scored(unpacked_labels(fit.labels, fit.n_rows), fit.n_clusters, W)
        again = score_labels(scored, stated)
        for name, value in stated.items():
            if not math.isclose(again[name], value, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                raise DatasetError(f"{where}: {name} is {again[name]:g}, and the file says {value:g}")
        if list(json.loads(fit.counts).values()) != scored.table.tolist():
            raise DatasetError(f"{where}: the counts of groups in clusters differ from those of the file")
    except (DatasetSkipped, AttributeError, TypeError, ValueError) as error:
        raise DatasetError(f"{where} cannot be scored again: {error}") from None
