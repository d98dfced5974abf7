"""Graphs from a list of edges and a list of nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.read import Table, code_groups, groups_table
from fairclust.datasets.spec import DatasetSpec
from fairclust.datasets.store import PreparedDataset
from fairclust.messages import count


def read_graph(spec: DatasetSpec, files: list[Path]) -> PreparedDataset:
    """Read the edges and then the nodes with their groups.

    A node that is listed twice, and an edge to a node that is not listed, is a DatasetError.
    """
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
    large, of_group = sizes >= edges.min_group, dict(zip(group_names, sizes.tolist(), strict=True))
    small = {group: size for group, size in of_group.items() if size < edges.min_group}
    own = file.names[column]
    dropped = [{"column": own, "value": group, "rows": size} for group, size in small.items()]
    # -1 stands for nodes of dropped groups, -2 for nodes that are not listed.
    number = np.where(large[groups], np.cumsum(large[groups]) - 1, -1)
    numbers = dict(zip(names, number, strict=True))

    table = Table(files[0], spec.reader)
    at = [*map(table.place, edges.ends)]
    lines, card = table.read([], at, spec.drop_rows)
    ends = []
    for i in at:
        values = lines[i]
        of_value = np.array([numbers.get(value, -2) for value in values.cat.categories], dtype=np.int64)
        ends.append(of_value[values.cat.codes])
        strangers = values[ends[-1] == -2]
        if len(strangers):
            stranger, many = strangers.iloc[0], count(len(strangers), "such edge")
            raise DatasetError(
                f"file '{files[0].name}', column '{table.names[i]}': some edges end at nodes that are not listed; "
                f"expected nodes of '{files[-1].name}'; found {stranger!r}, {many} in all. Fix: check "
                "'edges.ends' and 'edges.node', or 'drop_rows'"
            )
    a, b = ends
    real = (a >= 0) & (b >= 0) & (a != b)
    n_nodes = int(large[groups].sum())
    A = sp.coo_array((np.ones(int(real.sum()), np.float32), (a[real], b[real])), shape=(n_nodes, n_nodes))
    W = sp.csr_array(A.tocsr() + A.T.tocsr())
    W.data[:] = 1.0
    W.sort_indices()
    codes = (np.cumsum(large) - 1)[groups[large[groups]]].astype(np.int32)
    kept_names = tuple(group for group in group_names if group not in small)
    card = {"rows_read": len(nodes), "dropped": dropped + card["dropped"]}
    return PreparedDataset(np.empty((n_nodes, 0)), codes, (), kept_names, card, W)


def largest_piece(made: PreparedDataset) -> PreparedDataset:
    """Restrict a graph to its largest connected component, and say on the card what was left out."""
    W = made.W
    assert W is not None
    n_pieces, piece = sp.csgraph.connected_components(W, directed=False)
    dropped = list(made.card["dropped"])
    if n_pieces > 1:
        inside = piece == np.bincount(piece).argmax()
        dropped.append({"column": "piece", "value": "not the largest", "rows": int((~inside).sum())})
        truth = None if made.truth is None else made.truth[inside]
        W = W[inside][:, inside]
        made = replace(made, X=made.X[inside], groups=made.groups[inside], W=W, truth=truth)
    graph = {"n_edges": int(W.nnz // 2), "n_pieces": int(n_pieces)}
    return replace(made, card={**made.card, "dropped": dropped, "graph": graph})
