"""The results of `fairclust fit` and `audit`, as a dictionary for JSON and as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.table import Table
from scipy.stats import chi2_contingency

from fairclust.cli.labels import labels_table, write_labels
from fairclust.cli.options import Audit, Fit
from fairclust.cli.rows import Rows, RowsInMemory
from fairclust.cli.screen import in_columns
from fairclust.explain import chance_ranges, profile_lines
from fairclust.messages import count, percent, shortened
from fairclust.metrics import balance, data_balance, delta
from fairclust.outputs import write_text
from fairclust.report.render import MISSING, number, signed_percent
from fairclust.solvers.prices import certificate_text
from fairclust.tables import TableModel

# What the results call labels that another program made.
GIVEN = "given labels"

_EXPLAINED = (
    "SSE: sum of squared distances of the rows to the mean of their cluster; lower is better.\n"
    "Balance: rows of the smallest group for each row of the largest, in the worst cluster; higher is fairer.\n"
    "Delta: largest difference between the parts of two groups' rows that are in one cluster, as the mean over the "
    "pairs of groups; lower is fairer."
)
# What methods that keep neither shares nor a balance are asked; others weigh fairness against cost.
_ASKED = {
    GIVEN: "nothing; these labels were given",
    "KMeans": "no bound; k-means ignores the groups",
    "SpectralClustering": "no bound; spectral clustering ignores the groups",
    "RandomLabels": "no bound; the labels are drawn at random",
    "SociallyFairKMeans": "no bound; the lowest cost for the group that pays most",
    "InterpolatedTransportClustering": "no bound on the labels; the tolerance bounds memberships",
    "FairSpectralClustering": "no bound on the labels; the groups have equal means in the embedding",
    "FairDen": "no bound on the labels; the groups have equal means in the embedding",
    "FairAlignmentKMeans": "in every cluster, each group has its share of all rows, up to rows that are split",
}
_SET = ("target", "max_cost", "max_gap", "mean_tolerance")
_PLAIN = str | int | float | bool | None | list | tuple | dict
_SHOWN_GROUPS = 8
_PRINTED_FEATURES = 20
_PRINTED_NOTES = 5


class Measured(NamedTuple):
    """What is reported about the labels of a clustering."""

    sse: float
    # The names of the groups and their counts in the clusters, shape (n_groups, n_clusters), by sensitive column. If
    # there are several columns, the last entry has the combinations of their values.
    tables: Mapping[str, tuple[np.ndarray, np.ndarray]]
    groups: tuple[np.ndarray, np.ndarray]  # the last entry
    costs: Mapping[str, float]  # mean squared distance of the rows of a group to the mean of their cluster


def measure(rows: Rows, labels: Any, model: Any) -> Measured:
    """What is reported about labels, of which the model states the number of clusters and how rows are compared."""
    counts, costs = rows.counts_and_costs(labels, model)
    tables, paid = {}, {"all rows": float(costs.sum() / counts.sum())}
    for column, cells in rows.combinations.items():
        values, codes = np.unique(cells.to_numpy(dtype=str), return_inverse=True)
        table = np.zeros((len(values), counts.shape[1]), counts.dtype)
        np.add.at(table, codes, counts)
        tables[str(column)] = (values, table)
        shares = np.bincount(codes, costs) / table.sum(axis=1)
        paid |= {f"{column} {value}": float(cost) for value, cost in zip(values, shares, strict=True)}
    if len(tables) > 1:
        tables[" & ".join(tables)] = (np.array(list(rows.combinations.index)), counts)
    return Measured(float(costs.sum()), tables, list(tables.values())[-1], paid)


def report(
    args: Fit | Audit, rows: Rows, model: Any, *, notes: list[str], seconds: float
) -> list[str | Table]:
    """Describe a fit or given labels, write what the options ask for, and return what the command prints."""
    result = describe(model, rows, scale=args.scale, notes=notes, seconds=seconds)
    if isinstance(args, Fit) and args.out:
        parts = (labels_table(*part, rows.preparation.ids) for part in rows.parts(model.labels_))
        write_labels(args.out, parts, reasons=rows.left_out)
        result["labels"] = f"{args.out}; rows are counted from 1{rows.over}, clusters from 0"
    if args.report:
        from fairclust.cli.page import fit_page

        write_text(args.report, fit_page(result, rows, model.labels_, args))
        result["report"] = f"{args.report}; open it in a browser"
    if isinstance(args, Fit) and args.save:
        TableModel(rows.preparation, model, isinstance(rows.groups, dict)).save(args.save)
        result["model"] = f"{args.save}; `fairclust predict {args.save} TABLE` finds the clusters of new rows"
    return [json.dumps(result, indent=2)] if args.json else as_text(result, verbose=args.verbose)


def describe(model: Any, rows: Rows, *, scale: str, notes: list[str], seconds: float) -> dict[str, Any]:
    """Everything that the command reports about a fit, as plain values for JSON; a number that is undefined is None."""
    method = getattr(model, "title", type(model).__name__)
    measured = {method: measure(rows, model.labels_, model)}
    if method != "KMeans":
        measured["KMeans"] = measure(rows, rows.plain(model), model)
    of_model = measured[method]
    names, table = of_model.groups
    # Several columns are bounded each, or by their combinations, which come last.
    *columns, combined = of_model.tables
    bounded = columns if isinstance(rows.groups, dict) and columns else [combined]
    by_chance = None if rows.weights is not None else chance_ranges(table)
    return {
        "method": method,
        "parameters": {
            name: value if isinstance(value, _PLAIN) else str(value)
            for name, value in model.get_params().items()
        },
        "rows": round(float(table.sum())),
        "features": rows.preparation.features,
        "scale": "not scaled" if scale == "none" else "standardised",
        "groups": dict(zip(names.tolist(), table.sum(axis=1).tolist(), strict=True)),
        "n_clusters": model.n_clusters,
        "seconds": round(seconds, 2),
        **({"passes": model.n_passes_} if hasattr(model, "n_passes_") else {}),
        "asked": asked(model, bounded),
        "notes": notes,
        "metrics": {
            of: {"sse": _number(own.sse)}
            | {name: metric(own.groups[1]) for name, metric in _FAIRNESS.items()}
            for of, own in measured.items()
        },
        "certificate": _certificate(model),
        "fairness": {
            column: {"best_balance": _number(data_balance(counts))}
            | {
                name: {of: metric(own.tables[column][1]) for of, own in measured.items()}
                for name, metric in _FAIRNESS.items()
            }
            for column, (_, counts) in of_model.tables.items()
        },
        "largest_deviation": _largest_deviation({name: of_model.tables[name] for name in bounded}),
        "cost_per_row": {
            name: {of: own.costs[name] for of, own in measured.items()} for name in of_model.costs
        },
        "chance": None if by_chance is None else _by_chance(*measured.get(GIVEN, measured["KMeans"]).groups),
        "bounds": _share_bounds(model, names, table) if bounded == [combined] else {},
        "clusters": [_cluster(k, names, table, by_chance) for k in range(model.n_clusters)],
        "profiles": rows.profiles(model.labels_) if isinstance(rows, RowsInMemory) else [],
    }


def _by_chance(names: np.ndarray, table: np.ndarray) -> dict[str, Any] | None:
    """How many shares of groups in the clusters lie outside the range of chance, and the farthest one."""
    used = np.flatnonzero(table.sum(axis=0))
    if min(table.shape) < 2:
        return None
    low, high = (ends[:, used] for ends in chance_ranges(table))
    shares = table[:, used] / table[:, used].sum(axis=0)
    off = np.maximum(low - shares, shares - high)
    j, k = np.unravel_index(off.argmax(), off.shape)
    farthest = {"share": float(shares[j, k]), "low": float(low[j, k]), "high": float(high[j, k])}
    return {
        "shares": shares.size,
        "outside": int((off > 0).sum()),
        "p_value": float(chi2_contingency(table[:, used]).pvalue),
        "farthest": {"group": str(names[j]), "cluster": int(used[k]), **farthest},
    }


def _bounds(model: Any) -> dict[str, Any]:
    """The parameters of a method if they bound its clusters; a balance that the method keeps is `min_balance`."""
    if hasattr(model, "balance_"):
        return {"min_balance": model.balance_[0] / model.balance_[1]}
    if hasattr(model, "target_balance_"):
        return {"min_balance": model.target_balance_}
    return {} if type(model).__name__ in _ASKED else model.get_params()


def _share_bounds(model: Any, names: np.ndarray, table: np.ndarray) -> dict[str, list[float]]:
    """Between what the share of each group may lie, if one tolerance bounds them."""
    params = _bounds(model)
    tolerance = params.get("tolerance")
    other = ("target", "min_balance", "max_gap", "mean_tolerance", "max_cost", "max_cost_increase")
    if not tolerance or isinstance(tolerance, dict) or any(params.get(name) is not None for name in other):
        return {}
    shares = (table.sum(axis=1) / table.sum()).tolist()
    ends = [[share * (1 - tolerance), min(1.0, share / (1 - tolerance))] for share in shares]
    return dict(zip(names.tolist(), ends, strict=True))


def _certificate(model: Any) -> dict[str, float | None] | None:
    """The cost with its lower bound and violation; None for a method without a certificate."""
    if not hasattr(model, "lower_bound_"):
        return None
    stated = ("cost", "lower_bound", "gap", "violation", "tolerance")
    return {name: _number(getattr(model, f"{name}_")) for name in stated if hasattr(model, f"{name}_")}


def _cluster(
    k: int, names: np.ndarray, table: np.ndarray, by_chance: tuple[np.ndarray, np.ndarray] | None
) -> dict[str, Any]:
    """The size of a cluster, the counts and shares of the groups in it, and the shares that chance would give."""
    counts, texts = table[:, k], names.tolist()
    size = counts.sum()
    shares = (counts / size).tolist() if size else [None] * len(counts)
    ranges = [] if by_chance is None else zip(*(ends[:, k].tolist() for ends in by_chance), strict=True)
    return {
        "cluster": k,
        "size": round(float(size)),
        "counts": dict(zip(texts, counts.tolist(), strict=True)),
        "shares": dict(zip(texts, shares, strict=True)),
        "chance": dict(zip(texts, ranges, strict=by_chance is not None)),
    }


def asked(model: Any, columns: list[str]) -> list[str]:
    """What the user asked a method to keep, a line for each bound; empty for a method without bounds.

    Parameters that no option of its own states are shown as they were set.
    """
    params = _bounds(model)
    lines, names = [], [*_SET, "size_min", "size_max"]
    if params.get("size_min") == params.get("size_max") == 1.0 and isinstance(params["size_min"], float):
        lines, names = ["clusters of equal size"], [*_SET]
    lines += [f"{name}={params[name]}" for name in names if params.get(name) is not None]
    if (given := params.get("max_cost_increase")) is not None:
        return [*lines, f"the fairest clusters that cost at most {percent(given)} more than without a bound"]
    if params.get("max_cost") is not None:
        return lines
    whole = "its share of all rows" if params.get("target") is None else "its target"
    # If other bounds are stated for some columns only, the default tolerance of 0 does not bound the others.
    named = any(isinstance(params.get(name), dict) for name in ("min_balance", "max_gap"))
    for column in columns:
        tolerance, balance, *others = (
            of.get(column) if isinstance(of := params.get(name), dict) else of
            for name in ("tolerance", "min_balance", "max_gap", "mean_tolerance")
        )
        if balance is not None:
            text = f"for each row of the largest group, at least {balance:g} rows of the smallest, in every cluster"
        elif tolerance is None or others != [None, None] or (named and params["tolerance"] == 0 == tolerance):
            continue
        elif tolerance == 0:
            text = f"in every cluster, each group has {whole} (tolerance 0; --tolerance 0.1 allows about a tenth)"
        else:
            text = f"in every cluster, each group has at least {1 - tolerance:g} times and at most "
            text += f"{1 / (1 - tolerance):.4g} times {whole} (tolerance {tolerance:g})"
        lines.append(f"{column}: {text}")
    return lines


def _largest_deviation(tables: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """The group and the cluster in which the share of the group differs most from its share in all rows."""
    worst: dict[str, Any] = {}
    for column, (names, table) in tables.items():
        overall = table.sum(axis=1, keepdims=True) / table.sum()
        with np.errstate(invalid="ignore"):
            shares = table / table.sum(axis=0)
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


def _number(value: Any) -> float | None:
    """The value as a float; None for infinity and NaN, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


