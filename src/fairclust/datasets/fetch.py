"""Data sets of the catalogue as data frames. They are downloaded once, checked and read, and not scaled."""

from __future__ import annotations

import os
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.messages import nearest

try:
    from ruamel.yaml import YAML

    from fairclust.datasets.download import fetch_source
    from fairclust.datasets.prepare import prepare_dataset
    from fairclust.datasets.spec import Catalogue, DatasetSpec
    from fairclust.datasets.store import PreparedDataset
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"fetching data sets needs the package {missing.name}: pip install 'fairclust[datasets]'",
        name=missing.name,
    ) from None

# Environment variables: a folder or base URL that is tried before the original addresses, and the folder of downloads.
MIRROR = "FAIRCLUST_MIRROR"
DATA_HOME = "FAIRCLUST_DATA"


@cache
def shipped_catalogue() -> Catalogue:
    """The data sets that come with the package, which are the entries of `config/datasets`."""
    found: dict[str, dict[str, Any]] = {"sources": {}, "datasets": {}}
    folder = resources.files("fairclust.datasets").joinpath("catalogue")
    for file in folder.iterdir():
        if file.name.endswith(".yaml"):
            content = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
            for section, entries in found.items():
                entries.update(content.get(section, {}))
    for entry in found["datasets"].values():
        entry.pop("settings", None)  # parameters of methods, which only the pipeline knows
    return Catalogue.model_validate(found)


def get_data_home(data_home: str | Path | None = None) -> Path:
    """The folder in which downloads are kept.

    Parameters
    ----------
    data_home : path, optional
        Default: the environment variable ``FAIRCLUST_DATA``, or else ``~/fairclust_data``.

    Returns
    -------
    Path
        The folder may not exist yet.
    """
    return Path(data_home or os.environ.get(DATA_HOME) or "~/fairclust_data").expanduser()


def fetch_dataset(
    name: str, *, data_home: str | Path | None = None, mirror: str | Path | None = None
) -> tuple[Any, pd.Series]:
    """Load a data set of the catalogue. Its files are downloaded if they are not there yet.

    Parameters
    ----------
    name : str
        A name from `list_datasets`, such as 'adult', 'bank_2' or 'lastfm'.
    data_home : path, optional
        The folder of downloads, see `get_data_home`.
    mirror : path or URL, optional
        A folder or base URL that is tried before the original addresses. Default: the environment variable
        ``FAIRCLUST_MIRROR``. The SHA-256 of the file is checked wherever it comes from.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        Columns of numbers, then columns of dtype category. For a graph, X is the sparse matrix of its edges, of
        shape (n_samples, n_samples). ``X.attrs`` of a data frame holds the title and, unless the data are
        generated, the licences and home pages of the files.
    sensitive_features : Series of shape (n_samples,), or DataFrame of shape (n_samples, n_columns)
        The group of every row, of dtype category. If there are several sensitive columns, a DataFrame of all of them.
        A sensitive column of numbers, such as an age, has its numbers.

    Raises
    ------
    ValueError
        `name` is not in the catalogue.
    SourceUnavailable
        No address gave the file with the right hash. The message lists every address and why it failed.

    Examples
    --------
    >>> from fairclust.datasets import fetch_dataset
    >>> X, sex = fetch_dataset("synthetic")
    >>> X.shape, sex.value_counts().tolist()
    ((400, 2), [200, 200])
    """
    catalogue = shipped_catalogue()
    if name not in catalogue.datasets:
        raise ValueError(f"there is no data set {name!r}; {nearest(name, list_datasets())}")
    spec = catalogue.datasets[name].model_copy(update={"scale": ()})
    sources = catalogue.sources_of(name)
    place = mirror or os.environ.get(MIRROR)
    mirrors = [str(place)] if place else []
    home = get_data_home(data_home)
    paths = {own: fetch_source(own, source, home, mirrors) for own, source in sources.items()}
    data = prepare_dataset(name, spec, paths, sources)
    return (_frame(data) if data.W is None else data.W), _groups(data, spec)


def _groups(data: PreparedDataset, spec: DatasetSpec) -> pd.Series | pd.DataFrame:
    """The sensitive column as a Series, or several as a DataFrame."""
    if data.columns:
        sensitive = data.card["sensitive"]
        coded = {of: pd.Categorical.from_codes(codes, sensitive[of]) for of, codes in data.columns.items()}
        return pd.DataFrame({**coded, **data.numbers})
    for name, numbers in data.numbers.items():
        return pd.Series(numbers, name=name)
    column = next((column.column for column in spec.sensitive_columns), None)
    groups = pd.Categorical.from_codes(data.groups, list(data.group_names))
    return pd.Series(groups, name=column if isinstance(column, str) else "group")


def _frame(data: PreparedDataset) -> pd.DataFrame:
    """The features as a data frame, in which codes of categories are replaced by the categories."""
    frame = pd.DataFrame(data.X, columns=list(data.feature_names))
    for column, values in data.card.get("categories", {}).items():
        if column in frame:
            frame[column] = pd.Categorical.from_codes(frame[column].astype(np.int64), list(values))
    frame.attrs["title"] = data.card["title"]
    sources = data.card.get("sources", [])
    if sources:
        frame.attrs["licences"] = sorted({str(source["licence"]) for source in sources})
        frame.attrs["homepages"] = sorted({source["homepage"] for source in sources if source["homepage"]})
    return frame


def list_datasets() -> list[str]:
    """The sorted names of all data sets that `fetch_dataset` can load."""
    return sorted(shipped_catalogue().datasets)
