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

HEAD = "table,dataset,n_clusters,lam,method,metric,value,note\n"


def table(**more):
    """Return Table 1 of the paper, whose own method is called `own`."""
    return TableSpec.model_validate({"number": "1", "title": "A table", "own": "own", **more})


def reported(folder, *lines):
    """Read reported values from lines of a CSV: table, dataset, K, lam, method, metric, value, note."""
    path = folder / f"paper{len(list(folder.iterdir()))}.csv"
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return load_reported(path)
