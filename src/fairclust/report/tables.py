"""The tables: those of each paper, with reported and reproduced values, an overview of any run, and the scoreboard.

A paper's table is made of its rows, and leaves a line for each reported value in '.verdicts.csv'. The scoreboard joins
these lines, and the page shows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.messages import count, counted, in_words
from fairclust.outputs import write_text
from fairclust.pipeline.columns import COLUMNS, column_of
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import MatchSpec, TableSpec
from fairclust.report.checks import FAILS, HOLDS, common_verdict
from fairclust.report.claims import count_claims, load_claims
from fairclust.report.material import Material
from fairclust.report.render import (
    MISSING,
    Table,
    joined,
    lam,
    metric_label,
    number,
    percent,
    read_data,
    spread_text,
    table_name,
)
from fairclust.report.rows import KINDS, MATCHED, Row, Value, whole_number
from fairclust.report.selection import Spread, choose, describe
from fairclust.report.verdicts import CAUSES, DIFFERING, VERDICTS, is_near, table_rows

_OVERVIEW_METRICS = ("sse", "balance", "fairness_error", "delta", "fairness_ratio", "awd")
_REASON = attrgetter("cause", "reason", "evidence")
_HOW_TO_READ = (
    "Every entry shows the mean ± standard deviation over the starts, the best start (for costs), and in brackets the "
    "reported value (for costs, with the relative difference) and that of the published program or labels.",
    "The comparison is 'as printed' if the paper publishes the setting, and 'matched fairness' if it does not.",
)
_OF_PAPER = ("impossible", "unpublished", "not run")
"""Verdicts of rows in which nothing could be compared; their kind of comparison is shown as 'not compared'."""
_AGREEING = ("reproduced", "reached by a start", "on the front")
"""Verdicts of rows that the paper's values agree with."""
AGREES = {"yes": "agrees", "start": "reached by a start", "no": "differs"}
"""How a value compares with the reported one, for readers; 'lower' and 'higher' stand for themselves."""

VERDICT_COLUMNS = [
    *("paper", "table", "dataset", "n_clusters", "lam", "method", "metric", "reported", "decimals"),
    *("program", "program_kind", "program_mean", "program_low", "program_high", "program_runs", "kind"),
    *("setting", "seeds", "mean", "sd", "low", "high", "agrees", "verdict", "direction"),
    *("cause", "reason", "evidence", "note"),
]
ROW_KEY = ["paper", "table", "dataset", "n_clusters", "lam", "method"]
"""The columns that together name one row."""
_TEXT = ("paper", "table", "dataset", "method", "metric", "program", "program_kind", "kind", "setting", "agrees",
         "verdict", "direction", "cause", "reason", "evidence", "note")  # fmt: skip
_COUNTS = ("n_clusters", "decimals", "program_runs", "seeds")


def make_table(material: Material, spec: TableSpec, stem: Path) -> None:
    """Write a paper's table as CSV, Markdown and LaTeX, and the verdicts on its values as '.verdicts.csv'.

    ValueError if the paper has no reported values.
    """
    reported, names = material.reported, material.names
    if reported.empty:
        raise ValueError("a table needs reported values; add the key `reported` to the paper's file")
    rows = table_rows(spec, reported, material.cells, material.programs)
    lines = reported_lines(material.paper, spec, rows)
    write_text(stem.with_name(f"{stem.name}.verdicts.csv"), lines.to_csv(index=False))
    labels = [metric_label(value.metric) for row in rows for value in row.values]
    shown, data, notes = [], [], [*_HOW_TO_READ, describe(spec.match), *spec.remarks]
    used = {row.verdict for row in rows}
    notes += [f"{verdict}: {meaning}." for verdict, meaning in VERDICTS.items() if verdict in used]
    for row in rows:
        shown.append(_texts(row, labels, names))
        data.append(_numbers(row))
        notes += _notes(row, spec, reported, names)
    if len({row.n_clusters for row in rows}) == 1:
        shown = [{name: text for name, text in row.items() if name != "K"} for row in shown]
    title = f"{material.title}, {table_name(spec.number)}: {spec.title}, reported and reproduced"
    Table(title, shown, notes=notes).write(stem, pd.DataFrame(data))


