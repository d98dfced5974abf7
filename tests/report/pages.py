"""A page for tests, with made-up cells of a few methods, a paper's scoreboard and claims."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from frames import cell, frame, tradeoff
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import PaperSpec
from fairclust.report.drawing import EMPTY
from fairclust.report.html import make_page
from fairclust.report.leaderboard import make_leaderboard
from fairclust.report.tables import EVIDENCE_COLUMNS

METHODS = ("kmeans", "vfc_kmeans", "bera")
NAMES = Names(
    datasets={"adult": "Adult", "bank_3": "Bank <J=3> & co", "synthetic": "10 % noise"},
    methods={"kmeans": "K-means", "vfc_kmeans": "VFC K-means", "bera": "Bera </script> et al."},
    families={
        **{"kmeans": "reference", "vfc_kmeans": "variational", "bera": "assignment"},
        "random_labels": "control",
    },
    ours={"vfc_kmeans"},
)
CONFIG = {
    "datasets": {"adult": {"title": "Adult", "source": {"path": f"{Path.home()}/adult.csv"}}},
    "run": {"datasets": ["adult"], "seeds": 2},
}
PROVENANCE = {
    **{"git_commit": "abc", "python": "3", "platform": "p", "cpu_count": 2},
    "commit_date": "2026-11-28",
    **{"config": CONFIG, "versions": {"fairclust": "1", "numpy": "2"}},
}
RUN = {"experiments": [{"datasets": ["adult"], "methods": ["kmeans"]}]}
FRONT = {"plot": "front", "datasets": ["adult"], "x": "sse", "y": ["balance"]}
LAYOUT = {
    "rows": {
        "Adult": {"VFC": {"dataset": "adult", "method": "vfc_kmeans"}},
        "Bank <J=3> & co": {"Bera": {"dataset": "bank_3", "method": "bera"}},
    },
    "columns": [{"SSE": {"metric": "sse"}, "Fairness error": {"metric": "fairness_error"}}],
}
PAPERS = {
    "vfc": PaperSpec(
        **RUN,
        short_name="VFC",
        citation="Ziko et al.",
        tables={
            "table3": {
                "number": "3",
                "title": "Fair K-means",
                "remarks": ["A remark on `lam`."],
                "layout": LAYOUT,
            }
        },
        figures={name: {**FRONT, "title": f"Picture {name}"} for name in ("fig2", "empty", "lost")},
    ),
    "other": PaperSpec(**RUN, short_name="Other", citation="Nobody"),
}


def made_up_scores(n_lams=6, n_seeds=2, datasets=("adult", "bank_3"), methods=("vfc_kmeans", "bera")):
    """Make costs that rise and errors that fall with lambda, one timeout, and one skipped data set."""
    rows = []
    for dataset in datasets:
        rows += tradeoff(dataset, "kmeans", cost=9500, seeds=n_seeds)
        for number, method in enumerate(methods, 1):
            lams = 1000.0 * np.arange(n_lams)
            rows += tradeoff(dataset, method, lams=lams, seeds=n_seeds, cost=9500 * (1 + 0.02 * number))
    for row in rows:
        row["kmedians_cost"] = 2 * row["sse"]
        row["estimator"] = json.dumps({"cost_": row["sse"], "lower_bound_": 1.0, "gap_": 0.000121})
        row["counts"] = json.dumps({"<b>f</b>": [3, 2], "m": [6, 9]})
    empty = dict.fromkeys(("sse", "kmedians_cost", "balance", "delta", "fairness_error", "objective"), np.nan)
    rows[-1] |= {"status": "timeout", "reason": "longer than 5 s", **empty}
    reason = f"no file {Path.home()}/data.csv, no https://anna:se@cret@example.org/x?p=/a/b, 3/4\nand more"
    rows.append(cell("synthetic", "bera", 2, 0, status="skipped", reason=reason, n_rows=None))
    return frame(rows)


def made_up_board():
    """Make two rows of VFC's Table 3 that were run, one that was not run, and one of a paper without data."""
    values = [
        ("adult", "vfc_kmeans", "sse", 9984.01, 9984.5, "as printed", "agrees", "agrees", 9000, ""),
        ("adult", "vfc_kmeans", "fairness_error", 0.02, 0.021, "as printed", "agrees", "agrees", 9000, ""),
        ("bank_3", "bera", "sse", 10300.0, 10020.0, "matched fairness", *["differs"] * 2, None, "Off: so."),
        ("bank_3", "bera", "balance", np.nan, 0.44, "matched fairness", "differs", "", None, "Off: so."),
        ("synthetic", "bera", "sse", 758.43, np.nan, "", "not comparable", "not comparable", None, "no data"),
    ]
    names = ["dataset", "method", "metric", "reported", "mean", "kind"]
    names += ["verdict", "value_verdict", "lam", "why"]
    board = pd.DataFrame(values, columns=names).reindex(columns=EVIDENCE_COLUMNS, fill_value="")
    was_run = board["mean"].notna()
    board = board.assign(paper="vfc", table="3", role="paper", n_clusters=10, decimals=2, seeds=2 * was_run)
    board = board.assign(seeds_asked=2, program_runs=0)
    board = board.assign(sd=np.where(was_run, 2.0, np.nan), low=board["mean"] - 9, high=board["mean"] + 9)
    return pd.concat([board, board.iloc[[-1]].assign(paper="other", table="1")])


CLAIMS = pd.DataFrame(
    [("", None, "holds in part"), ("adult", 10, "holds")], columns=["dataset", "n_clusters", "verdict"]
).assign(paper="vfc", claim="cheap", text="VFC costs less", where="Section 4", check="c", numbers="3 of 4")


def make_page_folder(folder, scores, *, papers=PAPERS):
    """Write the files that the page reads and the page, and return the path of the page."""
    tables = folder / "tables"
    (tables / "vfc").mkdir(parents=True, exist_ok=True)
    made_up_board().to_csv(tables / "scoreboard.csv", index=False)
    CLAIMS.astype({"n_clusters": "Int64"}).to_csv(tables / "vfc/claims.csv", index=False)
    figures = folder / "figures/vfc"
    figures.mkdir(parents=True)
    Image.new("RGB", (4, 2)).save(figures / "fig2.png")
    empty = PngInfo()
    empty.add_text("Comment", EMPTY)
    Image.new("RGB", (4, 2)).save(figures / "empty.png", pnginfo=empty)
    page = folder / "report" / "index.html"
    made = [tables / "scoreboard.csv", tables / "vfc/claims.csv"] if papers else []
    files = [*made, *figures.iterdir()]
    shown = {path.relative_to(folder).as_posix(): path for path in files}
    text = make_page(scores, make_leaderboard(scores, NAMES), NAMES, PROVENANCE, papers, shown)
    page.parent.mkdir()
    page.write_text(text)
    return page
