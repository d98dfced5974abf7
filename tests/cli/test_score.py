"""`fairclust score` on a toy data set, as authors of other methods use it."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from commands import refused, told

from fairclust.cli import main
from fairclust.datasets.blobs import make_group_blobs
from fairclust.datasets.prepare import prepare_dataset
from fairclust.metrics.table import METRICS, Scored, score_labels
from fairclust.pipeline.config import load_config
from fairclust.pipeline.scores import gather_scores, write_fits
from working_folder import BLOBS, table_of

ROWS, K = 600, 3


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Change to a folder as after a clone, with a generated data set and one in a file."""
    monkeypatch.chdir(tmp_path)
    people = table_of({"path": "people.csv", "sha256": "0" * 64})
    config = {
        "run": {"datasets": ["toy_blobs"], "methods": ["kmeans"]},
        "datasets": {"toy_blobs": BLOBS, "people": people},
        "methods": {"kmeans": {"class": "fairclust.methods.KMeans", "label": "K-means"}},
    }
    Path("config").mkdir()
    Path("config/config.yaml").write_text(yaml.safe_dump(config))
    Path("people.csv").write_text("age,sex\n30,f\n40,m\n50,f\n60,m\n")


@pytest.fixture
def published(clone):
    """Write a run's scores: three settings of k-means, the last with two starts."""
    points = [(700.0, 0.9, 0), (200.0, 0.5, 0), (100.0, 0.1, 0), (900.0, 1.0, 1)]
    write_run([(cost, balance, seed, {"tol": min(i, 2)}) for i, (cost, balance, seed) in enumerate(points)])


def write_run(points, data_hash=None):
    """Write the scores of k-means, of which each start has a cost, a balance, a seed and parameters."""
    spec = load_config(yaml.safe_load(Path("config/config.yaml").read_text())).datasets["toy_blobs"]
    data_hash = data_hash or prepare_dataset("toy_blobs", spec, {}, {}).card["data_hash"]
    same = {"dataset": "toy_blobs", "method": "kmeans", "n_clusters": K, "data_hash": data_hash}
    same |= {"status": "ok", "reason": ""}
    records = [
        {
            **same,
            **{"seed": seed, "params": params, "key": f"{number}"},
            "metrics": {"sse": cost, "balance": balance, "fairness_ratio": balance},
        }
        for number, (cost, balance, seed, params) in enumerate(points)
    ]
    folder = Path("docs/results/scores")
    folder.mkdir(parents=True)
    write_fits(folder / "fits.parquet", [(record, None) for record in records])
    gather_scores([folder / "fits.parquet"], folder / "scores", folder / "runs")


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(K, size=ROWS)


def write(labels, name="labels.csv", **columns):
    pd.DataFrame({**columns, "cluster": labels}).to_csv(name, index=False)


def score(capsys, *options, dataset="toy_blobs"):
    status = main(["score", dataset, "labels.csv", *map(str, options)])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err


def expected(labels):
    """Score labels on data that the test scales itself."""
    data = make_group_blobs()
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    names = ["sse", "balance", "fairness_error"]
    return score_labels(Scored(labels, data.groups, X, K), names)


def test_labels_are_scored_as_the_pipeline_scores_them(published, labels, capsys):
    write(labels)
    status, lines, err = score(capsys)
    assert (status, err) == (0, "")
    assert lines[0] == "labels.csv: 600 labels of toy_blobs, K = 3"
    for name, value in expected(labels).items():
        assert f"  {METRICS[name].label}: {value:,.{METRICS[name].decimals}f}" in lines, name


def test_labels_are_as_fair_as_the_leaderboard_says(published, labels, capsys, monkeypatch):
    write(labels)
    assert any(line.endswith("where one row more or less does not count") for line in score(capsys)[1])
    # With several sensitive columns, the fairness ratio counts every row.
    data = make_group_blobs()
    scored = Scored(labels, data.groups, data.X, K, columns={"a": data.groups, "b": data.groups})
    monkeypatch.setattr("fairclust.datasets.store.PreparedDataset.scored", lambda *_: scored)
    unfair = 100 * (1 - score_labels(scored, ["fairness_ratio"])["fairness_ratio"])
    assert any(line.endswith(f"within {unfair:.1f} % of those in the data") for line in score(capsys)[1])


def test_another_k_has_no_clustering_in_the_run(published, labels, capsys, monkeypatch):
    write(labels)
    lines = told(score(capsys, "--n-clusters", 5))
    what = "docs/results/scores/scores.parquet has no clustering of toy_blobs with K = 5"
    assert lines[-1] == f"{what}: it has K of 3 (--n-clusters)"
    monkeypatch.setattr("fairclust.cli.score._COSTS", ())
    assert told(score(capsys))[-1].startswith("The cost of these labels is undefined")


