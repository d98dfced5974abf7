"""Runs of one project, one after the other: after each change exactly the jobs run that it concerns."""

import json
import os
import shutil
from types import SimpleNamespace

import pandas as pd
import pytest

import publish
import run_crate
from toys import forget_code, write_people
from working_folder import METHOD, Project, newly_fitted, table_of

KINDS = ("fits/*/*.parquet", "data/*/*/card.json", "figures/*/*.png", "scores/*.parquet")


def made_at(project):
    """Return when each output was made, by its name."""
    paths = {path for kind in KINDS for path in project.results.glob(kind)}
    return {path.relative_to(project.results).as_posix(): path.stat().st_mtime_ns for path in paths}


def fitted(project, before):
    """Return data set, method, lambda and seed of the fits that were made after those in `before`."""
    rows = newly_fitted(project.cells(), before)[["dataset", "method", "lam", "seed"]]
    plain = rows.astype(object).where(rows.notna(), None)
    return sorted(plain.itertuples(index=False, name=None), key=str)


def change(project, name):
    """Make one change, after which the run is looked at."""
    methods = project.config["methods"]
    if name == "comment and unused method":
        text = (project.folder / "my_methods/stripes.py").read_text()
        project.write("my_methods/stripes.py", text.replace("# A comment.", "# Another, and a longer one."))
        methods["unused"] = {"class": "my_methods.other.Other", "params": {"lam": 3}}
    elif name == "lambda":
        methods["stripes"]["grid"]["lam"] = [0, 0.5, 1]
    elif name == "seed":
        project.config["run"]["seeds"] = 3
    elif name == "metric":
        project.config["score"] = {"metrics": ["dunn_index"]}
    elif name == "constant of a method":
        project.write("my_methods/stripes.py", METHOD.format(name="Stripes", factor=2))
    elif name == "scaling":
        project.config["datasets"]["people"]["scale"] = "minmax"
    elif name == "deleted outputs":
        shutil.rmtree(project.results / "figures")
        shutil.rmtree(project.results / "data/prepared/people")
        (project.results / "fits/blobs/random.parquet").unlink()
        project.config["report"]["html"] = True  # The page is made once, at the end.


SETS = ("blobs", "people")
STRIPES = {(data, "stripes", lam, seed) for data in SETS for lam in (0.0, 0.5, 1.0) for seed in range(3)}
RANDOM = {(data, "random", None, seed) for data in SETS for seed in range(3)}
OF_FITS = {"scores/scores.parquet", "scores/runs.parquet"}
FRONTS = {f"figures/fronts/{data}.png" for data in SETS}
ALL_FITS = {f"fits/{data}/{method}.parquet" for data in SETS for method in ("random", "stripes")}
OF_PEOPLE = {name for name in ALL_FITS | FRONTS if "people" in name} | {"data/prepared/people/card.json"}
# For each change, the fits and the files that are made; everything else stays.
EXPECTED = {
    "comment and unused method": (set(), set()),
    "lambda": (
        {(data, "stripes", 0.5, seed) for data in SETS for seed in range(2)},
        {name for name in ALL_FITS if "stripes" in name} | FRONTS | OF_FITS,
    ),
    "seed": ({fit for fit in STRIPES | RANDOM if fit[3] == 2}, ALL_FITS | FRONTS | OF_FITS),
    "metric": (set(), ALL_FITS | FRONTS | OF_FITS),
    "constant of a method": (STRIPES, {name for name in ALL_FITS if "stripes" in name} | FRONTS | OF_FITS),
    "scaling": ({fit for fit in STRIPES | RANDOM if fit[0] == "people"}, OF_PEOPLE | OF_FITS),
    "deleted outputs": (set(), {"fits/blobs/random.parquet"} | FRONTS | OF_FITS | OF_PEOPLE),
}


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    """Make all runs, and return what each has printed and made, by the name of the change."""
    project = Project(tmp_path_factory.mktemp("project") / "ein Ordner für alles")
    write_people(project.folder / "people.csv", n_rows=60)
    both = [{"column": "sex"}, {"column": "ethnicity"}]
    project.config["datasets"]["people"] = table_of(
        {"path": "people.csv"}, features=["age", "income"], n_clusters=3, sensitive=both
    )
    project.config["run"]["datasets"] = list(SETS)
    seen = SimpleNamespace(project=project, steps={}, first=project.run(), cells=project.cells())
    for name in EXPECTED:
        change(project, name)
        before, cells = made_at(project), project.cells()
        step = SimpleNamespace(output=project.run())
        step.fitted = fitted(project, cells)
        step.made = {path for path, at in made_at(project).items() if before.get(path) != at}
        seen.steps[name] = step
    return seen


