"""Snakemake's cache between workflows: two working folders share one download and one preparation."""

import pytest

from working_folder import FAR, QUIET, TABLE, Project, table_of


@pytest.fixture
def shared(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(cache))
    return cache


def reader_of(folder):
    """Return a project that downloads one table and fits its points and its graph."""
    project = Project(folder)
    project.config["sources"] = {"far": FAR}
    project.config["datasets"] = {"far": table_of("far")}
    project.config["run"] = {"datasets": ["far"], "methods": ["random", "cutter"], "seeds": 1}
    project.add_cutter()
    project.config["report"] = QUIET
    return project


@pytest.mark.slow
def test_two_folders_share_download_preparation_and_graph_but_no_failure(tmp_path, shared):
    first, second = reader_of(tmp_path / "first"), reader_of(tmp_path / "second")
    assert "source 'far'" in first.run("--cache", code=1)
    assert list(shared.iterdir()) == []
    mirror = first.write("mirror/far/far.csv", TABLE).parents[1]
    first.run("--cache", "--config", f"mirror={mirror}")
    assert len(list(shared.iterdir())) == 3
    (mirror / "far/far.csv").unlink()
    second.run("--cache", "--config", f"mirror={mirror}")
    assert second.scores() == first.scores()
    for kind in ("raw", "prepared", "graphs"):
        entry = next((second.folder / "results/data" / kind / "far").glob("[a-z]*"))
        assert shared in entry.resolve().parents, kind
    assert "Nothing to be done" in second.run("--cache", "--config", f"mirror={mirror}")
