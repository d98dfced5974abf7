"""The report of a fit, or of given labels, as one HTML file that needs no network, and the parts of such files."""

from __future__ import annotations

import importlib.util
import platform
import shlex
import warnings
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from fairclust import __version__
from fairclust.cli.results import GIVEN, Rows, answer_lines
from fairclust.explain import rounded
from fairclust.messages import count, shortened
from fairclust.report.render import number
from fairclust.tables import Preparation
from fairclust.tables.columns import Column

_MOST_POINTS = 1500
# Colours of clusters and groups, which also differ in lightness; further ones repeat them, and points have numbers.
_COLOURS = (
    "#1b6ca8",
    "#d1495b",
    "#2e8b57",
    "#b8860b",
    "#7b4ea3",
    "#0e8a8a",
    "#a0522d",
    "#5b6470",
    "#c2185b",
    "#4b6b00",
)
_SIZE = 480
_GROUPS = 12  # the largest groups are shown
_STYLE = files("fairclust.cli").joinpath("page.css").read_text(encoding="utf-8")


def document(head: str, facts: str, parts: Iterable[str]) -> str:
    """A page with a heading, a line of facts, and parts in HTML."""
    made = f"Made on {datetime.now(UTC):%Y-%m-%d} by fairclust {__version__}."
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(head)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main><h1>{escape(head)}</h1>"
        f"<p class=quiet>{escape(facts)}. {made}</p>{''.join(parts)}</main></body></html>\n"
    )


def title(table: str) -> str:
    """How a page calls the user's table."""
    return "standard input" if table == "-" else Path(table).name


def fit_page(result: dict[str, Any], rows: Rows, labels: Any, words: Sequence[str], table: str) -> str:
    """The page: answer, profiles, shares, who pays, a map of the rows, columns, and how to make it again."""
    facts = (
        f"{result['method']}, {count(result['rows'], 'row')}, {count(len(result['features']), 'column')} clustered "
        f"by, {count(len(result['groups']), 'group')}"
    )
    parts = [
        answer_list(answer_lines(result)),
        _profiles(result),
        _shares(result),
        _payers(result),
        _map(rows, labels, result),
        columns_part(rows.preparation, rows.columns, result["notes"]),
        again_part(words, None if result["method"] == GIVEN else result["parameters"]),
    ]
    return document(f"{count(result['n_clusters'], 'cluster')} of {title(table)}", facts, parts)


def answer_list(lines: Iterable[str]) -> str:
    """The lines of a command's answer, each with its first words as the term."""
    terms = []
    for line in lines:
        term, sign, text = line.partition(": ")
        if sign and len(term) < 20 and not term.startswith("budget"):
            # What was asked begins with the name of a column.
            terms.append(
                (term[:1].upper() + term[1:], text if term == "asked" else text[:1].upper() + text[1:])
            )
        else:
            terms.append(("Budget" if term.startswith("budget") else "Note", line[:1].upper() + line[1:]))
    told = "".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}.</dd>" for term, text in terms)
    return f"<h2>The answer</h2><dl class=answer>{told}</dl>"


def _profiles(result: dict[str, Any]) -> str:
    if not result["profiles"]:
        return ""
    cards = []
    for cluster in result["clusters"]:
        own = [row for row in result["profiles"] if row["cluster"] == cluster["cluster"]]
        if not own:
            continue
        bars = "".join(_bar(row) for row in own if row["column"]) or "<span>Like all rows.</span>"
        cards.append(
            f"<section class=card><h3>Cluster {cluster['cluster']}, {count(cluster['size'], 'row')}</h3>"
            f"<div class=bars>{bars}</div>"
            f"<p class=quiet>A typical row is data row {own[0]['example'] + 1:,}.</p></section>"
        )
    return (
        "<h2>What each cluster is like</h2><p>The columns that set a cluster apart: its mean, or its share of a "
        "category, against that of all rows. A bar is the difference in standard deviations of all rows, to the right "
        f"if the cluster has more.</p><div class=cards>{''.join(cards)}</div>"
    )


