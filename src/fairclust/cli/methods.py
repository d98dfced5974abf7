"""`fairclust methods`: lists the methods and the needs that they meet, or the parameters of one method."""

from __future__ import annotations

import inspect
import re
import textwrap

from rich.table import Table

from fairclust import methods
from fairclust.cli import CommandError
from fairclust.cli.options import Methods
from fairclust.cli.screen import in_columns
from fairclust.messages import nearest
from fairclust.metrics.registry import doc_entries, doc_sections

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

# What users need, and what meets it. docs/needs/index.md has the same rows, each with a page.
NEEDS = {
    "Every cluster has nearly the group shares of all rows.": "price --tolerance 0.1",
    "In every cluster the smallest group is at least some fraction of the largest.": "price --min-balance 0.4",
    "The cost may rise by some per cent and no more.": "price --max-cost-increase 5%",
    "No group pays more than the others, in distance to its centres.": "socially_fair",
    "Several sensitive columns count at once.": "price --sensitive gender ethnicity",
    "Clusters have bounded sizes, or rows have weights.": "price --set size_min=0.9 --set size_max=1.1",
    "New rows get a cluster later, with or without their group.": "price --save model.fairclust",
    "New rows may not be assigned by their group.": "fmc",
    "The data are a graph.": "sfairsc",
    "Most columns are categories.": "fmc",
    "There are millions of rows.": "price --set n_init=1",
    "Embeddings are split into parts of equal size.": "price --equal-sizes --scale none",
    "No bound is needed, but a paper's method is wanted for a comparison.": "vfc",
}


def run(args: Methods) -> list[str | Table]:
    """The methods and the needs that they meet, or the parameters of the method that is named."""
    if args.method:
        return [*describe_parameters(find_method(args.method))]
    rows = [
        [short, name, (getattr(methods, name).__doc__ or "").partition("\n")[0]]
        for short, name in sorted(_CLASSES.items())
    ]
    needs = [
        ["need", "options of `fairclust fit`"],
        *([need, f"--method {of}"] for need, of in NEEDS.items()),
    ]
    return [
        in_columns([["method", "class", "what it does"], *rows], left=(0, 1, 2)),
        "",
        in_columns(needs, left=(0, 1)),
        "",
        "`fairclust methods NAME` shows the parameters of one method.",
    ]


def find_method(name: str) -> type:
    """The class of a method by its short name or its own; CommandError, with a similar name, if there is none."""
    known = _CLASSES.get(name) or (name if name in methods.__all__ else None)
    if known is None:
        hint = nearest(name, [*_CLASSES, *methods.__all__])
        raise CommandError(f"--method: there is no method {name!r}; {hint} (`fairclust methods` lists them)")
    return getattr(methods, known)


def describe_parameters(cls: type) -> list[str]:
    """Name, type, default and first sentence of every parameter, from docstrings and the signature."""
    # What methods share is described in the classes above them.
    documented: dict[str, str] = {}
    for above in reversed(cls.__mro__):
        documented |= doc_entries(doc_sections(vars(above).get("__doc__")).get("Parameters"))
    short = next(short for short, name in _CLASSES.items() if name == cls.__name__)
    lines = [f"{cls.__name__}: {(cls.__doc__ or '').partition(chr(10))[0]}", ""]
    for name, parameter in inspect.signature(cls).parameters.items():
        head, _, text = documented.get(name, "").partition("\n")
        kind = re.sub(r",?\s*(default=.*|optional)$", "", head.partition(" : ")[2])
        lines.append(f"  {name} = {parameter.default!r}" + (f"  ({kind})" if kind else ""))
        words = " ".join(text.split())
        first = re.match(r".*?[.:](?= [A-Z]|$)", words)
        shown = first[0] if first else words
        lines += textwrap.wrap(shown, 100, initial_indent="      ", subsequent_indent="      ")
    new = "fairclust fit --save, then fairclust predict" if hasattr(cls, "predict") else "not possible"
    use = f"fairclust fit TABLE ... --method {short} --set NAME=VALUE"
    return [*lines, "", f"new rows: {new}", f"use: {use}"]
