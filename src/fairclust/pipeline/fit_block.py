"""The fit job: fit and score the cells of some blocks that the store does not have yet, and write the job's output."""

from __future__ import annotations

import hashlib
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.datasets.store import read_card
from fairclust.pipeline.blocks import Block, Request
from fairclust.pipeline.cell_store import (
    DamagedFile,
    cell_path,
    read_labels,
    read_record,
    store_of,
    write_cell,
    write_output,
)
from fairclust.pipeline.config import BESIDE_THE_FIT_MB, as_list
from fairclust.pipeline.fingerprint import remember_code
from fairclust.pipeline.fit_cell import Fitter
from fairclust.pipeline.forced import forced_since
from fairclust.pipeline.job import Job, Watch
from fairclust.pipeline.provenance import git_commit, package_versions, version_text
from fairclust.pipeline.rule_inputs import inputs_of

# Statuses that a later run does not compute again. A timeout is tried again when the limit has grown, an error
# always (`RuleInputs.retry_errors` lets the job run again).
_FINAL = {"ok", "skipped", "diverged"}


class TryAgain(RuntimeError):
    """A job must be tried again with more memory; its finished cells are kept."""


@dataclass(frozen=True)
class Setup:
    """What the blocks of a fit job on one data set share."""

    data: Path
    graph: Path | None  # for methods that fit it
    results: Path
    reuse: list[Path]  # folders of results of other runs, from which finished cells are taken
    limits: Mapping[str, float]  # cell_seconds, cell_memory_mb
    scoring: Mapping[str, Any]  # keyword arguments of `score_labels`
    threads: int  # recorded; the caller has already set this number for BLAS and numba
    versions: str = ""  # a text of `version_text`: cells that other versions have fitted are fitted again
    since: float = 0.0  # cells that were finished before this time are fitted again
    last_attempt: bool = True  # a cell over its memory gets the status 'error'; otherwise TryAgain is raised
    watch: Watch = field(default_factory=Watch)
    # If not empty, nothing is fitted, and missing cells get the status 'error' with this reason.
    given_up: str = ""


def fit(job: Job) -> None:
    """What the rule `fit` does."""
    inputs, output = inputs_of(job), Path(job.output[0])
    config = inputs.config
    limits = config.limits.model_dump()
    if limits["cell_memory_mb"] is None:
        limits["cell_memory_mb"] = job.resources["mem_mb"] - BESIDE_THE_FIT_MB
    attempt, attempts = job.resources.get("attempt", 1), config.jobs.attempts
    data = {Path(folder).name: Path(folder) for folder in job.input["data"]}
    graphs = {Path(folder).name: Path(folder) for folder in job.input.get("graph", [])}
    common = partial(
        Setup,
        results=store_of(output),
        reuse=list(map(Path, as_list(config.reuse))),
        limits=limits,
        scoring={"dunn_max_rows": config.score.dunn_max_rows},
        threads=job.threads,
        versions=inputs.strict_versions(),
        since=forced_since(job),
        watch=job.watch,
        last_attempt=attempt >= attempts,
        given_up=f"its job ended without a result {attempts} times; see {job.log}"
        if attempt > attempts
        else "",
    )
    records = []
    for block in inputs.jobs["{dataset}/{job}".format(**job.wildcards)]:
        setup = common(data=data[block.dataset], graph=graphs.get(block.dataset))
        request = inputs.request(block)
        remember_code(setup.results, request.class_path)
        try:
            records += run_block(block, request, setup)
        except Exception:  # the data may be damaged
            if not setup.given_up:
                raise
            traceback.print_exc()
            own = {"dataset": block.dataset, "method": block.method, "n_clusters": block.n_clusters}
            records += [{**own, "key": None, **vars(cell), **_lost(setup.given_up)} for cell in block.cells()]
    write_output(output, records)


def _lost(reason: str) -> dict[str, Any]:
    return {"status": "error", "reason": reason, "lost": True}


