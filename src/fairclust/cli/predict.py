"""`fairclust predict`: predicts the clusters of new rows by a model that `fairclust fit --save` has written."""

from __future__ import annotations

import sys

from fairclust import methods
from fairclust.cli.labels import labels_table, write_labels
from fairclust.cli.options import Predict
from fairclust.messages import UserError, count
from fairclust.outputs import check_outputs
from fairclust.tables import TableError, left_out_rows, load_model, table_files


def run(args: Predict) -> list[str]:
    """Predict the clusters of the rows of a table: the labels as CSV or, with `--out`, the name of the file."""
    check_outputs({"--out": args.out}, [args.model, *table_files(args.table)])
    try:
        model = load_model(args.model, methods)
        frame = model.read(args.table, **args.reading)
        preparation, reasons = model.preparation, model.reasons(frame)
        keep = reasons == ""
        if not keep.any():
            raise TableError(
                f"{args.table} has no row with a known value in {' and '.join(preparation.needed)}. Fix: fill in these "
                "cells"
            )
        labels = model.predict(frame, keep)
    except ValueError as error:
        raise UserError(str(error)) from None
    notes = [*frame.attrs["notes"], *left_out_rows(reasons[~keep].value_counts().to_dict(), "")]
    for note in [*notes, *preparation.notes_on(frame[keep])]:
        print(f"note: {note}", file=sys.stderr)
    ids = [name for name in preparation.ids if name in frame]
    table = labels_table(frame, reasons, labels, ids)
    if args.out is None:
        return [(table.iloc[:, :-1] if keep.all() else table).to_csv(index=False).rstrip("\n")]
    write_labels(args.out, [table], reasons=not keep.all())
    return [f"labels of {count(len(labels), 'row')}: {args.out}; rows are counted from 1, clusters from 0"]
