"""Tests of a paper's claims on the cells of a run. A claim holds only if it holds on all of its data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from fairclust.messages import count, counted, in_words
from fairclust.pipeline.papers import ClaimSpec
from fairclust.report.checks import (
    CHECKS,
    CLAIM_VERDICTS,
    NOT_COMPARABLE,
    NOT_TESTED,
    CannotTest,
    Case,
    common_verdict,
)
from fairclust.report.material import Material
from fairclust.report.render import MISSING, Table, read_data
from fairclust.report.selection import NOT_RUN

_RESULT = ["dataset", "n_clusters", "verdict", "numbers"]
CLAIM_COLUMNS = ["paper", "claim", "text", "where", "check", *_RESULT]


def check_claim(claim: ClaimSpec, material: Material) -> pd.DataFrame:
    """The verdict on a claim as a whole (with an empty data set), then those for each data set and K.

    The columns are those of `CLAIM_COLUMNS` from dataset on. Before the run `claim_problems` has checked the claim.
    """
    lines = []
    for dataset, k in _places(claim, material):
        try:
            verdict, numbers = CHECKS[claim.check].function(Case(claim, dataset, k, material))
            if reason := claim.options.get("not_comparable"):
                verdict, numbers = NOT_COMPARABLE, f"{reason}: {numbers}"
        except CannotTest as error:
            verdict, numbers = NOT_TESTED, str(error)
        lines.append((dataset, k, verdict, numbers))
    words = []
    for dataset, k, _, numbers in lines:
        several = sum(line[0] == dataset for line in lines) > 1
        where = material.names.dataset(dataset) + (f", K = {k}" if several else "")
        words.append(f"{where}: {numbers}" if len(lines) > 1 else numbers)
    whole = "; ".join(words) or f"its data sets and methods are {NOT_RUN}"
    together = ("", None, common_verdict(line[2] for line in lines), whole)
    return pd.DataFrame([together, *lines], columns=_RESULT).astype({"n_clusters": "Int64"})


def make_claims(material: Material, claims: Mapping[str, ClaimSpec], stem: Path) -> None:
    """Check all claims of a paper and write them as CSV and Markdown beside `stem`.

    The CSV has a line for each claim (with an empty data set) and one for each of its data sets.
    """
    parts, shown = [], []
    for name, claim in claims.items():
        results = check_claim(claim, material)
        whole = results.iloc[0]
        about = {"paper": material.paper, "claim": name, "text": claim.text, "where": claim.where}
        parts.append(results.assign(**about, check=claim.check))
        where, verdict = claim.where or MISSING, whole.verdict
        shown.append({"claim": claim.text, "where": where, "verdict": verdict, "numbers": whole.numbers})
    data, verdicts = pd.concat(parts)[CLAIM_COLUMNS], [line["verdict"] for line in shown]
    made = Table(
        f"{material.title}: claims, tested by this run",
        shown,
        notes=["A claim holds only if it holds on all of its data sets; means are over the starts."],
        lead=[f"{count(len(claims), 'claim')}: {in_words(counted(verdicts, CLAIM_VERDICTS))}."],
    )
    made.write(stem, data)


def load_claims(path: Path) -> pd.DataFrame:
    """Read a CSV of `make_claims`; absent texts are empty."""
    return read_data(path, CLAIM_COLUMNS, {"n_clusters": "Int64"})


def _places(claim: ClaimSpec, material: Material) -> Iterable[tuple[str, int | None]]:
    """The data sets and values of K on which a claim is checked; None stands for every K."""
    cells, methods = material.cells[material.cells.sweep == claim.sweep], claim.methods
    mine = cells[cells.method.isin(methods)] if methods else cells
    datasets = claim.datasets or list(mine.dataset.unique())
    for dataset in datasets:
        if claim.options.get("x") == "n_clusters":
            yield dataset, None
            continue
        # A claim that names values of K is checked at those that were run, or at all of them if none was. Any other
        # claim is checked at the values of K with which the largest number of its methods ran.
        ran = mine[mine.dataset == dataset].groupby("n_clusters").method.nunique()
        most = [int(k) for k in ran.index[ran == ran.max()]]
        named = [k for k in claim.n_clusters or () if k in ran.index] or claim.n_clusters
        for k in named or most or (None,):
            yield dataset, k
