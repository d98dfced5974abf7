"""Tests of a paper's claims on the cells of a run. A claim holds only if it holds on all of its data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import ClaimSpec
from fairclust.report.checks import CLAIM_VERDICTS, NOT_TESTED, joined, validate_claim
from fairclust.report.material import CannotTest, ClaimError, Material, Place, cells_at, table_of
from fairclust.report.render import MISSING, write_table
from fairclust.report.selection import NOT_RUN

CLAIM_COLUMNS = ["paper", "claim", "text", "where", "check", "dataset", "n_clusters", "verdict", "numbers"]


@dataclass(frozen=True)
class Result:
    """The result of a check on one data set and K. An empty data set stands for all data sets of the claim."""

    dataset: str
    n_clusters: int | None
    verdict: str
    numbers: str


def check_claim(name: str, claim: ClaimSpec, material: Material) -> list[Result]:
    """The result of a claim as a whole (with an empty data set), then one for each data set and K.

    ClaimError as in `validate_claim`.
    """
    check = validate_claim(name, claim, material.tables)
    results = []
    for place in _places(claim, material):
        try:
            verdict, numbers = check.function(claim, place, material)
        except CannotTest as error:
            verdict, numbers = NOT_TESTED, str(error)
        except ClaimError as error:
            raise ClaimError(f"claims.{name}: {error}") from None
        results.append(Result(place.dataset, place.n_clusters, verdict, numbers))
    if not results:
        return [Result("", None, NOT_TESTED, f"its data sets and methods are {NOT_RUN}")]
    together = "; ".join(f"{_where(result, results, material.names)}{result.numbers}" for result in results)
    return [Result("", None, joined(result.verdict for result in results), together), *results]


def make_claims(material: Material, claims: Mapping[str, ClaimSpec], stem: Path) -> None:
    """Check all claims of a paper and write them as CSV, Markdown and LaTeX beside `stem`.

    The CSV has a line for each claim (with an empty data set) and one for each of its data sets. Claims on times show
    the seconds of published programs. ClaimError as in `validate_claim`.
    """
    data, shown, counts = [], [], dict.fromkeys(CLAIM_VERDICTS, 0)
    for name, claim in claims.items():
        results = check_claim(name, claim, material)
        about = {
            "paper": material.paper,
            "claim": name,
            **claim.model_dump(include={"text", "where", "check"}),
        }
        data += [{**about, **asdict(result)} for result in results]
        counts[results[0].verdict] += 1
        shown.append(
            {
                "claim": claim.text,
                "where": claim.where or MISSING,
                "verdict": results[0].verdict,
                "numbers": results[0].numbers,
            }
        )
    words = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    write_table(
        stem,
        pd.DataFrame(data, columns=CLAIM_COLUMNS).astype({"n_clusters": "Int64"}),
        pd.DataFrame(shown, columns=["claim", "where", "verdict", "numbers"]),
        title=f"{material.title}: claims, tested by this run",
        notes=["A claim holds only if it holds on all of its data sets; means are over the starts."],
        lead=[f"{len(claims)} claim{'s' * (len(claims) > 1)}: {', '.join(words)}."] if claims else [],
    )


def load_claims(path: Path) -> pd.DataFrame:
    """Read a CSV of `make_claims`; absent texts are empty."""
    text = dict.fromkeys(set(CLAIM_COLUMNS) - {"n_clusters"}, str)
    frame = pd.read_csv(path, dtype=text, keep_default_na=False, na_values={"n_clusters": [""]})
    return frame.astype({"n_clusters": "Int64"})


def _places(claim: ClaimSpec, material: Material) -> Iterable[Place]:
    """The data sets and values of K on which a claim is checked."""
    cells = material.cells
    methods = claim.methods
    mine = cells[cells.method.isin(methods)] if methods else cells
    datasets = claim.datasets or list(mine.dataset.unique())
    if claim.check == "same_order" and not claim.datasets:
        table = table_of(claim.options["table"], material.tables)
        datasets = list(material.reported.dataset[material.reported.table == table.number].unique())
    for dataset in datasets:
        at = cells[cells.dataset == dataset]
        every_k = claim.check == "same_order" and not claim.n_clusters
        if every_k or claim.options.get("x") == "n_clusters":
            yield Place(dataset, None, at)
            continue
        # A claim that names values of K is checked at those that were run, or at all of them if none was. Any other
        # claim is checked at the values of K with which the largest number of its methods ran.
        ran = mine[mine.dataset == dataset].groupby("n_clusters").method.nunique()
        most = [int(k) for k in ran.index[ran == ran.max()]]
        named = [k for k in claim.n_clusters or () if k in ran.index] or claim.n_clusters
        for k in named or most or (None,):
            yield Place(dataset, k, cells_at(cells, dataset, k))


def _where(result: Result, results: list[Result], names: Names) -> str:
    """The data set and K of a result in words, if there are several results."""
    if len(results) == 1:
        return ""
    title = names.dataset(result.dataset) if result.dataset else "together"
    several = len({other.n_clusters for other in results if other.dataset == result.dataset}) > 1
    return f"{title}, K = {result.n_clusters}: " if several else f"{title}: "
