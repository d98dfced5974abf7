"""The reports of `fit`, `audit` and `front`, each as one HTML file that needs no network."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from markupsafe import Markup
from sklearn.decomposition import PCA

from fairclust import __version__
from fairclust.cli.options import Front, Raw
from fairclust.cli.results import GIVEN, answer_lines, largest_groups, tables
from fairclust.cli.rows import Rows, RowsInMemory
from fairclust.explain import described
from fairclust.fronts import Axes, front_of, window
from fairclust.looks import COLOURS, SHAPES, look
from fairclust.messages import count, percent, shortened
from fairclust.metrics.table import METRICS
from fairclust.plot import axis_label
from fairclust.report.render import template

# The most rows of the map, and the neighbours of a row for UMAP.
_MOST_POINTS, _NEIGHBOURS = 1500, 15
# Colours of clusters and groups, which also differ in lightness; further ones repeat them, and points have numbers.
_COLOURS = (
    *("#1b6ca8", "#d1495b", "#2e8b57", "#b8860b", "#7b4ea3", "#0e8a8a", "#a0522d", "#5b6470"),
    *("#c2185b", "#4b6b00"),
)


def _page(
    name: str, args: Raw, title: str, facts: str, answer: Iterable[str], rows: Rows, **parts: Any
) -> str:
    """A page about the user's table. The template `name` has its own `parts`; `answer` are the lines of the answer."""
    versions = {"fairclust": __version__, "scikit-learn": sklearn.__version__, "NumPy": np.__version__}
    n_columns = count(len(rows.preparation.features), "column")
    return template("fairclust.cli", "pages", f"{name}.html.j2").render(
        title=f"{title} {'standard input' if args.table == '-' else Path(args.table).name}",
        facts=f"{facts}, {n_columns} clustered by, {count(len(rows.sizes), 'group')}",
        today=f"{datetime.now(UTC):%Y-%m-%d}",
        versions={**versions, "Python": platform.python_version()},
        answer=map(_term_and_text, answer),
        columns=_columns(rows, args),
        command=shlex.join(["fairclust", *args.words]),
        **{"parameters": None, **parts},
    )


def fit_page(result: dict[str, Any], rows: Rows, labels: Any, args: Raw) -> str:
    """The page: answer, profiles, shares, who pays, a map of the rows, columns, and how to make it again."""
    return _page(
        "fit",
        args,
        f"{count(result['n_clusters'], 'cluster')} of",
        f"{result['method']}, {count(result['rows'], 'row')}",
        answer_lines(result),
        rows,
        notes=result["notes"],
        profiles=result["profiles"],
        described=described,
        tables=tables(result)[::-1],
        parameters=None if result["method"] == GIVEN else str(result["parameters"]),
        colours=_COLOURS,
        **_map(rows, labels, result),
    )


def _term_and_text(line: str) -> tuple[str, str]:
    """A line of an answer, with the words before the colon as the term."""
    term, _, text = line.partition(": ")
    # What was asked begins with the name of a column.
    return term[:1].upper() + term[1:], text if term == "asked" else text[:1].upper() + text[1:]


def _map(rows: Rows, labels: Any, result: dict[str, Any]) -> dict[str, Any]:
    """A sample of the rows in two dimensions, by UMAP if it is installed, with cluster and group; and its caption."""
    if not isinstance(rows, RowsInMemory) or min(rows.X.shape) < 2:
        return {"points": []}
    sample = np.random.default_rng(0).permutation(len(rows.X))[:_MOST_POINTS]
    components = PCA(2, svd_solver="covariance_eigh").fit(rows.X)
    places, part = components.transform(rows.X[sample]), components.explained_variance_ratio_.sum()
    how = f"Two principal components, with {percent(part, 0)} of the variance"
    if find_spec("umap") and len(sample) > _NEIGHBOURS:
        from umap import UMAP  # type: ignore[import-not-found]

        umap = UMAP(n_neighbors=_NEIGHBOURS, init=places, random_state=0, n_jobs=1)
        places, how = umap.fit_transform(rows.X[sample]), "UMAP"
    low, high = np.quantile(places, [0.005, 0.995], axis=0)
    places = np.clip((places - low) / np.maximum(high - low, 1e-300), 0, 1)
    largest = largest_groups(result, len(_COLOURS) - 1)
    points = pd.DataFrame(places, columns=["x", "y"]).assign(
        cluster=np.asarray(labels)[sample],
        group=[name if name in largest else "other groups" for name in rows.crossed[sample].tolist()],
    )
    some = f"{len(sample):,} of {len(rows.X):,} rows, drawn at random"
    shown = some if len(sample) < len(rows.X) else "all rows"
    return {"points": points.to_dict("records"), "map_rows": f"{how}; {shown}"}


