"""Use the installed package in an environment that has only its dependencies.

`make test-wheel` builds the wheel, installs it into an empty environment and runs this there, outside of the source
tree.
"""

import importlib.util
import subprocess
import sys
from importlib.metadata import requires
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import fairclust

# These methods need packages of extras, which are not installed here.
NEED_EXTRAS = {
    "FairletClustering": "ot",
    "FairletTreeClustering": "ot",
    "InterpolatedTransportClustering": "ot",
    "VariationalFairNCut": "pynndescent",
}
# These methods take another kind of input or more than a minute.
OTHER_INPUT = {"FairSpectralClustering", "SpectralClustering", "FairAlignmentKMeans"}


def check_estimators(X: np.ndarray, sex: np.ndarray) -> None:
    for name in fairclust.methods.__all__:
        if name in OTHER_INPUT:
            continue
        try:
            model = getattr(fairclust, name)(3).fit(X, sensitive_features=sex)
        except ModuleNotFoundError as error:
            assert NEED_EXTRAS.get(name) == error.name, f"{name} needs {error.name}"
            continue
        balance = fairclust.metrics.balance(model.labels_, sensitive_features=sex)
        print(f"{name}: balance {balance:.3f}")


def check_data_sets() -> None:
    assert files("fairclust.datasets").joinpath("catalogue", "adult.yaml").is_file()
    try:
        _ = fairclust.datasets.fetch_dataset
    except ModuleNotFoundError as error:
        assert "pip install 'fairclust[datasets]'" in str(error), error
    else:
        raise AssertionError("fetch_dataset works without its extra: the environment is not empty")


def check_command(X: np.ndarray, sex: np.ndarray, folder: Path) -> None:
    table, model, out = folder / "people.csv", folder / "people.fairclust", folder / "labels.csv"
    pd.DataFrame(X, columns=["age", "income"]).assign(sex=sex, id=range(len(X))).to_csv(table, index=False)
    command = [str(Path(sys.executable).with_name("fairclust"))]
    options = ["--sensitive", "sex", "--n-clusters", "3", "--id", "id"]
    subprocess.run([*command, "fit", table, *options, "--save", model, "--out", out], check=True)
    subprocess.run(
        [*command, "audit", out, table, "--sensitive", "sex", "--report", folder / "audit.html"], check=True
    )
    written = ["--out", folder / "front.csv", "--report", folder / "front.html"]
    subprocess.run([*command, "front", table, *options, *written], check=True)
    subprocess.run([*command, "predict", model, table, "--out", folder / "new.csv"], check=True)
    assert len(pd.read_csv(folder / "new.csv")) == len(pd.read_csv(out)) == len(X)
    subprocess.run([*command, "methods"], check=True)
    done = subprocess.run([*command, "status"], capture_output=True, text=True)
    assert done.returncode == 2 and "pip install 'fairclust[pipeline]'" in done.stderr, done.stderr


def main() -> None:
    needed = [line for line in requires("fairclust") or [] if "extra ==" not in line]
    wanted = [
        "cyclopts",
        "jinja2",
        "numba",
        "numpy",
        "pandas",
        "rich",
        "scikit-learn",
        "scipy",
        "threadpoolctl",
    ]
    assert sorted(line.partition(">")[0] for line in needed) == wanted
    for package in ("snakemake", "pyarrow", "pydantic", "matplotlib"):
        assert importlib.util.find_spec(package) is None, f"{package} is here: the environment is not empty"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    sex = np.where(X[:, 0] + rng.normal(size=300) > 0, "m", "f")
    check_data_sets()
    check_estimators(X, sex)
    with TemporaryDirectory() as folder:
        check_command(X, sex, Path(folder))


main()
