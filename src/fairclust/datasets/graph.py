"""Writing and reading the affinity graphs of prepared data sets.

A graph is one file that ends with a SHA-256 of all bytes before it. For NumPy, these last bytes are the comment of a
zip archive.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairclust.datasets.digest import content_digest
from fairclust.datasets.errors import DatasetError
from fairclust.temporary import temporary_beside

GRAPH = "graph.npz"
DIGEST_LENGTH = 64


def save_graph(folder: str | Path, W: sp.csr_array, info: dict[str, Any]) -> None:
    """Write a graph and its description (JSON) as ``graph.npz`` in a folder, completely or not at all."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(info, allow_nan=False)
    temp = temporary_beside(folder / GRAPH, "npz")
    try:
        np.savez(
            temp,
            allow_pickle=False,
            indptr=W.indptr,
            indices=W.indices,
            data=W.data,
            n_nodes=W.shape[0],
            info=np.array(text),
        )
        with zipfile.ZipFile(temp, "a") as archive:
            archive.comment = bytes(DIGEST_LENGTH)
        digest = content_digest(temp, skip_last=DIGEST_LENGTH)
        with temp.open("r+b") as file:
            file.seek(-DIGEST_LENGTH, os.SEEK_END)
            file.write(digest.encode())
        temp.replace(folder / GRAPH)
    finally:
        temp.unlink(missing_ok=True)


def load_graph(folder: str | Path) -> tuple[sp.csr_array, dict[str, Any]]:
    """Read the graph and the description that `save_graph` wrote. No graph, or a damaged one, is a DatasetError."""
    path = Path(folder) / GRAPH
    try:
        with path.open("rb") as stream:
            stream.seek(-DIGEST_LENGTH, os.SEEK_END)
            stated = stream.read()
        if content_digest(path, skip_last=DIGEST_LENGTH).encode() != stated:
            raise ValueError("it is damaged: its content is not what was written")
        with np.load(path, allow_pickle=False) as file:
            n_nodes = int(file["n_nodes"])
            W = sp.csr_array((file["data"], file["indices"], file["indptr"]), shape=(n_nodes, n_nodes))
            W.check_format()
            return W, json.loads(str(file["info"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DatasetError(
            f"'{path}' holds no graph ({type(error).__name__}: {error}). "
            f"Fix: delete the folder '{folder}' and run again"
        ) from error
