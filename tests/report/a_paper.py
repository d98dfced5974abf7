"""A made-up paper for tests of verdicts, tables and claims."""

from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import TableSpec
from fairclust.pipeline.reported import load_reported

NAMES = Names(
    {"town": "Town", "city": "City"},
    {"own": "Own", "rival": "Rival", "plain": "Plain", "mine": "Mine"},
    ours=["mine"],
    order=["own", "rival", "plain", "mine"],
)

HEAD = "table,dataset,n_clusters,lam,method,metric,value,note"


def table(**more):
    """Return Table 1 of the paper, whose own method is called `own`."""
    return TableSpec.model_validate({"number": "1", "title": "A table", "own": "own", **more})


def reported(folder, *lines, lam=""):
    """Read reported values from lines of a CSV, with all columns or with method, metric and value of Town, K = 10."""
    path = folder / f"paper{len(list(folder.iterdir()))}.csv"
    whole = [line if line.count(",") > 2 else f"1,town,10,{lam},{line}," for line in lines]
    path.write_text("\n".join([HEAD, *whole]))
    return load_reported(path)
