"""Small configurations for tests of the plan."""

from pathlib import Path

from fairclust.pipeline.config import read_catalogues, read_yaml

CONFIG = Path(__file__).parents[1] / "config"

GENERATED = {"title": "A", "generator": "fairclust.datasets.synthetic.make_synthetic", "n_clusters": 2}


def small_config(**sections):
    """Return a configuration with one data set and one method. `sections` replace whole parts of it."""
    return {
        "run": {"datasets": ["a"], "methods": ["m"]},
        "datasets": {"a": GENERATED},
        "methods": {"m": {"class": "fairclust.methods.KMeans"}},
        **sections,
    }


def shipped_in(folder):
    """Return the configuration of a checkout before its catalogues are read."""
    raw = read_yaml(folder / "config/config.yaml")
    return {**raw, "catalogues": [str(folder / place) for place in raw["catalogues"]]}


def small_paper(**changes):
    return {
        "short_name": "Doe",
        "citation": "Doe: Clusters, 2030",
        "experiments": [{"datasets": ["a"], "methods": ["m"]}],
        **changes,
    }


def shipped_sections():
    """Return the shipped configuration without its catalogues, and what is in these, by section."""
    raw = read_yaml(CONFIG / "config.yaml")
    del raw["catalogues"]
    return raw, read_catalogues([*map(str, sorted(CONFIG.glob("*s")))])[0]