def _bar(row: dict[str, Any]) -> str:
    """A difference in words, and as a bar from the middle, which ends at three standard deviations."""
    if row["value"]:
        name, own, overall = (
            f"{row['column']} {row['value']}",
            f"{row['in_cluster']:.0%}",
            f"{row['in_all']:.0%}",
        )
    else:
        name, (own, overall) = row["column"], rounded(row["in_cluster"], row["in_all"])
    wide = 50 * min(abs(row["difference"]), 3) / 3
    left, colour = (50, "var(--bar)") if row["difference"] > 0 else (50 - wide, "var(--less)")
    return (
        f"<span>{escape(shortened(name, 60))} <b>{own}</b> against {overall}</span>"
        f'<svg viewBox="0 0 100 14" preserveAspectRatio="none" role="img" '
        f'aria-label="{row["difference"]:+.1f} standard deviations">'
        f'<rect x="{left:.1f}" y="2" width="{wide:.1f}" height="10" style="fill:{colour}"/>'
        '<path d="M50 0V14" stroke="#4a5260" stroke-width=".6"/></svg>'
    )


def table_part(
    caption: str, head: Sequence[str], lines: Iterable[Sequence[str]], text: Sequence[int] = ()
) -> str:
    """A table whose cells are HTML already; the columns in `text` are aligned to the left."""
    kind = [" class=text" if i in text else "" for i in range(len(head))]
    heads = "".join(f'<th scope="col"{kind[i]}>{cell}</th>' for i, cell in enumerate(head))
    body = "".join(
        f'<tr><th scope="row">{line[0]}</th>'
        + "".join(
            cell if cell.startswith("<td") else f"<td{kind[i]}>{cell}</td>"
            for i, cell in enumerate(line[1:], 1)
        )
        + "</tr>"
        for line in lines
    )
    return (
        f'<div class=scroll tabindex="0" role="region" aria-label="{escape(head[0])}: table"><table>'
        f"<caption><span>{caption}</span></caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _shares(result: dict[str, Any]) -> str:
    names = sorted(sorted(result["groups"], key=lambda name: -result["groups"][name])[:_GROUPS])
    lines = []
    for cluster in result["clusters"]:
        cells = [str(cluster["cluster"]), f"{cluster['size']:,}"]
        for name in names:
            share = cluster["shares"][name]
            low, high = cluster["chance"].get(name, (0.0, 1.0))
            outside = share is not None and not low <= share <= high
            told = "–" if share is None else f"{share:.1%}"
            if name in cluster["chance"] and share is not None:
                told += f"<br><span class=quiet>chance {low:.0%} to {high:.0%}</span>"
            cells.append(f"<td class=out>{told}</td>" if outside else told)
        lines.append(cells)
    whole = [f"{result['groups'][name] / result['rows']:.1%}" for name in names]
    lines.append(["all rows", f"{result['rows']:,}", *whole])
    if result["bounds"]:
        lines.append(["bounds", "", *("{:.1%} to {:.1%}".format(*result["bounds"][name]) for name in names)])
    rest = len(result["groups"]) - len(names)
    caption = (
        "The share of each group in each cluster. Under it stands between what shares 95% of random labels of the same "
        "sizes would lie; bold shares are outside."
        + (f" {rest} smaller groups are not shown." if rest else "")
    )
    return "<h2>Groups in the clusters</h2>" + table_part(
        caption, ["cluster", "rows", *map(escape, names)], lines
    )


def _payers(result: dict[str, Any]) -> str:
    costs = result["cost_per_row"]
    methods = list(costs["all rows"])
    lines = []
    for name, of in costs.items():
        more = f"{of[methods[0]] / of[methods[1]] - 1:+.1%}" if len(methods) > 1 and of[methods[1]] else ""
        lines.append(
            [
                escape(name),
                *(f"{of[method]:.3f}" for method in methods),
                *([more] if len(methods) > 1 else []),
            ]
        )
    head = ["rows", *map(escape, methods), *(["more"] if len(methods) > 1 else [])]
    metrics = "; ".join(
        f"{name.replace('_', ' ')} {number(of, 4)}"
        for name, of in result["metrics"][result["method"]].items()
    )
    caption = "The mean squared distance of a row of each group to the mean of its cluster."
    return f"<h2>Who pays</h2>{table_part(caption, head, lines)}<p class=quiet>All metrics: {escape(metrics)}.</p>"


def _map(rows: Rows, labels: Any, result: dict[str, Any]) -> str:
    """A sample of the rows in two dimensions, coloured by cluster or by group."""
    if not isinstance(rows.X, np.ndarray) or rows.crossed is None or min(rows.X.shape) < 2:
        return ""
    sample = np.random.default_rng(0).permutation(len(rows.X))[:_MOST_POINTS]
    points, how = _in_two_dimensions(rows.X, sample)
    low, high = np.quantile(points, [0.005, 0.995], axis=0)
    places = 12 + np.clip((points - low) / np.maximum(high - low, 1e-300), 0, 1) * (_SIZE - 24)
    clusters = np.asarray(labels)[sample]
    largest = sorted(result["groups"], key=lambda name: -result["groups"][name])[: len(_COLOURS) - 1]
    groups = [name if name in largest else "other groups" for name in rows.crossed[sample].tolist()]
    of_groups = [*sorted(largest), *(["other groups"] if "other groups" in groups else [])]
    drawn = [
        (
            "by-cluster",
            "clusters",
            [f"cluster {k}" for k in clusters],
            [f"cluster {k}" for k in np.unique(clusters)],
        ),
        ("by-group", "groups", groups, of_groups),
    ]
    figures = []
    for kind, what, names, key in drawn:
        colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(key)}
        marks = []
        for name in key:
            circles = "".join(
                f'<circle cx="{x:.0f}" cy="{_SIZE - y:.0f}" r="3"/>'
                for (x, y), own in zip(places, names, strict=True)
                if own == name
            )
            marks.append(f'<g fill="{colours[name]}" fill-opacity=".65">{circles}</g>')
        listed = "".join(f'<li><i style="background:{colours[name]}"></i>{escape(name)}</li>' for name in key)
        figures.append(
            f'<div class={kind}><svg viewBox="0 0 {_SIZE} {_SIZE}" role="img" aria-label="Rows in two dimensions, '
            f'coloured by {what}">{"".join(marks)}</svg><ul class=key>{listed}</ul></div>'
        )
    shown = (
        f"{len(sample):,} of {len(rows.X):,} rows, drawn at random"
        if len(sample) < len(rows.X)
        else "all rows"
    )
    return (
        f"<h2>The rows in two dimensions</h2><p class=quiet>{how}; {shown}. Near rows are similar, but two dimensions "
        "cannot show all distances.</p><div class=map>"
        '<input type="radio" name="colour" id="clusters" checked> <label for="clusters">colours are clusters</label> '
        '<input type="radio" name="colour" id="groups"> <label for="groups">colours are groups</label>'
        f"{''.join(figures)}</div>"
    )


