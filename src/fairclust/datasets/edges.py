"""Graphs from a list of edges and a list of nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.read import Table, code_groups, groups_table
from fairclust.datasets.spec import DatasetSpec
from fairclust.datasets.store import PreparedDataset
from fairclust.messages import count


def read_graph(spec: DatasetSpec, files: list[Path]) -> PreparedDataset:
    """Read the nodes with their groups and then the edges."""
    edges, sensitive = spec.edges, spec.sensitive_columns[0]
    assert edges is not None  # DatasetSpec
    file = groups_table(spec, files[-1])
    named, column = file.place(edges.node), file.place(sensitive.column)
    nodes, _ = file.read([], [named, column])
    names = nodes[named]
    if names.duplicated().any():
        twice = names[names.duplicated()].iloc[0]
        raise DatasetError(
            f"file '{files[-1].name}', column '{file.names[named]}': the node {twice!r} is listed twice. Fix: list "
            "every node once"
        )
    place = f"file '{files[-1].name}', column '{file.names[column]}'"
    groups, group_names = code_groups(sensitive, nodes[column], place)
    sizes = np.bincount(groups, minlength=len(group_names))
    large = sizes >= edges.min_group
    dropped = [
        {"column": file.names[column], "value": group, "rows": size}
        for group, size in zip(group_names, sizes.tolist(), strict=True)
        if size < edges.min_group
    ]

    table = Table(files[0], spec.reader)
    at = [*map(table.place, edges.ends)]
    lines, card = table.read([], at, spec.drop_rows)
    index, ends = pd.Index(names.astype(str)), []
    for i in at:
        values = lines[i]
        ends.append(index.get_indexer(values.cat.categories)[values.cat.codes])
        strangers = values[ends[-1] < 0]
        if len(strangers):
            stranger, many = strangers.iloc[0], count(len(strangers), "such edge")
            raise DatasetError(
                f"file '{files[0].name}', column '{table.names[i]}': some edges end at nodes that are not listed; "
                f"expected nodes of '{files[-1].name}'; found {stranger!r}, {many} in all. Fix: check "
                "'edges.ends' and 'edges.node', or 'drop_rows'"
            )
    a, b = (end[ends[0] != ends[1]] for end in ends)
    A = sp.coo_array((np.ones(len(a), np.float32), (a, b)), shape=(len(nodes), len(nodes)))
    W, kept = sp.csr_array(A.tocsr() + A.T.tocsr()), large[groups]
    W.data[:] = 1.0
    W = W[kept][:, kept]
    W.sort_indices()
    codes = (np.cumsum(large) - 1)[groups[kept]].astype(np.int32)
    kept_names = tuple(np.array(group_names)[large].tolist())
    card = {"rows_read": len(nodes), "dropped": dropped + card["dropped"]}
    return PreparedDataset(np.empty((len(codes), 0)), codes, (), kept_names, card, W)


def largest_piece(made: PreparedDataset) -> PreparedDataset:
    """Restrict a graph to its largest connected component, and say on the card what was left out."""
    W = made.W
    assert W is not None
    n_pieces, piece = sp.csgraph.connected_components(W != 0, directed=False)
    if n_pieces <= 1:
        return made
    inside = piece == np.bincount(piece).argmax()
    outside = {"column": "piece", "value": "not the largest", "rows": int((~inside).sum())}
    card = {**made.card, "dropped": [*made.card["dropped"], outside]}
    truth = None if made.truth is None else made.truth[inside]
    W = W[inside][:, inside]
    return replace(made, X=made.X[inside], groups=made.groups[inside], W=W, truth=truth, card=card)