_FAIRNESS = {"balance": lambda table: _number(balance(table)), "delta": lambda table: _number(delta(table))}


def as_text(result: dict[str, Any], *, verbose: bool = False) -> list[str | Table]:
    """The lines that the command prints. Unless `verbose`, only the first notes, which change the result most."""
    features, notes = result["features"], result["notes"]
    rest = 0 if verbose else max(0, len(notes) - _PRINTED_NOTES)
    more = ", ..." if len(features) > _PRINTED_FEATURES else ""
    lines: list[str | Table] = [
        f"{result['method']}: {count(result['rows'], 'row')}, {count(len(features), 'column')} clustered by, "
        f"{count(len(result['groups']), 'group')}, {count(result['n_clusters'], 'cluster')}"
        + (f", {result['seconds']:,.1f} s" if result["seconds"] else "")
        + (f", {result['passes']} passes" if "passes" in result else ""),
        *answer_lines(result),
        f"clustered by: {', '.join(map(shortened, features[:_PRINTED_FEATURES]))}{more} ({result['scale']})",
        *(f"note: {note}" for note in notes[: len(notes) - rest]),
        *([f"{count(rest, 'more note')}: --verbose"] if rest else []),
        "",
    ]
    for table in tables(result):
        lines += [in_columns(table.rows), table.caption, ""]
    lines += profile_lines(pd.DataFrame(result["profiles"])) if result["profiles"] else []
    outputs = [f"{name}: {result[name]}" for name in ("labels", "model", "report") if name in result]
    return lines + (["", *outputs] if outputs and result["profiles"] else outputs)


