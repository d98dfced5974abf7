"""`fairclust fit`: cluster the rows of a table fairly, and report the cost and which groups pay it."""

from __future__ import annotations

import argparse
import inspect
import json
import warnings
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from fairclust.chunks import ChunkTable
from fairclust.cli import CommandError, in_chunks, raw_table
from fairclust.cli.fitting import fit, is_cosine, parameters, plain_kmeans
from fairclust.cli.methods import find_method
from fairclust.cli.progress import USUAL_PASSES, Passes, expected_seconds, progress
from fairclust.cli.results import Measured, Rows, as_text, describe, measure, write_fit
from fairclust.frame import as_directions
from fairclust.messages import shortened
from fairclust.outputs import check_outputs
from fairclust.tables import table_files

_SHOWN_GROUPS = 5
# If clusters have fewer rows than this on average, the group shares in them mean little.
_FEW_ROWS = 20


def run(args: argparse.Namespace) -> list[str]:
    """Fit a method to a table, in memory or in chunks."""
    cls = find_method(args.method)
    if args.equal_sizes and "size_min" not in inspect.signature(cls).parameters:
        raise CommandError(
            f"--equal-sizes: {cls.__name__} has no bounds on sizes. Fix: leave it out, or fit by --method price"
        )
    # Floats are multiples of the mean size.
    equal = ["size_min=1.0", "size_max=1.0"] if args.equal_sizes else []
    params = parameters(cls, args.n_clusters, args.seed, [*args.set, *equal])
    chunked = in_chunks.is_asked_for(args)
    with ExitStack() as stack:
        with progress(f"reading {args.table}"):
            opened = in_chunks.open_rows(args, cls, params) if chunked else None
            rows = stack.enter_context(opened) if opened else _rows_in_memory(args, cls, params)
        X, passes = rows.X, None
        expected = expected_seconds(cls, params, X, rows.groups)
        if isinstance(X, ChunkTable):
            passes = Passes(X.engine, USUAL_PASSES[cls.__name__])
            X = replace(X, engine=passes)
        sizes = _size_notes(rows, args.n_clusters)
        with progress(f"fitting {cls.__name__}", expected=expected, notes=sizes, passes=passes):
            model, seconds, warned = fit(cls, params, X, rows.groups, rows.weights)
        notes = [*sizes, *warned, *rows.notes]
        result = describe(model, rows, scale=args.scale, notes=notes, seconds=seconds)
        result |= write_fit(args, rows, model)
    return [json.dumps(result, indent=2)] if args.json else as_text(result, verbose=args.verbose)


def _rows_in_memory(args: argparse.Namespace, cls: type, params: dict[str, Any]) -> Rows:
    check_outputs({"--out": args.out, "--save": args.save}, table_files(args.table))
    if args.save and not hasattr(cls, "predict"):
        raise CommandError(
            f"--save: {cls.__name__} cannot predict the clusters of new rows. Fix: write the labels by --out instead"
        )
    means = params.get("mean_tolerance")
    raw = raw_table.read(args, list(map(str, means)) if isinstance(means, dict) else [])

    def costed(model: Any) -> np.ndarray:
        """The rows as the model sees them, of which costs are computed."""
        return as_directions(raw.X) if is_cosine(model) else raw.X

    def plain(model: Any) -> np.ndarray:
        of = plain_kmeans(model, params)
        with warnings.catch_warnings(), progress("fitting k-means, to compare with"):
            warnings.simplefilter("ignore")
            if raw.weights is not None:
                weighted = KMeans(of.n_clusters, n_init=of.n_init, random_state=of.random_state)
                return weighted.fit(costed(model), sample_weight=raw.weights).labels_
            return of.fit(raw.X, sensitive_features=raw.crossed).labels_

    def measured(labels: np.ndarray, model: Any) -> Measured:
        X, n_clusters = costed(model), model.n_clusters
        weights = np.ones(len(labels)) if raw.weights is None else raw.weights
        # The squared distance of every row to the weighted mean of its cluster.
        n_used = int(labels.max()) + 1
        sizes = np.maximum(np.bincount(labels, weights, n_used), np.finfo(float).tiny)
        means = np.column_stack([np.bincount(labels, weights * column, n_used) / sizes for column in X.T])
        paid = weights * ((X - means[labels]) ** 2).sum(axis=1)
        names, first, codes = np.unique(raw.crossed, return_index=True, return_inverse=True)
        counts = np.bincount(codes * n_clusters + labels, raw.weights, minlength=len(names) * n_clusters)
        counts = counts.reshape(len(names), n_clusters)
        return measure(raw.groups.iloc[first].set_axis(names), counts, np.bincount(codes, paid))

    return Rows(
        preparation=raw.preparation,
        X=raw.X,
        groups=raw_table.sensitive_for(cls, raw, crossed=args.crossed),
        weights=raw.weights,
        sizes=pd.Series(raw.crossed).value_counts().sort_index().to_dict(),
        notes=raw.notes,
        plain=plain,
        measured=measured,
        parts=lambda labels: [(raw.whole, raw.reasons, labels)],
        left_out=bool((raw.reasons != "").any()),
    )


def _size_notes(rows: Rows, n_clusters: int) -> list[str]:
    """Notes on small clusters and small groups, and on several sensitive columns."""
    notes = []
    n_rows = sum(rows.sizes.values())
    if n_rows < _FEW_ROWS * n_clusters:
        notes.append(
            f"{n_clusters} clusters of {n_rows:,} rows have {n_rows / n_clusters:.0f} rows on average: with so few, "
            "shares of groups mean little"
        )
    sizes = dict(rows.sizes)
    if isinstance(rows.groups, dict):
        # Each column is bounded, and not their combinations. Columns of numbers have bounds on their means.
        sizes = {
            f"{name} {value}": int(size)
            for name, of in rows.groups.items()
            if of.dtype.kind == "U"
            for value, size in zip(*np.unique(of, return_counts=True), strict=True)
        }
    small = {name: size for name, size in sizes.items() if size < n_clusters}
    if small:
        shown = ", ".join(
            f"{shortened(name)} ({size} row{'s' * (size > 1)})"
            for name, size in list(small.items())[:_SHOWN_GROUPS]
        )
        more = f" and {len(small) - _SHOWN_GROUPS:,} more" if len(small) > _SHOWN_GROUPS else ""
        notes.append(
            f"too few rows for {n_clusters} clusters in group {shown}{more}: some clusters get none of them; "
            "join them with another group in the table, or leave their rows out"
        )
    if len(rows.preparation.sensitive) > 1:
        listed = " and ".join(rows.preparation.sensitive)
        notes.insert(
            0,
            f"each of {listed} counts on its own; --crossed takes their {len(rows.sizes)} combinations instead"
            if isinstance(rows.groups, dict)
            else f"the groups are the combinations of {listed}: {len(rows.sizes)} groups, and what the method promises "
            "holds for each of them",
        )
    return notes