def make_overview(scores: pd.DataFrame, level: float, names: Names, stem: Path) -> None:
    """Write the table of every method on every data set at one level of the fairness error, the largest mean allowed.

    One row per data set, K and method. For a method that does not reach the level, the fairest setting is shown.
    """
    match = MatchSpec(fairness="fairness_error")
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
    shown = overview_texts(frame, names).to_dict("records")
    Table("Every method on every data set", shown, notes=notes).write(stem, frame)


def overview_texts(overview: pd.DataFrame, names: Names) -> pd.DataFrame:
    """The overview for readers, from the data of its CSV."""
    shown = []
    for row in overview.fillna({"setting": ""}).to_dict("records"):
        text = {"data set": names.dataset(row["dataset"]), "K": row["n_clusters"]}
        text |= {"method": _labelled(row["method"], names), "setting": row["setting"] or MISSING}
        for metric in _OVERVIEW_METRICS:
            column = COLUMNS[metric]
            best = row[f"{metric} best"] if column.is_cost else math.nan
            text[column.label] = spread_text(row[metric], row[f"{metric} sd"], column.decimals, best)
        shown.append({**text, "starts": _starts(row["starts"], row["starts asked"])})
    return pd.DataFrame(shown)


def best_of(value: Value) -> float:
    """The best start of a cost; NaN for other metrics, whose values may choose the setting."""
    return value.ours.best(value.metric) if column_of(value.metric).is_cost else math.nan


def value_text(value: Value, source: str) -> str:
    """A value as text: ours over the starts, and in brackets the reported value, if there is one.

    `source` is 'program' or 'labels', where the values of the published program come from.
    """
    column, ours, program = column_of(value.metric), value.ours, value.program
    printed = 0 if math.isnan(value.reported) else value.decimals
    decimals = max(min(column.decimals, 4), printed)
    text = spread_text(ours.mean, ours.sd, decimals, best_of(value))
    if math.isnan(value.reported):
        return text
    beside = number(value.reported, printed)
    if column.is_cost and value.reported and not math.isnan(ours.mean):
        beside += f"; {percent(ours.mean / value.reported - 1)}"
    if program.n:
        # The values of programs are stored with six digits.
        size = abs(program.mean)
        known = 5 - math.floor(math.log10(size)) if size and math.isfinite(size) else decimals
        digits = max(0, min(decimals, known))
        beside += f"; {source} {spread_text(program.mean, program.sd, digits)}"
    return f"{text} ({beside})"


def _texts(row: Row, labels: Iterable[str], names: Names) -> dict[str, object]:
    """A row of a paper's table for readers; `labels` are those of all metrics of the table."""
    choice, source = row.choice, row.program.kind if row.program else ""
    setting, printed = choice.setting or MISSING, lam(row.lam)
    if row.role == "paper" and printed != MISSING and choice.n_ok and choice.lam != row.lam:
        setting += f" (printed: lam={printed})"
    return {
        "data set": _dataset(row, names),
        "K": MISSING if row.n_clusters is None else row.n_clusters,
        "method": _labelled(row.method, names, row.role),
        **dict.fromkeys(labels, MISSING),
        **{metric_label(value.metric): value_text(value, source) for value in row.values},
        "setting": setting,
        "starts": _starts(choice.n_ok, choice.n_all),
        "comparison": row.kind if row.verdict and row.kind else MISSING,
        "verdict": verdict_text(row) or MISSING,
    }