def answer_lines(result: dict[str, Any]) -> list[str]:
    """What was asked and what was got, in words: bounds, cost, who pays, and how sure that is."""
    certificate = result["certificate"] or {}
    method = result["method"]
    unbounded = [_ASKED.get(method, f"no bound; {method} weighs fairness against cost")]
    worst = result["largest_deviation"]
    largest = (
        f"the largest difference is in cluster {worst['cluster']}, with {percent(worst['share'])} "
        f"{shortened(worst['group'])} against {percent(worst['share_in_all'])} of all rows"
    )
    return [
        *(f"asked: {line}" for line in result["asked"] or unbounded),
        "got: " + "; ".join([*_kept(result, certificate.get("violation")), largest]),
        *_cost_lines(result, certificate.get("tolerance")),
        *_chance_lines(result),
        # How much cheaper other labels, and other centres, may be.
        *([f"certificate: {certificate_text(certificate)}"] if certificate else []),
    ]


def _kept(result: dict[str, Any], violation: float | None) -> list[str]:
    """How many clusters are empty, and whether the bounds were met.

    If a cluster lacks a group that is bounded, this names the cluster in which most of it was due.
    """
    empty = sum(not any(cluster["counts"].values()) for cluster in result["clusters"])
    told, met = [], "met"
    if empty:
        told = [
            f"{empty:,} of {count(result['n_clusters'], 'cluster')} {'is' if empty == 1 else 'are'} empty"
        ]
        met = "met in the other clusters"
    if violation is None or violation == 0:
        return told if violation is None else [*told, met]
    if violation >= 1:
        return [*told, f"not met: the labels are off the bounds by up to {violation:.2g} rows in a cluster"]
    absent = [
        (result["groups"][name] / result["rows"] * cluster["size"], cluster["cluster"], cluster["size"], name)
        for cluster in result["clusters"]
        for name, n in cluster["counts"].items()
        if n == 0 and cluster["size"]
    ]
    # The groups are combinations of values, which are not bounded where each column is.
    if not absent or result["largest_deviation"]["column"] != [*result["fairness"]][-1]:
        return [*told, f"{met}, up to whole rows"]
    due, k, size, name = max(absent)
    lacks = (
        f"cluster {k} of {count(size, 'row')} has none of {shortened(name)}, although {due:.1f} rows were due"
    )
    return [*told, f"{met}, up to whole rows ({lacks}; fewer clusters or --min-balance would change that)"]


