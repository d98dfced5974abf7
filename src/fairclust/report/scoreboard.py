"""The scoreboard: all rows of the papers' tables with their values, and the number of rows with each verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.messages import count, counted, in_words
from fairclust.pipeline.names import Names
from fairclust.report.checks import FAILS, HOLDS, joined
from fairclust.report.claims import count_claims, load_claims
from fairclust.report.render import MISSING, Table, lam, metric_label
from fairclust.report.rows import CAUSES, DIFFERING, KINDS, MATCHED, VERDICTS, is_near, reasons_of
from fairclust.report.tables import value_text, verdict_text
from fairclust.report.verdicts import ROW_KEY, decimals_of, load_verdicts

_OF_PAPER = ("impossible", "unpublished", "not run")
"""Verdicts of rows in which nothing could be compared; their kind of comparison is shown as 'not compared'."""
_AGREEING = ("reproduced", "reached by a start", "on the front")
"""Verdicts of rows that the paper's values agree with."""
AGREES = {"yes": "agrees", "start": "reached by a start", "no": "differs"}
"""How a value compares with the reported one, for readers; 'lower' and 'higher' stand for themselves."""


def row_verdicts(board: pd.DataFrame) -> pd.DataFrame:
    """One line per row (method x data set x K x printed lambda of one table), from one line per reported value.

    ``cause`` is, of the causes of the row's values, the one that is known least, ``reason`` joins the reasons of all
    values, and ``values`` is their number.
    """
    found = []
    for _, row in board.groupby(ROW_KEY, sort=False, dropna=False):
        causes = [cause for cause in CAUSES if cause in set(row.cause)]
        more = {
            "cause": causes[-1] if causes else "",
            "reason": "; ".join(reasons_of(zip(row.cause, row.reason, row.evidence, strict=True))),
            "values": len(row),
        }
        found.append(row.iloc[0].to_dict() | {"seeds": row.seeds.max(), **more})
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
    near = is_near(value.metric, value.reported, decimals_of(value.decimals), value.mean)
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
        verdict = joined([HOLDS if one else FAILS for one in agree])
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
                f"{metric_label(value.metric)} {value_text(value)} {AGREES.get(value.agrees, value.agrees)}".rstrip()
                for value in values.itertuples()
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
