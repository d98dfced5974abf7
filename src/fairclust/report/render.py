"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from fairclust.bench.store import atomic_write

_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
}


def number(value: object, decimals: int) -> str:
    """A number for readers: fixed decimals, a dash for a missing one."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{float(value):,.{max(decimals, 0)}f}"  # type: ignore[arg-type]


def lam(value: float) -> str:
    """A lambda: as many digits as it has, a dash for a missing one."""
    return "–" if math.isnan(value) else f"{value:,.10g}"


def percent(value: float) -> str:
    """A signed percentage with one decimal, a dash for a missing one."""
    return "–" if math.isnan(value) else f"{100 * value:+.1f} %"


def _latex(text: object) -> str:
    return "".join(_LATEX.get(c, "--" if c == "–" else c) for c in str(text))


def write_table(
    stem: Path,
    data: pd.DataFrame,
    shown: pd.DataFrame,
    *,
    title: str,
    notes: list[str],
    lead: Iterable[str] = (),
) -> None:
    """Write a table in three forms.

    Parameters
    ----------
    stem : Path
        Path without ending; '.csv', '.md' and '.tex' are added.
    data : DataFrame
        For the CSV: full numbers.
    shown : DataFrame
        For Markdown and LaTeX: text, in the layout that a reader sees.
    title : str
    notes : list of str
        Rules, counts and reasons, printed below the table.
    lead : iterable of str
        What a reader of a long table should see first, printed above it in Markdown.
    """
    with atomic_write(stem.with_suffix(".csv")) as file:
        data.to_csv(file, index=False)
    columns = list(shown.columns)
    rows = [list(map(str, row)) for row in shown.itertuples(index=False)]
    cells = [[str(c).replace("|", r"\|") for c in row] for row in [columns, ["---"] * len(columns), *rows]]
    markdown = [
        f"# {title}",
        "",
        *(f"- {n}" for n in lead),
        *([""] if lead else []),
        *(f"| {' | '.join(row)} |" for row in cells),
        "",
        *(f"- {n}" for n in notes),
        "",
    ]
    with atomic_write(stem.with_suffix(".md")) as file:
        file.write("\n".join(markdown).encode())
    body = [" & ".join(map(_latex, row)) + r" \\" for row in rows]
    latex = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{_latex(title)}. {_latex(' '.join(notes))}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
        r"\toprule",
        " & ".join(map(_latex, columns)) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    with atomic_write(stem.with_suffix(".tex")) as file:
        file.write("\n".join(latex).encode())
