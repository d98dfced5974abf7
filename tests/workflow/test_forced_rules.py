"""Snakemake's own options that force fits, pruning, and fits that are taken from other results folders."""

import shutil
from types import SimpleNamespace

import pytest

from working_folder import QUIET, Project, jobs_of, newly_fitted


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def forced(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("project"))
    project.config["report"] = QUIET
    # Other memory than the default's gives the method a job of its own.
    project.config["methods"]["stripes"]["jobs"] = {"mem_mb": 1000}
    seen = SimpleNamespace(project=project)
    project.run()
    seen.first = project.cells()
    seen.scores = [project.scores()]
    project.run("-f", "results/fits/blobs/stripes-k3.cells", "results/scores/runs.parquet")
    seen.one = project.cells()
    project.run("-R", "fit")
    seen.rule = project.cells()
    seen.scores.append(project.scores())

    # A narrower configuration: the fits that it does not ask for stay until they are pruned.
    project.config["methods"]["stripes"]["grid"]["lam"] = [0]
    project.config["run"]["methods"] = ["stripes"]
    project.run()
    seen.fits = files(project.results / "fits")
    seen.would = project.fairclust("status").splitlines()
    seen.untouched = files(project.results / "fits")
    seen.pruned = project.fairclust("status", "--prune").splitlines()
    seen.left = files(project.results / "fits")
    seen.dry = project.run("-n")
    before = project.cells()
    shutil.rmtree(project.results / "data/prepared/blobs")
    project.run()
    seen.fitted_for_data = newly_fitted(project.cells(), before)
    seen.verified = project.fairclust("verify", "results").splitlines()
    project.config["methods"]["stripes"]["grid"]["lam"] = [0, 1]
    project.run()
    seen.wider = project.cells()

    project.run("--delete-all-output")
    seen.deleted = files(project.results)
    return seen


def test_forcing_a_job_fits_only_its_cells_again(forced):
    new = newly_fitted(forced.one, forced.first)
    assert set(new.method) == {"stripes"}
    assert len(new) == 4


def test_forcing_the_rule_fits_all_again_with_the_same_scores(forced):
    assert len(newly_fitted(forced.rule, forced.one)) == 6
    assert forced.scores[0] == forced.scores[1]


def test_prune_removes_unused_fits_and_leaves_nothing_to_run(forced):
    assert forced.fits == forced.untouched == {"blobs/random-k3.cells", "blobs/stripes-k3.cells"}
    assert forced.left == {"blobs/stripes-k3.cells"}
    assert (
        forced.would[1:-1]
        == forced.pruned[:-1]
        == [
            "results/fits/blobs/random-k3.cells: belongs to no job of the configuration",
            "results/cells: 4 cells that are not asked for",
        ]
    )
    assert forced.pruned[-1].endswith(" MB removed")
    assert "Nothing to be done" in forced.dry


def test_prepared_data_that_are_deleted_are_made_again_without_a_fit(forced):
    assert not len(forced.fitted_for_data)
    assert "all digests match" in forced.verified[0]


def test_pruned_fits_are_made_again(forced):
    new = newly_fitted(forced.wider, forced.rule)
    assert new[["lam", "seed"]].values.tolist() == [[1, 0], [1, 1]]


def test_deleting_all_output_leaves_only_finished_fits(forced):
    assert {name.partition("/")[0] for name in forced.deleted} == {"logs", "cells"}


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """Run into two results folders, and then into a third that asks for the fits of both and makes none."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.config["report"] = QUIET
    seen = SimpleNamespace(project=project)
    for name, lams in (("a", [0, 1]), ("b", [1, 2])):
        project.config["results"] = name
        project.config["methods"]["stripes"]["grid"]["lam"] = lams
        project.run()
        setattr(seen, name, project.cells())
    project.config |= {"results": "c", "reuse": ["a", "b"]}
    project.config["methods"]["stripes"]["grid"]["lam"] = [0, 1, 2]
    seen.output = project.run()
    seen.c = project.cells()
    return seen


@pytest.mark.slow
def test_fits_of_other_results_folders_are_merged_without_fitting(merged):
    assert jobs_of(merged.output)["fit"] == 1
    assert "0 cells fitted in this run, 8 taken as they were" in merged.output
    assert len(merged.c) == 2 + 3 * 2
    assert merged.c.finished.isin([*merged.a.finished, *merged.b.finished]).all()
    assert set(merged.c.status) == {"ok"}
