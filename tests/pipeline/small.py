"""Small configurations for tests of the plan."""

GENERATED = {"title": "A", "generator": "fairclust.datasets.synthetic:make_synthetic", "n_clusters": 2}


def small_config(**sections):
    """Return a configuration with one data set and one method. `sections` replace whole parts of it."""
    return {
        "run": {"datasets": ["a"], "methods": ["m"]},
        "datasets": {"a": GENERATED},
        "methods": {"m": {"class": "fairclust.methods.KMeans"}},
        **sections,
    }


def small_paper(**changes):
    return {
        "short_name": "Doe",
        "citation": "Doe: Clusters, 2030",
        "year": 2030,
        "experiments": [{"datasets": ["a"], "methods": ["m"]}],
        **changes,
    }
