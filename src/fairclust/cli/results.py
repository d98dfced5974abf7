"""The results of `fairclust fit`, as a dictionary for JSON and as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fairclust.messages import shortened
from fairclust.metrics import balance, contingency, data_balance, delta
from fairclust.metrics.table import METRICS

_METRICS = ("sse", "balance", "fairness_error", "delta")
_PRINTED_GROUPS = 8
_PRINTED_FEATURES = 20
_PRINTED_NOTES = 5


@dataclass(frozen=True)
class Measured:
    """What is reported about the labels of a clustering."""

    sse: float
    # The names of the groups and their counts in the clusters, shape (n_groups, n_clusters), by sensitive column. If
    # there are several columns, the last entry has their combinations.
    tables: Mapping[str, tuple[np.ndarray, np.ndarray]]
    costs: Mapping[str, float]  # mean squared distance of the rows of a group to the mean of their cluster

    @property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Names and counts of the groups; if there are several columns, of the combinations of their values."""
        return list(self.tables.values())[-1]

    def metric(self, name: str) -> float | None:
        return _number(self.sse if name == "sse" else METRICS[name].function(self.groups[1]))


def counted(
    labels: np.ndarray, groups: np.ndarray, n_clusters: int, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The names of groups, given as text of shape (n_rows,), and their counts, or sums of weights, in the clusters."""
    names, codes = np.unique(groups, return_inverse=True)
    if weights is not None:
        sums = np.bincount(codes * n_clusters + labels, weights, len(names) * n_clusters)
        return names, sums.reshape(len(names), n_clusters)
    return names, contingency(labels, codes, n_clusters, len(names))


class Rows(Protocol):
    """The rows of a table, in memory or in chunks."""

    X: Any  # what the methods fit
    groups: Any  # their sensitive features; None if `X` has them
    weights: np.ndarray | None  # (n_rows,), of mean 1; None if all rows count alike
    columns: list[str]  # the sensitive ones
    sizes: dict[str, int]  # the numbers of rows of the combinations of groups
    features: list[str]
    n_columns: int
    notes: list[str]  # on what was left out, and on how the rest was read

    def plain(self, model: Any) -> np.ndarray | None:
        """Labels of k-means, to compare the model with."""

    def measured(self, labels: Any, model: Any) -> Measured: ...

    def write(self, model: Any) -> dict[str, str]:
        """Write labels and model as the options ask; returns the name of each file with a hint."""
        ...


def describe(model: Any, rows: Rows, *, scaled: str, notes: list[str], seconds: float) -> dict[str, Any]:
    """Everything that the command reports about a fit, as plain values for JSON; a number that is undefined is None.

    `scaled` says in words how the features are scaled, and `notes` are sentences about the table and the fit.
    """
    method = type(model).__name__
    found = {method: rows.measured(model.labels_, model)}
    plain = None if method == "KMeans" else rows.plain(model)
    if plain is not None:
        found["KMeans"] = rows.measured(plain, model)
    of_model = found[method]
    names, table = of_model.groups
    return {
        "method": method,
        "parameters": {name: _plain_value(value) for name, value in model.get_params().items()},
        "rows": round(float(table.sum())),
        "features": rows.features,
        "scale": scaled,
        "n_columns": rows.n_columns,
        "groups": dict(zip(names.tolist(), table.sum(axis=1).tolist(), strict=True)),
        "n_clusters": model.n_clusters,
        "seconds": round(seconds, 2),
        **({"passes": model.n_passes_} if hasattr(model, "n_passes_") else {}),
        "notes": notes,
        "metrics": {of: {name: own.metric(name) for name in _METRICS} for of, own in found.items()},
        "certificate": _certificate(model),
        "fairness": {
            name: {
                "groups": len(of),
                "balance": _number(balance(counts)),
                "best_balance": _number(data_balance(counts)),
                "delta": _number(delta(counts)),
            }
            for name, (of, counts) in of_model.tables.items()
        },
        "largest_deviation": _largest_deviation(of_model),
        "cost_per_row": {name: {of: own.costs[name] for of, own in found.items()} for name in of_model.costs},
        "clusters": _clusters(table, names),
    }


def _certificate(model: Any) -> dict[str, float | None] | None:
    if not hasattr(model, "lower_bound_"):
        return None
    return {
        name: _number(getattr(model, f"{name}_")) for name in ("cost", "lower_bound", "gap", "violation")
        if hasattr(model, f"{name}_")
    }  # fmt: skip


def _largest_deviation(measured: Measured) -> dict[str, Any]:
    """The group and the cluster in which the share of the group differs most from its share in all rows."""
    worst: dict[str, Any] = {}
    for column, (names, table) in measured.tables.items():
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


def _clusters(table: np.ndarray, names: np.ndarray) -> list[dict[str, Any]]:
    return [
        {
            "cluster": k,
            "size": round(float(counts.sum())),
            "counts": dict(zip(map(str, names), counts.tolist(), strict=True)),
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


def as_text(result: dict[str, Any], *, verbose: bool = False) -> list[str]:
    """The lines that the command prints. Unless `verbose`, only the first notes, which change the result most."""
    features, notes = result["features"], result["notes"]
    rest = 0 if verbose else max(0, len(notes) - _PRINTED_NOTES)
    more = ", ..." if len(features) > _PRINTED_FEATURES else ""
    lines = [
        f"{result['method']}: {_count(result['rows'], 'row')}, {_count(len(features), 'feature')}, "
        f"{_count(len(result['groups']), 'group')}, {_count(result['n_clusters'], 'cluster')}, "
        f"{result['seconds']:,.1f} s" + (f", {result['passes']} passes" if "passes" in result else ""),
        f"features: {', '.join(map(shortened, features[:_PRINTED_FEATURES]))}{more} ({result['scale']})",
        *(f"note: {note}" for note in notes[: len(notes) - rest]),
        *([f"{_count(rest, 'more note')}: --verbose"] if rest else []),
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
    # Rounded up, because it is a bound.
    gap = "unknown" if found["gap"] is None else f"{math.ceil(found['gap'] * 1e5) / 1e5:.3%}"
    least, cost = found["lower_bound"], found["cost"]
    compared = f"lower bound {_shown(least, 1)}, cost {_shown(cost, 1)}"
    is_lower = None not in (least, cost) and cost < least
    # Whole rows can rarely meet the bounds exactly, so less than a row is said only if it explains a lower cost.
    if found.get("violation") and (is_lower or found["violation"] >= 1):
        off = f"the labels are off the bounds by up to {found['violation']:.2g} rows in a cluster"
        compared += f"; it is lower because {off}" if is_lower else f"; {off}"
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
