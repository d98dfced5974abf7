"""`fairclust advise`: the method that fits a need."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from fairclust.cli import CommandError


@dataclass(frozen=True)
class Need:
    """A need of a user: its description, the method that meets it, the options to begin with, and the reason."""

    question: str
    method: str
    options: str
    why: str


NEEDS = {
    "share": Need(
        "every cluster must have nearly the group shares of all rows",
        "price",
        "--set tolerance=0.1",
        "keeps every share within a tenth of that in all rows, and certifies the cost",
    ),
    "balance": Need(
        "the smallest group must be at least some fraction of the largest, in every cluster",
        "price",
        "--set min_balance=0.4",
        "keeps this balance exactly; for two groups and small data, `fairlets` is another choice",
    ),
    "budget": Need(
        "the cost must not rise by more than some per cent",
        "price",
        "--set max_cost_increase=0.05",
        "finds the smallest tolerance that costs at most 5 % more than k-means; `fairclust front` compares tolerances",
    ),
    "sizes": Need(
        "every cluster must have nearly the same number of rows",
        "price",
        "--set tolerance=0.2 --set size_min=0.9 --set size_max=1.1",
        "keeps sizes within a tenth of the mean, and shares within the tolerance; Python needs no sensitive column",
    ),
    "cost": Need(
        "no group should pay more than the others, in distance to its centres",
        "socially_fair",
        "",
        "makes the mean cost of the group that pays most as small as it can, and promises no shares; `fairclust fit` "
        "prints under 'who pays' what each group pays",
    ),
    "columns": Need(
        "several sensitive columns at once",
        "price",
        "--sensitive gender ethnicity --set tolerance=0.2",
        "bounds each column on its own; with --crossed the bound holds for each combination of them",
    ),
    "new": Need(
        "new rows must get a cluster later, with or without their group",
        "price",
        "--save model.fairclust",
        "`fairclust predict` needs the group of the new rows; without it, `kmeans` predicts and promises nothing",
    ),
    "graph": Need(
        "the data are a graph",
        "sfairsc",
        "",
        "from Python: FairSpectralClustering().fit(adjacency, sensitive_features=...)",
    ),
    "categories": Need(
        "most columns are categories",
        "fmc",
        "",
        "from Python: FairMixture(categorical_features=[...]) on integer codes models categories as such; the "
        "command gives each category a column of zeros and ones, for which `price` serves, too",
    ),
    "weight": Need(
        "no bound is needed, but a paper's method is wanted for a comparison",
        "vfc",
        "--set max_gap=0.05",
        "searches for the smallest weight of fairness with which Delta is at most 0.05",
    ),
}


def run(args: argparse.Namespace) -> list[str]:
    """Advise on the needs that are named; ask for them in a terminal, and list all of them elsewhere.

    Returns for each need its description, the method with the reason, and a command to begin with. CommandError if a
    need is not in `NEEDS`, or an answer is not one of the numbers that are offered.
    """
    unknown = [need for need in args.need if need not in NEEDS]
    if unknown:
        raise CommandError(f"there is no need {unknown[0]!r}. Fix: name one of {', '.join(NEEDS)}")
    if not args.need and not sys.stdin.isatty():
        return [f"{name:10}  {need.question}: {need.method}" for name, need in NEEDS.items()]
    lines = []
    for name in args.need or _ask():
        need = NEEDS[name]
        options = f" {need.options}" if need.options else ""
        sensitive = "" if "--sensitive" in options else " --sensitive COLUMN"
        lines += [
            f"{name}: {need.question}",
            f"  method {need.method}: {need.why}",
            f"  fairclust fit TABLE{sensitive} --n-clusters K --method {need.method}{options}",
        ]
    return lines


_QUESTIONS = (
    ("What must hold?", ("share", "balance", "budget", "sizes", "cost", "weight")),
    ("What are the data?", ("", "columns", "graph", "categories")),
    ("What comes later?", ("", "new")),
)


def _ask() -> list[str]:
    """Ask three questions, each answered by a number, and return the needs that were chosen."""
    chosen = []
    for question, needs in _QUESTIONS:
        print(question)
        for number, need in enumerate(needs, 1):
            print(f"  {number}. {NEEDS[need].question if need else 'nothing of what follows'}")
        answer = input("number [1]: ").strip() or "1"
        if not answer.isdigit() or not 1 <= int(answer) <= len(needs):
            raise CommandError(
                f"{answer!r} is not a number from 1 to {len(needs)}. Fix: run the command again and type one of them"
            )
        chosen.append(needs[int(answer) - 1])
    return [need for need in chosen if need]
