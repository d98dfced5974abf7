"""Tests of a paper's claims on the cells of a run. A claim holds only if it holds on all of its data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from fairclust.messages import count, counted
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import ClaimSpec
from fairclust.report.checks import (
    CHECKS,
    CLAIM_VERDICTS,
    NOT_COMPARABLE,
    NOT_TESTED,
    Case,
    common_verdict,
    tested,
)
from fairclust.report.material import Material
from fairclust.report.render import escape_markdown, read_data, write_as

_RESULT = ["dataset", "n_clusters", "verdict", "numbers"]
CLAIM_COLUMNS = ["paper", "claim", "text", "where", "check", *_RESULT]


def check_claim(claim: ClaimSpec, material: Material) -> pd.DataFrame:
    """The verdict on a claim as a whole (with an empty data set), then those for each data set and K.

    The columns are those of `CLAIM_COLUMNS` from dataset on. Before the run `claim_problems` has checked the claim.
    """
    lines = []
    for dataset, k in _places(claim, material):
        verdict, numbers = tested(CHECKS[claim.check].function, Case(claim, dataset, k, material))
        if verdict != NOT_TESTED and (reason := claim.options.get("not_comparable")):
            verdict, numbers = NOT_COMPARABLE, f"{reason}: {numbers}"
        lines.append((dataset, k, verdict, numbers))
    of_places = pd.DataFrame(lines, columns=_RESULT)
    whole = ("", None, common_verdict(of_places.verdict), "; ".join(_by_place(of_places, material.names)))
    return pd.DataFrame([whole, *lines], columns=_RESULT).astype({"n_clusters": "Int64"})


def _by_place(results: pd.DataFrame, names: Names) -> list[str]:
    """What was found on each data set and K of a claim, as sentences."""
    if len(results) < 2:
        return list(results.numbers)
    several = results.dataset.duplicated(keep=False)
    return [
        f"{names.dataset(one.dataset)}{f', K = {one.n_clusters}' if is_several else ''}: {one.numbers}"
        for one, is_several in zip(results.itertuples(), several, strict=True)
    ]


def make_claims(material: Material, claims: Mapping[str, ClaimSpec], stem: Path) -> None:
    """Check all claims of a paper and write the lines of `check_claim` as CSV and Markdown beside `stem`."""
    parts, verdicts, lines = [], [], []
    for name, claim in claims.items():
        results = check_claim(claim, material)
        about = {"paper": material.paper, "claim": name, "text": claim.text, "where": claim.where}
        parts.append(results.assign(**about, check=claim.check))
        verdicts.append(results.verdict.iloc[0])
        lines += [f"## {escape_markdown(claim.text)}", "", f"**{verdicts[-1]}**"]
        lines[-1] += f" ({escape_markdown(claim.where)})" if claim.where else ""
        lines += ["", *(f"- {escape_markdown(one)}" for one in _by_place(results[1:], material.names)), ""]
    counts = ", ".join(f"{verdict} {n}" for verdict, n in counted(verdicts, CLAIM_VERDICTS).items())
    head = [
        f"# {escape_markdown(material.title)}: claims, tested by this run",
        "",
        f"Verdicts on {count(len(claims), 'claim')}: {counts}. A claim holds only if it holds on all of its data sets. "
        "Means are over the starts that use all clusters.",
        "",
    ]
    write_as(stem, csv=pd.concat(parts)[CLAIM_COLUMNS].to_csv(index=False), md="\n".join([*head, *lines]))


def load_claims(path: Path) -> pd.DataFrame:
    """Read a CSV of `make_claims`; absent texts are empty."""
    return read_data(path, CLAIM_COLUMNS, {"n_clusters": "Int64"})


def _places(claim: ClaimSpec, material: Material) -> Iterable[tuple[str, int | None]]:
    """The data sets and values of K on which a claim is checked; None stands for every K."""
    cells = material.cells
    mine = cells[(cells.sweep == claim.sweep) & cells.method.isin(claim.methods)]
    for dataset in claim.datasets:
        if claim.options.get("x") == "n_clusters":
            yield dataset, None
            continue
        # A claim that names no K is checked at the values of K with which the largest number of its methods ran.
        ran = mine[mine.dataset == dataset].groupby("n_clusters").method.nunique()
        most = [int(k) for k in ran.index[ran == ran.max()]]
        named = [k for k in claim.n_clusters or () if k in ran.index] or claim.n_clusters
        for k in named or most or (None,):
            yield dataset, k
