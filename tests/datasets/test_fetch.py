"""Data sets of the catalogue as data frames."""

from unittest import mock

import pandas as pd
import pytest

from fairclust import datasets
from fairclust.datasets.fetch import shipped_catalogue


def test_the_package_has_the_catalogue_of_the_pipeline(catalogue):
    assert datasets.list_datasets() == sorted(catalogue.datasets)
    shipped = shipped_catalogue()
    assert shipped.sources == catalogue.sources
    for name, spec in shipped.datasets.items():
        assert spec.model_dump() == catalogue.datasets[name].model_dump(include=set(spec.model_dump())), name


def test_a_generated_data_set_needs_no_file(tmp_path):
    X, group = datasets.fetch_dataset("synthetic", data_home=tmp_path)
    assert isinstance(X, pd.DataFrame) and X.attrs["title"] == "Synthetic"
    assert group.name == "group" and group.value_counts().tolist() == [200, 200]
    assert not any(tmp_path.iterdir())


@pytest.mark.mirror
def test_adult_from_a_mirror_and_then_from_the_data_home(mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRCLUST_MIRROR", str(mirror))
    monkeypatch.setenv("FAIRCLUST_DATA", str(tmp_path))
    X, sex = datasets.fetch_dataset("adult")
    assert list(X) == ["age", "fnlwgt", "education-num", "capital-gain", "hours-per-week"]
    assert X.age.between(17, 90).all()
    assert sex.name == "sex" and sex.value_counts().to_dict() == {"male": 21790, "female": 10771}
    assert X.attrs["licences"] == ["CC BY 4.0"]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["adult.data"]
    monkeypatch.delenv("FAIRCLUST_MIRROR")
    mixed, again = datasets.fetch_dataset("adult_mixed")  # without a mirror or a network to fetch it from
    assert mixed.shape == (32561, 12) and again.equals(sex)
    assert mixed["workclass"].dtype == "category" and "Private" in mixed["workclass"].cat.categories


def test_unavailable_data_sets_give_an_error(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="there is no data set 'adlut'; did you mean 'adult'"):
        datasets.fetch_dataset("adlut")
    monkeypatch.setattr(
        datasets.download,
        "_download",
        mock.Mock(side_effect=datasets.download._PlaceFailed("there is no network")),
    )
    with pytest.raises(datasets.SourceUnavailable, match=r"adult/adult\.data"):
        datasets.fetch_dataset("adult", data_home=tmp_path, mirror=tmp_path / "nowhere")


def test_the_data_home(tmp_path, monkeypatch):
    monkeypatch.delenv("FAIRCLUST_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.get_data_home() == tmp_path / "fairclust_data"
    monkeypatch.setenv("FAIRCLUST_DATA", str(tmp_path / "elsewhere"))
    assert datasets.get_data_home() == tmp_path / "elsewhere"
    assert datasets.get_data_home("here").name == "here"