def _cost_lines(result: dict[str, Any], tolerance: float | None) -> list[str]:
    """The cost against that of k-means, what a budget buys, and the groups that pay most and least."""
    method, metrics, params = result["method"], result["metrics"], result["parameters"]
    sse = metrics[method]["sse"]
    squares = f"sum of squared distances {number(sse, 1)}"
    if method == "KMeans":
        return [f"cost: {squares}"]
    if (increase := increase_over(sse, metrics["KMeans"]["sse"])) is None:
        return [f"cost: {squares}", *_payer_lines(result)]
    local = ", which ended in worse centres" if increase < -5e-4 else ""
    starts = f"{'' if method == GIVEN else 'both with '}{count(params.get('n_init', 1), 'start')}"
    lines = [f"cost: {compared(increase)} than k-means{local} ({squares}; {starts})"]
    budget = "" if (given := params.get("max_cost_increase")) is None else f" of {percent(given)}"
    # Rounded first, so that nothing is -0.0 %.
    more = percent(round(increase, 3) + 0.0)
    if tolerance == 0:
        lines.append(f"budget: the budget{budget} was not needed; exact shares cost {more} more")
    elif tolerance == 1:
        lines.append(
            f"budget: only clusters without a bound on the shares meet the budget{budget}; they cost {more} more"
        )
    elif tolerance is not None:
        bought = math.ceil(tolerance * 1e4) / 1e4
        lines.append(f"budget: the budget{budget} allows a tolerance of {bought:g}, which costs {more} more")
    return [*lines, *_payer_lines(result)]


