"""`fairclust fit`, `predict`, `front` and `methods` on tables with text, missing cells and identifiers."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairclust import methods
from fairclust.cli import main
from fairclust.cli.fitting import fit_starts
from fairclust.metrics import by_column, mean_deviation

N = 400


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    gender = rng.choice(["female", "male"], N)
    frame = pd.DataFrame(
        {
            "person": [f"P{i}" for i in rng.permutation(N)],
            "gender": gender,
            "ethnicity": rng.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2]),
            "age": rng.normal(40, 10, N) + 6 * (gender == "male"),
            "income": [f"{x:,}" for x in rng.integers(900, 90_000, N)],
            "education": rng.choice(["primary", "degree"], N),
            "joined": "2020-01-01",
        }
    )
    frame.loc[:4, "age"] = np.nan
    frame.loc[5:9, "ethnicity"] = None
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    return path


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def fit(capsys, people, *options):
    return run(capsys, "fit", people, "--n-clusters", 3, "--set", "n_init=2", "--sensitive", *options)


def test_several_columns_are_bounded_each_and_each_is_reported(people, capsys):
    status, text, _ = fit(capsys, people, "gender", "ethnicity")
    assert status == 0
    assert "each of gender and ethnicity counts on its own; --crossed takes their 6 combinations" in text
    lines = text.splitlines()
    for start in ("gender  ", "ethnicity  ", "gender & ethnicity  "):
        assert any(line.startswith(start) for line in lines), start
    assert [line.partition(":")[0] for line in lines[1:6]] == ["asked", "asked", "got", "cost", "who pays"]
    assert "5 rows without a value in gender or ethnicity are left out" in text
    # A repeated option, and columns separated by commas, mean the same.
    again = fit(capsys, people, "gender", "--sensitive", "ethnicity")[1]
    assert without_seconds(again) == without_seconds(text)
    assert without_seconds(fit(capsys, people, "gender,ethnicity")[1]) == without_seconds(text)


def test_combinations_are_bounded_on_request_or_if_a_method_takes_one_column(people, capsys):
    crossed = fit(capsys, people, "gender", "ethnicity", "--crossed")[1]
    other = fit(capsys, people, "gender", "ethnicity", "--method", "bera")[1]
    for text in (crossed, other):
        assert "the groups are the combinations of gender and ethnicity: 6 groups" in text
    each = fit(capsys, people, "gender", "ethnicity")[1]
    assert float(cost_of(each)) <= float(cost_of(crossed))
    penalty = fit(capsys, people, "gender", "ethnicity", "--method", "bfkm")[1]
    assert "each of gender and ethnicity counts on its own" in penalty
    crossed = fit(capsys, people, "gender", "ethnicity", "--method", "bfkm", "--crossed")[1]
    assert "the groups are the combinations of gender and ethnicity" in crossed


def cost_of(text):
    return text.partition("cost: SSE ")[2].partition(", ")[0].replace(",", "")


def test_a_model_of_several_columns_predicts_by_all_of_them(people, capsys, tmp_path):
    model, labels = tmp_path / "model", tmp_path / "labels.csv"
    assert fit(capsys, people, "gender", "ethnicity", "--save", model, "--out", labels)[0] == 0
    status, text, _ = run(capsys, "predict", model, people)
    assert status == 0
    fitted, predicted = pd.read_csv(labels), pd.read_csv(io.StringIO(text))
    # They differ only in the few rows that the fit moved to meet the bounds.
    assert (fitted["cluster"] == predicted["cluster"]).mean() > 0.9


def test_ranges_of_a_column_of_numbers(people, capsys, tmp_path):
    status, _, err = fit(capsys, people, "gender", "age")
    assert status == 2 and "'age' holds" in err and "--bins 4" in err
    options = ("--bins", 3, "--set", "tolerance=0.3", "--save", tmp_path / "model")
    status, text, _ = fit(capsys, people, "gender", "age", *options)
    assert status == 0 and " to below " in text
    status, text, _ = run(capsys, "predict", tmp_path / "model", people)
    assert status == 0
    # Rows without an age have no group.
    assert len(pd.read_csv(io.StringIO(text))) == N - 5


def test_the_mean_of_a_column_of_numbers_is_bounded(people, capsys, tmp_path):
    model, labels = tmp_path / "model", tmp_path / "labels.csv"
    mean = ("--set", "mean_tolerance={'age': 0.05}", "--set", "tolerance=0.2")
    status, text, err = fit(capsys, people, "gender", "age", *mean, "--save", model, "--out", labels)
    assert status == 0, err
    written = pd.read_csv(labels)
    table = pd.read_csv(people).iloc[written["row"] - 1]
    assert len(written) == N - 5
    # The numbers are rounded, so the means may be off by more than the bound. docs/bounds.md states by how much.
    most = 0.05 + 0.01 / np.sqrt(written["cluster"].value_counts().min())
    assert mean_deviation(written["cluster"], sensitive_features=table["age"]) <= most
    assert (
        by_column("fairness_ratio", written["cluster"], sensitive_features=table[["gender"]])["worst"] > 0.75
    )
    status, text, _ = run(capsys, "predict", model, people)
    assert status == 0 and len(pd.read_csv(io.StringIO(text))) == N - 5
    status, _, err = fit(capsys, people, "gender", "age", *mean, "--crossed")
    assert status == 2 and "leave out one of the two" in err
    status, _, err = fit(capsys, people, "gender", "--set", "mean_tolerance={'gender': 0.1}")
    assert status == 2 and "does not hold numbers" in err


def without_seconds(text):
    return text.splitlines()[1:]


def test_json_has_certificate_payers_and_as_many_starts_of_k_means(people, capsys):
    status, text, _ = fit(capsys, people, "gender", "--json", "--set", "tolerance=0.1")
    assert status == 0
    found = json.loads(text)
    assert found["parameters"]["tolerance"] == 0.1
    certificate = found["certificate"]
    assert certificate["lower_bound"] <= certificate["cost"] * (1 + 1e-9)
    assert certificate["gap"] >= 0
    payers = found["cost_per_row"]
    assert set(payers) == {"all rows", "gender female", "gender male"}
    sizes = found["groups"]
    for method, of in found["metrics"].items():
        paid = sum(sizes[group] * payers[f"gender {group}"][method] for group in sizes)
        assert paid == pytest.approx(of["sse"])
    assert payers["all rows"]["PriceFairKMeans"] * N == pytest.approx(
        found["metrics"]["PriceFairKMeans"]["sse"]
    )
    # The table is prepared by hand, and k-means gets the same two starts.
    from fairclust.tables import make_preparation, understand

    frame = pd.read_csv(people)
    others = frame.drop(columns="gender")
    X = make_preparation(understand(others)).fit_transform(frame)
    plain = methods.KMeans(3, n_init=2, random_state=0).fit(X, sensitive_features=frame.gender)
    assert found["metrics"]["KMeans"]["sse"] == pytest.approx(plain.inertia_)
    assert sum(cluster["size"] for cluster in found["clusters"]) == N


def test_labels_have_identifiers_and_rows_of_the_file(people, tmp_path, capsys):
    out = tmp_path / "labels.csv"
    assert fit(capsys, people, "ethnicity", "--id", "person", "--out", out)[0] == 0
    labels, frame = pd.read_csv(out), pd.read_csv(people)
    assert list(labels.columns) == ["row", "person", "cluster"]
    assert labels.row.tolist() == [i + 1 for i in range(N) if not 5 <= i <= 9]
    assert labels.person.tolist() == frame.person[labels.row - 1].tolist()


@pytest.mark.parametrize(
    ("missing", "rows", "groups"), [("impute", N - 5, 3), ("drop", N - 10, 3), ("group", N, 4)]
)
def test_missing(people, capsys, missing, rows, groups):
    status, text, _ = fit(capsys, people, "ethnicity", "--missing", missing, "--json", "--method", "vfc")
    assert status == 2 and not text  # fit() passes n_init, and vfc has no such parameter
    options = ["--n-clusters", 3, "--missing", missing, "--json", "--method", "vfc"]
    found = json.loads(run(capsys, "fit", people, "--sensitive", "ethnicity", *options)[1])
    assert found["rows"] == rows
    assert len(found["groups"]) == groups
    assert any("age: 5 missing cells" in note for note in found["notes"])


def test_predict_gives_the_labels_of_the_fit_and_of_new_rows(people, tmp_path, capsys):
    model, out = tmp_path / "people.fairclust", tmp_path / "labels.csv"
    options = ["--n-clusters", 3, "--id", "person", "--method", "vfc", "--save", model, "--out", out]
    assert run(capsys, "fit", people, "--sensitive", "gender", *options)[0] == 0
    status, text, _ = run(capsys, "predict", model, people)
    assert status == 0
    predicted = pd.read_csv(io.StringIO(text))
    pd.testing.assert_frame_equal(predicted, pd.read_csv(out))
    frame = pd.read_csv(people)
    new = tmp_path / "new.parquet"
    frame.head(20).drop(columns=["person", "joined"]).assign(income=1000.0).to_parquet(new)
    status, text, _ = run(capsys, "predict", model, new, "--out", tmp_path / "new.csv")
    assert status == 0 and "20 rows" in text
    assert list(pd.read_csv(tmp_path / "new.csv").columns) == ["row", "cluster"]
    frame.assign(education="school").to_csv(tmp_path / "other.csv", index=False)
    _, _, err = run(capsys, "predict", model, tmp_path / "other.csv")
    assert "column education: 1 value did not occur in the fit: 'school'" in err
    assert "none" not in run(capsys, "predict", model, people)[2]


def test_a_model_that_drops_rows_needs_its_columns(people, tmp_path, capsys):
    model = tmp_path / "model"
    options = ("--sensitive", "gender", "--n-clusters", 3, "--missing", "drop", "--save", model)
    run(capsys, "fit", people, *options)
    _, _, err = run(capsys, "predict", model, people)
    assert "10 rows without a value in gender or age or income or ethnicity or education are left out" in err
    frame = pd.read_csv(people)
    frame.drop(columns="age").to_csv(tmp_path / "new.csv", index=False)
    status, _, err = run(capsys, "predict", model, tmp_path / "new.csv")
    assert status == 2 and "has no column 'age'" in err


def test_predict_reads_codes_and_identifiers_as_the_fit_did(people, tmp_path, capsys):
    frame = pd.read_csv(people).assign(
        gender=["1", "1.0", "x", "2"] * (N // 4), region=["01", "1"] * (N // 2)
    )
    frame["person"] = [f"{i:04}" for i in range(N)]
    frame.to_csv(people, index=False)
    model, labels = tmp_path / "model", tmp_path / "labels.csv"
    options = ("--categories", "region", "--id", "person", "--save", model, "--out", labels)
    status, text, err = fit(capsys, people, "gender", *options)
    assert status == 0, err
    assert "4 groups" in text
    # Without the rows of group x, the groups of the file look like numbers.
    frame[frame["gender"] != "x"].head(40).to_csv(people, index=False)
    status, text, err = run(capsys, "predict", model, people)
    assert status == 0 and "did not occur" not in err, err
    assert pd.read_csv(io.StringIO(text), dtype=str)["person"][2] == "0003"
    assert pd.read_csv(labels, dtype=str)["person"][3] == "0003"


def test_errors_of_predict(people, tmp_path, capsys):
    model = tmp_path / "people.fairclust"
    run(capsys, "fit", people, "--sensitive", "gender", "--n-clusters", 3, "--method", "vfc", "--save", model)
    frame = pd.read_csv(people)
    for changed, message in (
        (frame.drop(columns="age"), "no column 'age'"),
        (
            frame.drop(columns="gender"),
            "no sensitive column 'gender', and VariationalFairKMeans needs the groups",
        ),
        (frame.assign(gender="other"), "other"),
    ):
        changed.to_csv(tmp_path / "new.csv", index=False)
        status, _, err = run(capsys, "predict", model, tmp_path / "new.csv")
        assert status == 2 and message in err
    run(
        capsys,
        "fit",
        people,
        "--sensitive",
        "gender",
        "--n-clusters",
        3,
        "--method",
        "kmeans",
        "--save",
        model,
    )
    frame.drop(columns="gender").to_csv(tmp_path / "new.csv", index=False)
    without = run(capsys, "predict", model, tmp_path / "new.csv")
    assert without[0] == 0 and without == run(capsys, "predict", model, people)
    for file, message in (
        (people, "is no model that `fairclust fit --save` has written"),
        (tmp_path / "none", "there is no file"),
    ):
        status, _, err = run(capsys, "predict", file, people)
        assert status == 2 and message in err
    status, _, err = run(
        capsys, "fit", people, "--sensitive", "gender", "--n-clusters", 3, "--method", "bera", "--save", model
    )
    assert status == 2 and "cannot predict" in err


@pytest.mark.parametrize("packed", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_standard_input(people, capsys, monkeypatch, packed):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed(people.read_bytes()))))
    options = ["--sensitive", "gender", "--n-clusters", 2, "--method", "kmeans"]
    assert run(capsys, "fit", "-", *options)[0] == 0


def test_a_reader_that_stops_early_is_no_error(people):
    code = "import sys; from fairclust.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "methods"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_sensitive_column_that_identifies_the_rows_is_refused(people, capsys):
    status, _, err = fit(capsys, people, "person")
    assert status == 2 and "'person' holds 400 different values in 400 rows, and each would be a group" in err


def test_front_draws_settings(people, tmp_path, capsys):
    stem = tmp_path / "front"
    options = ["--sensitive", "gender", "--n-clusters", 3, "--methods", "price", "vfc", "--out", stem]
    status, _, err = run(capsys, "front", people, *options)
    assert status == 0, err
    points = pd.read_csv(f"{stem}.csv")
    assert set(points.method) == {"KMeans", "PriceFairKMeans", "VariationalFairKMeans"}
    price = points[points.method == "PriceFairKMeans"]
    # A wider tolerance costs less and is less fair, up to the difference between starts.
    assert price.sse.iloc[0] >= price.sse.iloc[-1]
    assert price.balance.iloc[0] >= price.balance.iloc[-1]
    assert tmp_path.joinpath("front.png").read_bytes().startswith(b"\x89PNG")
    page = tmp_path.joinpath("front.html").read_text()
    data = json.loads(page.partition("const data = ")[2].partition(";\n")[0])
    assert len(data["points"]) == len(points)
    assert "<script src" not in page


@pytest.mark.parametrize("options", [("--method", "vfc"), ("--method", "vfc", "--crossed"), ("--crossed",)])
def test_a_model_predicts_from_the_columns_that_it_was_fitted_to(people, tmp_path, capsys, options):
    model, labels, again = (tmp_path / name for name in ("model", "labels.csv", "again.csv"))
    given = (
        "--sensitive",
        "gender",
        "ethnicity",
        "--n-clusters",
        3,
        *options,
        "--save",
        model,
        "--out",
        labels,
    )
    status, _, err = run(capsys, "fit", people, *given)
    assert status == 0, err
    status, _, err = run(capsys, "predict", model, people, "--out", again)
    assert status == 0, err
    same = pd.read_csv(labels).cluster.to_numpy() == pd.read_csv(again).cluster.to_numpy()
    # Group prices change a few labels, so that counts are whole numbers within the bounds.
    assert same.mean() > 0.95 and (same.all() or "vfc" not in options)


def test_a_front_of_several_columns_shows_the_least_fair(people, tmp_path, capsys):
    shown = {}
    for name, options in (("each", []), ("crossed", ["--crossed"])):
        stem = tmp_path / name
        options = [*options, "--methods", "price", "--starts", 1, "--n-clusters", 3, "--out", stem]
        status, _, err = run(capsys, "front", people, "--sensitive", "gender", "ethnicity", *options)
        assert status == 0, err
        shown[name] = pd.read_csv(f"{stem}.csv").set_index("setting").loc["tolerance=0"]
    # One combination is rare, so the combinations are less balanced than the groups of each column.
    assert shown["each"].balance > shown["crossed"].balance
    assert shown["each"].sse <= shown["crossed"].sse


def test_front_over_the_number_of_clusters(people, tmp_path, capsys):
    stem = tmp_path / "by_k"
    options = ["--sensitive", "gender", "--n-clusters", "2:4", "--methods", "vfc", "--out", stem]
    status, _, err = run(capsys, "front", people, *options)
    assert status == 0, err
    points = pd.read_csv(f"{stem}.csv")
    assert points.groupby("method").n_clusters.apply(list).to_dict() == {
        "KMeans": [2, 3, 4],
        "VariationalFairKMeans": [2, 3, 4],
    }
    assert points.silhouette.between(-1, 1).all()
    status, _, err = run(
        capsys, "front", people, "--sensitive", "gender", "--n-clusters", "4:2", "--out", stem
    )
    assert status == 2 and "neither a number nor a range" in err


@pytest.mark.parametrize("separate", [True, False])
def test_a_front_over_k_recommends_one_or_says_that_none_is_better(tmp_path, capsys, separate):
    rng = np.random.default_rng(1)
    X = np.array([[0, 0], [9, 0], [0, 9]])[rng.integers(3, size=600)] + rng.normal(size=(600, 2))
    if not separate:
        X = rng.uniform(size=(600, 6))
    frame = pd.DataFrame(X).add_prefix("x").assign(sex=rng.choice(["f", "m"], 600))
    frame.to_csv(tmp_path / "table.csv", index=False)
    options = ("--sensitive", "sex", "--n-clusters", "2:5", "--starts", 1, "--out", tmp_path / "k")
    status, text, err = run(capsys, "front", tmp_path / "table.csv", *options)
    assert status == 0, err
    (said,) = [line for line in text.splitlines() if line.startswith("PriceFairKMeans: ")]
    assert ("3 clusters are recommended: under the bound, fits to two halves" in said) == separate
    assert ("no number of clusters is clearly better" in said) != separate
    points = pd.read_csv(tmp_path / "k.csv")
    stable = points[(points.method == "PriceFairKMeans") & (points.stability >= 0.8)]
    assert (3 in stable.n_clusters.to_list()) == separate
    assert (
        said
        in json.loads((tmp_path / "k.html").read_text().partition("const data = ")[2].partition(";\n")[0])[
            "said"
        ]
    )


def test_a_fair_setting_that_is_cheaper_than_k_means_is_explained():
    from fairclust.cli.front import cheaper

    rows = [
        ("KMeans", "", 2, 100.0),
        ("Fair", "lam=1", 2, 99.0),
        ("KMeans", "", 3, 80.0),
        ("Fair", "lam=1", 3, 81.0),
    ]
    points = pd.DataFrame(rows, columns=["method", "setting", "n_clusters", "sse"])
    (said,) = cheaper(points)
    assert said.startswith(
        "at K = 2, a fair setting costs less than k-means (Fair lam=1 99.0, k-means 100.0)"
    )
    assert not cheaper(points[points.n_clusters == 3])


def test_every_method_of_a_front_has_as_many_starts():
    given = []

    class Drawn(methods.VariationalFairKMeans):
        def fit(self, X, y=None, *, sensitive_features=None):
            super().fit(X, sensitive_features=sensitive_features)
            given.append((self.random_state, self.history_[-1]["objective"]))
            return self

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    groups = np.where(X[:, 0] + rng.normal(size=200) > 0, "f", "m")
    params = {"n_clusters": 3, "lam": 20.0, "random_state": 4}
    model, seconds, _ = fit_starts(Drawn, params, X, groups, 3)
    assert [seed for seed, _ in given] == [4, 5, 6] and seconds > 0
    assert len({objective for _, objective in given}) > 1
    assert model.history_[-1]["objective"] == min(objective for _, objective in given)
    model, _, _ = fit_starts(methods.PriceFairKMeans, {"n_clusters": 3, "random_state": 4}, X, groups, 3)
    assert model.n_init == 3


def test_methods_shows_parameters(capsys):
    for name in methods.__all__:
        status, text, _ = run(capsys, "methods", name)
        assert status == 0
        for parameter in getattr(methods, name)().get_params():
            assert f"  {parameter} = " in text, (name, parameter)
    _, text, _ = run(capsys, "methods", "price")
    assert "  tolerance = 0.0  (float or mapping of column to float)" in text
    assert "the share of group j in every cluster" in text
    status, _, err = run(capsys, "methods", "prize")
    assert status == 2 and "did you mean 'price'" in err


def test_needs_name_methods_and_options_that_exist(capsys):
    from fairclust.cli import _parser
    from fairclust.cli.methods import NEEDS, find_method

    _, text, _ = run(capsys, "methods")
    page = (Path(__file__).parents[2] / "docs/needs/index.md").read_text()
    assert [row.split(" |")[0] for row in re.findall(r"^\| ([A-Z].*)", page, re.MULTILINE)] == list(NEEDS)
    for need in NEEDS:
        line = next(line for line in text.splitlines() if need in line)
        words = f"fit TABLE --n-clusters 3 --sensitive x {line.partition(need)[2]}".split()
        args = _parser().parse_args(words)
        known = find_method(args.method)().get_params()
        assert {given.partition("=")[0] for given in args.set} <= set(known)


def test_progress_is_printed_on_standard_error(capsys, monkeypatch):
    from time import sleep

    from fairclust.cli import progress

    monkeypatch.setattr(progress, "_FIRST", 0.01)
    monkeypatch.setattr(progress, "_EVERY", 0.05)
    with progress.progress("fitting", total=4) as done:
        done()
        sleep(0.2)
    said = capsys.readouterr().err
    assert "fitting: 0 s, 1 of 4 done, about" in said
    with progress.progress("fitting", notes=["few rows"]):
        sleep(0.2)
    said = capsys.readouterr().err
    assert said.startswith("note: few rows\nfitting: ") and said.count("few rows") == 1
    with progress.progress("fitting", notes=["few rows"]):
        pass
    assert capsys.readouterr().err == ""


def test_progress_of_a_fit_in_chunks_says_passes_rows_per_second_and_time_left(capsys, monkeypatch):
    from time import sleep
    from types import SimpleNamespace

    from fairclust.cli import progress

    class Slow:
        def run(self, function, chunks, *args, each=None):
            for chunk in chunks:
                sleep(0.1)
                yield function(chunk)

    monkeypatch.setattr(progress, "_FIRST", 0.01)
    monkeypatch.setattr(progress, "_EVERY", 0.05)
    passes = progress.Passes(Slow(), usual=3)
    with progress.progress("fitting", passes=passes):
        for _ in range(2):
            assert list(passes.run(lambda chunk: chunk.n_rows, [SimpleNamespace(n_rows=500)] * 2)) == [
                500,
                500,
            ]
        sleep(0.1)
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith(", in the first pass")
    assert any(
        re.search(
            r", pass 2 of usually 3 \(50% of its rows\), [45],\d{3} rows/s, about 0 s of passes left$", line
        )
        for line in said
    )
    assert "2 of usually 3 passes over all rows, now on a sample of them" in said[-1]


def test_the_time_of_a_fit_is_estimated_from_a_sample():
    from fairclust import KMeans
    from fairclust.cli.progress import expected_seconds

    X, groups = np.random.default_rng(0).normal(size=(100_000, 1)), np.repeat(["a", "b"], 50_000)
    for n_clusters, told in ((40, True), (39, False), (300, False)):
        seconds = expected_seconds(KMeans, {"n_clusters": n_clusters, "n_init": 1}, X, groups)
        assert (seconds is not None and seconds > 0) if told else seconds is None


# Tables in chunks


@pytest.fixture
def parts(tmp_path):
    """Write numbers and a sensitive column to two Parquet files."""
    rng = np.random.default_rng(1)
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(2):
        sex = rng.choice(["f", "m"], 500)
        frame = pd.DataFrame(rng.normal(size=(500, 2)) * [1, 50], columns=["age", "income"])
        frame["age"] += sex == "m"
        frame.assign(sex=sex, serial=range(500)).to_parquet(folder / f"{part}.parquet")
    return folder


def test_parquet_files_are_read_in_chunks(parts, capsys, tmp_path):
    options = ("--sensitive", "sex", "--exclude", "serial", "--n-clusters", 3, "--set", "n_init=2")
    out = tmp_path / "labels.npy"
    status, text, err = run(capsys, "fit", f"{parts}/*.parquet", *options, "--out", out)
    assert status == 0, err
    assert "1,000 rows, 2 features, 2 groups, 3 clusters" in text
    assert "features: age, income (standardised)" in text and "certificate" in text
    assert "step 1: objective" in err
    labels = np.load(out)
    assert labels.dtype == np.uint8 and len(labels) == 1000
    status, text, _ = run(capsys, "fit", parts, *options, "--json")
    result = json.loads(text)
    assert result["groups"].keys() == {"f", "m"} and result["certificate"]["violation"] < 1
    assert [own["size"] for own in result["clusters"]] == np.bincount(labels).tolist()
    assert result["cost_per_row"].keys() == {"all rows"}
    # The columns are standardised as in memory, so the cost is the same.
    frame = pd.concat(map(pd.read_parquet, sorted(parts.iterdir())))
    X = frame[["age", "income"]].to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    means = pd.DataFrame(X).groupby(labels).transform("mean").to_numpy()
    assert result["metrics"]["PriceFairKMeans"]["sse"] == pytest.approx(((X - means) ** 2).sum())


def by_options(parts, capsys, out, *options):
    """Fit the files, and return the labels and the standard output."""
    needed = (
        "--sensitive",
        "sex",
        "--exclude",
        "serial",
        "--n-clusters",
        3,
        "--set",
        "n_init=2",
        "--out",
        out,
    )
    status, text, err = run(capsys, "fit", f"{parts}/*.parquet", *needed, *options)
    assert status == 0, err
    return np.load(out), text


def test_workers_of_a_scheduler_read_the_files(parts, capsys, tmp_path):
    distributed = pytest.importorskip("distributed")
    out, kept = tmp_path / "labels.npy", tmp_path / "fit.npz"
    alone, text = by_options(parts, capsys, out)
    quiet = {"dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **quiet) as workers:
        address = workers.scheduler_address
        labels, again = by_options(parts, capsys, out, "--scheduler", address, "--checkpoint", kept)
        assert len(workers.scheduler.workers) == 2
    np.testing.assert_array_equal(labels, alone)
    assert without_seconds(again) == without_seconds(text)
    assert not kept.exists()


@pytest.mark.slow
def test_worker_processes_read_the_files(parts, capsys, tmp_path):
    pytest.importorskip("distributed")
    alone, text = by_options(parts, capsys, tmp_path / "labels.npy")
    labels, again = by_options(parts, capsys, tmp_path / "labels.npy", "--workers", 2)
    np.testing.assert_array_equal(labels, alone)
    assert without_seconds(again) == without_seconds(text)


def test_options_that_tables_in_chunks_do_not_take(parts, capsys):
    needed = ("fit", parts, "--n-clusters", 3)
    for options, message in (
        (("--sensitive", "sex", "serial"), "in chunks take one column"),
        (
            ("--sensitive", "sex", "--method", "bfkm"),
            "needs all rows in memory; price, vfc and kmeans do not",
        ),
        (("--sensitive", "sex", "--out", "labels.csv"), "written as .npy"),
        (
            ("--sensitive", "sex", "--save", "model"),
            "--save: does not work for tables that are read in chunks",
        ),
        (
            ("--sensitive", "sex", "--missing", "drop"),
            "--missing: does not work for tables that are read in chunks",
        ),
        (("--sensitive", "sex", "--workers", 0), "and must be at least 1"),
        (
            ("--sensitive", "sex", "--workers", 2, "--scheduler", "tcp://127.0.0.1:1"),
            "--workers: cannot be combined with --scheduler",
        ),
        (("--sensitive", "age"), "column 'sex' is of type"),
        (("--sensitive", "gender"), "has no column 'gender'"),
        (("--sensitive", "sex", "--bins", 4), "--bins: does not work for tables that are read in chunks"),
        (("--sensitive", "sex", "--exclude", "age,income,serial"), "--exclude: no column is left"),
    ):
        status, _, err = run(capsys, *needed, *options)
        assert status == 2 and message in err, err


@pytest.mark.parametrize("number", [np.inf, 1e200])
def test_a_number_that_cannot_be_standardised_is_named_with_its_row(number, parts, capsys):
    frame = pd.read_parquet(parts / "1.parquet")
    frame.loc[7, "income"] = number
    frame.to_parquet(parts / "1.parquet")
    status, _, err = run(capsys, "fit", parts, "--sensitive", "sex", "--n-clusters", 3)
    assert status == 2 and f"1.parquet, row 7: column 'income' is {number}" in err
