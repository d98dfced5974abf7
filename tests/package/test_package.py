"""The public names of the package, and the imports that it does not make."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import fairclust

# Neither `import fairclust` nor the command on a CSV file may import these packages.
EXTRAS = (
    *("dask", "jinja2", "matplotlib", "ot", "pooch", "pyarrow", "pydantic", "requests", "ruamel.yaml"),
    *("snakemake", "yaml"),
)


@pytest.mark.parametrize(
    "package, known",
    [
        (fairclust, ""),
        (fairclust.methods, ""),
        (fairclust.datasets, "fetch_dataset"),
        (fairclust.metrics, "METRICS"),
    ],
)
def test_public_names_exist_and_others_are_refused(package, known):
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match=f"has no attribute 'Catalog'.*{known}"):
        _ = package.Catalog


def test_imports_are_lazy_and_need_no_extra():
    code = (
        "import sys, fairclust\n"
        "assert 'numpy' not in sys.modules, 'import fairclust imports numpy'\n"
        "import fairclust.cli.fit, fairclust.cli.predict, fairclust.cli.front, fairclust.plot\n"
        f"print([name for name in {EXTRAS} if name in sys.modules])\n"
    )
    # pandas imports pyarrow and numba imports yaml if they are installed.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(eval(done.stdout)) <= {"pyarrow", "yaml"}


def test_everything_can_be_imported_without_an_extra():
    extras = {*EXTRAS, "distributed", "kmedoids", "pynndescent"} - {"yaml"}
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({extras}))\n"
        "from fairclust import *\n"
        "print(PriceFairKMeans, FrontDisplay, 'balance' in dir(metrics))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("True\n"), done.stderr


def test_the_package_can_be_run_as_the_command():
    done = subprocess.run([sys.executable, "-m", "fairclust", "methods"], capture_output=True, text=True)
    assert done.returncode == 0 and "PriceFairKMeans" in done.stdout, done.stderr


def test_metrics_take_labels_and_groups_as_those_of_fairlearn():
    from fairclust import metrics

    labels = np.array([0, 0, 1, 1, 1, 0])
    sex = pd.Series(["f", "m", "f", "m", "m", "m"])
    table = metrics.contingency(labels, np.array([0, 1, 0, 1, 1, 1]))
    for name, metric in metrics.METRICS.items():
        if metric.needs == "table" and metric.function.__module__ == "fairclust.metrics.fairness":
            function = getattr(metrics, name)
            assert function(labels, sensitive_features=sex) == function(table), name
            assert function(labels.tolist(), sensitive_features=sex.tolist()) == function(table), name
    with pytest.raises(ValueError, match="pass sensitive_features"):
        metrics.balance(labels)
    with pytest.raises(ValueError, match="1 missing value"):
        metrics.balance(labels, sensitive_features=sex.where(sex.index > 0))


def test_polars_frames(grouped_blobs):
    polars = pytest.importorskip("polars")
    X, codes = grouped_blobs(n_samples=60)
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "sex": ["fm"[code] for code in codes]})
    model = fairclust.KMeans(2, random_state=0).fit(frame[["a", "b"]], sensitive_features=frame["sex"])
    assert list(model.groups_) == ["f", "m"]
    assert 0 <= fairclust.metrics.balance(model.labels_, sensitive_features=frame[["sex"]]) <= 1
    two = frame.select("sex", polars.Series("half", ["low", "high"] * 30))
    price = fairclust.PriceFairKMeans(2, random_state=0).fit(frame[["a", "b"]], sensitive_features=two)
    twin = fairclust.PriceFairKMeans(2, random_state=0).fit(X[:, :2], sensitive_features=two.to_pandas())
    np.testing.assert_array_equal(price.labels_, twin.labels_)
    np.testing.assert_array_equal(
        price.predict(frame[["a", "b"]], sensitive_features=two), twin.predict(X[:, :2], two)
    )
