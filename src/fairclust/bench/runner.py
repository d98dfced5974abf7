"""Fit and score the cells of one block that the store does not have."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.bench.grid import Cell
from fairclust.bench.provenance import git_commit, package_versions
from fairclust.bench.store import CellStore, atomic_write
from fairclust.datasets.store import load_prepared, read_card

# What a repeated run takes as it is. A timeout is tried again when the limit has grown, an error always
# (`Plan.retry_errors` has the job run again).
_FINAL = {"ok", "skipped", "diverged"}


def run_block(
    block: Mapping[str, Any],
    data_folder: Path,
    folder: Path,
    index: Path,
    *,
    threads: int,
    score_settings: Mapping[str, Any],
    scorer: str,
    graph_folder: Path | None = None,
) -> None:
    """Fit and score every cell of a block that the store does not have, and write the block's index.

    Parameters
    ----------
    block : mapping
        From `grid.block_params`.
    data_folder : Path
        The prepared data set; if its card says 'skipped', every cell becomes a skipped row.
    folder : Path
        The store of the block's cells, which its parts share.
    index : Path
        Output: one JSON line per cell, in the grid's order.
    threads : int
        Recorded with the cell; set for BLAS and numba by the caller.
    score_settings : mapping
        Keyword arguments of `score_labels`.
    scorer : str
        Fingerprint of the metrics' source.
    graph_folder : Path, optional
        The neighbour graph, for methods that fit it instead of the points.
    """
    card = read_card(data_folder)
    identity = {name: block[name] for name in ("dataset", "method", "n_clusters", "class", "fingerprint")}
    cells = [Cell(**cell) for cell in block["cells"]]
    reason = card.get("reason")
    if reason is None and not card["columns"] and graph_folder is None:
        reason = "the data set is a graph, without points for a method of `input: points`"
    if reason is not None:
        skipped = {**identity, "key": None, "status": "skipped", "reason": reason}
        _write_index(index, [{**skipped, **vars(cell)} for cell in cells])
        return

    # Only now: numba and scikit-learn take two seconds.
    from fairclust.bench.scoring import Scorer
    from fairclust.bench.worker import Worker

    identity |= {"n_rows": card["rows"], "n_features": len(card["columns"]), "n_groups": len(card["groups"])}
    W: Any = None
    if graph_folder is not None:
        from fairclust.datasets.graph import load_graph

        W, _ = load_graph(graph_folder)
    identity["data_hash"] = input_hash(card, W)
    store, score_store = CellStore(folder), CellStore(folder / "scores")
    limits, n_clusters = block["limits"], block["n_clusters"]
    # Also the first look at the data: what is wrong with it is said here and not by a process that ends.
    scores = Scorer(load_prepared(data_folder), W, score_store, score_settings, scorer)
    lines: list[dict[str, Any]] = []
    fitted = 0
    begin = time.perf_counter()
    with Worker(data_folder, graph_folder, block["class"], n_clusters, **limits) as worker:
        for number, cell in enumerate(cells, 1):
            key = cell.key(
                data_hash=identity["data_hash"],
                class_path=block["class"],
                fingerprint=block["fingerprint"],
                n_clusters=n_clusters,
            )
            found = store.get(key)
            if found is None or not is_final(found[0], limits):
                result, labels = worker.fit(vars(cell))
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
                store.put(key, record, labels)
                fitted += 1
            else:
                record, labels = found
            if labels is not None:
                record = {
                    **record,
                    "metrics": scores.score(key, labels, n_clusters),
                    "counts": scores.counts(labels, n_clusters),
                }
            lines.append(record)
            left = (time.perf_counter() - begin) / number * (len(cells) - number)
            print(
                f"[{number}/{len(cells)}] {record['status']} {cell.params} seed={cell.seed} "
                f"{record['wall_seconds']:.2f} s {record['reason']} (about {left:.0f} s left)",
                file=sys.stderr,
            )
    pack = f"pack{block['part']}" if block["n_parts"] > 1 else "pack"
    store.compact([line["key"] for line in lines], pack)
    score_store.compact(scores.names, pack)
    print(f"{fitted} cells fitted, {len(cells) - fitted} taken from the store", file=sys.stderr)
    _write_index(index, lines)


def input_hash(card: Mapping[str, Any], W: Any = None) -> str:
    """Hash of what a fit reads: the data set, and the graph if there is one."""
    if W is None:
        return card["data_hash"]
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).data for a in (W.indptr, W.indices, W.data)))
    return f"{card['data_hash']}+{digest.hexdigest()[:16]}"


def is_final(record: Mapping[str, Any], limits: Mapping[str, float]) -> bool:
    """Whether a repeated run takes the record as it is."""
    if record["status"] == "timeout":
        return record["cell_seconds"] >= limits["cell_seconds"]
    return record["status"] in _FINAL


def _write_index(index: Path, lines: list[dict[str, Any]]) -> None:
    with atomic_write(index) as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines).encode())


def read_index(index: Path) -> list[dict[str, Any]]:
    """Records of a block's index.

    Raises
    ------
    ValueError
        The file is damaged.
    """
    try:
        return [json.loads(line) for line in Path(index).read_text().splitlines()]
    except ValueError as error:
        raise ValueError(
            f"{index} is damaged ({error}). Fix: delete it and run again; finished cells are kept"
        ) from None
