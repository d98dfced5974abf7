"""`fairclust front`: the cost of fairness for the settings of several methods, or for several numbers of clusters."""

from __future__ import annotations

import argparse
import importlib.util
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import silhouette_score

from fairclust import methods
from fairclust.cli import CommandError, raw_table
from fairclust.cli.fitting import Grid, fit_starts, scored
from fairclust.cli.labels import write_csv
from fairclust.cli.progress import progress
from fairclust.cli.raw_table import RawTable
from fairclust.cli.results import aligned
from fairclust.looks import COLOURS, SHAPES, look
from fairclust.metrics import score_labels
from fairclust.metrics.table import METRICS
from fairclust.outputs import atomic_write, check_outputs
from fairclust.plot import MEASURED, FrontDisplay, axis_label

_SHOWN = ("sse", "balance", "delta")
# The silhouette is computed on a sample of this many rows. It agrees with that of all rows to two digits, and takes a
# second instead of minutes.
_SILHOUETTE_ROWS = 5000


def run(args: argparse.Namespace) -> list[str]:
    """Fit every setting and write the results as CSV, page and picture.

    Returns notes, a table of the results, and the names of the files. CommandError if the table cannot be read, an
    option names a column or method that does not exist, or no setting could be fitted.
    """
    # A stem such as `.` or `folder/..` would make hidden files with odd names.
    if args.out.name in ("", ".."):
        raise CommandError(
            f"--out: {args.out} is a folder. Fix: name a stem in it, such as {args.out / 'front'}"
        )
    endings = ("csv", "html", "png") if importlib.util.find_spec("matplotlib") else ("csv", "html")
    paths = {ending: Path(f"{args.out}.{ending}") for ending in endings}
    check_outputs({f"--out ({ending})": path for ending, path in paths.items()}, raw_table.read_files(args))
    grid = Grid(args)
    over_k = len(grid.numbers) > 1
    if over_k and not args.methods:
        grid.classes = [methods.PriceFairKMeans]
    raw = grid.raw
    rows, notes = [], list(raw.notes)
    settings = list(grid.settings(args.seed, one=over_k))
    with progress("fitting settings", total=len(settings)) as done:
        for cls, setting, params in settings:
            try:
                groups = raw_table.sensitive_for(cls, raw, crossed=args.crossed)
                model, seconds, warned = fit_starts(cls, params, raw.X, groups, args.starts)
                point = {"method": cls.__name__, "setting": setting, **_measure(raw, model, args.crossed)}
                rows.append(point | {"seconds": round(seconds, 2)})
            except CommandError as error:
                warned = [str(error)]
            notes += [f"{cls.__name__} {setting}: {text}" for text in warned]
            done()
    if not rows:
        raise CommandError(f"no setting could be fitted: {notes[-1]}")
    points = pd.DataFrame(rows)
    return [
        *(f"note: {note}" for note in notes),
        *_table(points, over_k),
        "",
        *_write(points, paths, Path(args.table).name, over_k),
    ]


def _measure(raw: RawTable, model: Any, crossed: bool) -> dict[str, float]:
    """Metrics of a fit.

    If there are several sensitive columns, the metrics of groups are those of the least fair column, or, if `crossed`,
    of the combinations.
    """
    labels, n_clusters = model.labels_, model.n_clusters
    scores = score_labels(scored(raw, labels, n_clusters, crossed), MEASURED)
    several = 1 < len(np.unique(labels)) < len(labels)
    size = min(_SILHOUETTE_ROWS, len(labels))
    silhouette = silhouette_score(raw.X, labels, sample_size=size, random_state=0) if several else np.nan
    return {"n_clusters": n_clusters, **scores, "silhouette": float(silhouette)}


def _table(points: pd.DataFrame, over_k: bool) -> list[str]:
    rows = [
        ["method", "K" if over_k else "setting", *(METRICS[m].label for m in _SHOWN), "silhouette", "seconds"]
    ]
    for of in points.to_dict("records"):
        shown = [f"{of[name]:,.{METRICS[name].decimals}f}" for name in _SHOWN]
        which = str(of["n_clusters"] if over_k else of["setting"])
        rows.append([of["method"], which, *shown, f"{of['silhouette']:.3f}", f"{of['seconds']:.1f}"])
    return aligned(rows, left=(0, 1))


def _write(points: pd.DataFrame, paths: dict[str, Path], title: str, over_k: bool) -> list[str]:
    """Write the CSV, the page, and the picture if there is a path for it; return a line that names the files."""
    write_csv(paths["csv"], points)
    looks = {name: look(name) for name in points.method.unique()}
    data = {
        "title": title,
        "points": json.loads(points.to_json(orient="records")),
        "looks": {name: [COLOURS[colour], SHAPES[shape]] for name, (colour, shape) in looks.items()},
        "axes": {name: axis_label(name) for name in (*MEASURED, "silhouette", "n_clusters")},
        "x": "n_clusters" if over_k else "sse",
    }
    page = files("fairclust.cli").joinpath("front.html").read_text(encoding="utf-8")
    # Names may hold `</script>` or `<!--`, which would end the script of the page or swallow its end.
    text = json.dumps(data).replace("<", "\\u003c")
    with atomic_write(paths["html"]) as file:
        file.write(page.replace("/* data */ null", text).encode())
    if "png" in paths:
        with atomic_write(paths["png"]) as file:
            _draw(points, over_k).savefig(file, format="png", dpi=150)
    hint = "" if "png" in paths else " (pip install 'fairclust[plot]' for a PNG)"
    return [f"written: {', '.join(map(str, paths.values()))}{hint}"]


def _draw(points: pd.DataFrame, over_k: bool) -> Any:
    from matplotlib.figure import Figure

    panels = ("sse", "balance", "silhouette") if over_k else ("balance", "delta")
    figure = Figure(figsize=(4.5 * len(panels), 3.8), layout="constrained")
    for ax, name in zip(figure.subplots(1, len(panels)), panels, strict=True):
        FrontDisplay(points).plot("n_clusters" if over_k else "sse", name, ax=ax)
    return figure
