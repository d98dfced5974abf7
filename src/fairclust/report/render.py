"""Numbers and texts as Markdown and LaTeX print them, and tables of them: written as files, or drawn by the page."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup, escape

from fairclust.outputs import write_text
from fairclust.pipeline.columns import column_of
from fairclust.pipeline.names import Names

if TYPE_CHECKING:
    from jinja2 import Template

MISSING = "–"
LATEX = str.maketrans({
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{c: f"\\{c}" for c in "&%_#${}"},
    "–": "--",
    "±": r"$\pm$",
    "°": r"$^\circ$",
    "∞": r"$\infty$",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "✓": r"$\checkmark$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "λ": r"$\lambda$",
    "Δ": r"$\Delta$",
})  # fmt: skip
# Characters that begin markup in Markdown at their places. Those in the group `kept` do not begin any.
_MARKDOWN = re.compile(
    r"(?P<kept>`[\w./=-]+(?: [\w./=-]+)*`|(?<=[^\W_])_+(?=[^\W_])|(?<=\S )\*+(?= \S)|(?<=/)~(?=\w))"
    r"|[\\|`*_~${}]"
    r"|^\[|\](?=[(\[:])"  # a link, or the address of one
    r"|^#|#(?=#*$)"  # a heading, and the end of one
    r"|^[-+=](?=[-= ]*$| )|(?P<number>^\d{1,9})(?=[.)](?: |$))"  # lists and lines
)


# With a unit, and what stands behind it.
_NUMBER = re.compile(r"–|[-+]?(∞|[\d.,]*\d)( ?%)?( ±.*|, best.*| \(.*|(, [\d,]+)? of [\d,]+)?")


# The space in '1 %', '2 s' and '1 %, 2 s'.
_UNIT = re.compile(r"(?<=[\d∞]) (?=(?:%|s|MB)(?!\w))|(?<=%,) (?=\d)")


def number(value: object, decimals: int) -> str:
    """A number for readers, as `fixed`, but a zero without decimals."""
    return "0" if not pd.isna(value) and value == 0 else fixed(value, decimals)


def fixed(value: object, decimals: int) -> str:
    """A number with all of its decimals, as papers print it; a dash for a missing one."""
    if pd.isna(value):
        return MISSING
    plain = float(value)  # type: ignore[arg-type]
    if math.isinf(plain):
        return "∞" if plain > 0 else "-∞"
    return f"{plain:,.{max(decimals, 0)}f}"


def seconds_text(value: float) -> str:
    """Seconds with two significant digits, and whole ones from ten on."""
    return number(value, max(0, 1 - math.floor(math.log10(value)))) if value > 0 else number(value, 0)


def plain(value: object) -> str:
    """A parameter: a number with all of its digits, or a text."""
    return f"{value:,.10g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def signed_percent(value: float) -> str:
    """A signed percentage with one decimal. Zero has no sign, and a missing value is a dash."""
    if math.isnan(value):
        return MISSING
    return "∞" if math.isinf(value) else "0.0 %" if abs(value) < 0.0005 else f"{100 * value:+.1f} %"


def bound_text(share: float) -> str:
    """A bound on a share as a percentage, rounded up."""
    return f"{math.ceil(share * 1e5) / 1e3:.3f} %"


def spread_text(mean: float, sd: float, decimals: int, best: float = math.nan) -> str:
    """Mean ± standard deviation, and the best value if its text differs from that of the mean.

    A standard deviation that is missing (as for a single start) or infinite is left out, as is a missing best value.
    """
    text = number(mean, decimals)
    if text != MISSING and math.isfinite(sd):
        text += f" ± {number(sd, decimals)}"
    shown = number(best, decimals)
    return text if shown in (MISSING, number(mean, decimals)) else f"{text}, best {shown}"


def metric_label(name: str) -> str:
    """The heading of a metric, of a term of an objective, or of a count of a data set."""
    return column_of(name).label


def metric_in_text(name: str) -> str:
    """The name of a metric within a sentence: without a capital, unless it is an abbreviation."""
    label = metric_label(name)
    return label if label.isupper() else label[0].lower() + label[1:]


def unbroken(text: object) -> str:
    """A text in which no line ends between a number and its unit, nor between a percentage and the number behind it."""
    return _UNIT.sub("\N{NO-BREAK SPACE}", str(text))


def table_name(number: str) -> str:
    """'Table 3', or 'Tables III and IV' for a table that joins two of the paper; 'Text' for numbers in its text."""
    if number.isalpha() and number.islower():
        return number.capitalize()
    return f"Tables {number}" if " and " in number else f"Table {number}"


def labelled(names: Names, method: str) -> str:
    """The label of a method, which says if it is this project's own."""
    return names.method(method) + (" (ours)" if method in names.ours else "")


