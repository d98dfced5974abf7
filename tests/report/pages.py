"""A page for tests: made-up scores of a few methods on data sets of the papers."""

import json

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.report.catalogue import Names
from fairclust.report.html import write_page

NAMES = Names(
    {"adult": "Adult", "bank_3": "Bank <J=3> & co", "synthetic": "Synthetic"},
    {"kmeans": "K-means", "vfc_kmeans": "VFC K-means", "bera": "Bera </script> et al."},
    {"kmeans": "reference", "vfc_kmeans": "variational", "bera": "assignment"},
)
CONFIG = {
    "datasets": {"adult": {"title": "Adult", "source": {"path": "/home/somebody/adult.csv"}}},
    "run": {"datasets": ["adult"], "seeds": 2},
}


def made_up_scores(n_lams=6, n_seeds=2, datasets=("adult", "bank_3"), methods=("vfc_kmeans", "bera")):
    """Costs that rise with lambda and errors that fall; one timeout, one data set that is skipped."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset in datasets:
        for number, method in enumerate(("kmeans", *methods)):
            for lam in [0.0] if method == "kmeans" else 1000.0 * np.arange(n_lams):
                for seed in range(n_seeds):
                    fair = lam / (1000 * n_lams)
                    cost = 9500 * (1 + 0.1 * fair**2 + 0.02 * number + 0.01 * seed + 0.005 * rng.random())
                    rows.append(
                        {
                            **dict.fromkeys(METRICS, np.nan),
                            **{"dataset": dataset, "method": method, "n_clusters": 10, "lam": lam},
                            **{"seed": seed, "status": "ok", "reason": "", "sse": cost, "objective": cost},
                            **{"kmedians_cost": 2 * cost, "balance": 0.5 * fair, "delta": 0.2 * (1 - fair)},
                            "fairness_error": np.inf if fair == 0 else 0.02 / fair - 0.01,
                            **{"n_rows": 32561.0, "n_features": 5.0, "n_groups": 2.0},
                            "params": json.dumps({"lam": lam} if method != "kmeans" else {}),
                        }
                    )
    rows[-1] |= {"status": "timeout", "reason": "longer than 5 s", **dict.fromkeys(METRICS, np.nan)}
    rows.append(
        {
            **rows[-1],
            **{"dataset": "synthetic", "n_clusters": 2, "status": "skipped", "n_rows": np.nan},
            "reason": "no such file: /home/somebody/data.csv\nand more",
        }
    )
    frame = pd.DataFrame(rows)
    frame["key"] = [f"k{i}" for i in range(len(frame))]
    return frame


def make_page_folder(folder, frame):
    """Write scores as a run leaves them, and the page; returns the page's path."""
    scores = folder / "scores"
    scores.mkdir(parents=True)
    runs = frame[["dataset", "method", "n_clusters", "lam", "seed", "status", "key"]]
    runs = runs.assign(wall_seconds=0.5, cpu_seconds=0.4, peak_memory_mb=200.0)
    for name, table in (("scores", frame), ("runs", runs)):
        table.to_parquet(scores / f"{name}.parquet")
        table.to_csv(scores / f"{name}.csv", index=False)
    origin = {"git_commit": "abc", "python": "3", "platform": "p", "cpu_count": 2, "config": CONFIG}
    (folder / "provenance.json").write_text(json.dumps({**origin, "versions": {"numpy": "2"}}))
    page = folder / "report" / "index.html"
    write_page(
        scores / "scores.parquet",
        scores / "runs.parquet",
        folder / "provenance.json",
        [],
        NAMES,
        page,
        folder / "report.zip",
    )
    return page