def _numbers(row: Row) -> dict[str, object]:
    """A row of a paper's table for the CSV."""
    choice = row.choice
    found: dict[str, object] = {"dataset": row.dataset, "n_clusters": row.n_clusters, "method": row.method}
    found |= {"role": row.role, "stands in for": row.original, "lam reported": row.lam}
    found |= {"kind": row.kind if row.role == "paper" else "", "setting": choice.setting}
    found |= {"lam": choice.lam, "starts": choice.n_ok, "starts asked": choice.n_all}
    for value in row.values:
        name, ours = value.metric, value.ours
        found |= {f"{name} reported": value.reported, f"{name} mean": ours.mean, f"{name} sd": ours.sd}
        found |= {f"{name} best": ours.best(name), f"{name} program": value.program.mean}
    found |= {"verdict": row.verdict, "direction": row.direction, "program": _program(row)}
    return found | {"reason": "; ".join(reasons_of(map(_REASON, row.values))), "note": row.note}


def _program(row: Row) -> str:
    """The published program that is shown beside a row, and how it was run; empty if there is none."""
    return f"{row.program.program}: {row.program.words}" if row.program else ""


def verdict_text(row: Any) -> str:
    """The verdict of a row, and its direction."""
    return f"{row.verdict}: {row.direction}" if row.direction else row.verdict


def _dataset(row: Row, names: Names) -> str:
    """The title of a row's data set, and that of the one that it stands in for."""
    title, original = names.dataset(row.dataset), names.dataset(row.original)
    return title if original in title else f"{title} (stands in for {original})"


def _starts(n_ok: int, n_all: int) -> str:
    return MISSING if not n_all else str(n_ok) if n_ok == n_all else f"{n_ok} of {n_all}"


def _labelled(method: str, names: Names, role: str = "") -> str:
    if role != "variant" and names.is_ours(method):
        role = "ours"
    return names.method(method) + (f" ({role})" if role in ("ours", "variant") else "")


def _notes(row: Row, spec: TableSpec, reported: pd.DataFrame, names: Names) -> list[str]:
    """The note on a row below its table, with the reasons, if it has one."""
    texts = dict.fromkeys([*reasons_of(map(_REASON, row.values)), row.note])
    words = [text.rstrip(".") for text in texts if text]
    words += [f"Program: {_program(row)}"] if row.program else []
    if row.role == "stand-in":
        # The values that the paper reports for the data set that it replaces.
        at = reported[(reported.table == spec.number) & (reported.dataset == row.original)]
        at = at[(at.method == row.method) & at.value.notna()]
        at = at[(at.lam == row.lam) | at.lam.isna()] if not math.isnan(row.lam) else at
        values = [f"{metric_label(v.metric)} {number(v.value, v.decimals)}" for v in at.itertuples()]
        original = names.dataset(row.original)
        words += [f"The paper reports for {original}: {', '.join(values)}"] if values else []
    printed = "" if math.isnan(row.lam) else f", lambda {lam(row.lam)}"
    where = f"{_dataset(row, names)}, {_labelled(row.method, names, row.role)}{printed}"
    verdict = f"{verdict_text(row)}: " if row.verdict else ""
    return [f"{where}: {verdict}{'. '.join(words)}."] if words else []


def reported_lines(paper: str, spec: TableSpec, rows: Iterable[Row]) -> pd.DataFrame:
    """A line for each reported value of the paper's rows, with the verdict of its row; columns `VERDICT_COLUMNS`.

    ``seeds`` is the number of starts that have a value.
    """
    lines = []
    for row in (row for row in rows if row.role == "paper"):
        for value in row.values:
            lacks = math.isnan(value.reported)
            if lacks and value.metric in spec.beside and not value.note:
                continue
            program = row.program if value.program.n else None
            lines.append(
                {
                    **{**vars(row), **vars(value), **vars(value.ours)},
                    **{f"program_{name}": of for name, of in vars(value.program).items()},
                    **{"paper": paper, "table": spec.number, "setting": row.choice.setting},
                    **{"program": program.program if program else "", "program_runs": value.program.n},
                    **{"program_kind": program.kind if program else "", "seeds": value.ours.n},
                    "decimals": None if lacks else value.decimals,
                    "note": joined(*dict.fromkeys([value.note, row.note])),
                }
            )
    # The further attributes of the rows and values are no columns.
    return pd.DataFrame(lines, columns=VERDICT_COLUMNS).astype(dict.fromkeys(_COUNTS, "Int64"))


