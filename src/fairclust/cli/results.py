"""The results of `fairclust fit`, as a dictionary for JSON and as text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from fairclust.cli.raw_table import RawTable
from fairclust.messages import shortened
from fairclust.metrics import Scored, balance, contingency, data_balance, delta, group_costs, score_labels
from fairclust.metrics.table import METRICS

_METRICS = ("sse", "balance", "fairness_error", "delta")
_PRINTED_GROUPS = 8
_PRINTED_FEATURES = 20


def describe(
    model: Any, plain: np.ndarray | None, raw: RawTable, *, scaled: str, notes: list[str], seconds: float
) -> dict[str, Any]:
    """Everything that the command reports about a fit, as plain values for JSON; a number that is undefined is None.

    `plain` holds labels of k-means to compare with, `scaled` says in words how the features are scaled, and `notes`
    are sentences about the table and the fit, for the user.
    """
    method, n_clusters = type(model).__name__, model.n_clusters
    labels = {method: model.labels_} | ({} if plain is None else {"KMeans": plain})
    names, codes = np.unique(raw.crossed, return_inverse=True)
    scores = {
        name: score_labels(Scored(of, codes, raw.X, n_clusters), _METRICS) for name, of in labels.items()
    }
    used = [column.name for column in raw.columns if column.role != "left out"]
    return {
        "method": method,
        "parameters": {name: _plain_value(value) for name, value in model.get_params().items()},
        "rows": len(raw.X),
        "features": used,
        "scale": scaled,
        "n_columns": raw.X.shape[1],
        "groups": dict(zip(names.tolist(), np.bincount(codes).tolist(), strict=True)),
        "n_clusters": n_clusters,
        "seconds": round(seconds, 2),
        "notes": notes,
        "metrics": {name: {key: _number(value) for key, value in of.items()} for name, of in scores.items()},
        "certificate": _certificate(model),
        "fairness": _by_column(model.labels_, raw, n_clusters),
        "largest_deviation": _largest_deviation(model.labels_, raw, n_clusters),
        "cost_per_row": _who_pays(raw, labels),
        "clusters": _clusters(contingency(model.labels_, codes, n_clusters, len(names)), names),
    }


def _certificate(model: Any) -> dict[str, float | None] | None:
    if not hasattr(model, "lower_bound_"):
        return None
    return {
        name: _number(getattr(model, f"{name}_")) for name in ("cost", "lower_bound", "gap", "violation")
        if hasattr(model, f"{name}_")
    }  # fmt: skip


def _partitions(raw: RawTable) -> dict[str, pd.Series]:
    """The groups of each sensitive column, and of the combinations if there are several columns."""
    found = {name: raw.groups[name] for name in raw.groups.columns}
    if len(found) > 1:
        found[" & ".join(raw.groups.columns)] = pd.Series(raw.crossed, index=raw.groups.index)
    return found


def _tables(labels: np.ndarray, raw: RawTable, n_clusters: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Names of the groups and their counts in each cluster, for each of `_partitions`."""
    found = {}
    for name, column in _partitions(raw).items():
        names, codes = np.unique(column.to_numpy(dtype=str), return_inverse=True)
        found[name] = names, contingency(labels, codes, n_clusters, len(names))
    return found


def _by_column(labels: np.ndarray, raw: RawTable, n_clusters: int) -> dict[str, dict[str, float | None]]:
    return {
        name: {
            "groups": len(names),
            "balance": _number(balance(table)),
            "best_balance": _number(data_balance(table)),
            "delta": _number(delta(table)),
        }
        for name, (names, table) in _tables(labels, raw, n_clusters).items()
    }


def _largest_deviation(labels: np.ndarray, raw: RawTable, n_clusters: int) -> dict[str, Any]:
    """The group and the cluster in which the share of the group differs most from its share in all rows."""
    worst: dict[str, Any] = {}
    for column, (names, table) in _tables(labels, raw, n_clusters).items():
        sizes = table.sum(axis=0)
        overall = table.sum(axis=1, keepdims=True) / table.sum()
        with np.errstate(invalid="ignore"):
            shares = table / sizes
        off = np.nan_to_num(np.abs(shares - overall))
        j, k = np.unravel_index(off.argmax(), off.shape)
        if not worst or off[j, k] > worst["deviation"]:
            worst = {
                "column": column,
                "group": str(names[j]),
                "cluster": int(k),
                "share": float(shares[j, k]),
                "share_in_all": float(overall[j, 0]),
                "deviation": float(off[j, k]),
            }
    return worst


