"""`fairclust submit`, `check-submissions` and `board` on a toy data set, as authors of other methods use them."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from fairclust.cli import main
from fairclust.datasets.blobs import make_group_blobs
from fairclust.metrics.table import METRICS, score_labels
from fairclust.pipeline.config import load_config
from fairclust.pipeline.scores import cells_frame
from fairclust.pipeline.submissions import COSTS, NOTIONS, encode_labels, load_data

ROOT = Path(__file__).parents[2]
ROWS, K = 600, 3
WHO = ("--dataset", "toy", "--method", "My method", "--paper", "https://example.org/my-paper")
FILE = Path("submissions/toy/my-method-k3.json")


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Change to a folder as after a clone, with a generated data set and one in a file."""
    monkeypatch.chdir(tmp_path)
    toy = {"title": "Toy", "generator": "fairclust.datasets.blobs.make_group_blobs", "n_clusters": K}
    people = {
        "title": "People",
        "source": {"path": "people.csv", "sha256": "0" * 64},
        "sensitive": {"column": "sex"},
        "n_clusters": 2,
    }
    config = {
        "run": {"datasets": ["toy"], "methods": ["kmeans"]},
        "datasets": {"toy": toy, "people": people},
        "methods": {"kmeans": {"class": "fairclust.methods.kmeans.KMeans", "label": "K-means"}},
    }
    Path("config").mkdir()
    Path("config/config.yaml").write_text(yaml.safe_dump(config))
    Path("people.csv").write_text("age,sex\n30,f\n40,m\n50,f\n60,m\n")
    return tmp_path


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(K, size=ROWS)


def write(labels, name="labels.csv", **columns):
    pd.DataFrame({**columns, "cluster": labels}).to_csv(name, index=False)


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err


def submit(capsys, *options):
    return run(capsys, "submit", "labels.csv", *WHO, *options)