def test_a_run_writes_scores_tables_figures_and_a_page_and_prints_where(life):
    assert len(life.cells) == 2 * (2 + 4) and set(life.cells.status) == {"ok"}
    for words in ("12 fits: 12 ok", "results/scores/scores.csv"):
        assert words in life.first
    results = life.project.results
    for name in ("scores/leaderboard.csv", "summary.json", "provenance.json",
                 "logs/fit/blobs/stripes.log", "benchmarks/fit/blobs/stripes.tsv"):  # fmt: skip
        assert (results / name).stat().st_size > 0


@pytest.mark.parametrize("name", EXPECTED)
def test_after_a_change_exactly_its_own_jobs_run_and_only_new_fits_are_made(life, name):
    step, (fits, files) = life.steps[name], EXPECTED[name]
    assert set(step.fitted) == fits and len(step.fitted) == len(fits)
    assert step.made == files
    if not files:
        assert "Nothing to be done" in step.output


def test_each_of_several_sensitive_columns_counts(life):
    scores = pd.read_parquet(life.project.results / "scores/scores.parquet")
    for row in scores[scores.dataset == "people"].itertuples():
        each = json.loads(row.by_column)
        assert list(each) == ["sex", "ethnicity"]
        assert row.balance == min(of["balance"] for of in each.values())
        assert row.fairness_error == max(of["fairness_error"] for of in each.values())


def test_publishing_copies_a_finished_run_and_leaves_other_folders_alone(life, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(life.project.folder)
    forget_code()
    out, foreign = tmp_path / "published", tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "mine.txt").write_text("mine")
    before = made_at(life.project)
    for place in (str(foreign), "results", "results/tables", "results/../results", "."):
        assert publish.main(["--out", place])
        said = capsys.readouterr().err
        assert "overlaps results, which is read" in said or "holds other files" in said
    assert made_at(life.project) == before and (foreign / "mine.txt").read_text() == "mine"
    page = tmp_path / "page.md"
    page.write_text("no marks\n")
    assert publish.main(["--out", str(out), "--readme", str(page)])
    assert "to put the numbers between" in capsys.readouterr().err and not out.exists()
    other = tmp_path / "other.yaml"
    asked = ["--out", str(out), "--wall-seconds", "5", "--page-of", str(other)]
    other.write_text("results: nowhere")
    assert publish.main(asked) and "nowhere holds no finished run" in capsys.readouterr().err
    other.write_text("{results: results, run: {seeds: 9}}")
    assert publish.main(asked) and "are of another configuration" in capsys.readouterr().err
    other.write_text("results: results")
    complete = life.project.results / ".complete"
    os.utime(complete, (1, 1))
    assert publish.main(asked) and ".complete is older than" in capsys.readouterr().err
    complete.touch()
    for _ in range(2):  # the second time into the same folder
        assert not publish.main(asked)
    pages = [out / "report" / name for name in ("index.html", "other.html")]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    of_other = pd.read_parquet(out / "scores/other.parquet")
    assert {"sse", "counts", "params"} < {*of_other} and "key" not in of_other
    origin = json.loads((out / "provenance.json").read_text())
    assert origin["wall_seconds"] == 5
    assert run_crate.inputs_of(run_crate.checked(out)).keys() == {"people.csv", "digest of the configuration"}
    scores = pd.read_parquet(out / "scores/scores.parquet")
    assert scores.key.nunique() == len(STRIPES | RANDOM)
    # The fronts are on the page.
    assert (out / "scores/runs.parquet").is_file() and not (out / "figures/fronts").exists()
