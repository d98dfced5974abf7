"""`fairclust methods`: lists the methods."""

from __future__ import annotations

from rich.table import Table

from fairclust import methods
from fairclust.cli.options import Methods
from fairclust.cli.screen import in_columns
from fairclust.messages import UserError, nearest

# Names of methods that differ from that of their module. The pipeline's entries, in config/methods/, have longer names.
_SHORT = {
    "PriceFairKMeans": "price",
    "VariationalFairKMeans": "vfc",
    "VariationalFairKMedians": "vfc_kmedians",
    "VariationalFairNCut": "vfc_ncut",
    "BalancedFairKMeans": "bfkm",
    "FairMixture": "fmc",
    "FairAlignmentKMeans": "fca",
    "FairletTreeClustering": "backurs",
    "FairletClustering": "fairlets",
    "FairSpectralClustering": "sfairsc",
}
_CLASSES = {_SHORT.get(name, home.rpartition(".")[2]): name for name, (home, *_) in methods._HOMES.items()}


def run(args: Methods) -> list[str | Table]:
    """The methods, by the names that options take."""
    rows = [
        [short, name, (getattr(methods, name).__doc__ or "").partition("\n")[0]]
        for short, name in sorted(_CLASSES.items())
    ]
    return [in_columns([["method", "class", "what it does"], *rows], left=(0, 1, 2))]


def find_method(name: str) -> type:
    """The class of a method by its short name or its own; UserError, with a similar name, if there is none."""
    known = _CLASSES.get(name) or (name if name in methods.__all__ else None)
    if known is None:
        hint = nearest(name, [*_CLASSES, *methods.__all__])
        raise UserError(f"--method: there is no method {name!r}; {hint} (`fairclust methods` lists them)")
    return getattr(methods, known)
