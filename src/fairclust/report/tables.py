"""The tables: those of each paper as it prints them, and the scoreboard.

A paper's table is made of its rows. Each of their values is a line of the evidence, from which the printed table, the
scoreboard and the page are made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import TableSpec
from fairclust.report.checks import HOLDS, IN_PART
from fairclust.report.claims import load_claims
from fairclust.report.material import Material
from fairclust.report.printed import LEGEND, LEVEL, Printed, printed
from fairclust.report.render import (
    MISSING,
    Table,
    joined,
    method_text,
    read_data,
    table_name,
    write_as,
)
from fairclust.report.rows import MATCHED, Row
from fairclust.report.verdicts import (
    AGREES,
    AS_PROGRAM,
    CAUSES,
    DIFFERS,
    NO_VALUE_WHY,
    NOT_COMPARABLE,
    SIGNS,
    VERDICTS,
    table_rows,
    value_verdict,
)

EVIDENCE_COLUMNS = [
    *("paper", "table", "role", "dataset", "n_clusters", "lam", "method", "metric"),
    *("reported", "decimals", "mean", "sd", "low", "high", "seeds", "seeds_asked", "setting", "kind"),
    *("program", "program_kind", "program_setting", "program_mean", "program_low", "program_high"),
    *("program_runs", "value_verdict", "verdict", "direction", "cause", "why", "note"),
]
ROW_KEY = ["paper", "table", "dataset", "n_clusters", "lam", "method"]
"""The columns that together name one row."""
HEADS = {
    AGREES: "agree",
    AS_PROGRAM: "agree with the program",
    DIFFERS: "differ",
    NOT_COMPARABLE: "not comparable",
}
"""Each verdict as the heading of a number of rows."""
_COUNTS = dict.fromkeys(("n_clusters", "decimals", "program_runs", "seeds", "seeds_asked"), "Int64")
_FLOATS = dict.fromkeys(("lam", "reported", "mean", "sd", "low", "high"), "float64")
_FLOATS |= dict.fromkeys(("program_mean", "program_low", "program_high"), "float64")


def make_table(material: Material, spec: TableSpec, stem: Path) -> None:
    """Write a paper's table as it prints it, as CSV, Markdown and LaTeX, and its evidence as '.evidence.csv'."""
    rows = table_rows(spec, material.reported, material.cells, material.programs)
    lines = evidence_of(material.paper, spec, rows)
    made = printed_table(spec, lines, material.title, material.names)
    write_as(stem, csv=made.csv(), md=made.markdown(), tex=made.latex())
    write_as(stem.with_name(f"{stem.name}.evidence"), csv=lines.to_csv(index=False))


def printed_table(spec: TableSpec, lines: pd.DataFrame, paper: str, names: Names) -> Printed:
    """A table as the paper with this short name prints it, from its lines of evidence.

    Below it stand all rows that have a reason: why they differ, are cheaper or cannot be compared.
    """
    rows = row_verdicts(lines)
    chose = (rows.kind == MATCHED) & rows.verdict.isin([AGREES, AS_PROGRAM, DIFFERS])
    notes = [LEGEND, *([LEVEL] if chose.any() else []), *spec.remarks]
    for (verdict, why_so), of in rows[rows.why.str.contains(": ")].groupby(["verdict", "why"], sort=False):
        lacks = why_so.startswith(NO_VALUE_WHY)
        places = dict.fromkeys(
            names.dataset(row.dataset) + f", {method_text(names, row.method, row.lam)}" * (not lacks)
            for row in of.itertuples()
        )
        notes.append(f"{SIGNS[verdict]} {'; '.join(places)}: {why_so.rstrip('.')}.")
    # Our methods have no published setting.
    ours = lines[(lines.role == "ours") & (lines.setting != "")].drop_duplicates(
        ["dataset", "method", "setting"]
    )
    for of, part in ours.groupby("method", sort=False):
        settings = "; ".join(f"{names.dataset(one.dataset)} {one.setting}" for one in part.itertuples())
        notes.append(f"Setting of {names.method(of)} at the reported fairness, or nearest to it: {settings}.")
    title = f"{paper}, {table_name(spec.number)}: {spec.title}"
    return printed(spec, lines, title, names, notes)


