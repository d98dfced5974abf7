"""`fairclust predict`: predicts the clusters of new rows by a model that `fairclust fit --save` has written."""

from __future__ import annotations

import argparse
import sys

from fairclust import methods
from fairclust.cli import CommandError
from fairclust.cli.fit import labels_table, write_csv
from fairclust.messages import shortened
from fairclust.outputs import check_outputs
from fairclust.tables import TableError, load_model


def run(args: argparse.Namespace) -> list[str]:
    """Predict the clusters of the rows of a table.

    Returns the labels as CSV or, with `--out`, a line that names the written file. CommandError if the model or the
    table cannot be read, or the table lacks a column of the fit.
    """
    check_outputs({"--out": args.out}, [args.model, args.table])
    try:
        model = load_model(args.model, methods)
        frame = model.read(args.table, delimiter=args.delimiter, decimal=args.decimal, encoding=args.encoding)
        keep = model.usable(frame)
        if not keep.any():
            raise TableError(
                f"{args.table} has no row with a value in {' and '.join(model.needed)}. Fix: fill in these cells"
            )
        labels = model.predict(frame[keep])
    except ValueError as error:
        raise CommandError(str(error)) from None
    for note in frame.attrs["notes"]:
        print(f"note: {note}", file=sys.stderr)
    for name, values in model.unseen(frame[keep]).items():
        found = f"1 value did not occur in the fit: {shortened(repr(values[0]))}"
        if len(values) > 1:
            found = f"{len(values):,} values did not occur in the fit, such as {shortened(repr(values[0]))}"
        print(f"column {name}: {found}. Such rows count as having none of the known values", file=sys.stderr)
    if not keep.all():
        print(
            f"{(~keep).sum():,} rows without a value in {' or '.join(model.needed)} are left out",
            file=sys.stderr,
        )
    ids = [name for name in model.ids if name in frame]
    table = labels_table(frame[keep], ids, labels, spreadsheet_safe=args.spreadsheet_safe)
    if args.out is None:
        return [table.to_csv(index=False).rstrip("\n")]
    write_csv(args.out, table)
    return [f"{len(labels):,} rows: {args.out} (rows counted from 1, clusters from 0)"]
