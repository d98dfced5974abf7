"""A data set with two sensitive columns, from its table to the page."""

import json

import pandas as pd

from working_folder import Project

METHODS = {
    "kmeans": {"class": "fairclust.methods.KMeans", "label": "k-means"},
    "vfc": {"class": "fairclust.methods.VariationalFairKMeans", "params": {"lam": 50.0}},
    "price": {
        "class": "fairclust.methods.PriceFairKMeans",
        "params": {"tolerance": {"sex": 0.1, "race": 0.2}},
    },
    "bera": {"class": "fairclust.methods.BeraFairKMeans", "params": {"tolerance": 0.2}},
}
TABLE = "sex,race,x,y\n" + "".join(
    f"{'fm'[i % 2]},{'abc'[i % 7 % 3]},{i % 13 + i % 2},{i * i % 17 + 2 * (i % 7 % 3)}\n" for i in range(420)
)


def test_each_column_counts_and_is_shown(tmp_path):
    project = Project(tmp_path / "project")
    project.write("people.csv", TABLE)
    project.config["datasets"] = {
        "people": {
            "title": "People",
            "source": {"path": "people.csv"},
            "sensitive": [{"column": "sex"}, {"column": "race"}],
            "n_clusters": 4,
        }
    }
    project.config["methods"] = METHODS
    project.config["run"] = {"datasets": ["people"], "methods": list(METHODS), "seeds": 1}
    project.config["report"] = {"fronts": [], "formats": ["png"], "html": True}
    project.run()
    cells = project.cells().set_index("method")
    assert set(cells.status) == {"ok"}
    scores = pd.read_parquet(project.results / "scores/scores.parquet").set_index("method")
    for method in METHODS:
        each = json.loads(scores.by_column[method])
        assert list(each) == ["sex", "race"]
        for metric, worst in (("balance", min), ("fairness_error", max)):
            assert scores[metric][method] == worst(of[metric] for of in each.values())
    # Each column is within its own bound, up to whole rows.
    price = json.loads(scores.by_column["price"])
    assert price["sex"]["fairness_ratio"] >= 0.88 and price["race"]["fairness_ratio"] >= 0.78
    page = (project.results / "report/index.html").read_text()
    assert "Sensitive column" in page and ">race<" in page
