"""Jobs that fetch sources, prepare data sets and build graphs. What cannot be had is recorded with the reason."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fairclust.datasets.download import fetch_source, local_paths
from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.spec import DatasetSpec, SourceSpec
from fairclust.datasets.store import load_prepared, save_graph, save_prepared, write_skipped
from fairclust.outputs import content_digest, write_text

RECORD = "source.json"
"""The file in a source's folder that says whether the source was obtained, and if not, why."""


def download(
    name: str, spec: Mapping[str, Any], folder: Path, mirrors: list[str], *, stated: list[str], must: bool
) -> None:
    """Fetch a source into a folder, with a record: status 'ok' with the hash, or 'unavailable' with the reason.

    The record also keeps the mirrors that the rule `stated`. DatasetError if the source cannot be had and `must` be.
    """
    record: dict[str, Any]
    try:
        path = fetch_source(name, SourceSpec.model_validate(spec), folder, mirrors)
        record = {"source": name, "status": "ok", "sha256": content_digest(path), "mirrors": stated}
    except DatasetError as error:
        if must:
            raise
        print(error, file=sys.stderr)
        record = {"source": name, "status": "unavailable", "reason": str(error)}
    write_text(folder / RECORD, json.dumps(record, indent=2))


def require_sources(folders: Iterable[Path]) -> None:
    """DatasetError, with a line for each, if sources could not be downloaded."""
    records = {str(folder): read_record(folder) for folder in folders}
    missing = {folder: record["reason"] for folder, record in records.items() if record["status"] != "ok"}
    if missing:
        counted = f"{len(missing)} of {len(records)} sources could not be downloaded"
        fix = f"Fix: snakemake --cores 1 --forcerun {' '.join(missing)} -- download"
        raise DatasetError("\n".join([f"{counted}. {fix}", *missing.values()]))


def prepare(
    name: str, dataset: Mapping[str, Any], sources: Mapping[str, Any], folders: Iterable[Path], output: Path
) -> None:
    """Prepare a data set from the folders of its fetched sources, or write the folder of a skipped one."""
    spec = DatasetSpec.model_validate(dataset)
    specs = {source: SourceSpec.model_validate(entry) for source, entry in sources.items()}
    fetched = {folder.name: folder for folder in folders}
    missing = [record["reason"] for record in map(read_record, fetched.values()) if record["status"] != "ok"]
    if missing:
        write_skipped(output, missing[0])
        return
    paths = {source: local_paths(source, specs[source], folder)[1] for source, folder in fetched.items()}
    try:
        save_prepared(prepare_dataset(name, spec, paths, specs), output)
    except Exception as error:
        # A user's generator may raise any error, and the run must go on with the other data sets.
        traceback.print_exc()
        reason = str(error) if isinstance(error, DatasetError) else f"{type(error).__name__}: {error}"
        write_skipped(output, reason)


def build_graph(data: Path, output: Path, *, n_neighbors: int) -> None:
    """Build the neighbour graph of a prepared data set, or copy its own. If the data were skipped, so is the graph."""
    try:
        prepared = load_prepared(data)
    except DatasetSkipped as skipped:
        write_skipped(output, str(skipped))
        return
    # Imported here, because importing scikit-learn takes seconds and preparing data sets does not need it.
    from fairclust.kernels.graph import build_knn_graph

    save_graph(output, build_knn_graph(prepared.X, n_neighbors) if prepared.W is None else prepared.W)


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a source; DatasetError if there is none, or a damaged one."""
    try:
        return json.loads((folder / RECORD).read_text())
    except (OSError, ValueError):
        raise DatasetError(f"'{folder}' has no {RECORD}, or a damaged one: delete it and run again") from None
