"""The whole pipeline through Snakemake, in a folder of its own, on small data."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
import yaml

from fairclust.cli import main
from working_folder import METHOD, Project


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("project"))
    project.first_output = project.run()
    return project


def test_a_run_leaves_scores_tables_figures_and_says_where(project):
    results = project.folder / "results"
    scores = pd.read_csv(results / "scores/scores.csv")
    assert len(scores) == 6
    assert set(scores.status) == {"ok"}
    assert set(scores[scores.method == "stripes"].lam) == {0, 1}
    for name in ("tables/overview.md", "tables/overview.tex", "figures/front_blobs.png", "provenance.json"):
        assert (results / name).stat().st_size > 0
    card = json.loads((results / "data/prepared/blobs/card.json").read_text())
    assert card["data_hash"] == scores.data_hash.iloc[0]
    assert "6 cells: 6 ok" in project.first_output
    assert "results/scores/scores.csv" in project.first_output
    assert "fitting" in project.first_output


def test_nothing_to_do_the_second_time(project):
    assert "Nothing to be done" in project.run()


def test_status_counts_what_is_done_and_what_is_not(project):
    def status(more=""):
        over = project.write("over.yaml", more)
        command = [Path(sys.executable).with_name("fairclust"), "status", "--configfile", over]
        done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert status() == ["all: 6 of 6 cells done"]
    lines = status("run: {seeds: 3, methods: [random, stripes, other]}")
    assert lines[:3] == [
        "blobs, random: 2 of 3 cells done, 1 to go",
        "blobs, stripes: 4 of 6 cells done, 2 to go",
        "blobs, other: 0 of 3 cells done, 3 to go",
    ]
    assert lines[3] == "all: 6 of 12 cells done, 6 to go"
    assert lines[4].startswith("time left on 1 cores: about 0 seconds")


def test_one_more_lambda_fits_only_its_cells(project):
    before = project.cells()
    project.config["methods"]["stripes"]["grid"]["lam"] = [0, 0.5, 1]
    project.run()
    new = project.newly_fitted(before)
    assert new[["method", "lam", "seed"]].values.tolist() == [["stripes", 0.5, 0], ["stripes", 0.5, 1]]


def test_one_more_seed_fits_only_its_cells(project):
    before = project.cells()
    project.config["run"]["seeds"] = 3
    project.run()
    new = project.newly_fitted(before)
    assert set(new.seed) == {2}
    assert len(new) == 4


def test_one_more_dataset_from_a_csv_in_eight_lines_and_no_code(project):
    before = project.cells()
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.normal(40, 10, 90), "income": rng.normal(3, 1, 90)})
    people["sex"] = np.where(np.arange(90) % 3, "f", "m")
    people.to_csv(project.folder / "people.csv", index=False)
    lines = dedent(
        """
        people:
          title: People
          source: {path: people.csv}
          sensitive: {column: sex}
          n_clusters: 4
        """
    ).strip()
    assert len(lines.splitlines()) <= 8
    project.config["datasets"].update(yaml.safe_load(lines))
    project.config["run"]["datasets"] = ["blobs", "people"]
    project.run()
    new = project.newly_fitted(before)
    assert set(new.dataset) == {"people"}
    assert len(new) == 3 + 9
    assert set(new.status) == {"ok"}


def test_one_more_method_in_one_class_and_four_lines(project):
    before = project.cells()
    lines = dedent(
        """
        mine:
          class: my_methods.mine.Mine
          grid:
            lam: [2]
        """
    ).strip()
    assert len(lines.splitlines()) <= 4
    project.write("my_methods/mine.py", METHOD.format(name="Mine", factor=2))
    project.config["methods"].update(yaml.safe_load(lines))
    project.config["run"]["methods"].append("mine")
    project.run()
    assert set(project.newly_fitted(before).method) == {"mine"}


def test_a_comment_in_a_method_fits_nothing_again(project):
    before = project.cells()
    text = (project.folder / "my_methods/mine.py").read_text()
    project.write("my_methods/mine.py", text.replace("# A comment.", "# Another comment, and a longer one."))
    assert "Nothing to be done" in project.run()
    assert project.newly_fitted(before).empty


def test_an_edited_method_fits_only_its_own_cells(project):
    before = project.cells()
    project.write("my_methods/stripes.py", METHOD.format(name="Stripes", factor=3))
    project.run()
    assert set(project.newly_fitted(before).method) == {"stripes"}


def test_an_edited_csv_is_prepared_and_fitted_again(project):
    before = project.cells()
    path = project.folder / "people.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-3]) + "\n")
    project.run()
    assert set(project.newly_fitted(before).dataset) == {"people"}


def test_what_is_not_to_be_had_becomes_rows_and_never_stops_the_rest(project):
    project.config["sources"] = {
        "far": {
            "file": "far/data.csv",
            "urls": ["https://127.0.0.1:9/data.csv"],
            "sha256": "0" * 64,
            "licence": "none",
        }
    }
    far = {"title": "Far", "source": "far", "sensitive": {"column": "sex"}, "n_clusters": 2}
    bad = {**project.config["datasets"]["people"], "features": ["age", "incme"], "title": "Bad"}
    project.config["datasets"].update(far=far, bad=bad)
    project.config["run"]["datasets"] = ["blobs", "far", "bad"]
    before = project.cells()
    output = project.run()
    rows = pd.read_parquet(project.folder / "results/scores/scores.parquet").set_index("dataset")
    assert set(rows.loc["far"].status) == {"skipped"}
    assert "is not to be had" in rows.loc["far"].reason.iloc[0]
    assert "nearest: 'income'" in rows.loc["bad"].reason.iloc[0]
    assert "skipped: far" in output
    assert "skipped: bad" in output
    assert project.newly_fitted(before).finished.isna().all()
    assert "far" in (project.folder / "results/tables/overview.md").read_text().lower()


def test_a_source_is_taken_from_the_mirror_and_was_tried_again(project):
    text = "sex,a,b\n" + "".join(f"{'fm'[i % 2]},{i},{i * i}\n" for i in range(40))
    project.write("mirror/far/data.csv", text)
    import hashlib

    project.config["sources"]["far"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    project.config["run"]["datasets"] = ["blobs", "far"]
    project.run("--config", "mirror=mirror")
    rows = project.cells().set_index("dataset")
    assert set(rows.loc["far"].status) == {"ok"}


def test_a_second_look_at_what_is_not_to_be_had_does_nothing(project):
    project.config["sources"]["gone"] = {**project.config["sources"]["far"], "file": "gone.csv"}
    gone = {"title": "Gone", "source": "gone", "sensitive": {"column": "sex"}, "n_clusters": 2}
    project.config["datasets"]["gone"] = gone
    project.config["run"]["datasets"] = ["blobs", "gone"]
    project.run()
    assert "Nothing to be done" in project.run()


def test_a_file_that_is_not_there_is_a_skipped_row_and_then_is_found(project):
    late = {"title": "Late", "source": {"path": "late.csv"}, "sensitive": {"column": "sex"}, "n_clusters": 2}
    project.config["datasets"]["late"] = late
    project.config["run"]["datasets"] = ["blobs", "late"]
    project.run()
    rows = pd.read_parquet(project.folder / "results/scores/scores.parquet").set_index("dataset")
    assert set(rows.loc["late"].status) == {"skipped"}
    assert "no such file" in rows.loc["late"].reason.iloc[0]
    project.write("late.csv", (project.folder / "people.csv").read_text())
    project.run()
    assert set(project.cells().set_index("dataset").loc["late"].status) == {"ok"}


def test_an_error_is_tried_again_by_the_same_command(project):
    text = METHOD.format(name="Needy", factor=1)
    project.write(
        "my_methods/needy.py", text.replace("import numpy as np", "import not_there_yet, numpy as np")
    )
    project.config["methods"]["needy"] = {"class": "my_methods.needy.Needy"}
    project.config["run"] |= {"datasets": ["blobs"], "methods": ["needy"]}
    project.run()
    assert set(project.cells().status) == {"error"}
    project.write("not_there_yet.py", "")
    project.run()
    assert set(project.cells().status) == {"ok"}
    project.config["run"]["methods"] = ["random", "stripes"]


def test_a_method_that_asks_for_the_graph_gets_it(project):
    text = METHOD.format(name="Cutter", factor=1)
    fit = "        # A comment.\n        order = np.argsort(X[:, 0] * 1)\n"
    assert fit in text
    text = text.replace(
        fit, "        assert X.shape[0] == X.shape[1]\n        order = np.argsort(X.sum(axis=0))\n"
    )
    taking_sparse = """

    def fit(self, X, y=None, *, sensitive_features=None):
        self._fit(X, None)
        return self
