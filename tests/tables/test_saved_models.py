"""Models that `fairclust fit --save` writes: nothing is lost, no code runs, and damaged files give plain errors."""

import io
import os
import pickle
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest

from fairclust import methods
from fairclust.cli import main
from fairclust.tables import TableError, load_model

N = 300
PREDICTING = [name for name in methods.__all__ if hasattr(getattr(methods, name), "predict")]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], N)
    frame = pd.DataFrame(
        {
            "sex": sex,
            "race": rng.choice(["a", "b", "c"], N),
            "age": rng.normal(40, 10, N) + 4 * (sex == "m"),
            "income": [f"{x:,}" for x in rng.integers(900, 90_000, N)],
            "town": [f"town {i}" for i in rng.geometric(0.03, N)],
            "job": rng.choice(["x", "y", "z"], N),
            "rent": [f"€ {x:,.2f}" for x in rng.lognormal(6, 0.5, N)],
            "level": rng.choice(["low", "medium", "high"], N),
            "member": rng.choice(["yes", "No", "Y", "n"], N),
            "house": ["3B" if i % 40 == 0 else str(i % 90 + 1) for i in range(N)],
        }
    )
    frame.loc[:9, "age"] = np.nan
    frame.loc[5:19, "job"] = None
    path = tmp_path_factory.mktemp("people") / "people.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def fitted(people, tmp_path, monkeypatch, capsys):
    """Return a function that fits by the command and returns the model before and after it was saved, and its file."""
    from fairclust.cli import results

    kept, save = [], results.TableModel.save
    monkeypatch.setattr(results.TableModel, "save", lambda self, to: (kept.append(self), save(self, to)))

    def run(*options, table=people):
        path = tmp_path / "model.fairclust"
        arguments = ["fit", table, "--n-clusters", 3, "--save", path, *options]
        assert main([str(argument) for argument in arguments]) == 0, capsys.readouterr().err
        return kept[-1], load_model(path, methods), path

    return run


def assert_same(before, after, people):
    """Both models predict the same for the rows of the fit, and for rows with new values and missing cells."""
    frame = pd.read_csv(people)
    new = frame.iloc[::-1].assign(town="nowhere", age=[None, *np.linspace(0, 99, N - 1)], member="Yes")
    assert not any(note.startswith("member: ") for note in after.preparation.notes_on(new))
    for rows in (frame, new):
        pd.testing.assert_series_equal(before.reasons(rows), after.reasons(rows))
        assert before.preparation.notes_on(rows) == after.preparation.notes_on(rows)
        rows = rows[before.reasons(rows) == ""]
        np.testing.assert_array_equal(before.preparation.transform(rows), after.preparation.transform(rows))
        np.testing.assert_array_equal(before.predict(rows), after.predict(rows))
    assert before.by_column == after.by_column
    for name in ("features", "needed", "ids", "means", "texts", "decimal"):
        assert getattr(before.preparation, name) == getattr(after.preparation, name), name


@pytest.mark.parametrize("name", PREDICTING)
@pytest.mark.parametrize("columns", [["sex"], ["sex", "race"]])
def test_a_saved_model_of_every_method_predicts_the_same(fitted, people, name, columns):
    before, after, _ = fitted("--method", name, "--sensitive", *columns, "--id", "town")
    assert_same(before, after, people)
    if name in ("KMeans", "FairMixture"):
        frame = pd.read_csv(people).drop(columns=columns)
        np.testing.assert_array_equal(before.predict(frame), after.predict(frame))


@pytest.mark.parametrize(
    "options",
    [
        ("--crossed",),
        ("--clip", "age", "--log", "rent"),
        ("--missing", "group"),
        ("--scale", "none", "--missing", "drop", "--features", "age,income"),
        ("--features", "job", "town", "--missing", "group"),
        ("--method", "vfc"),
        ("--method", "vfc", "--set", "precision=double", "--set", "lam=50"),
        ("--set", "size_max=200", "--set", "tolerance=0.1"),
        ("--method", "FairMixture", "--features", "age,race", "--set", "covariance=diag"),
        ("--method", "FairMixture", "--features", "job,age", "--set", "categorical_features=[1, 2]"),
        ("--sensitive", "age", "--bins", "3"),
        ("--sensitive", "age", "--set", "mean_tolerance={'age': 0.1}"),
    ],
)
def test_a_saved_model_keeps_every_option(fitted, people, options):
    before, after, _ = fitted("--sensitive", "sex", *options)
    assert_same(before, after, people)


