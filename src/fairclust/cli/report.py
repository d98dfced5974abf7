"""`fairclust report`: the page of the pipeline's report for the user's own table."""

from __future__ import annotations

import inspect
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from fairclust import methods
from fairclust.cli import CommandError
from fairclust.cli.fitting import Grid, fit
from fairclust.cli.options import Report
from fairclust.cli.progress import progress
from fairclust.cli.score import read_labels
from fairclust.messages import UserError
from fairclust.outputs import check_outputs, write_text
from fairclust.pipeline.columns import record_of
from fairclust.pipeline.names import Names
from fairclust.pipeline.provenance import provenance
from fairclust.pipeline.scores import fits_frame
from fairclust.report.html import Results, make_page
from fairclust.report.leaderboard import FAIRNESS
from fairclust.tables import table_files

_MEASURED = ("sse", *FAIRNESS)


def run(args: Report) -> list[str]:
    """Fit every setting of every method from several starts, and write the page."""
    check_outputs({"--out": args.out}, [*table_files(args.table), *args.labels])
    grid = Grid(args)
    raw = grid.raw
    given = {path.stem: read_labels(path, raw.frame.index.to_numpy() + 1, None) for path in args.labels}
    asked = [(seed, cls, params) for seed in range(args.starts) for cls, _, params in grid.settings(seed)]
    title = "standard input" if args.table == "-" else Path(args.table).name
    records = [
        {"method": name, "seed": 0, "params": {}, **_scores(grid, labels, int(labels.max()) + 1)}
        for name, labels in given.items()
    ]
    with progress("fitting settings", total=len(asked)) as done:
        for seed, cls, params in asked:
            # Every method makes one start for each seed.
            if "n_init" in inspect.signature(cls).parameters:
                params = params | {"n_init": 1}
            setting = {key: of for key, of in params.items() if key not in ("n_clusters", "random_state")}
            n_clusters, begin = params["n_clusters"], process_time()
            record = {"method": cls.__name__, "n_clusters": n_clusters, "seed": seed, "params": setting}
            try:
                model, seconds, warned = fit(cls, params, raw.X, grid.groups(cls))
            except UserError as error:
                record |= {"status": "error", "reason": str(error)}
            else:
                record |= _scores(grid, model.labels_, n_clusters)
                record |= {"history": model.history_[-1:], "estimator": {"n_iter_": int(model.n_iter_)}}
                record |= {"warnings": warned, "wall_seconds": seconds, "cpu_seconds": process_time() - begin}
            records.append(record)
            done()
    about = {"dataset": title, "n_rows": len(raw.X), "n_features": raw.X.shape[1]}
    about["n_groups"] = len(set(raw.crossed))
    frame = fits_frame(about | record for record in records)
    failed = [record for record in records if record["status"] != "ok"]
    if len(failed) == len(asked):
        raise CommandError(f"no setting could be fitted: {failed[0]['reason']}")
    origin = provenance()
    origin["config"] = {
        "table": title,
        "sensitive": list(raw.groups.columns),
        "features": raw.preparation.features,
        "scale": args.scale,
        "missing": args.missing,
        "n_clusters": grid.numbers,
        "starts": args.starts,
    }
    order = list(dict.fromkeys([*(cls.__name__ for cls in (methods.KMeans, *grid.classes)), *given]))
    names = Names(ours=[name for name in order if name.startswith("Price")], order=order)
    page = make_page(Results.of(frame, names), origin, {}, {})
    write_text(args.out, page)
    words = f", {len(failed)} of them failed (see the section 'Missing cells')" if failed else ""
    return [
        *(f"note: {note}" for note in raw.notes),
        f"{len(asked)} fits{words}",
        f"page: {args.out} (open it in a browser; it needs no network)",
    ]


def _scores(grid: Grid, labels: np.ndarray, n_clusters: int) -> dict[str, Any]:
    groups = np.unique(grid.raw.crossed).tolist()
    found = record_of(grid.scored(labels, n_clusters), _MEASURED, groups)
    return {"n_clusters": n_clusters, "status": "ok", **found}
