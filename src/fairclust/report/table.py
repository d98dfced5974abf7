"""A table for readers: one object, which is written as CSV, Markdown and LaTeX, and which the page's template draws."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.outputs import atomic_write
from fairclust.report.render import MISSING, escape_latex, escape_markdown


@dataclass(frozen=True)
class Column:
    """A column: its heading, whether it holds numbers, and whether readers of the page can filter by it."""

    title: str
    is_number: bool = False
    filters: bool = False


@dataclass(frozen=True)
class Verdict:
    """A verdict, which the page shows with a coloured sign."""

    text: str

    @property
    def key(self) -> str:
        """The verdict's class in the style sheet."""
        return self.text.replace(" ", "-")


@dataclass(frozen=True)
class Table:
    """A table. `notes` are rules, remarks and reasons below it. `lead` holds sentences that stand above a long one."""

    title: str
    columns: list[Column]
    rows: list[list[Any]]  # texts and numbers; on the page also a `Verdict`
    notes: Sequence[str] = ()
    lead: Sequence[str] = ()

    @classmethod
    def of_records(
        cls,
        title: str,
        records: Iterable[Mapping[str, Any]],
        *,
        words: Collection[str] = (),
        filters: Collection[str] = (),
        **more: Any,
    ) -> Table:
        """A table from a dictionary for each row. Entries that a row lacks are shown as a dash.

        The columns `words` hold texts and all others numbers; readers of the page can filter by the columns `filters`.
        """
        records = list(records)
        head = list(dict.fromkeys(name for record in records for name in record))
        columns = [Column(name, name not in words, name in filters) for name in head]
        return cls(
            title, columns, [[record.get(name, MISSING) for name in head] for record in records], **more
        )

    def markdown(self) -> list[str]:
        """The lines of the table itself in Markdown."""
        head = [column.title for column in self.columns]
        rows = [[escape_markdown(entry) for entry in row] for row in [head, *self.rows]]
        rows.insert(1, ["---"] * len(head))
        return [f"| {' | '.join(row)} |" for row in rows]

    def write(self, stem: Path, data: pd.DataFrame) -> None:
        """Write `data`, the unrounded numbers, as CSV, and the table as Markdown and LaTeX, beside `stem`."""
        markdown = [
            f"# {escape_markdown(self.title)}",
            "",
            *_list(self.lead),
            *self.markdown(),
            "",
            *_list(self.notes),
        ]
        written = {
            "csv": data.to_csv(index=False),
            "md": "\n".join(markdown),
            "tex": "\n".join(self._latex()),
        }
        for ending, text in written.items():
            with atomic_write(stem.with_name(f"{stem.name}.{ending}")) as file:
                file.write(text.encode())

    def _latex(self) -> list[str]:
        lines = [[column.title for column in self.columns], *self.rows]
        head, *rows = [" & ".join(map(escape_latex, line)) + r" \\" for line in lines]
        return [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{escape_latex(self.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            *(r"\toprule", head, r"\midrule", *rows, r"\bottomrule"),
            r"\end{tabular}",
            *(rf"\par\footnotesize {escape_latex(note)}" for note in self.notes),
            r"\end{table}",
            "",
        ]


def _list(lines: Iterable[str]) -> list[str]:
    found = [f"- {escape_markdown(line)}" for line in lines]
    return [*found, ""] if found else []
