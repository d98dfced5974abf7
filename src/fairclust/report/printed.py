"""Tables as their papers print them: their rows, columns, headings and digits, with ours and a sign in each cell.

What a table shows is read from the evidence, the lines of `tables.evidence_of`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from fairclust.messages import count
from fairclust.pipeline.columns import column_of
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import PickSpec, TableSpec
from fairclust.report.render import LATEX, MISSING, escape_latex, escape_markdown, fixed
from fairclust.report.rows import chose_setting
from fairclust.report.selection import where
from fairclust.report.verdicts import AGREES, AS_PROGRAM, CHOSE, DIFFERS, NOT_COMPARABLE, SIGNS

WIDTH = 100
"""A table in Markdown is not wider than a terminal of so many characters."""
PAGE = 200
"""So many characters fit on a page in LaTeX, in the smallest type that can be read."""
OURS = "Methods of this project"
LEGEND = (
    "Values are means over the starts. Beneath stands what the paper prints. "
    + ", ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
    + " (no value or an impossible one, a time of another machine, at matched fairness another metric than the cost, a "
    "cost at another fairness, or plain K-means passes as well). Bold, if there is any, is the best value of the "
    "paper's methods, which we computed for the line 'reported', too; a block that would be too wide has none."
)
LEVEL = (
    f"{CHOSE} The paper does not publish this setting. The cost is read where the fairness is that of the paper or up "
    "to 2 % less, between two settings if necessary, or at the cheapest setting if all are fairer. So this number is "
    "no result and is not bold. A cost agrees if it is lower than reported, or higher by 2 % or the scatter of the "
    "starts at most."
)
Rows = list[tuple[str, list[str]]]
Numbers = list[tuple[str, bool, str]]
_ORDER = (DIFFERS, AS_PROGRAM, AGREES, NOT_COMPARABLE)
Pick = dict[str, Any]
_PLACE = ("dataset", "n_clusters", "method", "lam")
# In LaTeX, what is bold stands between two marks until it is escaped.
_WITH_BOLD = LATEX | str.maketrans({"\x02": r"\textbf{", "\x03": "}"})


@dataclass
class Entry:
    """A cell of a table: ours and the reported numbers, and the verdict; without numbers where nothing was asked.

    A number is its text, whether no other method of the paper has a better one on the same data, and its sign.
    """

    ours: Numbers = field(default_factory=list)
    reported: Numbers = field(default_factory=list)
    verdict: str = ""
    form: str = "{}"

    @property
    def sign(self) -> str:
        """The sign that all of our numbers have; empty if they have several, or there is nothing to compare."""
        signs = {sign for _, _, sign in self.ours}
        return signs.pop() if len(signs) == 1 and any(text != MISSING for text, *_ in self.ours) else ""

    def html(self, numbers: Numbers) -> Markup:
        """As `signed`, for the page, without the sign that all numbers have."""
        return Markup(self.text(numbers, Markup("<b>{}</b>").format, escape(self.form), signed=not self.sign))

    def signed(self, bold: Callable[[str], str]) -> str:
        """Our numbers with one sign, or with a sign each if these differ."""
        return self.text(self.ours, bold, signed=not self.sign) + self.sign

    def text(
        self, numbers: Numbers, bold: Callable[[str], str] = str, form: str = "", *, signed: bool = False
    ) -> str:
        """Ours or the reported numbers as the paper prints them, without their signs unless asked."""
        if all(text == MISSING for text, *_ in numbers):
            return MISSING if numbers else ""
        texts = ((bold(text) if is_best else text) + sign * signed for text, is_best, sign in numbers)
        return (form or self.form).format(*texts)


class Part(NamedTuple):
    """Rows of a table below a common heading, which may be empty."""

    heading: str
    rows: list[tuple[str, list[Entry]]]


@dataclass(frozen=True)
class Printed:
    """A table as its paper prints it."""

    title: str
    corner: str
    heads: list[tuple[str, ...]]  # of each column, from top to bottom
    parts: list[Part]
    notes: Sequence[str] = ()

    @property
    def n_levels(self) -> int:
        """The number of headings above each column."""
        return len(self.heads[0])

    @cached_property
    def blocks(self) -> list[list[int]]:
        """The columns of each part of a wide table that fits on the page."""
        return [columns for columns, _ in self._blocks(PAGE, str)]

    def spans(self, columns: Sequence[int], level: int) -> list[tuple[str, int]]:
        """The headings of a level, each with the number of columns that it covers."""
        last = level == self.n_levels - 1
        keys = [(self.heads[i][: level + 1], i if last else 0) for i in columns]
        return [(key[0][level], len(list(same))) for key, same in groupby(keys)]

    def csv(self) -> str:
        """The cells as text, with ours, the reported value and the verdict in columns of their own."""
        lines = []
        for part in self.parts:
            for head, entries in part.rows:
                line = {"part": part.heading, self.corner or "row": head}
                for heads, entry in zip(self.heads, entries, strict=True):
                    name = ", ".join(heads)
                    line |= {name: entry.text(entry.ours), f"{name}: reported": entry.text(entry.reported)}
                    line |= {f"{name}: verdict": entry.verdict}
                lines.append(line)
        return pd.DataFrame(lines).to_csv(index=False)

    def markdown(self) -> str:
        """The table in Markdown, aligned for a terminal."""
        lines = [f"# {escape_markdown(self.title)}", ""]
        for _, rows in self._blocks(WIDTH, "**{}**".format):
            # Numbers need no escapes.
            cells = [
                list(map(escape_markdown, row)) if kind == "head" else [escape_markdown(row[0]), *row[1:]]
                for kind, row in rows
            ]
            # A heading over several rows is as wide as it is.
            aligned = (cells[i] for i, (kind, _) in enumerate(rows) if kind != "part")
            widths = [max(map(len, column)) for column in zip(*aligned, strict=True)]
            dashes = ["-" * widths[0], *("-" * max(1, width - 1) + ":" for width in widths[1:])]
            bar = " | " if _width(rows) <= WIDTH else "|"
            for i, row in enumerate(cells):
                if rows[i][0] == "part":
                    lines.append(f"| **{row[0]}** |{' |' * (len(row) - 1)}")
                    continue
                others = (cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
                lines.append(f"{bar}{bar.join([row[0].ljust(widths[0]), *others])}{bar}".strip())
                if not i:
                    lines.append(f"{bar}{bar.join(dashes)}{bar}".strip())
            lines.append("")
        return "\n".join([*lines, *(f"- {escape_markdown(note)}" for note in self.notes), ""])

    def latex(self) -> str:
        """The table in LaTeX, of blocks below each other. A wide block is scaled to the width of the page."""
        lines = ["% needs \\usepackage{booktabs,amssymb,graphicx}", r"\begin{table}"]
        lines.append(
            rf"\centering\caption{{{escape_latex(self.title)}}}\scriptsize\setlength{{\tabcolsep}}{{3pt}}"
        )
        for columns, rows in self._blocks(PAGE, "\x02{}\x03".format):
            body = [r"\toprule"]
            for level in range(self.n_levels):
                spans, column, rules = self.spans(columns, level), 2, []
                cells = [escape_latex(self.corner) if not level else ""]
                for text, n in spans:
                    cells.append(rf"\multicolumn{{{n}}}{{c}}{{{escape_latex(text)}}}")
                    rules.append(rf"\cmidrule(lr){{{column}-{column + n - 1}}}")
                    column += n
                body.append(" & ".join(cells) + r" \\")
                body += ["".join(rules)] if level < self.n_levels - 1 else [r"\midrule"]
            for kind, row in rows[self.n_levels :]:
                if kind == "part":
                    rule = [r"\midrule"] if body[-1] != r"\midrule" else []
                    body += [*rule, rf"\multicolumn{{{len(row)}}}{{l}}{{\emph{{{escape_latex(row[0])}}}}} \\"]
                else:
                    first = rf"\quad {escape_latex(row[0])}" if kind == "beneath" else escape_latex(row[0])
                    body.append(
                        " & ".join([first, *(cell.translate(_WITH_BOLD) for cell in row[1:])]) + r" \\"
                    )
            made = [rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", *body, r"\bottomrule", r"\end{tabular}"]
            is_wide = _width(rows) > 0.6 * PAGE
            lines += [*([r"\resizebox{\textwidth}{!}{%", *made, "}"] if is_wide else made), r"\par\medskip"]
        notes = [rf"\noindent {escape_latex(note)}\par" for note in self.notes]
        return "\n".join([*lines, r"\end{table}", r"{\footnotesize", *notes, "}", ""])

    def _blocks(self, width: int, bold: Callable[[str], str]) -> list[tuple[list[int], Rows]]:
        """Blocks of columns that fit the width, with their rows; columns below one heading stay together."""
        whole = list(range(len(self.heads)))
        blocks: list[list[int]] = []
        for _, n in self.spans(whole, 0):
            group, whole = whole[:n], whole[n:]
            if blocks and _width(self._rows([*blocks[-1], *group], bold)) <= width:
                blocks[-1] += group
            else:
                blocks.append(group)
        made = [(columns, self._rows(columns, bold)) for columns in blocks]
        # Cells without spaces between them are narrower by 2. If even these are too wide, nothing is bold.
        return [
            (columns, self._rows(columns, str) if _width(rows) - 2 * len(columns) > width else rows)
            for columns, rows in made
        ]

    def _rows(self, columns: Sequence[int], bold: Callable[[str], str]) -> Rows:
        """The rows of a block as texts, each with its kind: 'head', 'part', 'row' or 'beneath'."""
        lines = []
        for level in range(self.n_levels):
            texts: list[str] = []
            for text, n in self.spans(columns, level):
                texts += [text, *[""] * (n - 1)]
            lines.append(("head", [self.corner if not level else "", *texts]))
        for part in self.parts:
            rows = [(head, [entries[i] for i in columns]) for head, entries in part.rows]
            rows = [row for row in rows if any(entry.ours for entry in row[1])]
            if part.heading and rows:
                lines.append(("part", [part.heading, *[""] * len(columns)]))
            for head, entries in rows:
                ours = [entry.signed(bold) for entry in entries]
                reported = [entry.text(entry.reported, bold) for entry in entries]
                lines.append(("row", [head, *ours]))
                if any(reported):
                    lines.append(("beneath", ["reported", *reported]))
        return lines


def _width(rows: Rows) -> int:
    """The number of characters of a block in Markdown. Headings over several rows count for nothing."""
    columns = zip(*(row for kind, row in rows if kind != "part"), strict=True)
    return sum(3 + max(map(len, column)) for column in columns) + 1


def printed(spec: TableSpec, lines: pd.DataFrame, title: str, names: Names, notes: Sequence[str]) -> Printed:
    """A table of a paper as it is printed, from its lines of evidence.

    Our methods stand in further columns or rows, wherever the paper has the methods.
    """
    layout = spec.layout
    levels = list(map(_picks, layout.columns))
    rows: list[tuple[str, list[tuple[str, Pick]]]] = []
    for heading, below in layout.rows.items():
        part, headings = (heading, below) if isinstance(below, dict) else ("", {heading: below})
        rows.append((part, list(_picks(headings).items())))
    columns, mine = list(_combined(levels)), lines[lines.role == "ours"]
    others = [level for level in levels if not any("method" in pick for pick in level.values())]
    if len(others) < len(levels):
        for method in dict.fromkeys(mine.method):
            columns += _combined([{names.method(method): {"method": method}}, *others])
    elif len(mine):
        has_data = any("dataset" in pick for level in levels for pick in level.values())
        of_data = not has_data and mine.dataset.nunique() > 1
        ours = []
        for place in mine[["method", *["dataset"] * of_data]].drop_duplicates().to_dict("records"):
            head = names.method(place["method"]) + (f", {names.dataset(place['dataset'])}" if of_data else "")
            ours.append((head, place))
        rows.append((OURS, ours))
    book = _book(lines, spec.level_metric, bold=layout.bold)
    parts, n_reported = [], 0
    for heading, picks in rows:
        made = [(head, [_entry(book, {**row, **pick}) for _, pick in columns]) for head, row in picks]
        n_reported += sum(len(entry.reported) for _, entries in made for entry in entries)
        if heading == OURS:
            # Rows without any value are left out.
            made = [row for row in made if any(of.text(of.ours).strip(MISSING) for of in row[1])]
        parts.append(Part(heading, made))
    if lacking := int(((lines.role == "paper") & (lines.value_verdict != "")).sum()) - n_reported:
        what = count(lacking, "reported value")
        notes = [*notes, f"{what} without a place in this layout; the evidence has them all."]
    return Printed(title, layout.corner, [heads for heads, _ in columns], parts, notes)


def _combined(levels: Sequence[Mapping[str, Pick]]) -> Iterator[tuple[tuple[str, ...], Pick]]:
    """All combinations of the headings of several levels, with what they select together."""
    for pairs in product(*(level.items() for level in levels)):
        yield tuple(head for head, _ in pairs), dict(item for _, pick in pairs for item in pick.items())


def _book(lines: pd.DataFrame, level_metric: str, *, bold: bool) -> pd.DataFrame:
    """The lines that a table shows, with the ``digits`` of their values, and which values are the best if it is bold.

    The best of each data set and metric is chosen among the methods of the paper, for ours and for the reported values.
    None of ours is the best where one ``chose`` the setting.
    """
    printed_digits = lines.decimals.astype(float).where(lines.reported.notna())
    chose = chose_setting(lines.kind, lines.metric, level_metric) & lines.reported.notna()
    book = lines.assign(digits=printed_digits, chose=chose)
    for line in book[printed_digits.isna()].itertuples():
        # What the paper does not print gets the digits of the nearest number that it prints of this metric.
        same = book[(book.metric == line.metric) & printed_digits.notna()]
        same = same[same.dataset == line.dataset] if (same.dataset == line.dataset).any() else same
        apart = (np.log1p(same.reported.abs()) - np.log1p(abs(line.mean))).abs()
        digits = same.digits.iloc[apart.argmin()] if apart.notna().any() else column_of(line.metric).decimals
        book.loc[line.Index, "digits"] = digits
    book = book[book.role != "variant"].astype({"digits": int})
    for name in ("mean", "reported"):
        book[f"best_{name}"] = False
        of_paper = book[(book.role == "paper") & np.isfinite(book[name])] if bold else book[:0]
        for (_, metric), group in of_paper.groupby(["dataset", "metric"]):
            direction = "none" if name == "mean" and group.chose.any() else column_of(metric).direction
            values = pd.Series(map(round, group[name], group.digits), group.index)
            if direction != "none" and len(values) > 1:
                best = values.max() if direction == "higher" else values.min()
                book.loc[values.index[values == best], f"best_{name}"] = True
    return book


def _entry(lines: pd.DataFrame, pick: Pick) -> Entry:
    """The cell that shows what `pick` selects of the lines of a `_book`."""
    unit, entry, verdicts = float(pick.get("unit", 1.0)), Entry(), []
    lines = where(lines, **{key: pick[key] for key in _PLACE if key in pick})
    metrics: list[str] = pick.get("metric", [])
    for metric in metrics:
        values = lines[lines.metric == metric]
        if len(values) > 1:
            raise ValueError(
                f"the layout of table {values.table.iloc[0]} shows several values in one cell: {pick}"
            )
        for line in values.to_dict("records"):
            digits = max(0, line["digits"] + round(math.log10(unit)))
            verdict = line["value_verdict"]
            sign = CHOSE if line["chose"] and verdict == NOT_COMPARABLE else SIGNS.get(verdict, "")
            entry.ours.append((fixed(line["mean"] / unit, digits), line["best_mean"], sign))
            if line["role"] == "paper":
                entry.reported.append((fixed(line["reported"] / unit, digits), line["best_reported"], ""))
            verdicts.append(verdict)
    usual = " / ".join(["{}"] * len(entry.ours))
    entry.form = str(pick.get("form") or usual) if len(entry.ours) == len(metrics) else usual
    entry.verdict = next((verdict for verdict in _ORDER if verdict in verdicts), "")
    return entry


def _picks(headings: Mapping[str, PickSpec]) -> dict[str, Pick]:
    """What headings state, without defaults."""
    return {head: pick.model_dump(exclude_unset=True) for head, pick in headings.items()}
