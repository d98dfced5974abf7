"""A made-up paper for tests of verdicts, tables and claims."""

import math

import pandas as pd
from frames import frame

from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import TableSpec
from fairclust.pipeline.reported import NO_VALUES, load_reported
from fairclust.report.material import Material

NAMES = Names(
    {"town": "Town", "city": "City"},
    {"own": "Own", "rival": "Rival", "plain": "Plain", "mine": "Mine"},
    ours=["mine"],
)

LAYOUT = {
    "rows": {"Town": {"dataset": "town"}, "City": {"dataset": "city"}},
    "columns": [
        {"SSE": {"metric": "sse"}, "Fairness error": {"metric": "fairness_error"}},
        {"Own": {"method": "own"}, "Rival": {"method": "rival"}},
    ],
}
HEAD = "table,dataset,n_clusters,lam,method,metric,value,note"


def table(**more):
    """Return Table 1 of the paper, whose own method is called `own`."""
    return TableSpec.model_validate(
        {"number": "1", "title": "A table", "own": "own", "layout": LAYOUT, **more}
    )


def reported(folder, *lines, lam=""):
    """Read reported values from lines of a CSV, with all columns or with method, metric and value of Town, K = 10."""
    path = folder / f"paper{len(list(folder.iterdir()))}.csv"
    whole = [line if line.count(",") > 2 else f"1,town,10,{lam},{line}," for line in lines]
    path.write_text("\n".join([HEAD, *whole]))
    return load_reported(path)


def programs(*lines, kind="program"):
    """Return values of a program: method, metric, variant and mean of five runs between mean - 1 and mean + 1."""
    return pd.DataFrame(
        [
            {"table": "1", "dataset": "town", "n_clusters": 10.0, "lam": math.nan, "program": "theirs", "kind": kind}
            | {"method": method, "metric": metric, "variant": variant, "runs": 5.0, "mean": mean, "sd": 0.5}
            | {"low": mean - 1, "high": mean + 1, "setting": "as shipped", "seconds": 3.0, "note": ""}
            for method, metric, variant, mean in lines
        ]
    )  # fmt: skip


def material(*cells, values=NO_VALUES, steps=(), **more):
    """Return what tables, figures and claims are made of, from several groups of cells."""
    history = pd.DataFrame(steps, columns=["key", "step", "objective"])
    return Material(values, frame([one for some in cells for one in some]), history, NAMES, **more)