def test_the_benchmark_of_the_field_comes_first_if_it_has_the_data_set(published, labels, capsys):
    write(labels)
    folder = Path("docs/results/scores")
    scores = pd.read_parquet(folder / "scores.parquet")
    field = folder / "field.parquet"
    for rows, file in ((scores[:2], field), (scores.assign(dataset="people"), folder / "scores.parquet")):
        rows.to_parquet(field)
        assert any(f"clusterings of {file} with K = 3," in line for line in score(capsys)[1])


def test_without_any_run_the_fix_is_named(clone, labels, capsys):
    write(labels)
    assert "or run the command in a clone of the project" in refused(score(capsys))


@pytest.mark.parametrize("form", ["rows in another order", "numbers alone", "as floats", "with blanks"])
def test_the_forms_that_labels_come_in(published, labels, capsys, form):
    write(labels)
    plain = score(capsys)
    if form == "rows in another order":
        order = np.random.default_rng(1).permutation(ROWS)
        write(labels[order], row=order + 1, name_of_row="x")
    elif form == "numbers alone":
        np.savetxt("labels.csv", labels, fmt="%d")
    elif form == "as floats":
        write(labels.astype(float))
    else:
        Path("labels.csv").write_text(
            "\ufeffcluster\r\n" + "\r\n".join(f" {label} " for label in labels) + "\r\n"
        )
    assert score(capsys) == plain


ROW = np.arange(1, ROWS + 1)
BAD = {
    "has 599 labels, but the table has 600 rows": lambda labels: (labels[:-1], {}),
    "once, counted from 1. Fix: see row 600": lambda labels: (labels[:-1], {"row": ROW[:-1]}),
    "Fix: see row 300": lambda labels: (np.append(labels, 0), {"row": np.append(ROW, 300)}),
    "Fix: see row 0": lambda labels: (labels, {"row": ROW - 1}),
    "the first is 'x' in data row 5": lambda labels: (np.where(ROW == 5, "x", labels.astype(str)), {}),
    "600 cells of the column 'cluster' are not whole numbers": lambda labels: (labels + 0.5, {}),
    "empty in data row 4": lambda labels: (np.where(ROW == 4, "", labels.astype(str)), {}),
    "1 labels are not: the first is 9 in row 8": lambda labels: (np.where(ROW == 8, 9, labels), {}),
    "with K = 3, clusters are 0 to 2": lambda labels: (labels + 1, {}),
    "all rows are in one cluster": lambda labels: (labels * 0, {}),
}


@pytest.mark.parametrize("reason", BAD)
def test_bad_labels_are_refused_with_the_reason(clone, labels, capsys, reason):
    given, columns = BAD[reason](labels)
    write(given, **columns)
    assert reason in refused(score(capsys))


def test_a_table_without_labels_is_refused(clone, capsys):
    Path("labels.csv").write_text("a,b\n1,2\n")
    assert "has no column 'cluster', only 'a', 'b'" in refused(score(capsys))


@pytest.mark.parametrize(
    ("dataset", "options", "reason"),
    [
        ("tpy_blobs", (), "there is no data set 'tpy_blobs'; did you mean 'toy_blobs'"),
        ("people", (), "expected " + "0" * 64 + ". Fix: check its 'path'"),
        ("toy_blobs", ("--n-clusters", "1"), "K must be from 2 to the number of rows, 600; found 1"),
        ("toy_blobs", ("--n-clusters", "601"), "K must be from 2 to the number of rows, 600; found 601"),
        (
            "toy_blobs",
            ("--run", "nowhere"),
            "there is no nowhere/scores/scores.parquet here. Fix: name the folder",
        ),
    ],
)
def test_other_bad_input_is_refused(clone, labels, capsys, dataset, options, reason):
    write(labels)
    assert reason in refused(score(capsys, *options, dataset=dataset))


def test_scores_of_other_data_are_not_compared(clone, labels, capsys):
    write_run([(500.0, 0.9, 0, {})], data_hash="1" * 64)
    write(labels)
    assert "are of other data than 'toy_blobs' of the catalogue" in refused(score(capsys))


def test_labels_lie_somewhere_at_every_level_of_the_leaderboard(capsys, published, labels):
    write(labels)
    out = score(capsys)[1]
    value = next(float(line.split()[1]) for line in out if line.startswith("  SSE: "))
    lines = {line.split()[0]: line for line in out if re.match(r"\s*\d+ %", line)}
    assert "not reached" in lines["0"] and "900.0 (K-means)" in lines["0"]
    # The settings of K-means at 10 and 50 % are too far from each other to read a cost between them.
    assert "700.0 (K-means)" in lines["20"]
    assert f"{100 * (1 - value / 700):.1f} % below the best known" in lines["20"]
    # The median over its two starts is the larger one.
    assert lines["20"].endswith("1 of 1" if value > 900 else "0 of 1")