def load_verdicts(paths: Iterable[Path]) -> pd.DataFrame:
    """Read and join files of `reported_lines`, the scoreboard's CSV included. Missing texts are empty strings."""
    frames = [read_data(path, VERDICT_COLUMNS, _TEXT, _COUNTS) for path in paths]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=VERDICT_COLUMNS)


def value_of(line: Any) -> Value:
    """The numbers in a line of `load_verdicts`, which has no deviations of programs."""
    ours = Spread(line.mean, line.sd, line.low, line.high, whole_number(line.seeds))
    runs = whole_number(line.program_runs)
    program = Spread(line.program_mean, math.nan, line.program_low, line.program_high, runs)
    return Value(line.metric, line.reported, whole_number(line.decimals), ours, program)


def reasons_of(values: Iterable[tuple[str, str, str]]) -> list[str]:
    """The reasons of values without duplicates, from the cause, the reason and the evidence of each."""
    texts = [
        ("conjecture: " if cause == "conjecture" else "")
        + reason
        + (f" (evidence: {evidence})" if evidence else "")
        for cause, reason, evidence in values
        if reason
    ]
    return list(dict.fromkeys(texts))


def row_verdicts(board: pd.DataFrame) -> pd.DataFrame:
    """One line per row (method x data set x K x printed lambda of one table), from one line per reported value.

    ``cause`` is, of the causes of the row's values, the one that is known least, ``reason`` joins the reasons of all
    values, and ``values`` is their number.
    """
    found = []
    for _, row in board.groupby(ROW_KEY, sort=False, dropna=False):
        causes = [cause for cause in CAUSES if cause in set(row.cause)]
        reasons = reasons_of(zip(row.cause, row.reason, row.evidence, strict=True))
        more = {"seeds": row.seeds.max(), "cause": causes[-1] if causes else "", "values": len(row)}
        found.append(row.iloc[0].to_dict() | more | {"reason": "; ".join(reasons)})
    columns = [*ROW_KEY, "kind", "setting", "seeds", "verdict", "direction", "cause", "reason", "values"]
    return pd.DataFrame(found, columns=columns).astype({"n_clusters": "Int64", "seeds": "Int64"})


def value_verdict(value: Any) -> str:
    """The verdict of a single value, a line of the board, instead of that of its row."""
    if value.verdict in _OF_PAPER:
        return str(value.verdict)
    if not value.agrees or value.verdict == "not judged":
        return "not judged"
    if value.kind == MATCHED:
        is_on = value.agrees == "yes" and value.verdict != "less fair"
        return "on the front" if is_on else str(value.verdict)
    if value.agrees in ("yes", "start"):
        return "reproduced" if value.agrees == "yes" else "reached by a start"
    if value.verdict == "as the published program" or value.agrees == "no":
        return str(value.verdict)
    near = is_near(value.metric, value.reported, whole_number(value.decimals), value.mean)
    return "another optimum" if near else "not reproduced"


def count_causes(rows: pd.DataFrame) -> dict[str, int]:
    """The number of `row_verdicts` that differ from the paper, by how their cause is known (the texts of `CAUSES`)."""
    found = counted(rows.cause[rows.verdict.isin(DIFFERING)], CAUSES)
    return {CAUSES[cause]: number for cause, number in found.items()}


def count_verdicts(rows: pd.DataFrame) -> dict[str, dict[str, int]]:
    """The verdicts of some `row_verdicts` (or values), counted by the kind of comparison.

    The kinds are 'as printed', 'matched fairness' and 'not compared', and only those that occur.
    """
    kind = rows.kind.where(~rows.verdict.isin(_OF_PAPER), "not compared")
    found = {name: counted(rows.verdict[kind == name], VERDICTS) for name in (*KINDS, "not compared")}
    return {name: verdicts for name, verdicts in found.items() if verdicts}