def evidence_of(paper: str, spec: TableSpec, rows: Iterable[Row]) -> pd.DataFrame:
    """A line for each value of the rows of a table, with the verdict on it and on its row; `EVIDENCE_COLUMNS`.

    ``seeds`` is the number of starts that have a value, and ``seeds_asked`` that of all starts.
    """
    lines = []
    for row in rows:
        causes = {value.cause for value in row.values}
        of_row = {
            **{"paper": paper, "table": spec.number, "setting": row.choice.setting},
            **{"kind": row.kind if row.verdict else "", "seeds_asked": row.choice.n_all},
            **{"cause": next((cause for cause in reversed(CAUSES) if cause in causes), "")},
            **{"why": why(row), "verdict": row.verdict, "direction": row.direction},
        }
        for value in row.values:
            lacks = math.isnan(value.reported)
            program = row.program if value.program.n else None
            is_asked = not (lacks and value.metric in spec.beside and not value.note)
            if not (is_asked or value.ours.n):
                continue
            lines.append(
                {
                    **{**vars(row), **vars(value), **value.ours._asdict()},
                    **{f"program_{name}": entry for name, entry in value.program._asdict().items()},
                    **of_row,
                    **{"program": program.program if program else "", "program_runs": value.program.n},
                    **{"program_kind": program.kind if program else "", "seeds": value.ours.n},
                    **{"program_setting": program.words if program else ""},
                    "value_verdict": value_verdict(row, value, spec.level_metric) if is_asked else "",
                    "decimals": None if lacks else value.decimals,
                    "note": joined(*dict.fromkeys([value.note, row.note])),
                }
            )
    # The further attributes of the rows and values are no columns.
    return pd.DataFrame(lines, columns=EVIDENCE_COLUMNS).astype(_COUNTS)


def why(row: Row) -> str:
    """Why a row has its verdict: what was found, the direction, and the cause with the evidence for it."""
    reasons = [
        ("conjecture: " if value.cause == "conjecture" else "")
        + value.reason.rstrip(".")
        + (f" (evidence: {value.evidence})" if value.evidence else "")
        for value in row.values
        if value.reason
    ]
    finding = row.finding + (f" ({row.direction})" if row.direction else "")
    return ": ".join(filter(None, [finding, "; ".join(dict.fromkeys(reasons))]))


def load_evidence(paths: Iterable[Path]) -> pd.DataFrame:
    """Read and join files of `evidence_of`, the scoreboard's CSV included. Missing texts are empty strings."""
    frames = [read_data(path, EVIDENCE_COLUMNS, _COUNTS | _FLOATS) for path in paths]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=EVIDENCE_COLUMNS)


def row_verdicts(board: pd.DataFrame) -> pd.DataFrame:
    """The first line of each row of the papers' tables, from lines of evidence. Variants and our methods do not count.

    ``seeds`` is the largest number of starts of the row's values.
    """
    paper = board[board.role == "paper"]
    rows = paper.groupby(ROW_KEY, sort=False, dropna=False)
    return paper.drop_duplicates(ROW_KEY).assign(seeds=rows.seeds.max().array)


def make_scoreboard(
    evidence: Iterable[Path], claims: Iterable[Path], titles: Mapping[str, str], names: Names, stem: Path
) -> None:
    """Write the scoreboard as CSV (all evidence) and Markdown (a line for each row of the papers' tables).

    `evidence` are the '.evidence.csv' of the papers' tables, `claims` their 'claims.csv', and `titles` maps papers to
    their short names.
    """
    board = load_evidence(evidence)
    counts = summary(board, {of.paper.iloc[0]: of for of in map(load_claims, claims) if len(of)}, titles)
    shown = [
        {
            "paper": titles[row.paper],
            "table": row.table,
            "data set": names.dataset(row.dataset),
            "K": MISSING if pd.isna(row.n_clusters) else row.n_clusters,
            "method": method_text(names, row.method, row.lam),
            "setting": row.setting or MISSING,
            "starts": row.seeds or MISSING,
            "verdict": row.verdict,
            "why": row.why,
        }
        for row in row_verdicts(board).itertuples()
    ]
    table = Table("Every row of the papers' tables, with its verdict", shown)
    notes = [f"- {verdict}: {meaning}." for verdict, meaning in VERDICTS.items()]
    lines = [f"# {table.title}", "", *Table("rows", counts).markdown(), "", *table.markdown(), "", *notes, ""]
    write_as(stem, csv=board.to_csv(index=False), md="\n".join(lines))


def summary(
    board: pd.DataFrame, claims: Mapping[str, pd.DataFrame], titles: Mapping[str, str]
) -> list[dict[str, Any]]:
    """For each paper the number of rows of its tables, of each verdict, and of the claims that hold or hold in part."""
    rows, counts = row_verdicts(board), []
    for paper, title in titles.items():
        mine = rows[rows.paper == paper]
        whole = claims[paper][claims[paper].dataset == ""].verdict if paper in claims else []
        tested = [verdict for verdict in whole if verdict not in (NOT_COMPARABLE, "not tested")]
        counts.append(
            {
                **{"paper": title, "rows": len(mine)},
                **{HEADS[verdict]: int((mine.verdict == verdict).sum()) for verdict in VERDICTS},
                "claims that hold": f"{tested.count(HOLDS)} of {len(tested)}" if len(whole) else MISSING,
                "that hold in part": tested.count(IN_PART) if len(whole) else MISSING,
            }
        )
    return counts
