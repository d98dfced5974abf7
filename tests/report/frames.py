"""Made-up cells and steps for tests of the report, in the form of `pipeline.scores.load_cells`."""

import json

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.pipeline.columns import STATED

NUMBERS = (*METRICS, *STATED, "accuracy", "objective", "n_iter", "seconds", "cpu_seconds")


def cell(dataset="adult", method="vfc_kmeans", n_clusters=10, lam=None, seed=0, *, params=None, **more):
    """Make one row. `params` are the method's parameters besides lambda, and `more` are columns."""
    own = dict(params or {}) | ({} if lam is None else {"lam": float(lam)})
    text = json.dumps({key: float(v) if isinstance(v, int) else v for key, v in own.items()}, sort_keys=True)
    row = {
        **dict.fromkeys(NUMBERS, np.nan),
        **{"dataset": dataset, "method": method, "n_clusters": n_clusters, "seed": seed},
        **{"lam": np.nan if lam is None else float(lam), "status": "ok", "reason": "", "params": text},
        **{"n_rows": 32561, "n_features": 5, "n_groups": 2, "counts": None, "by_column": None},
        **{"estimator": "{}", "warnings": ""},
        **{"seconds": 0.5, "cpu_seconds": 0.4, "threads": 1, "converged": True},
        **{"random_state": seed, "data_hash": "d", "fingerprint": "f", "git_commit": "c"},
        **{"versions": "numpy 2", "finished": 0.0},
        "key": f"{dataset}-{method}-{n_clusters}-{text}-{seed}",
        "sweep": "",
        "path": "",
    }
    return row | more


def frame(rows):
    """Make a frame from rows of `cell`, with the types that `load_cells` gives."""
    found = pd.DataFrame(list(rows))
    for name in ("n_rows", "n_features", "n_groups"):
        found[name] = found[name].astype("Int64")
    return found


def starts(method, values, metric="sse", dataset="town", lam=None, k=10, **more):
    """Make a start for each value of a metric. Further values are lists, too, or are the same for all starts."""
    for seed, value in enumerate(values):
        own = {name: one[seed] if isinstance(one, list) else one for name, one in more.items()}
        objective = value if metric == "sse" else 1.0
        yield cell(
            dataset, method, k, lam, seed, **{"objective": objective, "n_nonempty": k, metric: value, **own}
        )


def tradeoff(dataset, method, n_clusters=10, *, lams=(None,), seeds=3, cost=1000.0, pace=1.0, **more):
    """Make cells whose cost rises and whose error falls with lambda, with small differences between seeds."""
    rng = np.random.default_rng(len(dataset) + 7 * len(method) + n_clusters)
    for lam in lams:
        fair = min(1.0, pace * (lam or 0.0) / max(1.0, *(one or 0.0 for one in lams)))
        for seed in range(seeds):
            noise = 0.01 * rng.random()
            total = cost * (1 + 0.1 * fair**2 + noise)
            yield cell(
                dataset, method, n_clusters, lam, seed,
                sse=total, objective=total, balance=0.5 * fair + noise, delta=0.2 * (1 - fair) + noise,
                fairness_error=np.inf if fair == 0 else 0.02 / fair - 0.01 + noise,
                fairness_ratio=0.4 + 0.5 * fair + noise, awd=0.2 * (1 - fair), **more,
            )  # fmt: skip
