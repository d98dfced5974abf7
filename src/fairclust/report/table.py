"""A table for readers: one object, which is written as CSV, Markdown and LaTeX, and which the page's template draws."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.outputs import write_text
from fairclust.report.render import MISSING, escape_latex, escape_markdown


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
    """A table from a dictionary for each row. Entries that a row lacks are shown as a dash.

    `notes` are rules, remarks and reasons below it. `lead` holds sentences that stand above a long one.
    """

    title: str
    records: Sequence[Mapping[str, Any]]  # heading to text or number; on the page also to a `Verdict`
    words: Collection[str] = ()  # columns of texts; on the page all others are aligned as numbers
    filters: Collection[str] = ()  # columns by which readers of the page can filter
    notes: Sequence[str] = ()
    lead: Sequence[str] = ()

    @cached_property
    def head(self) -> list[str]:
        return list(dict.fromkeys(name for record in self.records for name in record))

    @cached_property
    def rows(self) -> list[list[Any]]:
        return [[record.get(name, MISSING) for name in self.head] for record in self.records]

    def markdown(self) -> list[str]:
        """The lines of the table itself in Markdown."""
        rows = [[escape_markdown(entry) for entry in row] for row in [self.head, *self.rows]]
        rows.insert(1, ["---"] * len(self.head))
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
            write_text(stem.with_name(f"{stem.name}.{ending}"), text)

    def _latex(self) -> list[str]:
        head, *rows = [" & ".join(map(escape_latex, line)) + r" \\" for line in [self.head, *self.rows]]
        return [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{escape_latex(self.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.head) - 1)}}}",
            *(r"\toprule", head, r"\midrule", *rows, r"\bottomrule"),
            r"\end{tabular}",
            *(rf"\par\footnotesize {escape_latex(note)}" for note in self.notes),
            r"\end{table}",
            "",
        ]


def read_data(
    path: Path, columns: list[str], texts: Collection[str], counts: Collection[str]
) -> pd.DataFrame:
    """Columns of a CSV that a run has written. Absent texts are empty, counts are Int64, and the rest are floats."""
    numbers = [name for name in columns if name not in texts]
    kinds: dict[str, Any] = {
        "dtype": dict.fromkeys(texts, str),
        "na_values": {name: [""] for name in numbers},
    }
    found = pd.read_csv(path, keep_default_na=False, **kinds)[columns]
    return found.astype({name: "Int64" if name in counts else float for name in numbers})


def _list(lines: Iterable[str]) -> list[str]:
    found = [f"- {escape_markdown(line)}" for line in lines]
    return [*found, ""] if found else []
