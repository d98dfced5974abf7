"""The tables: those of each paper, with reported and reproduced values and verdicts, and an overview of any run."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from fairclust.outputs import atomic_write
from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import TableSpec
from fairclust.report.material import Material
from fairclust.report.names import metric_label, table_name
from fairclust.report.render import MISSING, lam, number, percent, spread_text, write_table
from fairclust.report.rows import VERDICTS, Row, Value
from fairclust.report.selection import choose, describe, match_on
from fairclust.report.verdicts import table_rows, verdict_frame

_OVERVIEW_METRICS = ("sse", "balance", "fairness_error", "delta", "fairness_ratio", "awd")
_HOW_TO_READ = (
    "Every entry shows the mean ± standard deviation over the starts, the best start (for costs), and in brackets the "
    "reported value (for costs, with the relative difference) and that of the published program or labels.",
    "The comparison is 'as printed' if the paper publishes the setting, and 'matched fairness' if it does not.",
)


def make_table(material: Material, spec: TableSpec, stem: Path) -> None:
    """Write a paper's table as CSV, Markdown and LaTeX, and the verdicts on its values as '.verdicts.csv'.

    ValueError if the paper has no reported values.
    """
    reported, names = material.reported, material.names
    if reported.empty:
        raise ValueError("a table needs reported values; add the key `reported` to the paper's file")
    rows = table_rows(spec, reported, material.cells, None if material.programs.empty else material.programs)
    with atomic_write(stem.with_name(f"{stem.name}.verdicts.csv")) as file:
        verdict_frame(material.paper, spec, rows).to_csv(file, index=False)
    layout = _by_method if spec.layout == "methods" else _by_dataset
    write_table(
        stem,
        pd.DataFrame([_numbers(row) for row in rows]),
        layout(rows, spec, names),
        title=f"{material.title}, {table_name(spec.number)}: {spec.title}, reported and reproduced",
        notes=_notes(rows, spec, reported, names),
    )


def make_overview(scores: pd.DataFrame, level: float, names: Names, stem: Path) -> None:
    """Write the table of every method on every data set at one level of the fairness error, the largest mean allowed.

    One row per data set, K and method. For a method that does not reach the level, the fairest setting is shown.
    """
    match = match_on("fairness_error")
    data, notes = [], [f"{describe(match).partition(' The level')[0]} The level is {level:g}."]
    for (dataset, k), of_dataset in scores.groupby(["dataset", "n_clusters"], sort=False):
        for method in names.in_order(of_dataset.method):
            choice = choose(of_dataset[of_dataset.method == method], level, match)
            row: dict[str, object] = {"dataset": dataset, "n_clusters": k, "method": method}
            row |= {"lam": choice.lam, "setting": choice.setting}
            for metric in _OVERVIEW_METRICS:
                found = choice.spread(metric)
                row |= {metric: found.mean, f"{metric} sd": found.sd, f"{metric} best": found.best(metric)}
            row |= {"starts": choice.n_ok, "starts asked": choice.n_all, "reached": choice.reached}
            data.append({**row, "note": choice.note})
            if choice.note:
                notes.append(f"{names.dataset(str(dataset))}, {_labelled(method, names)}: {choice.note}.")
    frame = pd.DataFrame(data)
    shown = overview_texts(frame, names)
    write_table(stem, frame, shown, title="Every method on every data set", notes=notes)


def overview_texts(overview: pd.DataFrame, names: Names) -> pd.DataFrame:
    """The overview for readers, from the data of its CSV."""
    shown = []
    for row in overview.to_dict("records"):
        text = {"data set": names.dataset(row["dataset"]), "K": row["n_clusters"]}
        text |= {"method": _labelled(row["method"], names), "setting": row["setting"] or MISSING}
        for metric in _OVERVIEW_METRICS:
            column = COLUMNS[metric]
            best = row[f"{metric} best"] if column.is_cost else math.nan
            text[column.label] = spread_text(row[metric], row[f"{metric} sd"], column.decimals, best)
        shown.append({**text, "starts": _starts(row["starts"], row["starts asked"])})
    return pd.DataFrame(shown)


def load_overview(path: Path) -> pd.DataFrame:
    """Read the CSV of `make_overview`; absent texts are empty."""
    return pd.read_csv(path).fillna({"setting": "", "note": ""})


def value_text(value: Value) -> str:
    """The text of a value: ours over the starts, and the reported value in brackets if there is one."""
    column = COLUMNS.get(value.metric)
    decimals = max(min(column.decimals, 4) if column else 0, value.decimals)
    is_cost = column is not None and column.is_cost
    best = value.ours.best(value.metric) if is_cost else math.nan
    text = spread_text(value.ours.mean, value.ours.sd, decimals, best)
    if math.isnan(value.reported):
        return text
    beside = number(value.reported, value.decimals)
    if is_cost and value.reported and not math.isnan(value.ours.mean):
        beside += f"; {percent(value.ours.mean / value.reported - 1)}"
    if value.program.n:
        # The values of programs are stored with six digits.
        size = abs(value.program.mean)
        known = 5 - math.floor(math.log10(size)) if size and math.isfinite(size) else decimals
        digits = max(0, min(decimals, known))
        beside += f"; {value.program_kind} {spread_text(value.program.mean, value.program.sd, digits)}"
    return f"{text} ({beside})"


def _numbers(row: Row) -> dict[str, object]:
    """The columns of a row in the CSV."""
    found: dict[str, object] = {
        "dataset": row.dataset,
        "n_clusters": row.n_clusters,
        "method": row.method,
        "role": row.role,
        "stands in for": row.original,
        "lam reported": row.lam,
        "kind": row.kind if row.role == "paper" else "",
        "setting": row.choice.setting,
        "lam": row.choice.lam,
        "starts": row.choice.n_ok,
        "starts asked": row.choice.n_all,
    }
    for value in row.values:
        name, ours = value.metric, value.ours
        found |= {f"{name} reported": value.reported, f"{name} mean": ours.mean}
        found |= {
            f"{name} sd": ours.sd,
            f"{name} best": ours.best(name),
            f"{name} program": value.program.mean,
        }
    verdict = {"verdict": row.verdict, "direction": row.direction}
    return found | verdict | {"program": _program(row), "reason": "; ".join(row.reasons), "note": row.note}


def _by_method(rows: list[Row], spec: TableSpec, names: Names) -> pd.DataFrame:
    """A row for every method of a data set."""
    several = len({row.n_clusters for row in rows}) > 1
    shown = []
    for row in rows:
        text: dict[str, object] = {"data set": _titled(row, names)}
        if several:
            text["K"] = row.n_clusters if row.n_clusters is not None else MISSING
        text["method"] = _labelled(row.method, names, row)
        text |= {metric_label(value.metric): value_text(value) for value in row.values}
        shown.append(text | _how(row) | {"verdict": _verdict(row)})
    frame = pd.DataFrame(shown).fillna(MISSING)
    last = ["setting", "starts", "comparison", "verdict"]
    return frame[[*(name for name in frame.columns if name not in last), *last]] if len(frame) else frame


def _by_dataset(rows: list[Row], spec: TableSpec, names: Names) -> pd.DataFrame:
    """A row for every data set, with the paper's methods side by side. Each of our methods has a separate row."""
    lines: dict[tuple[object, ...], dict[str, object]] = {}
    for row in rows:
        is_ours = row.method in spec.ours
        key = (row.dataset, row.n_clusters, row.method if is_ours else "")
        title = _titled(row, names)
        if is_ours:
            title += f": {_labelled(row.method, names, row)}"
        text = lines.setdefault(key, {"data set": title})
        # The values of our methods are in the columns of the paper's own method, with which they compete.
        label = names.method(spec.own or row.method) if is_ours else names.method(row.method)
        if f"{label}: verdict" in text:
            label += f", lambda {lam(row.lam)}"
        text |= {f"{label}: {metric_label(value.metric)}": value_text(value) for value in row.values}
        text |= {f"{label}: {name}": words for name, words in _how(row).items()}
        text[f"{label}: verdict"] = _verdict(row)
    return pd.DataFrame(list(lines.values())).fillna(MISSING)