def increase_over(cost: float, plain: float) -> float | None:
    """How much larger a cost is than that of k-means, relative to it; None if k-means costs nothing, up to rounding."""
    return None if plain <= 1e-9 * cost else cost / plain - 1


def _payer_lines(result: dict[str, Any]) -> list[str]:
    """The groups that pay most and least, and those whose rows cost nothing with k-means; none for k-means itself."""
    costs = {
        group: (of[result["method"]], of["KMeans"])
        for group, of in result["cost_per_row"].items()
        if group != "all rows"
    }
    paid = {group: more for group, of in costs.items() if (more := increase_over(*of)) is not None}
    told = []
    if paid:
        most, least = (end(paid, key=paid.__getitem__) for end in (max, min))
        told = [f"a row of {shortened(most)} costs {compared(paid[most])} than with k-means"]
        told += [f"a row of {shortened(least)} {compared(paid[least])}"] * (paid[most] != paid[least])
    free = {group: own for group, (own, _) in costs.items() if group not in paid and own}
    if free:
        listed, dearest = shortened(" and ".join(free), 200), number(max(free.values()), 3)
        told.append(f"rows of {listed}, which cost nothing with k-means, cost up to {dearest} each")
    return [f"who pays: {', and '.join(told)}"] if told else []


def _chance_lines(result: dict[str, Any]) -> list[str]:
    """Whether the shares of k-means, or of given labels, differ by more than chance."""
    chance, whose = result["chance"], "these labels" if result["method"] == GIVEN else "k-means"
    if chance is None:
        return []
    worst, p = chance["farthest"], chance["p_value"]
    told = f"{chance['outside']} of the {chance['shares']} shares of {whose} are outside the ranges of random labels"
    if chance["outside"]:
        told += f" (cluster {worst['cluster']} has {percent(worst['share'])} {shortened(worst['group'])} instead of "
        told += f"{percent(worst['low'])} to {percent(worst['high'])})"
    more = f"{'more' if p < 0.05 else 'no more'} than chance explains (chi-squared test, p = {p:.2g})"
    return [f"chance: {told}, and together they differ {more}"]


