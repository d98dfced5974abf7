"""`fairclust audit`: what `fit` reports, about labels that another program made."""

from __future__ import annotations

import json
from types import SimpleNamespace

from rich.table import Table

from fairclust.cli.fit import rows_of
from fairclust.cli.fitting import PLAIN, read_raw
from fairclust.cli.labels import read_labels
from fairclust.cli.options import Audit
from fairclust.cli.results import GIVEN, as_text, describe, write_fit
from fairclust.outputs import check_outputs
from fairclust.tables import table_files


def run(args: Audit) -> list[str | Table]:
    """Report the shares of groups, costs and profiles of given labels of a table, beside those of k-means."""
    check_outputs({"--report": args.report}, [args.labels, *table_files(args.table)])
    raw = read_raw(args)
    labels = read_labels(args.labels, raw.frame.index.to_numpy() + 1, args.n_clusters)
    n_clusters = int(labels.max()) + 1 if args.n_clusters is None else args.n_clusters
    model = SimpleNamespace(
        title=GIVEN,
        labels_=labels,
        n_clusters=n_clusters,
        **PLAIN,
        get_params=lambda: PLAIN,
    )
    rows = rows_of(raw, {"random_state": args.seed}, raw.sensitive_for(type(model), crossed=True))
    result = describe(model, rows, scale=args.scale, notes=raw.notes, seconds=0.0)
    result |= write_fit(args, rows, model, result)
    return [json.dumps(result, indent=2)] if args.json else as_text(result, verbose=args.verbose)
