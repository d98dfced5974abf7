"""`fairclust audit`: what `fit` reports, about labels that another program made."""

from __future__ import annotations

from types import SimpleNamespace

from rich.table import Table

from fairclust.cli.labels import read_labels
from fairclust.cli.methods import PLAIN
from fairclust.cli.options import Audit
from fairclust.cli.results import GIVEN, report
from fairclust.cli.rows import read_rows
from fairclust.outputs import check_outputs
from fairclust.tables import table_files


def run(args: Audit) -> list[str | Table]:
    """Report the shares of groups, costs and profiles of given labels of a table, beside those of k-means."""
    check_outputs({"--report": args.report}, [args.labels, *table_files(args.table)])
    rows = read_rows(args)
    labelled, n_all = rows.frame.index.to_numpy() + 1, len(rows.reasons)
    labels = read_labels(args.labels, labelled, args.n_clusters, rows.frame, n_all)
    params = {**PLAIN, "random_state": args.seed}
    n_clusters = int(labels.max()) + 1 if args.n_clusters is None else args.n_clusters
    model = SimpleNamespace(
        title=GIVEN, labels_=labels, n_clusters=n_clusters, **PLAIN, get_params=lambda: params
    )
    return report(args, rows, model, notes=rows.notes, seconds=0.0)