def _in_two_dimensions(X: np.ndarray, sample: np.ndarray) -> tuple[np.ndarray, str]:
    """Points of the sampled rows, by UMAP if it is installed, else by principal components; and how, in words."""
    if importlib.util.find_spec("umap"):
        import umap  # type: ignore[import-not-found]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return umap.UMAP(random_state=0).fit_transform(X[sample]), "UMAP"
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    part = values[-2:].sum() / max(values.sum(), 1e-300)
    points = centred[sample] @ vectors[:, [-1, -2]]
    return points, f"Two principal components, with {part:.0%} of the variance"


def columns_part(preparation: Preparation, columns: Sequence[Column], notes: Sequence[str]) -> str:
    """What became of each column, and the notes on the table and the fits."""
    lines = [
        [
            escape(name),
            "sensitive",
            "its ranges are the groups" if name in preparation.ranges else "its values are the groups",
        ]
        for name in preparation.sensitive
    ]
    for column in columns:
        note = "; ".join(filter(None, [column.note, column.odd]))
        lines.append([escape(shortened(column.name)), column.role, escape(note or "as it is")])
    known = {column.name for column in columns}
    lines += [
        [escape(name), "identifier", "written beside the labels"]
        for name in preparation.ids
        if name not in known
    ]
    told = "".join(f"<li>{escape(note)}</li>" for note in notes)
    listed = f"<h3>Notes</h3><ul>{told}</ul>" if notes else ""
    return (
        "<h2>What became of each column</h2>"
        + table_part("How every column of the table was read.", ["column", "role", "how"], lines, text=(1, 2))
        + listed
    )


def again_part(words: Sequence[str], params: dict[str, Any] | None = None) -> str:
    """The command and the versions that make the page again."""
    packages = {"fairclust": __version__, "scikit-learn": sklearn.__version__, "NumPy": np.__version__}
    packages["Python"] = platform.python_version()
    versions = ", ".join(f"{name} {version}" for name, version in packages.items())
    how = "" if params is None else f"<p>Parameters: <code>{escape(str(params))}</code></p>"
    return (
        f"<h2>How to make it again</h2><pre>{escape(shlex.join(['fairclust', *words]))}</pre>{how}"
        f"<p class=quiet>{escape(versions)}</p>"
    )