def state(folder=Path("submissions")):
    """Return the content of every file in the folder of submissions."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def expected(labels):
    """Score labels on data that the test scales itself."""
    data = make_group_blobs()
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    names = ["sse", *NOTIONS.values()]
    return score_labels(X, labels, data.groups, n_clusters=K, n_groups=3, metrics=names)


# A submission


def test_a_submission_is_scored_from_its_labels_alone(clone, labels, capsys):
    write(labels)
    status, lines, err = submit(capsys, "--hardware", "a laptop", "--seconds", 1.5)
    assert (status, err) == (0, "")
    assert lines[0] == f"{FILE}: 600 labels, K = 3"
    assert list(state()) == [FILE]
    found = json.loads(FILE.read_text())
    for name, value in expected(labels).items():
        assert found["metrics"][name] == pytest.approx(value, rel=1e-9), name
        assert any(METRICS[name].label in line for line in lines), name
    assert (found["hardware"], found["seconds"]) == ("a laptop", 1.5)
    assert run(capsys, "check-submissions")[:2] == (
        0,
        ["1 submissions in submissions: the labels of each give the metrics that it states"],
    )


def test_labels_and_scores_that_are_read_are_not_replaced(finished, labels, capsys):
    FILE.parent.mkdir(parents=True)
    write(labels, FILE)
    status, _, err = run(capsys, "submit", FILE, *WHO, "--replace")
    assert status == 2 and "is read and would be overwritten" in err
    pd.testing.assert_series_equal(pd.read_csv(FILE).cluster, pd.Series(labels, name="cluster"))
    FILE.unlink()
    write(labels)
    submit(capsys)
    scores = Path("docs/results/scores/scores.parquet")
    Path("docs/board").mkdir()
    for link, ending in ((FILE, "csv"), (scores, "parquet")):
        before = link.read_bytes()
        Path(f"docs/board/board.{ending}").hardlink_to(link)
        status, _, err = run(capsys, "board")
        assert status == 2 and f"--out ({ending}): " in err and link.read_bytes() == before
        Path(f"docs/board/board.{ending}").unlink()


@pytest.mark.parametrize("form", ["rows in another order", "numbers alone", "as floats", "with blanks"])
def test_the_forms_that_labels_come_in(clone, labels, capsys, form):
    write(labels)
    submit(capsys)
    plain = json.loads(FILE.read_text())["labels"]
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
    assert submit(capsys, "--replace")[0] == 0
    assert json.loads(FILE.read_text())["labels"] == plain


def test_settings_and_ks_are_submissions_of_their_own(clone, labels, capsys):
    write(labels)
    for options in ((), ("--setting", "lam=10"), ("--n-clusters", 5), ("--setting", "公平")):
        assert submit(capsys, *options)[0] == 0
    names = {path.name for path in state()}
    assert {"my-method-k3.json", "my-method-k3-lam-10.json", "my-method-k5.json"} < names
    assert len(names) == 4
    assert run(capsys, "check-submissions")[0] == 0


def test_the_example_of_the_page(clone, capsys, monkeypatch):
    page = (ROOT / "docs/submissions.md").read_text()
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {"__name__": "example"})
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    config["datasets"]["toy_blobs"] = config["datasets"].pop("toy")
    config["run"]["datasets"] = ["toy_blobs"]
    Path("config/config.yaml").write_text(yaml.safe_dump(config))
    command = next(line for line in page.splitlines() if "--dataset toy_blobs" in line)
    status, lines, err = run(capsys, *shlex.split(command)[1:])
    assert (status, err) == (0, "")
    assert lines[0] == "submissions/toy_blobs/group-prices-k3.json: 600 labels, K = 3"


# Labels that are refused


def bad_labels(labels):
    short, bad, wide = labels[:-1], labels.astype(object), labels.copy()
    bad[4], wide[7] = "x", 9
    rows = np.arange(1, ROWS + 1)
    return {
        "too few": (short, {}, "has 599 labels; the data set has 600 rows"),
        "too many": (np.append(labels, 0), {}, "has 601 labels"),
        "a missing row": (short, {"row": rows[:-1]}, "1 of 600 rows are missing, the first is row 600"),
        "a row twice": (
            labels,
            {"row": np.r_[1, rows[:-1]]},
            "1 of 600 rows are there more than once, the first is row 1",
        ),
        "a foreign row": (labels, {"row": rows - 1}, "rows of the data set are 1 to 600"),
        "no number": (bad, {}, "the first is 'x' in data row 5"),
        "a fraction": (labels + 0.5, {}, "600 cells of the column 'cluster' are no whole numbers"),
        "an empty cell": (np.where(np.arange(ROWS) == 3, "", labels.astype(str)), {}, "'' in data row 4"),
        "infinity": (np.where(np.arange(ROWS) == 3, "inf", labels.astype(str)), {}, "'inf' in data row 4"),
        "too many clusters": (wide, {}, "1 labels are not: the first is 9 in row 8"),
        "from one": (labels + 1, {}, "with K = 3, clusters are 0 to 2"),
        "negative": (labels - 1, {}, "clusters are 0 to 2"),
        "one cluster": (labels * 0, {}, "all rows are in one cluster"),
    }


@pytest.mark.parametrize("kind", bad_labels(np.zeros(ROWS, int)))
def test_bad_labels_are_refused_with_the_reason(clone, labels, capsys, kind):
    write(labels)
    submit(capsys)
    before = state()
    given, columns, reason = bad_labels(labels)[kind]
    write(given, **columns)
    status, _, err = submit(capsys, "--replace")
    assert status == 2 and reason in err and "Traceback" not in err, err
    assert state() == before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read"),
        (b"", "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"a,b\n1,2\n", "has no column 'cluster', only 'a', 'b'"),
        (b"cluster\n1,2\n0,1\n", "cannot be read"),
    ],
)
def test_files_that_hold_no_labels_are_refused(clone, capsys, content, reason):
    if content is not None:
        Path("labels.csv").write_bytes(content)
    status, _, err = submit(capsys)
    assert status == 2 and reason in err, err
    assert state() == {}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--dataset", "tpy"), "there is no data set 'tpy'; did you mean 'toy'"),
        (("--dataset", "people"), "expected " + "0" * 64),
        (("--paper", "my paper"), "--paper: "),
        (("--paper", "javascript:alert(1)"), "--paper: "),
        (("--paper", "https://example.org/a|b"), "--paper: "),
        (("--method", ""), "--method: "),
        (("--method", "two\nlines"), "--method: "),
        (("--method", "x" * 200), "--method: "),
        (("--seconds", "-1"), "--seconds: "),
        (("--n-clusters", "1"), "K must be from 2 to the number of rows, 600; found 1"),
        (("--n-clusters", "601"), "K must be from 2 to the number of rows, 600; found 601"),
    ],
)
def test_other_bad_input_is_refused(clone, labels, capsys, options, reason):
    write(labels)
    status, _, err = submit(capsys, *options)
    assert status == 2 and reason in err and "Traceback" not in err, err
    assert state() == {}


def test_an_earlier_submission_stays(clone, labels, capsys):
    write(labels)
    submit(capsys)
    before = state()
    write(labels[::-1])
    status, _, err = submit(capsys)
    assert status == 2 and "exists already" in err and "--replace" in err
    assert state() == before
    assert submit(capsys, "--replace")[0] == 0
    assert state() != before


def test_a_submission_too_large_for_a_repository_is_refused(clone, labels, capsys, monkeypatch):
    monkeypatch.setattr("fairclust.pipeline.submissions.MOST_BYTES", 500)
    write(labels)
    status, _, err = submit(capsys)
    assert status == 2 and "too many rows for a file of labels" in err
    assert state() == {}


# The check of all submissions


def changed(**changes):
    def change():
        content = json.loads(FILE.read_text()) | changes
        FILE.write_text(json.dumps(content))

    return change


def a_metric(name, value):
    def change():
        content = json.loads(FILE.read_text())
        content["metrics"][name] = value
        FILE.write_text(json.dumps(content))

    return change


def without_balance():
    content = json.loads(FILE.read_text())
    del content["metrics"]["balance"]
    FILE.write_text(json.dumps(content))


FAULTS = {
    "a better metric": (a_metric("sse", 1.0), "metrics.sse is 1, and the labels give"),
    "no metric": (without_balance, "metrics.balance is missing"),
    "a foreign metric": (
        a_metric("beauty", 1.0),
        "metrics.beauty: submissions of this data set have no such",
    ),
    "other labels": (changed(labels=encode_labels(np.arange(ROWS) % K, K)), "and the labels give"),
    "fewer labels": (
        changed(labels=encode_labels(np.arange(5) % K, K)),
        "600 rows, and the submission has 5 labels",
    ),
    "a bomb": (
        changed(labels=encode_labels(np.arange(10**7) % K, K)),
        "600 rows, and the submission has more labels",
    ),
    "no labels": (changed(labels="AAAA"), "the labels cannot be unpacked"),
    "no Base64": (changed(labels="!"), "the labels cannot be unpacked"),
    "a cluster too many": (
        changed(labels=encode_labels(np.arange(ROWS) % 4, K)),
        "with K = 3, clusters are 0 to 2",
    ),
    "other data": (changed(data_hash="1" * 64), "it was scored on other data than 'toy' of the catalogue"),
    "an unknown data set": (changed(dataset="tpy"), "there is no data set 'tpy'; did you mean 'toy'"),
    "another name": (changed(method="Another"), "belongs into submissions/toy/another-k3.json"),
    "an unknown key": (changed(colour="red"), "colour: Extra inputs are not permitted"),
    "no JSON": (lambda: FILE.write_text("{"), "is no submission: the file: Invalid JSON"),
    "a link": (changed(paper="javascript:alert(1)"), "paper: "),
    "too large": (lambda: FILE.write_bytes(b" " * 700_000), "is larger than 0.6 MB"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_submission_is_found(clone, labels, capsys, fault):
    write(labels)
    submit(capsys)
    submit(capsys, "--setting", "sound")
    damage, reason = FAULTS[fault]
    damage()
    status, _, err = run(capsys, "check-submissions")
    assert status == 2 and "Traceback" not in err
    assert err.splitlines()[0].endswith("1 of 2 submissions are wrong:")
    assert str(FILE) in err and reason in err, err


def test_rescore_writes_the_metrics_again(clone, labels, capsys):
    write(labels)
    submit(capsys)
    before = json.loads(FILE.read_text())["metrics"]
    without_balance()
    assert run(capsys, "check-submissions", "--rescore")[0] == 0
    assert json.loads(FILE.read_text())["metrics"] == before
    # `--rescore` must not accept labels of other data.
    changed(data_hash="1" * 64)()
    assert run(capsys, "check-submissions", "--rescore")[0] == 2


def test_no_submissions(clone, capsys):
    assert run(capsys, "check-submissions")[0] == 0


def test_the_submissions_of_this_repository_are_in_the_right_folders():
    """Their labels are scored again by `make check-submissions`, which needs the data."""
    from fairclust.pipeline.submissions import place_of, read_submission, submission_files

    for path in submission_files(ROOT / "submissions"):
        assert path == place_of(read_submission(path), ROOT / "submissions")


# The board


@pytest.fixture
def finished(clone):
    """Write the published results of a run of k-means with two starts on the toy data set."""
    config = load_config(yaml.safe_load(Path("config/config.yaml").read_text()))
    data = load_data(config, "toy")
    folder = Path("docs/results/scores")
    folder.mkdir(parents=True)
    records = []
    for seed, cost in enumerate((500.0, 400.0)):
        metrics = dict.fromkeys(METRICS, 0.1) | {"sse": cost, "ncut": None, "worst_group_cost": 2.0}
        records.append(
            {
                **{"dataset": "toy", "method": "kmeans", "n_clusters": K, "seed": seed, "status": "ok"},
                **{"params": {}, "metrics": metrics, "data_hash": data.card["data_hash"]},
                **{"key": f"{seed}", "reason": ""},
            }
        )
    scores = cells_frame(records)
    scores.to_parquet(folder / "scores.parquet")
    identity = ["dataset", "method", "n_clusters", "lam", "seed", "status", "key"]
    runs = scores[identity].assign(wall_seconds=0.5, finished=1.7e9)
    runs.to_parquet(folder / "runs.parquet")
    origin = {"git_commit": "0123456789abcdef", "cpu_count": 2, "platform": "Linux-6"}
    Path("docs/results/provenance.json").write_text(json.dumps(origin))
    return data


def test_the_board_has_runs_and_submissions_side_by_side(finished, labels, capsys):
    write(labels)
    submit(capsys, "--setting", "lam=1")
    status, lines, err = run(capsys, "board")
    assert (status, err) == (0, "")
    assert lines == [
        "1 rows verified, 1 scored from labels:",
        *(f"docs/board/board.{ending}" for ending in ("csv", "parquet", "md")),
    ]
    board = pd.read_csv("docs/board/board.csv")
    assert board[["method", "setting", "status"]].fillna("").values.tolist() == [
        ["K-means", "", "verified"],
        ["My method", "lam=1", "scored from labels"],
    ]
    again = pd.read_parquet("docs/board/board.parquet")
    assert list(again) == list(board)
    assert again.share_rank.tolist() == board.share_rank.tolist()
    assert board.cost[0] == 400.0 and COSTS[0] == board.cost_metric[0]
    text = Path("docs/board/board.md").read_text()
    assert "the run of 2023-11-14, with commit 0123456789, on 2 processors (Linux-6)" in text
    assert "1 row is scored from labels" in text
    assert "https://example.org/my-paper" in text
    assert text.index("### Toy, K = 3") < text.index("### Ranks by")


def test_a_bad_submission_leaves_the_board_as_it_is(finished, labels, capsys):
    write(labels)
    submit(capsys)
    run(capsys, "board")
    before = state(Path("docs/board"))
    changed(data_hash="1" * 64)()
    status, _, err = run(capsys, "board")
    assert status == 2 and "was scored on other data than those of the run" in err
    FILE.write_text("{}")
    status, _, err = run(capsys, "board")
    assert status == 2 and "is no submission" in err
    assert state(Path("docs/board")) == before


def test_a_board_needs_a_run(clone, capsys):
    status, _, err = run(capsys, "board")
    assert status == 2 and "wait until the run has ended" in err