"""
    text = text.replace("\n    def _fit(", taking_sparse + "\n    def _fit(")
    project.write("my_methods/cutter.py", text.replace("len(X)", "X.shape[0]"))
    project.config["methods"]["cutter"] = {"class": "my_methods.cutter.Cutter", "input": "graph"}
    project.config["run"] |= {"datasets": ["blobs", "bad"], "methods": ["cutter", "random"]}
    project.run()
    rows = pd.read_parquet(project.folder / "results/scores/scores.parquet").set_index(["dataset", "method"])
    assert set(rows.loc[("blobs", "cutter")].status) == {"ok"}
    assert rows.loc[("blobs", "cutter")].ncut.notna().all()
    assert rows.loc[("blobs", "random")].ncut.isna().all()
    assert set(rows.loc[("bad", "cutter")].status) == {"skipped"}
    project.config["run"] |= {"datasets": ["blobs"], "methods": ["random", "stripes"]}


def test_a_figure_of_points_takes_stored_labels_and_unscaled_data(project):
    kept = project.config
    generator = "fairclust.datasets.synthetic.make_synthetic"
    project.config = {
        **kept,
        "run": {"datasets": ["synthetic"], "methods": ["frkm"], "seeds": 1},
        "datasets": {"synthetic": {"title": "Synthetic", "generator": generator, "n_clusters": 2}},
        "methods": {"frkm": {"class": "fairclust.methods.balanced_kmeans.BalancedFairKMeans"}},
    }
    try:
        project.run()
        before = project.cells()
        project.config["report"] = {**kept["report"], "figures": ["bfkm_fig6"]}
        project.run()
    finally:
        project.config = kept
    assert project.newly_fitted(before).empty
    results = project.folder / "results"
    assert (results / "figures/bfkm_fig6_synthetic.png").stat().st_size > 0
    scaled, plane = (np.load(results / f"data/{kind}/synthetic/X.npy") for kind in ("prepared", "plane"))
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1)
    standardized = (plane - plane.mean(axis=0)) / plane.std(axis=0)
    unit = standardized / np.linalg.norm(standardized, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, scaled)
    project.run()


def test_a_mistyped_parameter_stops_before_any_job(project):
    kept = project.config
    stripes = {**kept["methods"]["stripes"], "params": {"lamm": 3}}
    project.config = {**kept, "methods": {**kept["methods"], "stripes": stripes}}
    try:
        output = project.run(code=1)
    finally:
        project.config = kept
    assert "my_methods.stripes.Stripes takes no parameter 'lamm'" in output


def test_strict_says_so_with_the_exit_status(project):
    project.config["strict"] = True
    project.config["run"]["datasets"] = ["blobs", "bad"]
    output = project.run(code=1)
    assert "strict: true, and not every cell is ok" in output
    project.config["strict"] = False
    project.config["run"]["datasets"] = ["blobs"]
    project.run()


def test_large_data_in_parts_has_the_same_scores(project):
    stem = project.folder / "results/scores/scores.csv"
    before, fits = stem.read_bytes(), project.cells()
    project.config["run"]["parts"] = {"blobs": 2}
    project.run()
    assert stem.read_bytes() == before
    assert project.newly_fitted(fits).empty


@pytest.mark.parametrize(
    "change, message",
    [
        ({"run": {"datasets": ["blob"], "methods": ["random"]}}, "there is no 'blob'; did you mean 'blobs'?"),
        ({"methods": {"x": {"class": "my_methods.stripes.Strips"}}}, "run.methods: there is no 'random'"),
        ({"report": {"tables": ["vfc_table33"]}}, "report.tables: there is no 'vfc_table33'"),
    ],
)
def test_a_wrong_configuration_stops_before_any_job(project, change, message):
    kept = project.config
    project.config = {**kept, **change}
    try:
        output = project.run(code=1)
    finally:
        project.config = kept
    assert message in output
    assert "Traceback" not in output


def test_a_wrong_class_stops_before_any_job(project):
    kept = project.config
    methods = {**kept["methods"], "random": {"class": "fairclust.methods.random_labels.Randm"}}
    project.config = {**kept, "methods": methods}
    try:
        output = project.run(code=1)
    finally:
        project.config = kept
    assert "does not define 'Randm'; it defines RandomLabels" in output


def test_the_same_command_gives_the_same_scores(tmp_path, project):
    other = Project(tmp_path)
    other.run()
    again = Project(tmp_path / "again")
    again.run()
    for name in (
        "scores/scores.csv",
        "scores/scores.parquet",
        "tables/overview.md",
        "figures/front_blobs.png",
    ):
        assert (other.folder / "results" / name).read_bytes() == (
            again.folder / "results" / name
        ).read_bytes()


def rules_run(output):
    """Names of the rules in Snakemake's table of jobs."""
    return set(re.findall(r"^(\w+) +\d+$", output, flags=re.MULTILINE)) - {"total", "all"}


