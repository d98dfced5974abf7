"""`fairclust verify`: checks that results, yours or somebody else's, are unchanged since a run has written them."""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairclust.cli import CommandError
from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.datasets.store import load_graph, load_prepared
from fairclust.metrics.table import score_labels
from fairclust.outputs import content_digest, is_damaged
from fairclust.pipeline.cell_store import DamagedFile, cell_path, read_labels, read_output
from fairclust.pipeline.cell_store import read_record as read_cell_record
from fairclust.pipeline.prepare_jobs import read_record
from fairclust.pipeline.results_folder import stated_digests
from fairclust.pipeline.scores import SCORE_COLUMNS, fits_frame, read_table

# Scores that differ by at most this much, relative or absolute, count as equal, because machines round differently.
_TOLERANCE = 1e-9


def run(args: argparse.Namespace) -> list[str]:
    """Check every digest, compare the scores with the cells, and score a sample of the cells again.

    CommandError if a file is damaged, or a score differs from the record. It has a line for each file or cell.
    """
    results = args.results
    if not any((results / name).is_dir() for name in ("fits", "scores", "data")):
        raise CommandError(f"{results} is no folder of results")
    problems: list[str] = []
    outputs = [pair for _, stated in stated_digests(results) for pair in stated.items()]
    problems += [f"{path} is damaged or missing" for path, digest in outputs if is_damaged(path, digest)]
    folders = sorted(path for path in results.glob("data/*/*") if not path.name.startswith("."))
    problems += _failures(_check_data, folders)
    packs = sorted(results.glob("fits/*/*.cells"))
    records: dict[str, dict[str, Any]] = {}
    problems += _failures(
        lambda path: records.update((of["key"], of) for of in read_output(path) if of["key"]), packs
    )
    stored = sorted(results.glob("cells/*/*.cell"))
    problems += _failures(_check_cell, stored)
    problems += _check_scores(results / "scores" / "scores.parquet", records)
    fitted = sorted(key for key, record in records.items() if record["status"] == "ok")
    sample = random.Random(args.seed).sample(fitted, min(args.sample, len(fitted)))
    problems += _failures(lambda key: _score_again(results, records[key]), sample)
    if problems:
        raise CommandError("\n".join([f"{results} has failed the verification:", *problems]))
    return [
        f"{len(outputs)} tables, figures and other files, {len(stored)} cells, and "
        f"{len(folders)} folders of data: all digests match",
        f"{len(sample)} of {len(fitted)} cells scored again from their labels: the scores are the same",
    ]


def _failures(check: Callable[[Any], None], places: Iterable[Any]) -> list[str]:
    found = []
    for place in places:
        try:
            check(place)
        except DatasetSkipped:
            continue
        except (DamagedFile, DatasetError, OSError) as error:
            found.append(str(error))
    return list(dict.fromkeys(found))


def _check_data(folder: Path) -> None:
    if folder.parent.name == "raw":
        record = read_record(folder)
        files = [path for path in folder.rglob("*") if path.is_file()]
        if record["status"] != "ok" or record["sha256"] in map(content_digest, files):
            return
        raise DatasetError(f"'{folder}' does not hold the file that was downloaded")
    if folder.parent.name == "graphs":
        load_graph(folder)
    else:
        load_prepared(folder)


def _check_cell(path: Path) -> None:
    read_labels(path)
    record = read_cell_record(path) or {}
    if record.get("key") != path.stem:
        raise DamagedFile(f"{path} holds the cell {record.get('key')}")


def _check_scores(scores: Path, records: dict[str, dict[str, Any]]) -> list[str]:
    """A message for each row of the scores that differs from the record of its cell."""
    if not scores.is_file():
        return []
    try:
        stated = read_table(scores).dropna(subset=["key"])[SCORE_COLUMNS].set_index("key")
    except ValueError as error:
        return [str(error)]
    found = fits_frame(records[key] for key in stated.index if key in records)[SCORE_COLUMNS].set_index("key")
    lost = stated.index.difference(found.index)
    problems = [f"{scores}: no output of a fit job has the cell {key}" for key in lost]
    stated = stated.drop(index=lost).astype(found.dtypes[stated.columns])
    same = stated.eq(found[stated.columns]) | (stated.isna() & found[stated.columns].isna())
    wrong = stated.index[~same.all(axis=1)]
    return problems + [f"{scores}: the row of the cell {key} differs from its record" for key in wrong]


def _score_again(results: Path, record: dict[str, Any]) -> None:
    dataset, cell = record["dataset"], cell_path(results, record["key"])
    data, labels = load_prepared(results / "data" / "prepared" / dataset), read_labels(cell)
    if not record["data_hash"].startswith(data.content_hash()):
        raise DatasetError(
            f"{cell}: it was fitted on other data than that in {results}/data/prepared/{dataset}"
        )
    assert labels is not None
    stated = {name: value for name, value in record["metrics"].items() if value is not None}
    W = load_graph(results / "data" / "graphs" / dataset)[0] if "ncut" in stated else None
    scored = data.scored(labels, record["n_clusters"], W)
    again = score_labels(scored, stated, dunn_max_rows=None)
    for name, value in stated.items():
        if not math.isclose(again[name], value, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            raise DatasetError(f"{cell}: {name} is {again[name]:g}, and the record says {value:g}")
    if list(record["counts"].values()) != scored.table.tolist():
        raise DatasetError(
            f"{cell}: the counts of the groups in the clusters differ from those of the record"
        )