def _columns(rows: Rows, args: Raw) -> list[tuple[str, str, str]]:
    """What became of each column: its name, its role, and how it was read."""
    preparation, known = rows.preparation, {column.name for column in rows.columns}
    lines = [
        (name, "sensitive", f"its {'ranges' if name in preparation.ranges else 'values'} are the groups")
        for name in preparation.sensitive
    ]
    for column in rows.columns:
        note = "; ".join(filter(None, [column.note, column.odd]))
        lines.append((shortened(column.name), column.role, note or "as it is"))
    ids = [name for name in preparation.ids if name not in known]
    lines += [(name, "identifier", "written beside the labels") for name in ids]
    others = dict.fromkeys(args.exclude, "by --exclude") | {args.weight: "how often a row counts"}
    told = {"", *(shown for shown, *_ in lines)}
    rest = [(shortened(name or ""), "left out", why) for name, why in others.items()]
    return lines + [line for line in rest if line[0] not in told]


def front_page(
    points: pd.DataFrame,
    cells: Sequence[Sequence[str]],
    said: Sequence[str],
    rows: RowsInMemory,
    notes: Sequence[str],
    args: Front,
) -> str:
    """The page: answer, charts, a table of all settings, columns, and how to make it again.

    `points` has a row for each setting, and `cells` the same as text below a head.
    """
    best = front_of(points, "sse", "balance", higher=True).best
    looks = {str(name): look(str(name)) for name in points.method.unique()}
    return _page(
        "front",
        args,
        "What fairness costs:",
        f"{count(len(points), 'clustering')} with {count(args.n_clusters, 'cluster')}, {count(len(rows.X), 'row')}",
        said,
        rows,
        notes=notes,
        charts=_fronts(points),
        looks={
            name: {"colour": COLOURS[colour], "shape": SHAPES[shape]}
            for name, (colour, shape) in looks.items()
        },
        n_best=int(best.sum()),
        head=cells[0],
        settings=cells[1:],
        strong=np.flatnonzero(best).tolist(),
    )


def _fronts(points: pd.DataFrame) -> list[dict[str, Any]]:
    """What the template draws of the cost against two metrics of fairness."""
    plain = points.increase.notna().all()
    points = points.assign(cost=100 * points.increase if plain else points.sse)
    label = "cost above k-means, %" if plain else axis_label("sse")
    charts = []
    for metric in (METRICS["balance"], METRICS["delta"]):
        front = front_of(points, "cost", metric.name, higher=metric.direction == "higher")
        x0, x1, y0, y1 = window(front, bounded=bool(np.isfinite(metric.range[1])))
        axes = Axes((x0, x1), (y0, y1), (56, 430), (14, 256))
        inside = front[front.x.between(x0, x1) & front.y.between(y0, y1)].sort_values("x", kind="stable")
        charts.append(
            {
                "labels": (label, axis_label(metric.name)),
                "frame": Markup(axes.frame()),
                "marks": inside.assign(left=axes.across(inside.x), top=axes.up(inside.y)).to_dict("records"),
                "beyond": len(front) - len(inside),
            }
        )
    return charts