def test_tables_figures_and_report_are_made_again_without_a_fit(tmp_path):
    project = Project(tmp_path)
    project.config["report"] |= {"html": True, "tables": ["overview", "reproduction"]}
    output = project.run()
    results = tmp_path / "results"
    assert "report:  results/report/index.html" in output
    folders = [results / name for name in ("tables", "figures", "report")]
    made = [results / "report.zip", *(path for folder in folders for path in folder.iterdir())]
    assert len(made) == 1 + 6 + 1 + 1
    before = {path: path.read_bytes() for path in made}
    fits = project.cells()
    for path in made:
        path.unlink()
    assert rules_run(project.run()) == {"make_tables", "plot_figures", "make_report"}
    assert {path: path.read_bytes() for path in made} == before
    assert project.newly_fitted(fits).empty
    # Other words on the page are no reason to fit either.
    project.config["methods"]["stripes"]["family"] = "slices"
    assert not rules_run(project.run()) & {"fit_block", "prepare_dataset"}
    assert "slices" in (results / "report/index.html").read_text()
    project.run("--report", "report.zip")
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        names = [Path(name).name for name in archive.namelist()]
    for name in ("report.html", "index.html", "overview.csv", "reproduction.md", "front_blobs.png"):
        assert name in names


def test_merged_results_are_gone_on_with_and_nothing_is_fitted_again(tmp_path, monkeypatch):
    project = Project(tmp_path)
    project.config["results"] = "a"
    project.config["methods"]["stripes"]["grid"]["lam"] = [0, 1]
    project.run()
    project.config["results"] = "b"
    project.config["methods"]["stripes"]["grid"]["lam"] = [1, 2]
    project.run()
    monkeypatch.chdir(tmp_path)
    assert main(["merge", "a", "b", "--out", "c"]) == 0
    merged = pd.read_parquet("c/scores/runs.parquet")
    assert len(merged) == 2 + 3 * 2
    scores = Path("c/scores/scores.csv").read_bytes()
    project.config["results"] = "c"
    project.config["methods"]["stripes"]["grid"]["lam"] = [0, 1, 2]
    project.run()
    after = pd.read_parquet("c/scores/runs.parquet")
    assert len(after) == len(merged)
    assert after.finished.isin(merged.finished).all()
    assert Path("c/scores/scores.csv").read_bytes() == scores
    assert Path("c/figures/front_blobs.png").is_file()
