"""The paper that the page on the configuration shows, in a folder of a user, with a figure of points."""

import yaml

from documentation import example_paper

METHODS = {
    "vfc_kmeans": {"class": "fairclust.methods.VariationalFairKMeans"},
    "price_kmeans": {"class": "fairclust.methods.PriceFairKMeans", "ours": True},
}
SYNTHETIC = {"generator": "fairclust.datasets.synthetic.make_synthetic", "n_clusters": 2, "scale": "l2"}
POINTS = {"plot": "clusters", "title": "Figure 2: clusters", "datasets": ["synthetic"]}


def add_paper(project):
    """Write the paper and what it reports, and add the data sets and methods that it runs to the configuration."""
    text, values = example_paper()
    paper = yaml.safe_load(text)
    paper["papers"]["doe"]["figures"]["fig2"] = POINTS | {"methods": ["vfc_kmeans"], "n_clusters": [2]}
    dense = {"sweep": "dense", "seeds": 1, "settings": {"vfc_kmeans": {"grid": {"lam": [3]}}}}
    paper["papers"]["doe"]["experiments"].append(
        {"datasets": ["synthetic"], "methods": ["vfc_kmeans"]} | dense
    )
    project.write("papers/doe.yaml", yaml.safe_dump(paper))
    project.write("papers/doe.csv", values)
    blobs = project.config["datasets"]["blobs"]
    project.config["datasets"] |= {"synthetic": {"title": "Synthetic"} | SYNTHETIC, "toy_blobs": blobs}
    project.config["methods"] |= METHODS
    project.config["catalogues"] = ["papers"]
    project.config["run"]["papers"] = ["doe"]
