"""The fit job: fit and score the cells of one block that no file has yet, and write the block's output."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.datasets.store import read_card
from fairclust.pipeline.blocks import Block, Cell, block_of
from fairclust.pipeline.cell_store import (
    KEEP_COPY,
    DamagedFile,
    Entry,
    WorkingFile,
    files_beside,
    salvage,
    write_pack,
)
from fairclust.pipeline.fingerprint import remember_code
from fairclust.pipeline.fit_process import FitProcess, Task
from fairclust.pipeline.models import version_text
from fairclust.pipeline.provenance import git_commit, package_versions
from fairclust.pipeline.script import Job

# Statuses that a later run does not compute again. A timeout is tried again when the limit has grown, an error
# always (`RuleInputs.retry_errors` lets the job run again).
_FINAL = {"ok", "skipped", "diverged"}
# Environment variable, set by Snakemake's main process: how often a failed job is tried again.
RETRIES = "FAIRCLUST_RETRIES"
# Memory of a fit job in addition to that of its fitting process.
_OWN_MEMORY_MB = 500


class TryAgain(RuntimeError):
    """A job must be tried again with more memory; its finished cells are kept."""


def fit(job: Job) -> None:
    """What the rule `fit` does."""
    names, params = job.wildcards, job.params
    n_clusters = int(names["block"].partition("-")[0].removeprefix("k"))
    output = Path(job.output[0])
    remember_code(output.parents[3], params["class_path"])
    limits = dict(params["limits"])
    if limits.get("cell_memory_mb") is None:
        limits["cell_memory_mb"] = job.resources["mem_mb"] - _OWN_MEMORY_MB
    run_block(
        block_of(names["dataset"], names["method"], n_clusters, params["cells"]),
        class_path=params["class_path"],
        fingerprint=params["code"],
        data=Path(job.input["data"][0]),
        graph=next((Path(path) for path in job.input.get("graph", [])), None),
        output=output,
        elsewhere=[Path(folder) / "fits" / names["dataset"] / names["method"] for folder in params["reuse"]],
        limits=limits,
        metrics=params["metrics"],
        score_options=params["score_options"],
        scorer=params["scorer"],
        threads=job.threads,
        versions=params["versions"],
        last_attempt=job.resources.get("attempt", 1) > int(os.environ.get(RETRIES, 0)),
    )


def run_block(
    block: Block,
    *,
    class_path: str,
    fingerprint: str,
    data: Path,
    graph: Path | None,
    output: Path,
    elsewhere: Iterable[Path],
    limits: Mapping[str, float],
    metrics: Iterable[str],
    score_options: Mapping[str, Any],
    scorer: str,
    threads: int,
    versions: str = "",
    last_attempt: bool = True,
) -> None:
    """Fit and score every cell of a block that no earlier run has finished, and write the block's output.

    Parameters
    ----------
    block : Block
    class_path, fingerprint : str
        The method's class, and the fingerprint of its source.
    data, graph : Path, Path or None
        Folders of the prepared data set and of its graph, for methods that fit it. If the card of the data
        says 'skipped', every cell becomes a skipped row.
    output : Path
        The block's file. If the file of an earlier run is still there, its cells are used.
    elsewhere : iterable of Path
        Folders with files of cells of other runs.
    limits : mapping
        cell_seconds, cell_memory_mb.
    metrics : iterable of str
        Names of the metrics to compute.
    score_options : mapping
        Keyword arguments of `score_labels`.
    scorer : str
        Fingerprint of the metrics' source. When it changes, cells are scored again but not fitted again.
    threads : int
        Recorded with each cell. The caller has already set this number for BLAS and numba.
    versions : str
        If not empty, cells that other versions have fitted are fitted again: a text of `version_text`.
    last_attempt : bool
        Whether a cell that exceeds its memory limit becomes a row with the status 'error'; otherwise TryAgain is
        raised.

    Raises
    ------
    TryAgain
        A cell exceeds its memory limit, and this is not the last attempt.
    """
    card = read_card(data)
    identity: dict[str, Any] = {
        "dataset": block.dataset,
        "method": block.method,
        "n_clusters": block.n_clusters,
    }
    identity |= {"class": class_path, "fingerprint": fingerprint}
    cells = block.cells()
    reason = card.get("reason")
    if reason is None and not card["columns"] and graph is None:
        reason = "the data set is a graph, without points for a method of `input: points`"
    if reason is not None:
        skipped = {**identity, "key": None, "status": "skipped", "reason": reason}
        write_pack(output, [({**skipped, **vars(cell)}, None) for cell in cells], len(cells))
        return
    identity |= {"n_rows": card["rows"], "n_features": len(card["columns"]), "n_groups": len(card["groups"])}
    identity["data_hash"] = input_hash(card, graph)

    def key_of(cell: Cell) -> str:
        return cell.key(
            data_hash=identity["data_hash"],
            class_path=class_path,
            fingerprint=fingerprint,
            n_clusters=block.n_clusters,
        )

    own_files = [output, *files_beside(output)]
    known = find_cells(output, elsewhere)
    task = Task(
        str(data),
        None if graph is None else str(graph),
        class_path,
        block.n_clusters,
        tuple(metrics),
        score_options,
    )
    asked: list[tuple[dict[str, Any], Entry | np.ndarray | None]] = []
    n_fitted, begin = 0, time.perf_counter()
    store = WorkingFile(output)
    with FitProcess(
        task, cell_seconds=limits["cell_seconds"], cell_memory_mb=limits["cell_memory_mb"]
    ) as process:
        for number, cell in enumerate(cells, 1):
            key = key_of(cell)
            found = known.pop(key, None)
            labels: Entry | np.ndarray | None
            if found is not None and is_final(found.record, limits, versions) and _is_whole(found):
                # A record from another results folder may state anything, so this block's identity replaces its own.
                record, labels = {**found.record, **identity, "key": key, **vars(cell)}, found
                own = found.labels()
                if own is not None and _needs_scores(record, task.metrics, scorer):
                    record = _scored(record, process.score(own), scorer)
            else:
                result, fitted_labels, scores = process.fit(vars(cell))
                if result.pop("over_memory", False) and not last_attempt:
                    raise TryAgain(f"{result['reason']}; the next attempt asks for more memory")
                record = {
                    **identity,
                    "key": key,
                    **vars(cell),
                    **result,
                    "threads": threads,
                    "cell_seconds": limits["cell_seconds"],
                    "git_commit": git_commit(),
                    "versions": package_versions(),
                    "finished": time.time(),
                }
                record, labels = _scored(record, scores, scorer) if scores else record, fitted_labels
                store.add(record, fitted_labels)
                n_fitted += 1
            asked.append((record, labels))
            left = (time.perf_counter() - begin) / number * (len(cells) - number)
            print(
                f"[{number}/{len(cells)}] {record['status']} {cell.params} seed={cell.seed} "
                f"{record['wall_seconds']:.2f} s {record['reason']} (about {left:.0f} s left)",
                file=sys.stderr,
            )
    store.close()
    # Cells that the configuration does not ask for now are kept as long as code and data are the same.
    same = {"fingerprint": fingerprint, "data_hash": identity["data_hash"]}
    kept = [
        (entry.record, entry)
        for entry in known.values()
        if entry.path in own_files
        and all(entry.record.get(name) == value for name, value in same.items())
        and _is_whole(entry)
    ]
    write_pack(output, [*asked, *kept], len(asked))
    beside = files_beside(output)
    # A job that began later takes cells from these files, and removes them when it ends.
    if beside[-1] <= store.path:
        for path in beside:
            path.unlink(missing_ok=True)
    if KEEP_COPY in os.environ:
        # A cluster may declare this job failed after it has ended, and Snakemake then deletes the output.
        with suppress(OSError):
            os.link(output, beside[0])
    print(f"{n_fitted} cells fitted, {len(cells) - n_fitted} taken from earlier runs", file=sys.stderr)


def find_cells(output: Path, elsewhere: Iterable[Path] = ()) -> dict[str, Entry]:
    """All cells that earlier or killed runs have left for a block, by key.

    Parameters
    ----------
    output : Path
        The block's file. Cells are also taken from its working files, from files that were set aside, and from the
        other blocks of its method, because a cell may have belonged to another block in an earlier run.
    elsewhere : iterable of Path
        Folders with files of cells of other runs.
    """
    found: dict[str, Entry] = {}
    others = [path for folder in (*elsewhere, output.parent) for path in sorted(folder.glob("*.cells"))]
    for path in [*(path for path in others if path != output), output, *files_beside(output)]:
        found.update((key, entry) for key, entry in salvage(path).items() if key is not None)
    return found


def _needs_scores(record: Mapping[str, Any], metrics: Iterable[str], scorer: str) -> bool:
    return record.get("scorer") != scorer or any(name not in record["metrics"] for name in metrics)


def _is_whole(entry: Entry) -> bool:
    """Whether the labels of a cell match their digest. If not, a message says that the cell is fitted again."""
    try:
        entry.labels()
    except DamagedFile as error:
        print(f"{error}; it is fitted again", file=sys.stderr)
        return False
    return True


def _scored(record: Mapping[str, Any], scores: Mapping[str, Any], scorer: str) -> dict[str, Any]:
    return {**record, **scores, "scorer": scorer}


def input_hash(card: Mapping[str, Any], graph: Path | None) -> str:
    """Hash of what a fit reads: the data set, and the graph if there is one."""
    if graph is None:
        return card["data_hash"]
    from fairclust.datasets.graph import load_graph

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