def comparison(kind: str) -> str:
    """A kind of comparison within a sentence."""
    return f"at {kind}" if kind == MATCHED else kind


def table_verdicts(board: pd.DataFrame) -> pd.DataFrame:
    """A verdict for each table of a paper as a whole: columns paper, table, verdict and words.

    A table holds if every row that could be compared agrees, and in part if some do; the words count the rows.
    """
    found = []
    for (paper, table), rows in row_verdicts(board).groupby(["paper", "table"], sort=False):
        compared = rows[~rows.verdict.isin((*_OF_PAPER, "not judged"))]
        agree = compared.verdict.isin(_AGREEING)
        verdict = common_verdict([HOLDS if one else FAILS for one in agree])
        words = "no row was compared"
        if len(compared):
            words = f"{agree.sum()} of {len(compared)} compared rows agree"
        others = [
            f"{number} {name}"
            for name, number in counted(rows.verdict, VERDICTS).items()
            if name not in _AGREEING
        ]
        found.append((paper, table, verdict, "; ".join([words, *others])))
    return pd.DataFrame(found, columns=["paper", "table", "verdict", "words"])


def make_scoreboard(
    verdicts: Iterable[Path], claims: Iterable[Path], titles: Mapping[str, str], names: Names, stem: Path
) -> None:
    """Write the scoreboard as CSV (a line per reported value), Markdown and LaTeX (a line per row).

    `verdicts` are the '.verdicts.csv' of the papers' tables, `claims` their 'claims.csv', and `titles` maps papers to
    their short names.
    """
    board = load_verdicts(verdicts)
    by_row = board.groupby(ROW_KEY, sort=False, dropna=False)
    rows = row_verdicts(board)
    shown = [
        {
            "paper": titles[row.paper],
            "table": row.table,
            "data set": names.dataset(row.dataset),
            "K": MISSING if pd.isna(row.n_clusters) else row.n_clusters,
            "method": names.method(row.method) + ("" if pd.isna(row.lam) else f", λ={lam(row.lam)}"),
            "comparison": row.kind or MISSING,
            "setting": row.setting or MISSING,
            "starts": row.seeds or MISSING,
            "values: ours (reported)": "; ".join(
                f"{metric_label(of.metric)} {value_text(value_of(of), of.program_kind)} "
                f"{AGREES.get(of.agrees, of.agrees)}".rstrip()
                for of in values.itertuples()
            ),
            "verdict": verdict_text(row),
            "cause": CAUSES.get(row.cause, MISSING),
            "reason": row.reason,
        }
        for row, (_, values) in zip(rows.itertuples(), by_row, strict=True)
    ]
    lead = []
    claimed = {of.paper.iloc[0]: count_claims(of) for of in map(load_claims, claims) if len(of)}
    for paper, title in titles.items():
        for kind, counts in count_verdicts(rows[rows.paper == paper]).items():
            n_rows = count(sum(counts.values()), "row")
            lead.append(f"{title}, {comparison(kind)}: {n_rows}; {in_words(counts)}.")
        if of_paper := claimed.get(paper):
            lead.append(f"{title}, claims: {sum(of_paper.values())}; {in_words(of_paper)}.")
    if causes := count_causes(rows):
        lead.append(f"Causes of the rows that differ: {in_words(causes)}.")
    notes = [
        f"{len(rows)} rows hold {len(board)} reported values. A row is a method on a data set with a K.",
        "Every value is shown as the mean ± standard deviation over the starts, the best start (for costs), in "
        "brackets the reported value and that of the published program or labels, and whether ours agrees.",
        *(f"{verdict}: {meaning}." for verdict, meaning in VERDICTS.items()),
    ]
    title = "Every row of the papers' tables, with the values of this run"
    Table(title, shown, notes=notes, lead=lead).write(stem, board)
