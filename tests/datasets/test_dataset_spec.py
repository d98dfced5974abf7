"""Entries of data sets and sources that the configuration accepts or refuses."""

import pytest
from pydantic import ValidationError

from fairclust.datasets.spec import Catalogue, DatasetSpec, SensitiveSpec, SourceSpec

URL = "https://example.org/a.csv"
HASH = "0" * 64
SOURCE = {"file": "a/b.csv", "urls": [URL], "sha256": HASH, "licence": "CC0"}
TABLE = {"title": "T", "source": "s", "sensitive": {"column": "sex"}, "n_clusters": 3}
GENERATED = {"title": "T", "generator": "pkg.mod.make", "n_clusters": 3}


OF_SOURCE = [
    *(
        ({"file": name}, "must be a relative path")
        for name in ("/a.csv", "a/../../b.csv", "a\\b.csv", "C:/b.csv", "", "../a")
    ),
    *(({"file": name}, "cannot be printed") for name in ("a\0b", "a\nb")),
    *(
        ({"urls": [f"{url}.org/a"]}, "must be an https URL")
        for url in ("http://example", "ftp://example", "http://127.0.0.1.example")
    ),
    ({"urls": []}, "needs 'urls'"),
    ({"sha256": None}, "needs 'sha256'"),
    ({"licence": None}, "needs 'licence'"),
    ({"member": "m"}, "needs 'member_sha256'"),
    ({"member_sha256": HASH}, "needs 'member'"),
    ({"path": "mine.csv"}, "either 'file'"),
    ({"file": None, "path": "mine.csv"}, "has no 'urls' and no 'member'"),
    ({"file": None}, "either 'file'"),
]
OF_COLUMN = [
    ({"groups": {"a": [1]}}, "at least two groups"),
    ({"groups": {"a": "*", "b": "*"}}, "only one group may be"),
    ({"groups": {"a": [1], "b": [1, 2]}}, "value '1' is listed in both 'a' and 'b'"),
    ({"groups": {"a": [], "b": [1]}}, "lists no value"),
    ({"groups": {"a": [True], "b": "*"}}, "boolean True; put it in quotes"),
]
OF_TABLE = [
    ({"generator": "a.b"}, "either 'source' or 'generator'"),
    ({"source": None}, "either 'source' or 'generator'"),
    ({"sensitive": None}, "needs 'sensitive'"),
    ({"params": {"a": 1}}, "belongs to a generator"),
    ({"features": []}, "in 'features', 'ordered' or 'categorical'"),
    ({"reader": {"encoding": "utf-99"}}, "unknown encoding"),
    ({"reader": {"names": ["a"]}}, "without header"),
    ({"source": None, "generator": "os; rm", "sensitive": None}, "pattern"),
    ({"source": None, "generator": "a.b", "features": ["a"]}, "has no features, sensitive"),
]
REFUSED = [
    *((SourceSpec, SOURCE | changes, message) for changes, message in OF_SOURCE),
    *((SensitiveSpec, {"column": "c"} | changes, message) for changes, message in OF_COLUMN),
    *((DatasetSpec, TABLE | changes, message) for changes, message in OF_TABLE),
]


@pytest.mark.parametrize(("model", "entry", "message"), REFUSED)
def test_wrong_entries_are_refused(model, entry, message):
    with pytest.raises(ValidationError, match=message):
        model.model_validate(entry)


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost:8000", "[::1]:8000", "127.8.8.8"])
def test_http_on_loopback(host):
    assert SourceSpec.model_validate(SOURCE | {"urls": [f"http://{host}/a"]})


@pytest.mark.parametrize(
    ("scale", "steps"),
    [
        ("l2", ("standardize", "l2")),
        (["l2"], ("l2",)),
        ([], ()),
    ],
)
def test_scale_words(scale, steps):
    assert DatasetSpec.model_validate(TABLE | {"scale": scale}).scale == steps


def test_catalogue_names_the_nearest_source():
    with pytest.raises(ValidationError, match="unknown source 'addult'; did you mean 'adult'"):
        Catalogue.model_validate(
            {"sources": {"adult": SOURCE}, "datasets": {"d": TABLE | {"source": "addult"}}}
        )


def test_sources_of_a_data_set():
    inline = {"path": "g.csv"}
    both = TABLE | {"source": {"path": "a.csv"}, "sensitive": {"column": 0, "source": inline}}
    catalogue = Catalogue.model_validate(
        {"sources": {"s": SOURCE}, "datasets": {"own": both, "named": TABLE, "made": GENERATED}}
    )
    assert list(catalogue.sources_of("own")) == ["own", "own.groups"]
    assert catalogue.sources_of("own")["own.groups"].path == "g.csv"
    assert list(catalogue.sources_of("named")) == ["s"]
    assert catalogue.sources_of("made") == {}


def test_schema_describes_every_key():
    schema = Catalogue.model_json_schema()
    for model in schema["$defs"].values():
        assert all("description" in key for key in model["properties"].values())