class Shown(NamedTuple):
    """A table of the answer, for the screen and for the page."""

    heading: str
    rows: list[list[str]]  # the first is the head
    caption: str


def tables(result: dict[str, Any]) -> list[Shown]:
    """The metrics, those of fairness for each column; who pays; and the groups in the clusters."""
    metrics, fairness = result["metrics"], result["fairness"]
    values = [("SSE", 1, [*(of["sse"] for of in metrics.values()), None])]
    for column, of in fairness.items():
        of_column = f" of {column}" if len(fairness) > 1 else ""
        values.append((f"Balance{of_column}", 4, [*of["balance"].values(), of["best_balance"]]))
        values.append((f"Delta{of_column}", 4, [*of["delta"].values(), 0.0]))
    rows = [["metric", *metrics, "at best"]]
    rows += [[label, *(number(value, decimals) for value in line)] for label, decimals, line in values]
    return [Shown("Cost and fairness", rows, _EXPLAINED), _payers(result), _shares(result)]


def _payers(result: dict[str, Any]) -> Shown:
    """The mean cost of a row of each group, by method; and how much more it is than k-means'."""
    costs = result["cost_per_row"]
    methods = list(costs["all rows"])
    rows = [["who pays", *methods, *(["more"] if len(methods) > 1 else [])]]
    for name, of in costs.items():
        more = None if len(methods) < 2 else increase_over(*of.values())
        cells = [name, *(f"{cost:.3f}" for cost in of.values()), "" if more is None else signed_percent(more)]
        rows.append(cells[: len(rows[0])])
    return Shown(
        "Who pays", rows, "The mean squared distance of a row of each group to the mean of its cluster."
    )


def largest_groups(result: dict[str, Any], most: int) -> list[str]:
    """The names of the largest groups, sorted."""
    groups = result["groups"]
    return sorted(sorted(groups, key=lambda name: -groups[name])[:most])


def _shares(result: dict[str, Any]) -> Shown:
    """Size and group shares of each cluster and of all rows. Of many groups only the largest are shown."""
    groups, n_rows, bounds = result["groups"], result["rows"], result["bounds"]
    largest = largest_groups(result, _SHOWN_GROUPS)
    rest = len(groups) - len(largest)
    rows = [["cluster", "rows", *largest, *([count(rest, "other")] if rest else [])]]
    shares_of_all = {group: size / n_rows for group, size in groups.items()}
    for cluster in [*result["clusters"], {"cluster": "all", "size": n_rows, "shares": shares_of_all}]:
        shares = [cluster["shares"][name] for name in largest]
        if rest:
            shares.append(None if shares[0] is None else max(0.0, 1 - sum(shares)))
        cells = [MISSING if share is None else percent(share) for share in shares]
        for i, name in enumerate(largest):
            if name in cluster.get("chance", {}) and shares[i] is not None:
                low, high = cluster["chance"][name]
                outside = "" if low <= shares[i] <= high else "*"
                cells[i] = f"{outside}{cells[i]} ({100 * low:.1f} to {100 * high:.1f})"
        rows.append([str(cluster["cluster"]), f"{cluster['size']:,}", *cells])
    if bounds:
        ends = [f"{percent(bounds[name][0])} to {percent(bounds[name][1])}" for name in largest]
        rows.append(["bounds", "", *ends, *([""] if rest else [])])
    caption = "The shares of the groups in each cluster."
    if result["clusters"][0]["chance"]:
        caption += (
            " In brackets: where 95 % of shares would be, in per cent, if labels were random; * marks others."
        )
    return Shown("Groups in the clusters", rows, caption)


def compared(change: float) -> str:
    """A relative change in words: '1.2 % more'."""
    # Rounded first, so that nothing is 0.0 % less.
    return f"{percent(abs(change))} {'more' if round(change, 3) >= 0 else 'less'}"
