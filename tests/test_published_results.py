"""The results in docs/results belong to the present configuration."""

import json
from pathlib import Path

import pandas as pd
import pytest

import run_crate
from fairclust.report.redaction import redact_text

PUBLISHED_MB = 8


@pytest.fixture(scope="module")
def folder(root):
    found = root / "docs" / "results"
    if not found.is_dir():
        pytest.skip("no results are published yet: run snakemake, then fairclust publish")
    return found


def test_the_published_results_are_of_this_configuration(folder, inputs):
    origin = json.loads((folder / "provenance.json").read_text())
    assert origin["config"]["digest"] == inputs.configuration_digest(), (
        "the configuration has changed since the results were published: run snakemake, then fairclust publish"
    )


def test_every_table_of_every_paper_is_published(folder, inputs):
    for paper in inputs.shown:
        files = [file for file in inputs.tables_of(paper) if file.endswith(".md")]
        for file in files:
            assert "| " in (folder / Path(file).relative_to(inputs.results)).read_text(), file
    assert (folder / "tables" / "scoreboard.md").is_file()
    assert (folder / "report" / "index.html").is_file()


def test_the_crate_names_every_file_and_every_source(folder, inputs):
    crate = run_crate.checked(folder)
    assert crate["./"]["license"] == {"@id": "https://spdx.org/licenses/MIT"}
    read = run_crate.inputs_of(crate)
    for name in (Path(place).name for place in inputs.sources()):
        stated = inputs.source_spec(name)
        digest = stated.member_sha256 if stated.member else stated.sha256
        assert name not in read or digest in ("unknown", read[name])
    assert {
        Path(path).name for paper in inputs.config.run.papers for path in inputs.config.papers[paper].files
    } <= set(read)


def test_every_cell_of_the_plan_has_a_row(folder, inputs):
    scores = pd.read_parquet(folder / "scores" / "scores.parquet")
    rows = set(zip(scores.dataset, scores.method, scores.n_clusters, strict=True))
    assert {(block.dataset, block.method, block.n_clusters) for block in inputs.blocks} == rows


def test_the_published_files_are_small_and_name_no_folder_of_a_machine(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < PUBLISHED_MB * 1e6
    for path in files:
        if path.suffix in (".md", ".json"):
            text = path.read_text()
            assert redact_text(text) == text, path
