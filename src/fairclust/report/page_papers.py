"""The sections of the page that are about papers: their tables, claims and figures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.messages import count
from fairclust.pipeline.columns import column_of
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import PaperSpec
from fairclust.report.claims import load_claims
from fairclust.report.page_tables import list_methods
from fairclust.report.redaction import redact_text
from fairclust.report.render import MISSING, joined, lam, metric_label, number, spread_text, table_name
from fairclust.report.rows import CAUSES
from fairclust.report.scoreboard import AGREES, count_verdicts, row_verdicts, table_verdicts
from fairclust.report.table import Table, Verdict
from fairclust.report.tables import best_of
from fairclust.report.verdicts import ROW_KEY, load_verdicts


def summary_bars(
    board: pd.DataFrame, papers: Mapping[str, PaperSpec], shown: Collection[str]
) -> list[dict[str, Any]]:
    """Rows of tables by verdict: one bar for each paper and kind of comparison, then one for all papers."""
    rows = row_verdicts(board[board.paper.isin(shown)])
    parts = {name: rows[rows.paper == name] for name in shown}
    if len(shown) > 1:
        parts[""] = rows
    return [
        {
            "key": name,
            "paper": papers[name].short_name if name else "All papers",
            "kind": kind,
            "rows": sum(counts.values()),
            "counts": counts,
        }
        for name, of in parts.items()
        for kind, counts in count_verdicts(of).items()
    ]


def paper_section(
    name: str, paper: PaperSpec, board: pd.DataFrame, files: Mapping[str, Path], names: Names
) -> dict[str, Any]:
    """The data that the template shows for one paper; `files` are those of `write_page`."""
    of_paper = board[board.paper == name]
    verdicts = table_verdicts(of_paper).set_index("table")
    tables = []
    for spec in paper.tables.values():
        of_table = of_paper[of_paper.table == spec.number]
        if of_table.empty:
            continue
        has_value = of_table.seeds.fillna(0) > 0
        heading = f"{table_name(spec.number)}: {spec.title}"
        tables.append(
            {
                "title": heading,
                "verdict": Verdict(verdicts.verdict[spec.number]),
                "words": verdicts.words[spec.number],
                "remarks": spec.remarks,
                "compared": _compared(f"{paper.short_name}, {heading}", of_table[has_value], names),
                "others": _others(of_table[~has_value], names),
                "n_values": len(of_table),
                "n_compared": int(has_value.sum()),
                "n_rows": of_table.groupby(ROW_KEY, dropna=False).ngroups,
            }
        )
    return {
        "key": name,
        "name": paper.short_name,
        "citation": paper.citation,
        "tables": tables,
        "claims": claims_table(files.get(f"tables/{name}/claims.csv"), paper.short_name, names),
        "figures": [file for file in sorted(files) if file.startswith(f"figures/{name}/")],
    }


def _compared(caption: str, values: pd.DataFrame, names: Names) -> Table:
    records = []
    for value in values.itertuples():
        decimals = column_of(value.metric).decimals if pd.isna(value.decimals) else int(value.decimals)
        setting = str(value.setting).replace("lam=", "λ=").replace("=", " = ")
        if pd.notna(value.lam):
            setting = f"{setting} ({lam(value.lam)})".strip()
        evidence = f"Evidence: {value.evidence}" if value.evidence else ""
        shown = filter(None, [value.kind, count(value.seeds, "start"), setting])
        records.append(
            {
                "Data set": names.dataset(value.dataset),
                "Method": names.method(value.method),
                "Metric": metric_label(value.metric),
                "Reported": number(value.reported, decimals),
                "Published program": number(value.program_mean, max(decimals, 0)),
                "Ours": spread_text(value.mean, value.sd, max(decimals, 0), best_of(value)),
                "This value": AGREES.get(value.agrees, value.agrees),
                "Verdict of the row": Verdict(value.verdict),
                "K": MISSING if pd.isna(value.n_clusters) else str(value.n_clusters),
                "Setting (paper's λ)": ", ".join(shown),
                "Cause": CAUSES.get(value.cause, MISSING),
                "Reason": joined(value.direction, value.reason, evidence, value.note),
            }
        )
    filters = ("Data set", "Method", "Metric", "This value", "Verdict of the row", "Cause")
    return Table(caption, records, words=(*filters, "Setting (paper's λ)", "Reason"), filters=filters)


def _others(values: pd.DataFrame, names: Names) -> Table | None:
    """The reported values for which this run has no value, with a row for each verdict, reason and data set."""
    if values.empty:
        return None
    reasons = [joined(row.reason, row.note) or MISSING for row in values.itertuples()]
    records = [
        {
            "Verdict": Verdict(verdict),
            "Reason": reason,
            "Data set": names.dataset(dataset),
            "Methods": list_methods(of.method, names),
            "Values": str(len(of)),
        }
        for (verdict, reason, dataset), of in values.assign(reason=reasons).groupby(
            ["verdict", "reason", "dataset"], sort=False
        )
    ]
    words = ("Verdict", "Reason", "Data set", "Methods")
    return Table("Reported values without one of ours", records, words=words)


def claims_table(path: Path | None, short_name: str, names: Names) -> Table | None:
    """The paper's claims with their verdicts; None if there are none."""
    found = load_claims(path) if path else None
    if found is None or found.empty:
        return None
    records = [
        {
            "Claim": row.text,
            "Where": row.where,
            "Data set": (names.dataset(row.dataset) if row.dataset else "all together")
            + ("" if pd.isna(row.n_clusters) else f", K = {row.n_clusters}"),
            "Verdict": Verdict(row.verdict),
            "Numbers": row.numbers,
        }
        for row in found.itertuples()
    ]
    title, words = f"Claims of {short_name}", tuple(records[0])
    return Table(title, records, words=words, filters=("Data set", "Verdict"))


def read_board(scoreboard: Path | None) -> pd.DataFrame:
    """The scoreboard; empty if the run has none."""
    board = load_verdicts([scoreboard] if scoreboard is not None else [])
    texts = ("setting", "reason", "evidence", "note")
    return board.assign(**{name: board[name].map(redact_text) for name in texts})