def _how(row: Row) -> dict[str, object]:
    """Setting, starts and kind of comparison of a row, for readers."""
    setting = row.choice.setting or MISSING
    printed = lam(row.lam)
    if row.role == "paper" and printed != MISSING and row.choice.n_ok and row.choice.lam != row.lam:
        setting += f" (printed: lam={printed})"
    return {
        "setting": setting,
        "starts": _starts(row.choice.n_ok, row.choice.n_all),
        "comparison": row.kind if row.verdict and row.kind else MISSING,
    }


def _verdict(row: Row) -> str:
    return f"{row.verdict}: {row.direction}" if row.direction else row.verdict or MISSING


def _program(row: Row) -> str:
    """The published program beside a row, and its setting."""
    return f"{row.program.program}: {row.program.words}" if row.program else ""


def _starts(n_ok: int, n_all: int) -> str:
    return MISSING if not n_all else str(n_ok) if n_ok == n_all else f"{n_ok} of {n_all}"


def _titled(row: Row, names: Names) -> str:
    title = names.dataset(row.dataset)
    said = not row.original or names.dataset(row.original) in title
    return title if said else f"{title} (stands in for {names.dataset(row.original)})"


def _labelled(method: str, names: Names, row: Row | None = None) -> str:
    if row is not None and row.role == "variant":
        return f"{names.method(method)} (variant)"
    is_ours = names.is_ours(method) or (row is not None and row.role == "ours")
    return f"{names.method(method)} (ours)" if is_ours else names.method(method)


def _notes(rows: list[Row], spec: TableSpec, reported: pd.DataFrame, names: Names) -> list[str]:
    """The notes below a table: how to read it, the paper's remarks, the meaning of the verdicts, and the reasons."""
    notes = [*_HOW_TO_READ, describe(spec.match), *spec.remarks]
    used = {row.verdict for row in rows}
    notes += [f"{verdict}: {meaning}." for verdict, meaning in VERDICTS.items() if verdict in used]
    for row in rows:
        where = f"{_titled(row, names)}, {_labelled(row.method, names, row)}"
        if row.lam == row.lam:
            where += f", lambda {lam(row.lam)}"
        words = [text.rstrip(".") for text in dict.fromkeys([*row.reasons, row.note]) if text]
        words += [f"Program: {_program(row)}"] if row.program else []
        if row.role == "stand-in":
            words += _of_the_original(row, spec, reported, names)
        if words:
            verdict = f"{_verdict(row)}: " if row.verdict else ""
            notes.append(f"{where}: {verdict}{'. '.join(words)}.")
    return notes


def _of_the_original(row: Row, spec: TableSpec, reported: pd.DataFrame, names: Names) -> list[str]:
    """A sentence with the values that the paper reports for the data set that a stand-in replaces."""
    at = reported[(reported.table == spec.number) & (reported.dataset == row.original)]
    at = at[(at.method == row.method) & at.value.notna()]
    at = at[(at.lam == row.lam) | at.lam.isna()] if not math.isnan(row.lam) else at
    values = [
        f"{metric_label(str(v.metric))} {number(float(v.value), int(v.decimals))}" for v in at.itertuples()
    ]
    return [f"The paper reports for {names.dataset(row.original)}: {', '.join(values)}"] if values else []