def test_a_model_reads_tables_with_the_other_decimal_point(people, fitted, tmp_path, monkeypatch, capsys):
    frame = pd.read_csv(people)[["sex", "age"]]
    frame["age"] = frame.age.round(3)
    frame[["v", "p"]] = np.where(frame.index % 30, [["1"], ["3,5"]], [["1.2"], ["2,5"]]).T
    frame.to_csv(tmp_path / "de.csv", sep=";", decimal=",", index=False)
    model, _, _ = fitted("--sensitive", "sex", "--method", "kmeans", table=tmp_path / "de.csv")
    frame.assign(age=frame.age.astype(str).where(frame.index > 0, "unknown")).to_csv(
        tmp_path / "en.csv", index=False
    )
    same, other = (model.predict(model.read(tmp_path / f"{name}.csv")) for name in ("de", "en"))
    assert other[1:].tolist() == same[1:].tolist() and model.read(tmp_path / "de.csv").age.dtype == float
    # Standard input can be read only once.
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "en.csv").read_bytes())))
    assert model.predict(model.read("-")).tolist() == other.tolist()
    english, _, _ = fitted("--sensitive", "sex", "--method", "kmeans", table=tmp_path / "en.csv")
    np.testing.assert_array_equal(english.predict(english.read(tmp_path / "de.csv")), same)
    for of, age, row in ((model, 1.125, "f;1,125;1.2;3\n"), (english, "1.5", "f;1.5;1.2;3,5\n" * 3)):
        (tmp_path / "row.csv").write_text(f"sex;age;v;p\n{row}")
        assert of.read(tmp_path / "row.csv").age[0] == age


@pytest.mark.parametrize("method", ["price", "vfc"])
def test_combinations_that_did_not_occur_keep_their_prices(fitted, people, tmp_path, method):
    frame = pd.read_csv(people)
    is_new, few = (frame.sex == "f") & (frame.race == "c"), tmp_path / "few.csv"
    frame[~is_new].to_csv(few, index=False)
    before, after, _ = fitted("--sensitive", "sex", "race", "--method", method, table=few)
    new = frame[is_new & (before.reasons(frame) == "")]
    expected = before.predict(new)
    np.testing.assert_array_equal(after.predict(new), expected)
    # The prices decide: without them, some rows of the new combination would get other labels.
    for prices in after.estimator._column_prices:
        prices[:] = 0.0
    assert (after.predict(new) != expected).any()


class Attack:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    "write", [pickle.dump, joblib.dump, lambda it, file: joblib.dump(it, file, compress=3)]
)
def test_a_pickle_is_not_read(tmp_path, people, capsys, write):
    path = tmp_path / "evil.fairclust"
    with path.open("wb") as file:
        write(Attack(tmp_path / "done"), file)
    assert main(["predict", str(path), str(people)]) == 2
    assert "is no model that `fairclust fit --save` of this version has written" in capsys.readouterr().err
    assert not (tmp_path / "done").exists()


def test_files_that_are_no_whole_model_are_refused(fitted, people, tmp_path):
    _, _, path = fitted("--sensitive", "sex")
    whole, bomb = path.read_bytes(), tmp_path / "bomb.npz"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("centers.npy", bytes(1 << 24))
    for content in (
        *(b"", b"{", b'{"format": "another"}', people.read_bytes(), bomb.read_bytes()),
        *(whole[:n] for n in range(30, len(whole), 97)),
        whole + b"}",
        whole[:30] + b"[" * 100_000,
        whole[:28] + b', "version": ' + b"9" * 10_000 + b"}",
        whole.replace(b"PriceFairKMeans", b"__builtins__"),
        whole.replace(b"PriceFairKMeans", b"BeraFairKMeans"),
        whole.replace(b"0", b"\xff"),
        *(whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(150, len(whole), 97)),
    ):
        path.write_bytes(content)
        with pytest.raises(
            TableError, match=r"is no model that `fairclust fit --save` .* Fix: fit again with"
        ):
            load_model(path, methods)
    path.write_bytes(whole.replace(b'"version": "', b'"version": "9.'))
    with pytest.raises(TableError, match=r"fairclust 9\..* has written it, and this is"):
        load_model(path, methods)
    with pytest.raises(TableError, match="there is no file"):
        load_model(tmp_path, methods)
