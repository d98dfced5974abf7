"""Jobs that fetch sources and prepare data sets. A failure becomes a record with the reason; the run goes on."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairclust.datasets.download import fetch_source, local_paths
from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.spec import DatasetSpec, SourceSpec
from fairclust.datasets.store import load_prepared, save_graph, save_prepared, write_skipped
from fairclust.messages import count
from fairclust.outputs import content_digest, is_damaged, write_text
from fairclust.pipeline.cell_store import DamagedFile
from fairclust.pipeline.job import Job
from fairclust.pipeline.rule_inputs import RECORD, inputs_of


def download(job: Job) -> None:
    """What the rule `download_source` does: it fetches a source into a folder with a record.

    The record has the status 'ok' with the hash, or 'unavailable' with the reason, and the parameter `asked`: the
    mirrors, and `again`, the time at which a new attempt was asked for.
    """
    name, asked, folder = job.wildcards["source"], job.params["asked"], Path(job.output[0])
    try:
        path = fetch_source(name, inputs_of(job).source_spec(name), folder, asked["mirrors"])
        found: dict[str, Any] = {"source": name, "status": "ok", "sha256": content_digest(path)}
    except DatasetError as error:
        print(error, file=sys.stderr)
        found = {"source": name, "status": "unavailable", "reason": str(error)}
    found |= {"asked": dict(asked), "when": time.time()}
    write_text(folder / RECORD, json.dumps(found, indent=2))


def check_downloads(job: Job) -> None:
    """What the rule `download` does. Only this target fails if a source is missing; a run goes on without it."""
    records = [read_record(Path(folder)) for folder in job.input.get("", [])]
    missing = [record["reason"] for record in records if record["status"] != "ok"]
    if missing:
        counted = f"{len(missing)} of {count(len(records), 'source')} could not be downloaded"
        raise DatasetError("\n".join([f"{counted}; the same command tries again", *missing]))


def prepare(job: Job) -> None:
    """What the rules `prepare_dataset` and `prepare_plane` do. The latter's data are not scaled.

    A data set that cannot be prepared becomes the folder of a skipped one. DamagedFile if a file has changed since it
    was fetched.
    """
    name, config, folder = job.wildcards["dataset"], inputs_of(job).config, Path(job.output[0])
    spec: DatasetSpec = config.datasets[name]
    if job.params.get("unscaled"):
        spec = spec.model_copy(update={"scale": ()})
    folders = {Path(path).name: Path(path) for path in job.input.get("sources", [])}
    sources, paths = config.sources_of(name), {}
    try:
        for source, stated in sources.items():
            if stated.reads_in_place:
                paths[source] = Path(str(stated.path))
                continue
            record = read_record(folders[source])
            if record["status"] != "ok":
                raise DatasetError(record["reason"])
            paths[source] = fetched_file(folders[source], source, stated, record)
        data = prepare_dataset(name, spec, paths, sources)
        for note in data.card.get("notes", ()):
            print(note, file=sys.stderr)
        save_prepared(data, folder)
    except DamagedFile:
        raise
    except Exception as error:
        # A user's generator may raise any error, and the run must go on with the other data sets.
        traceback.print_exc()
        reason = str(error) if isinstance(error, DatasetError) else f"{type(error).__name__}: {error}"
        write_skipped(folder, name, reason)


def graph(job: Job) -> None:
    """What the rule `build_graph` does: it builds the neighbour graph of a prepared data set, or copies its own.

    If the data set was skipped, so is its graph.
    """
    folder, spec = Path(job.output[0]), inputs_of(job).config.graph
    try:
        data = load_prepared(Path(job.input[""][0]))
    except DatasetSkipped as skipped:
        write_skipped(folder, folder.name, str(skipped))
        return
    if data.W is not None:
        save_graph(folder, data.W, data.card["graph"])
        return
    # Imported here, because importing scikit-learn takes seconds and preparing data sets does not need it.
    from fairclust.kernels.graph import build_knn_graph

    W, info = build_knn_graph(data.X, spec.n_neighbors, exact_max_rows=spec.exact_max_rows)
    save_graph(folder, W, info)


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a source; DamagedFile if there is none, or it is damaged."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads((folder / RECORD).read_text())
        stated = {"ok": "sha256", "unavailable": "reason"}[record["status"]]
        if record[stated]:
            return record
    raise DamagedFile(f"'{folder / RECORD}' is damaged. Fix: delete the folder '{folder}' and run again")


def fetched_file(folder: Path, name: str, spec: SourceSpec, record: Mapping[str, Any]) -> Path:
    """The file of a fetched source. Its path follows from the catalogue's entry, its hash from the record.

    DamagedFile if the file is missing, or its content is not what was fetched.
    """
    path = folder / local_paths(name, spec, "")[1]
    if is_damaged(path, record["sha256"]):
        raise DamagedFile(
            f"'{path}' is damaged: its content is not what was downloaded. "
            f"Fix: delete the folder '{folder}' and run again"
        )
    return path
