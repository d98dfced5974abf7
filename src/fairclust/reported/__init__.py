"""The numbers that the papers print, one per row, ready to stand beside the reproduced ones.

Each paper has one CSV in this folder, transcribed from its tables. What to know when reading them:

- ``value`` is in full units (a cost printed as 11.167 in units of 1e5 is 1116700, a percentage is a
  fraction). ``decimals`` is how many decimals of ``value`` were printed, negative where the last printed
  digit stands for tens or more; a number agrees with a printed one within half a unit of that digit.
- ``lam`` belongs to the method of that row and is empty for methods without one, or when it is not printed.
- ``sse`` is the k-means cost. FMC words its Cost as a sum of distances, but its k-means costs are the
  sums of *squared* distances that the other papers print too.
- ``n_rows`` and ``n_groups`` of BFKM's data are those of the files its authors published.
- FMC prints K for its Table 8 only; the rows of its other tables carry K = 10 and say so in ``note``.
- A cell without a number (``N/A``, or a claim made in words only) has no value, and its ``note`` says why.
"""

from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np
import pandas as pd

__all__ = ["COLUMNS", "KEY", "METRICS", "PAPERS", "Paper", "load_reported"]


class Paper(NamedTuple):
    """How to name a paper: in a table heading, in full, and its year."""

    short_name: str
    citation: str
    year: int


PAPERS: dict[str, Paper] = {
    "vfc": Paper(
        "VFC",
        "I. M. Ziko, J. Yuan, E. Granger, I. Ben Ayed. Variational Fair Clustering. "
        "Proceedings of the AAAI Conference on Artificial Intelligence 35(12), 2021.",
        2021,
    ),
    "fmc": Paper(
        "FMC",
        "J. Park, K. Kim, J. Lee, Y. Kim. Fair Model-based Clustering. "
        "Proceedings of the AAAI Conference on Artificial Intelligence 40(29), 2026.",
        2026,
    ),
    "bfkm": Paper(
        "BFKM",
        "R. Pan, C. Zhong, J. Qian. Balanced Fair K-Means Clustering. "
        "IEEE Transactions on Industrial Informatics, 2023.",
        2023,
    ),
    "sfairsc": Paper(
        "s-FairSC",
        "J. Wang, D. Lu, I. Davidson, Z. Bai. Scalable Spectral Clustering with Group Fairness Constraints. "
        "Proceedings of AISTATS, 2023.",
        2023,
    ),
}
"""Short name, citation and year of every paper, by its key."""

METRICS: dict[str, str] = {
    "sse": "k-means cost",
    "kmedians_cost": "k-medians cost",
    "ncut": "normalised cut",
    "fairness_error": "sum over clusters of KL(target || group shares)",
    "balance": "smallest ratio of two groups in a cluster",
    "delta": "FMC's gap between the groups' shares",
    "fairness_ratio": "BFKM's fairness ratio",
    "awd": "average Wasserstein distance",
    "dunn_index": "Dunn index",
    "nll": "negative log-likelihood",
    "accuracy": "accuracy of the clusters as classes",
    "seconds": "running time in seconds",
    "seconds_std": "standard deviation of the running time in seconds",
    "relative_seconds": "running time as a fraction of another method's",
    "n_nodes": "nodes of the graph",
    "n_groups": "number of groups",
}
"""What each metric key stands for."""

_TEXT = ("paper", "table", "dataset", "method", "metric", "note")
_INTEGER = ("n_rows", "n_groups", "n_clusters", "decimals")
_REAL = ("lam", "value")

COLUMNS = (
    "paper",
    "table",
    "dataset",
    "n_rows",
    "n_groups",
    "n_clusters",
    "lam",
    "method",
    "metric",
    "value",
    "decimals",
    "note",
)
"""The columns of every CSV, in order."""

KEY = ("paper", "table", "dataset", "method", "lam", "metric")
"""The columns that together name one cell."""


def load_reported(paper: str | None = None) -> pd.DataFrame:
    """
    Read the reported numbers of one paper, or of all of them.

    Parameters
    ----------
    paper : str, optional
        A key of `PAPERS`; every paper when left out.

    Returns
    -------
    pandas.DataFrame
        One row per number, with the columns of `COLUMNS`. Text columns are ``string`` (an absent note is
        empty), ``n_rows``, ``n_groups``, ``n_clusters`` and ``decimals`` are ``Int64``, and ``lam`` and
        ``value`` are ``float64``; what a paper does not print is missing.

    Raises
    ------
    KeyError
        If `paper` is not a known key.
    ValueError
        If a CSV breaks the format: columns, types, repeated cells, or a value and its note at odds.
    """
    if paper is not None and paper not in PAPERS:
        raise KeyError(f"no reported numbers for {paper!r}; known papers: {', '.join(PAPERS)}")
    keys = list(PAPERS) if paper is None else [paper]
    return pd.concat([_read(key) for key in keys], ignore_index=True)


@cache
def _read(paper: str) -> pd.DataFrame:
    source = resources.files(__name__).joinpath(f"{paper}.csv")
    with source.open(encoding="utf-8") as stream:
        raw = pd.read_csv(stream, dtype=str, keep_default_na=False)
    return _checked(raw, paper)


def _checked(raw: pd.DataFrame, paper: str) -> pd.DataFrame:
    """Give `raw`, all text, its types, or say what is wrong with it."""
    if tuple(raw.columns) != COLUMNS:
        raise ValueError(f"{paper}.csv: columns are {list(raw.columns)}, expected {list(COLUMNS)}")
    frame = pd.DataFrame(index=raw.index)
    try:
        for name in COLUMNS:
            if name in _TEXT:
                frame[name] = raw[name].astype("string")
            else:
                cells = [float(cell) if cell else np.nan for cell in raw[name]]
                numbers = pd.Series(cells, index=raw.index, dtype="float64")
                frame[name] = numbers if name in _REAL else numbers.astype("Int64")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{paper}.csv: column {name!r} holds something that is not its type") from error

    absent = frame["value"].isna()
    rules = {
        "another paper's key": frame["paper"] != paper,
        "an empty name": (frame[["table", "dataset", "method", "metric"]] == "").any(axis=1),
        "an unknown metric": ~frame["metric"].isin(list(METRICS)),
        "an infinite number": np.isinf(frame["value"]) | np.isinf(frame["lam"]),
        "no value and no note": absent & (frame["note"] == ""),
        "a value without decimals or decimals without a value": absent != frame["decimals"].isna(),
        "a cell that was already given": frame.duplicated(list(KEY)),
    }
    for what, broken in rules.items():
        if broken.any():
            lines = [int(row) + 2 for row in np.flatnonzero(broken.to_numpy(dtype=bool))]
            raise ValueError(f"{paper}.csv: {what} in line(s) {lines}")
    return frame
