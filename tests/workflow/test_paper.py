"""A paper that is not in the repository: one YAML and one CSV in a folder named on the command line."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from working_folder import Project, jobs_of

PAPER = """
papers:
  doe:
    short_name: Doe
    citation: "Doe: Fair Clustering of Everything, 2030"
    year: 2030
    experiments:
      - datasets: [blobs, synthetic]
        methods: [random, stripes]
        n_clusters: [2, 3]
        seeds: 2
        settings:
          stripes: {grid: {lam: [0, 1, 2]}}
    tables:
      table1:
        number: "1"
        title: Stripes
        own: stripes
        match: {fairness: balance, order: lam}
        ours: [random]
      table2:
        number: "2"
        title: One row
    figures:
      fig1:
        plot: front
        title: "Figure 1: balance against cost"
        datasets: [blobs, synthetic]
        methods: [random, stripes]
        n_clusters: [3]
        x: sse
        y: [balance]
        table: "1"
      fig2:
        plot: clusters
        title: "Figure 2: clusters"
        datasets: [synthetic]
        methods: [stripes]
        n_clusters: [2]
        points: true
    claims:
      balanced:
        text: Stripes are balanced.
        check: reaches
        datasets: [synthetic]
        methods: [stripes]
        metrics: [balance]
        options: {level: 0.9}
"""
REPORTED = """table,dataset,n_clusters,lam,method,metric,value
1,blobs,3,1,stripes,sse,1200.0
1,blobs,3,1,stripes,balance,0.50
1,blobs,3,,random,sse,1300.0
1,blobs,3,,random,balance,0.40
1,synthetic,2,1,stripes,sse,400.0
2,synthetic,3,1,stripes,kmedians_cost,300.0
"""
SYNTHETIC = {
    "title": "Synthetic",
    "generator": "fairclust.datasets.synthetic.make_synthetic",
    "n_clusters": 2,
    "scale": "l2",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("project"))
    project.config["datasets"]["synthetic"] = SYNTHETIC
    # This data set and K are run by the project and not by the paper.
    project.config["run"] = {"datasets": ["blobs"], "methods": ["other"], "n_clusters": {}, "seeds": None}
    project.config["report"] |= {"fronts": [], "overview": False, "html": True}
    project.config["score"] = {"dear_max_rows": 0}
    project.write("papers/doe.yaml", PAPER)
    project.write("papers/doe.csv", REPORTED)
    also = ("--config", "also=papers")
    found = SimpleNamespace(project=project)
    found.paper = project.run("doe", *also)
    found.all = project.run(*also)
    return found


def test_the_paper_is_a_target_and_fits_only_its_own_blocks(seen):
    jobs = jobs_of(seen.paper)
    assert (jobs["fit"], jobs["doe"]) == (1, 1)
    assert not {"page", "scores", "board"} & set(jobs)
    assert jobs_of(seen.all)["board"] == 1


def test_its_tables_have_verdicts(seen):
    tables = seen.project.results / "tables"
    verdicts = pd.read_csv(tables / "doe/table1.verdicts.csv")
    assert len(verdicts) >= 5
    for name in ("doe/table1.md", "doe/table1.tex", "doe/claims.md", "scoreboard.md"):
        assert (tables / name).stat().st_size > 0
    text = (tables / "doe/table1.md").read_text()
    assert "Blobs" in text and "1200" in text.replace(",", "").replace(" ", "")


def test_its_figures_are_drawn_with_unscaled_points(seen):
    for name in ("fig1.png", "fig2.png"):
        assert (seen.project.results / "figures/doe" / name).stat().st_size > 1000
    scaled, plane = (
        np.load(seen.project.results / f"data/{kind}/synthetic/X.npy") for kind in ("prepared", "plane")
    )
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1)
    assert np.ptp(np.linalg.norm(plane, axis=1)) > 0.1


def test_the_paper_is_on_the_page(seen):
    page = (seen.project.results / "report/index.html").read_text()
    assert "Fair Clustering of Everything" in page
    assert yaml.safe_load(PAPER)["papers"]["doe"]["tables"]["table1"]["title"] in page
