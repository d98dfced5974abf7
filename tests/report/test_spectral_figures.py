import json

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.report.catalogue import FIGURES, Names, figure_requests
from fairclust.report.figures import Material, plot_figures
from fairclust.report.spectral_figures import PLOTS

KINDS = ["msbm_error", "msbm_time", "graph_balance", "graph_shares"]
NAMES = Names({"lastfm": "LastFMNet"}, {"spectral": "SC", "sfairsc": "s-FairSC"})


def cells():
    rows = []
    for dataset, ks in (("msbm_1000", (5,)), ("msbm_2000", (5,)), ("lastfm", (2, 3)), ("adult", (10,))):
        for method, error in (("spectral", 0.25), ("sfairsc", 0.02)):
            for k in ks:
                for seed in (0, 1):
                    rows.append(
                        {
                            **dict.fromkeys(METRICS, np.nan),
                            **{"dataset": dataset, "method": method, "n_clusters": k, "seed": seed},
                            **{"lam": np.nan, "params": "{}", "objective": 1.0 + seed, "status": "ok"},
                            **{"reason": "", "n_rows": int(dataset.partition("_")[2] or 99)},
                            **{"clustering_error": error + seed / 100, "average_balance": 0.1 * k},
                            "counts": json.dumps({"a": [3 + seed] * k, "b": [1] * k}),
                            "estimator": "{}",
                            "key": f"{dataset}{method}{k}{seed}",
                        }
                    )
    return pd.DataFrame(rows)


def material(kind, frame, dataset):
    return Material(FIGURES[kind], frame, frame[:0], NAMES.dataset(dataset), NAMES)


def test_one_figure_across_the_sizes():
    requests = figure_requests(KINDS, ["adult", "msbm_2000", "msbm_1000", "lastfm"])
    assert requests["msbm_error"] == ("msbm_error", "msbm_2000")
    assert requests["graph_balance_lastfm"] == ("graph_balance", "lastfm")
    assert set(requests) == {
        *("msbm_error", "msbm_time", "graph_balance_lastfm"),
        *("graph_shares_lastfm", "graph_shares_msbm_1000"),
    }
    assert not figure_requests(["msbm_error"], ["adult"])


def test_lines_are_medians_over_seeds():
    frame = cells()
    figure = PLOTS["by_size"](
        material("msbm_error", frame[frame.dataset.str.startswith("msbm")], "msbm_1000")
    )
    lines = {line.get_label(): line.get_xydata() for line in figure.axes[0].lines}
    assert lines.keys() == {"SC", "s-FairSC"}
    np.testing.assert_allclose(lines["s-FairSC"], [[1000, 0.025], [2000, 0.025]])
    figure = PLOTS["metric_by_k"](material("graph_balance", frame[frame.dataset == "lastfm"], "lastfm"))
    np.testing.assert_allclose(figure.axes[0].lines[0].get_xydata(), [[2, 0.2], [3, 0.3]])


def test_shares_are_those_of_the_best_start():
    frame = cells()
    figure = PLOTS["group_shares"](material("graph_shares", frame[frame.dataset == "lastfm"], "lastfm"))
    assert len(figure.axes) == 2
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    np.testing.assert_allclose(heights, [0.75] * 3 + [0.25] * 3)


def test_files_are_written_with_and_without_cells(tmp_path):
    frame = cells()
    path = tmp_path / "scores.parquet"
    frame[["key"]].assign(wall_seconds=2.0, cpu_seconds=1.0).to_parquet(tmp_path / "runs.parquet")
    pd.DataFrame({"key": [], "step": [], "objective": []}).to_parquet(tmp_path / "steps.parquet")
    requests = figure_requests(KINDS, ["msbm_1000", "msbm_2000", "lastfm", "facebook"])
    for status in ("ok", "skipped"):
        frame.assign(status=status, reason="no network").to_parquet(path)
        plot_figures(requests, path, tmp_path / status, NAMES, ["png"])
        assert len(list((tmp_path / status).iterdir())) == len(requests)