def run_block(block: Block, request: Request, setup: Setup) -> list[dict[str, Any]]:
    """Fit and score every cell of a block that the store does not have, and return the records of all its cells.

    TryAgain if a cell exceeds its memory and this is not the last attempt.
    """
    card = read_card(setup.data)
    own: dict[str, Any] = {"dataset": block.dataset, "method": block.method, "n_clusters": block.n_clusters}
    own |= {"class": request.class_path, "fingerprint": request.fingerprint}
    reason = card.get("reason")
    if reason is None and not card["columns"] and setup.graph is None:
        reason = "the data set is a graph, without points for a method of `input: points`"
    if reason is not None:
        skipped = {**own, "key": None, "status": "skipped", "reason": reason}
        return [{**skipped, **vars(cell)} for cell in block.cells()]
    own |= {"n_rows": card["rows"], "n_features": len(card["columns"]), "n_groups": len(card["groups"])}
    own["data_hash"] = input_hash(card, setup.graph)
    limits, begin, n_fitted, records = setup.limits, time.perf_counter(), 0, []
    fitter = Fitter(setup.data, setup.graph, block.n_clusters, request, setup.scoring)
    cells = block.keyed_cells(own["data_hash"], request.class_path, request.fingerprint)
    for number, (key, cell) in enumerate(cells, 1):
        identity = {**own, "key": key, **vars(cell)}
        path = cell_path(setup.results, key)
        found = finished_cell(path, setup)
        if found is not None:
            # A record from another run may state anything, so the identity of this block replaces its own.
            record, labels, is_here = {**found[0], **identity}, *found[1:]
            if labels is not None and _needs_scores(record, request):
                record, is_here = record | fitter.score(labels), False
            if not is_here:
                write_cell(path, record, labels)
        elif setup.given_up:
            record = {**identity, **_lost(setup.given_up)}
        else:
            with setup.watch.of_fit(key, limits["cell_seconds"], limits["cell_memory_mb"]) as ended:
                result, labels = (ended, None) if ended else fitter.fit(cell, setup.watch)
            over_memory = result.pop("over_memory", False)
            if over_memory and not setup.last_attempt:
                raise TryAgain(f"{result['reason']}; the next attempt asks for more memory")
            record = {
                **identity,
                **result,
                "threads": setup.threads,
                "cell_seconds": limits["cell_seconds"],
                "git_commit": git_commit(),
                "versions": package_versions(),
                "finished": time.time(),
            }
            write_cell(path, record, labels)
            n_fitted += 1
        records.append(record)
        left = (time.perf_counter() - begin) / number * (len(cells) - number)
        seconds = record.get("wall_seconds", 0.0)
        print(
            f"{block.dataset}, {block.method}, K = {block.n_clusters} [{number}/{len(cells)}] {record['status']} "
            f"{cell.params} seed={cell.seed} {seconds:.2f} s {record['reason']} (about {left:.0f} s left)",
            file=sys.stderr,
        )
    print(f"{n_fitted} cells fitted, {len(cells) - n_fitted} taken from earlier runs", file=sys.stderr)
    return records


def finished_cell(path: Path, setup: Setup) -> tuple[dict[str, Any], np.ndarray | None, bool] | None:
    """A cell that need not be fitted again: record, labels, and whether it is in the store of `path`."""
    for file in places_of(path, setup.reuse):
        record = read_record(file)
        if record is None:
            if file.is_file():
                print(f"{file} is damaged; the cell is fitted again", file=sys.stderr)
            continue
        finished = record.get("finished", 0.0)
        is_own = finished >= setup.watch.began
        if finished < setup.since or not (is_own or is_final(record, setup.limits, setup.versions)):
            continue
        try:
            return record, read_labels(file), file == path
        except DamagedFile as error:
            print(f"{error}; it is fitted again", file=sys.stderr)
    return None


def places_of(path: Path, reuse: Iterable[Path]) -> Iterator[Path]:
    """The file of a cell in this store, then in those of other runs."""
    yield path
    yield from (cell_path(folder, path.stem) for folder in reuse)


def _needs_scores(record: Mapping[str, Any], request: Request) -> bool:
    lacking = [name for name in request.metrics if name not in record["metrics"]]
    return bool(lacking) or record.get("scorer") != request.scorer


def input_hash(card: Mapping[str, Any], graph: Path | None) -> str:
    """Hash of what a fit reads: the data set, and the graph if there is one."""
    if graph is None:
        return card["data_hash"]
    from fairclust.datasets.store import load_graph

    W, _ = load_graph(graph)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).data for a in (W.indptr, W.indices, W.data)))
    return f"{card['data_hash']}+{digest.hexdigest()[:16]}"


def is_final(record: Mapping[str, Any], limits: Mapping[str, float], versions: str = "") -> bool:
    """Whether a repeated run uses the record without fitting its cell again.

    If `versions` is not empty, the record must state the same ones.
    """
    if versions and version_text(record.get("versions", {})) != versions:
        return False
    if record["status"] == "timeout":
        return record["cell_seconds"] >= limits["cell_seconds"]
    return record["status"] in _FINAL
