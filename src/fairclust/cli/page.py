"""Reports as one HTML file that needs no network: that of a fit or of given labels, and what all of them have."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.decomposition import PCA

from fairclust import __version__
from fairclust.cli.options import Raw
from fairclust.cli.results import GIVEN, answer_lines, largest_groups, tables
from fairclust.cli.rows import Rows, RowsInMemory
from fairclust.explain import described
from fairclust.messages import count, percent, shortened
from fairclust.report.render import template

_MOST_POINTS = 1500
# Colours of clusters and groups, which also differ in lightness; further ones repeat them, and points have numbers.
_COLOURS = (
    *("#1b6ca8", "#d1495b", "#2e8b57", "#b8860b", "#7b4ea3", "#0e8a8a", "#a0522d", "#5b6470"),
    *("#c2185b", "#4b6b00"),
)
_SIZE = 480


def page(
    name: str,
    args: Raw,
    title: str,
    facts: str,
    answer: Iterable[str],
    rows: Rows,
    notes: Sequence[str],
    **parts: Any,
) -> str:
    """A page about the user's table. The template `name` has its own `parts`; `answer` are the lines of the answer."""
    versions = {"fairclust": __version__, "scikit-learn": sklearn.__version__, "NumPy": np.__version__}
    return template("fairclust.cli", "pages", f"{name}.html.j2").render(
        title=f"{title} {'standard input' if args.table == '-' else Path(args.table).name}",
        facts=facts,
        today=f"{datetime.now(UTC):%Y-%m-%d}",
        versions={**versions, "Python": platform.python_version()},
        answer=map(_term_and_text, answer),
        columns=_columns(rows),
        notes=notes,
        command=shlex.join(["fairclust", *args.words]),
        **{"parameters": None, **parts},
    )


def fit_page(result: dict[str, Any], rows: Rows, labels: Any, args: Raw) -> str:
    """The page: answer, profiles, shares, who pays, a map of the rows, columns, and how to make it again."""
    return page(
        "fit",
        args,
        f"{count(result['n_clusters'], 'cluster')} of",
        f"{result['method']}, {count(result['rows'], 'row')}, {count(len(result['features']), 'column')} clustered "
        f"by, {count(len(result['groups']), 'group')}",
        answer_lines(result),
        rows,
        result["notes"],
        profiles=_profiles(result),
        tables=tables(result),
        parameters=None if result["method"] == GIVEN else str(result["parameters"]),
        map_size=_SIZE,
        **_maps(rows, labels, result),
    )


def _term_and_text(line: str) -> tuple[str, str]:
    """A line of an answer, with the words before the colon as the term."""
    term, _, text = line.partition(": ")
    # What was asked begins with the name of a column.
    return term[:1].upper() + term[1:], text if term == "asked" else text[:1].upper() + text[1:]


def _profiles(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What each cluster is like."""
    profiles = []
    for cluster in result["clusters"]:
        differences = [row for row in result["profiles"] if row["cluster"] == cluster["cluster"]]
        if differences:
            bars = [_bar(row) for row in differences if row["column"]]
            known = {"cluster": cluster["cluster"], "rows": count(cluster["size"], "row")}
            profiles.append({**known, "bars": bars, "example": f"{differences[0]['example'] + 1:,}"})
    return profiles


def _bar(row: dict[str, Any]) -> dict[str, str]:
    """A difference in words, and as a bar from the middle, which ends at three standard deviations."""
    width = 50 * min(abs(row["difference"]), 3) / 3
    left, colour = (50, "--bar") if row["difference"] > 0 else (50 - width, "--less")
    return {
        **{"text": described(row), "colour": colour, "left": f"{left:.1f}", "width": f"{width:.1f}"},
        "difference": f"{row['difference']:+.1f}",
    }


def _maps(rows: Rows, labels: Any, result: dict[str, Any]) -> dict[str, Any]:
    """A sample of the rows in two dimensions, coloured by cluster and by group."""
    if not isinstance(rows, RowsInMemory) or min(rows.X.shape) < 2:
        return {"maps": {}}
    sample = np.random.default_rng(0).permutation(len(rows.X))[:_MOST_POINTS]
    points, how = _in_two_dimensions(rows.X, sample)
    low, high = np.quantile(points, [0.005, 0.995], axis=0)
    places = 12 + np.clip((points - low) / np.maximum(high - low, 1e-300), 0, 1) * (_SIZE - 24)
    places = [(f"{x:.0f}", f"{_SIZE - y:.0f}") for x, y in places]
    largest = largest_groups(result, len(_COLOURS) - 1)
    groups = [name if name in largest else "other groups" for name in rows.crossed[sample].tolist()]
    clusters = np.asarray(labels)[sample].tolist()
    drawn = {
        "cluster": ([f"cluster {k}" for k in clusters], [f"cluster {k}" for k in sorted(set(clusters))]),
        "group": (groups, [*largest, *(["other groups"] if "other groups" in groups else [])]),
    }
    maps = {
        what: [
            (
                name,
                _COLOURS[i % len(_COLOURS)],
                [at for at, own in zip(places, names, strict=True) if own == name],
            )
            for i, name in enumerate(key)
        ]
        for what, (names, key) in drawn.items()
    }
    some = f"{len(sample):,} of {len(rows.X):,} rows, drawn at random"
    return {"maps": maps, "map_rows": f"{how}; {some if len(sample) < len(rows.X) else 'all rows'}"}


def _in_two_dimensions(X: np.ndarray, sample: np.ndarray) -> tuple[np.ndarray, str]:
    """Points of the sampled rows by principal components, and what they are in words."""
    components = PCA(2, svd_solver="covariance_eigh").fit(X)
    part = components.explained_variance_ratio_.sum()
    text = f"Two principal components, with {percent(part, 0)} of the variance"
    return components.transform(X[sample]), text


def _columns(rows: Rows) -> list[tuple[str, str, str]]:
    """What became of each column: its name, its role, and how it was read."""
    preparation, known = rows.preparation, {column.name for column in rows.columns}
    how = {True: "its ranges are the groups", False: "its values are the groups"}
    lines = [(name, "sensitive", how[name in preparation.ranges]) for name in preparation.sensitive]
    for column in rows.columns:
        note = "; ".join(filter(None, [column.note, column.odd]))
        lines.append((shortened(column.name), column.role, note or "as it is"))
    ids = [name for name in preparation.ids if name not in known]
    return lines + [(name, "identifier", "written beside the labels") for name in ids]