def _who_pays(raw: RawTable, labels: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """Mean squared distance of the rows of each group to the mean of their cluster, for each clustering."""
    parts = {"all rows": np.full(len(raw.X), "")}
    parts |= {f"{name} ": column.to_numpy(dtype=str) for name, column in raw.groups.items()}
    found: dict[str, dict[str, float]] = {}
    for prefix, groups in parts.items():
        for method, of in labels.items():
            costs = group_costs(raw.X, of, sensitive_features=groups)
            for group, cost in zip(np.unique(groups), costs, strict=True):
                found.setdefault(f"{prefix}{group}", {})[method] = float(cost)
    return found


def _clusters(table: np.ndarray, names: np.ndarray) -> list[dict[str, Any]]:
    return [
        {
            "cluster": k,
            "size": int(counts.sum()),
            "shares": {
                str(name): _number(count / counts.sum()) if counts.sum() else None
                for name, count in zip(names, counts, strict=True)
            },
        }
        for k, counts in enumerate(table.T)
    ]


def _number(value: Any) -> float | None:
    """The value as a float; None for infinity and NaN, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


def _plain_value(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None | list | tuple | dict) else str(value)


def as_text(result: dict[str, Any]) -> list[str]:
    """The lines that the command prints."""
    features = result["features"]
    more = ", ..." if len(features) > _PRINTED_FEATURES else ""
    lines = [
        f"{result['method']}: {_count(result['rows'], 'row')}, {_count(len(features), 'feature')}, "
        f"{_count(len(result['groups']), 'group')}, {_count(result['n_clusters'], 'cluster')}, "
        f"{result['seconds']:.1f} s",
        f"features: {', '.join(map(shortened, features[:_PRINTED_FEATURES]))}{more} ({result['scale']})",
        *(f"note: {note}" for note in result["notes"]),
        "",
        *_metric_lines(result["metrics"]),
        *_certificate_lines(result),
        "",
        *_fairness_lines(result),
        "",
        *_payer_lines(result),
        "",
        *_cluster_lines(result),
    ]
    outputs = [f"{name}: {result[name]}" for name in ("labels", "model") if name in result]
    return lines + (["", *outputs] if outputs else [])


def _metric_lines(metrics: dict[str, dict[str, float | None]]) -> list[str]:
    rows = [["", *metrics, ""]]
    for name in _METRICS:
        metric = METRICS[name]
        shown = [_shown(of[name], metric.decimals) for of in metrics.values()]
        rows.append([metric.label, *shown, f"{metric.direction} is better"])
    return aligned(rows, left=(0, len(rows[0]) - 1))


def _certificate_lines(result: dict[str, Any]) -> list[str]:
    found = result["certificate"]
    if found is None:
        return []
    gap = "unknown" if found["gap"] is None else f"{found['gap']:.3%}"
    least, cost = found["lower_bound"], found["cost"]
    compared = f"lower bound {_shown(least, 1)}, cost {_shown(cost, 1)}"
    if None not in (least, cost, found.get("violation")) and cost < least:
        off = f"off the bounds by up to {found['violation']:.2g} rows in a cluster"
        compared += f"; it is lower because the labels are {off}"
    return [
        f"certificate: with these centres, no assignment that is as fair is cheaper by more than {gap} ({compared})"
    ]


def _fairness_lines(result: dict[str, Any]) -> list[str]:
    rows = [["fairness by", "groups", "balance", "at best", "Delta"]]
    for name, of in result["fairness"].items():
        values = [_shown(of[key], 4) for key in ("balance", "best_balance", "delta")]
        rows.append([name, str(of["groups"]), *values])
    worst = result["largest_deviation"]
    return [
        *aligned(rows, left=(0,)),
        f"the worst: {shortened(worst['group'])} is {worst['share']:.1%} of cluster {worst['cluster']}, and "
        f"{worst['share_in_all']:.1%} of all rows",
    ]


def _payer_lines(result: dict[str, Any]) -> list[str]:
    costs = result["cost_per_row"]
    methods = list(costs["all rows"])
    rows = [["who pays: cost of a row", *methods, *(["more"] if len(methods) > 1 else [])]]
    for name, of in costs.items():
        more = [f"{of[methods[0]] / of[methods[1]] - 1:+.1%}"] if len(methods) > 1 and of[methods[1]] else []
        rows.append([name, *(f"{of[method]:.3f}" for method in methods), *more])
    return aligned([row + [""] * (len(rows[0]) - len(row)) for row in rows], left=(0,))


def _cluster_lines(result: dict[str, Any]) -> list[str]:
    """Size and group shares of each cluster and of all rows. Of many groups only the largest are shown."""
    groups, n_rows = result["groups"], result["rows"]
    largest = sorted(sorted(groups, key=lambda name: -groups[name])[:_PRINTED_GROUPS])
    rest = len(groups) - len(largest)
    rows = [["cluster", "size", *largest, *([f"{rest} others"] if rest else [])]]
    everything = {
        "cluster": "all",
        "size": n_rows,
        "shares": {g: size / n_rows for g, size in groups.items()},
    }
    for cluster in [*result["clusters"], everything]:
        shares = [cluster["shares"][name] for name in largest]
        if rest:
            shares.append(None if shares[0] is None else 1 - sum(shares))
        shown = ["–" if share is None else f"{100 * share:.1f} %" for share in shares]
        rows.append([str(cluster["cluster"]), f"{cluster['size']:,}", *shown])
    return aligned(rows)


def _shown(value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{value:,.{decimals}f}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")


def aligned(rows: list[list[str]], left: tuple[int, ...] = ()) -> list[str]:
    """Lines of a table. Columns are aligned to the right, except those in `left`. Long names are cut."""
    rows = [[shortened(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:<{w}}" if i in left else f"{cell:>{w}}"
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