def method_text(names: Names, method: str, of_lam: float) -> str:
    """The label of a method with a printed lambda, which is NaN if there is none."""
    return names.method(method) + ("" if math.isnan(of_lam) else f", λ = {plain(of_lam)}")


def joined(*texts: str) -> str:
    """Texts without the empty ones, separated by semicolons."""
    return "; ".join(filter(None, texts))


def _on_one_line(text: object) -> str:
    """The text without line breaks and without characters that no file of text can hold."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def escape_latex(text: object) -> str:
    """Escape a text, so that LaTeX prints it literally and on one line."""
    plain = _on_one_line(text)
    # At the beginning of a row, LaTeX would take a bracket or a star for an argument of the row before.
    guard = "{}" if plain.startswith(("[", "*")) else ""
    return guard + plain.translate(LATEX)


def escape_markdown(text: object) -> str:
    """Escape a text for one line of Markdown, which prints it literally: no HTML, links, emphasis, lists or formulas.

    What Markdown prints literally is left as it is. The only markup that a text can have is a name in `backticks`.
    """

    def literal(found: re.Match[str]) -> str:
        if found["number"]:
            return f"{found[0]}\\"
        # Python-Markdown would print a backslash before these three characters.
        return found["kept"] or (f"&#{ord(found[0])};" if found[0] in "$~=" else f"\\{found[0]}")

    return _MARKDOWN.sub(literal, html.escape(_on_one_line(text), quote=False))


@dataclass(frozen=True)
class Table:
    """A table from a dictionary for each row. Entries that a row lacks are shown as a dash.

    The page shows entries of the column 'Verdict' with a coloured sign.
    """

    title: str
    records: Sequence[Mapping[str, Any]]  # heading to text or number
    filters: Collection[str] = ()  # columns by which readers of the page can filter

    @cached_property
    def head(self) -> list[str]:
        return list(dict.fromkeys(name for record in self.records for name in record))

    @cached_property
    def rows(self) -> list[list[Any]]:
        return [[record.get(name, MISSING) for name in self.head] for record in self.records]

    @cached_property
    def numbers(self) -> set[str]:
        """The columns of numbers, which the page aligns to the right and sorts by size."""
        columns = zip(self.head, zip(*self.rows, strict=True), strict=True)
        return {name for name, column in columns if all(_NUMBER.fullmatch(str(entry)) for entry in column)}

    def markdown(self) -> list[str]:
        """The lines of the table itself in Markdown."""
        rows = [[escape_markdown(entry) for entry in row] for row in [self.head, *self.rows]]
        rows.insert(1, ["---"] * len(self.head))
        return [f"| {' | '.join(row)} |" for row in rows]


def write_as(stem: Path, **texts: str) -> None:
    """Write texts as files beside `stem`, each with its ending."""
    for ending, text in texts.items():
        write_text(stem.with_name(f"{stem.name}.{ending}"), text)


def read_data(path: Path, columns: list[str], numbers: Mapping[str, str]) -> pd.DataFrame:
    """Columns of a CSV that a run has written. Those of numbers have types, and absent texts are empty."""
    texts = dict.fromkeys(set(columns) - set(numbers), str)
    empty = {name: [""] for name in numbers}
    return pd.read_csv(path, keep_default_na=False, dtype=texts, na_values=empty)[columns].astype(numbers)


def template(package: str, folder: str, name: str) -> Template:
    """A template of a page, in a folder of a package. Its values are escaped, and all of them must be given."""
    # Imported here, because most commands write no page.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package, folder),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    code = partial(re.sub, r"`([^`]+)`", r"<code>\1</code>")  # names in `backticks`
    environment.filters |= {"unbroken": unbroken, "with_code": lambda text: Markup(code(str(escape(text))))}
    return environment.get_template(name)
