"""The fit job: fit and score the cells of some blocks that the store does not have yet, and write the job's output."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.datasets.store import PreparedDataset, load_graph, load_prepared, read_card
from fairclust.pipeline.blocks import Block, Cell
from fairclust.pipeline.cell_store import (
    DamagedFile,
    cell_path,
    read_labels,
    read_record,
    store_of,
    write_cell,
    write_output,
)
from fairclust.pipeline.columns import record_of
from fairclust.pipeline.config import BESIDE_THE_FIT_MB, as_list
from fairclust.pipeline.fingerprint import remember_code
from fairclust.pipeline.fit_cell import fit_cell, takes_columns, warm_up
from fairclust.pipeline.job import Job, Watch, forced_since
from fairclust.pipeline.provenance import git_commit, package_versions, required_versions, version_text
from fairclust.pipeline.rule_inputs import inputs_of

# Statuses that a later run does not compute again. A timeout is tried again when the limit has grown, an error
# always (`RuleInputs.retry_errors` lets the job run again).
_FINAL = {"ok", "skipped", "diverged"}


class TryAgain(RuntimeError):
    """A job must be tried again with more memory; its finished cells are kept."""


def fit(job: Job) -> None:
    """What the rule `fit` does."""
    inputs, output = inputs_of(job), Path(job.output[0])
    config = inputs.config
    limits = config.limits.model_dump()
    if limits["cell_memory_mb"] is None:
        limits["cell_memory_mb"] = job.resources["mem_mb"] - BESIDE_THE_FIT_MB
    attempt, attempts = job.resources.get("attempt", 1), config.jobs.attempts
    lost = f"its job ended without a result {attempts} times; see {job.log}" if attempt > attempts else ""
    data = {Path(folder).name: Path(folder) for folder in job.input["data"]}
    graphs = {Path(folder).name: Path(folder) for folder in job.input.get("graph", [])}
    records = []
    for block in inputs.jobs["{dataset}/{job}".format(**job.wildcards)]:
        fits = BlockFits(
            block,
            data=data[block.dataset],
            graph=graphs.get(block.dataset),
            results=store_of(output),
            limits=limits,
            **inputs.request(block),
            dunn_max_rows=config.score.dunn_max_rows,
            reuse=list(map(Path, as_list(config.reuse))),
            threads=job.threads,
            versions=required_versions(config),
            since=forced_since(job.rule, job.output[0]),
            watch=job.watch,
            last_attempt=attempt >= attempts,
            given_up=lost,
        )
        remember_code(fits.results, fits.class_path)
        try:
            records += fits.run()
        except Exception:  # the data may be damaged
            if not lost:
                raise
            traceback.print_exc()
            records += fits.without_fits(**_lost(lost))
    write_output(output, records)


def _lost(reason: str) -> dict[str, Any]:
    return {"status": "error", "reason": reason, "lost": True}


@dataclass
class BlockFits:
    """The fits of a block. Its data are read when they are first needed."""

    block: Block
    data: Path
    graph: Path | None  # for methods that fit it
    results: Path
    limits: Mapping[str, float]  # cell_seconds, cell_memory_mb
    class_path: str
    fingerprint: str  # of the class
    metrics: Sequence[str]
    scorer: str  # fingerprint of the metrics: when it changes, cells are scored again but not fitted again
    dunn_max_rows: int | None = None
    reuse: Sequence[Path] = ()  # folders of results of other runs, from which finished cells are taken
    threads: int = 1  # recorded; the caller has already set this number for BLAS and numba
    versions: str = ""  # a text of `version_text`: cells that other versions have fitted are fitted again
    since: float = 0.0  # cells that were finished before this time are fitted again
    last_attempt: bool = True  # a cell over its memory gets the status 'error'; otherwise TryAgain is raised
    watch: Watch = field(default_factory=Watch)
    # If not empty, nothing is fitted, and missing cells get the status 'error' with this reason.
    given_up: str = ""
    _is_warm: bool = field(default=False, init=False)

    def run(self) -> list[dict[str, Any]]:
        """Fit and score every cell of the block that the store does not have; returns the records of all its cells.

        TryAgain if a cell exceeds its memory and this is not the last attempt.
        """
        card, block = read_card(self.data), self.block
        reason = card.get("reason")
        if reason is None and not card["columns"] and self.graph is None:
            reason = "the data set is a graph, without points for a method of `input: points`"
        if reason is not None:
            return self.without_fits(status="skipped", reason=reason)
        own = {"n_rows": card["rows"], "n_features": len(card["columns"]), "n_groups": len(card["groups"])}
        own = {**self._own, **own, "data_hash": input_hash(card, self.graph)}
        begin, n_fitted, records = time.perf_counter(), 0, []
        cells = block.keyed_cells(own["data_hash"], self.class_path, self.fingerprint)
        for number, (key, cell) in enumerate(cells, 1):
            identity = {**own, "key": key, **vars(cell)}
            record = self._known(key, identity)
            if record is None:
                record, labels = self._fit_watched(key, cell)
                record = {
                    **identity,
                    **record,
                    "threads": self.threads,
                    "cell_seconds": self.limits["cell_seconds"],
                    "git_commit": git_commit(),
                    "versions": package_versions(),
                    "finished": time.time(),
                }
                write_cell(cell_path(self.results, key), record, labels)
                n_fitted += 1
            records.append(record)
            left = (time.perf_counter() - begin) / number * (len(cells) - number)
            seconds = record.get("wall_seconds", 0.0)
            print(
                f"{block.dataset}, {block.method}, K = {block.n_clusters} [{number}/{len(cells)}] "
                f"{record['status']} {cell.params} seed={cell.seed} {seconds:.2f} s {record['reason']} "
                f"(about {left:.0f} s left)",
                file=sys.stderr,
            )
        print(f"{n_fitted} cells fitted, {len(cells) - n_fitted} taken from earlier runs", file=sys.stderr)
        return records

    def without_fits(self, **why: Any) -> list[dict[str, Any]]:
        """Records of all cells of the block that say why none of them is fitted."""
        return [{**self._own, "key": None, **why, **vars(cell)} for cell in self.block.cells()]

    @property
    def _own(self) -> dict[str, Any]:
        names = {name: getattr(self.block, name) for name in ("dataset", "method", "n_clusters")}
        return {**names, "class": self.class_path, "fingerprint": self.fingerprint}

    def _known(self, key: str, identity: Mapping[str, Any]) -> dict[str, Any] | None:
        """The record of a cell that is not fitted, scored by the present metrics; None if it must be fitted.

        A cell is not fitted if the store or that of another run has it, or the job was given up.
        """
        path = cell_path(self.results, key)
        for file in places_of(path, self.reuse):
            record = read_record(file)
            if record is None:
                if file.is_file():
                    print(f"{file} is damaged; the cell is fitted again", file=sys.stderr)
                continue
            finished = record.get("finished", 0.0)
            is_own = finished >= self.watch.began
            if finished < self.since or not (is_own or is_final(record, self.limits, self.versions)):
                continue
            try:
                labels = read_labels(file)
            except DamagedFile as error:
                print(f"{error}; it is fitted again", file=sys.stderr)
                continue
            # A record from another run may state anything, so the identity of this block replaces its own.
            record = {**record, **identity}
            is_new, lacking = file != path, set(self.metrics) - set(record.get("metrics", ()))
            if labels is not None and (lacking or record.get("scorer") != self.scorer):
                record, is_new = record | self._score(labels), True
            if is_new:
                write_cell(path, record, labels)
            return record
        return {**identity, **_lost(self.given_up)} if self.given_up else None

    def _fit_watched(self, key: str, cell: Cell) -> tuple[dict[str, Any], np.ndarray | None]:
        """Fit and score a cell, or take the end of its record if its fit has ended an earlier process of the job."""
        if ended := self.watch.ended.get(key):
            record, labels = dict(ended), None
        else:
            limits = self.limits["cell_seconds"], self.limits["cell_memory_mb"]
            self.watch.tell("fit", key, os.getpid(), *limits)
            record, labels = self._fit(cell)
            self.watch.tell("scored")
        if record.pop("over_memory", False) and not self.last_attempt:
            raise TryAgain(f"{record['reason']}; the next attempt asks for more memory")
        return record, labels

    @cached_property
    def _prepared(self) -> tuple[PreparedDataset, Any]:
        return load_prepared(self.data), None if self.graph is None else load_graph(self.graph)[0]

    def _fit(self, cell: Cell) -> tuple[dict[str, Any], np.ndarray | None]:
        """Fit and score one cell: its record with the scores, and its labels or None.

        The script that watches is told when the fit begins and when it ends, because only the time between counts for
        the limit of time.
        """
        (data, W), k = self._prepared, self.block.n_clusters
        X = data.X if W is None else W
        points = None if W is None or not data.X.shape[1] else data.X
        means = cell.params.get("mean_tolerance") or ()
        groups = data.with_numbers(means) if takes_columns(self.class_path) else data.groups
        # The paths of the job are relative, so a method that changes the working folder must not keep it changed.
        with contextlib.chdir(Path.cwd()):
            if not self._is_warm:
                warm_up(X, groups, self.class_path, k, cell)
                self._is_warm = True
            self.watch.tell("started")
            record, labels = fit_cell(X, groups, self.class_path, k, cell, points)
            self.watch.tell("fitted")
        if labels is not None:
            record |= self._score(labels)
        return record, labels

    def _score(self, labels: np.ndarray) -> dict[str, Any]:
        """Metrics by name (None where one does not apply), rows of each group in each cluster, and the seconds."""
        begin, (data, W) = time.perf_counter(), self._prepared
        scored = data.scored(labels, self.block.n_clusters, W)
        record = record_of(scored, self.metrics, data.group_names, dunn_max_rows=self.dunn_max_rows)
        return {**record, "scorer": self.scorer, "score_seconds": time.perf_counter() - begin}


def places_of(path: Path, reuse: Iterable[Path]) -> Iterator[Path]:
    """The file of a cell in this store, then in those of other runs."""
    yield path
    yield from (cell_path(folder, path.stem) for folder in reuse)


def input_hash(card: Mapping[str, Any], graph: Path | None) -> str:
    """Hash of what a fit reads: the data set, and the graph if there is one."""
    if graph is None:
        return card["data_hash"]
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
