"""Plots across data sets, over K, and of the groups' shares."""

import json

import numpy as np
import pandas as pd
import pytest
from frames import cell, frame

from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import FigureSpec
from fairclust.pipeline.reported import NO_VALUES
from fairclust.report.figures import PLOTS, FigureData

NAMES = Names(
    datasets={"lastfm": "LastFMNet"},
    methods={"spectral": "SC", "sfairsc": "s-FairSC"},
    order=["spectral", "sfairsc"],
)


@pytest.fixture
def cells():
    return frame(
        cell(
            dataset, method, k, seed=seed, objective=1.0 + seed, n_rows=int(dataset.partition("_")[2] or 99),
            clustering_error=error + seed / 100, average_balance=0.1 * k,
            counts=json.dumps({"a": [3 + seed] * k, "b": [1] * k, "c": [0] * k}),
        )
        for dataset, ks in (("msbm_1000", (5,)), ("msbm_2000", (5,)), ("lastfm", (2, 3)))
        for method, error in (("spectral", 0.25), ("sfairsc", 0.02))
        for k in ks
        for seed in (0, 1)
    )  # fmt: skip


def sheet(plot, cells, datasets, **more):
    spec = FigureSpec.model_validate({"plot": plot, "title": "T", "datasets": datasets, **more})
    mine = cells[cells.dataset.isin(datasets)]
    no_steps = pd.DataFrame(columns=["key"])
    data = {"tables": {}, "reported": NO_VALUES, "cells": mine, "steps": no_steps, "names": NAMES}
    return PLOTS[spec.plot](FigureData(**data, spec=spec))


def test_one_figure_across_the_sizes_with_a_line_for_each_method(cells):
    found = sheet("by_size", cells, ["msbm_1000", "msbm_2000"], y=["clustering_error", "cpu_seconds"])
    assert list(found.legend) == ["SC", "s-FairSC"]
    error, seconds = found.panels
    # Means over two seeds, with a band of their standard deviation.
    np.testing.assert_allclose(error.lines[1].get_xydata(), [[1000, 0.025], [2000, 0.025]])
    band = error.collections[1].get_paths()[0].vertices[:, 1]
    assert band.max() - band.min() == pytest.approx(2 * np.std([0.02, 0.03], ddof=1))
    assert error.get_ylim()[0] == 0
    assert seconds.get_yscale() == "log"


def test_a_metric_by_k(cells):
    found = sheet("metric_by_k", cells, ["lastfm"], y=["average_balance"])
    np.testing.assert_allclose(found.panels[0].lines[0].get_xydata(), [[2, 0.2], [3, 0.3]])
    assert "lines: means over 2 starts, with a standard deviation to each side" in found.notes


def test_shares_are_those_of_the_best_start(cells):
    found = sheet("group_shares", cells, ["lastfm"])
    assert len(found.panels) == 2
    heights = [bar.get_height() for bar in found.panels[0].patches]
    # Each of the three groups has three bars: one for the whole data and one for each of the two clusters.
    np.testing.assert_allclose(heights, [0.75] * 3 + [0.25] * 3 + [0] * 3)
    assert len({bar.get_x() for bar in found.panels[0].patches}) == 3


def test_shares_without_a_table_are_those_of_the_largest_lambda(cells):
    rows = [
        cell("lastfm", "sfairsc", 2, lam, objective=lam, counts=json.dumps(counts))
        for lam, counts in ((1, {"a": [1, 1], "b": [9, 1]}), (9, {"a": [9, 1], "b": [1, 1]}))
    ]
    found = sheet("group_shares", frame(rows), ["lastfm"])
    assert [bar.get_height() for bar in found.panels[0].patches][1] == pytest.approx(0.9)
    at_one = sheet("group_shares", frame(rows), ["lastfm"], lam=5)
    assert [bar.get_height() for bar in at_one.panels[0].patches][1] == pytest.approx(0.1)


def test_of_several_settings_at_one_lambda_the_lowest_objective_is_drawn(cells):
    other = cells.assign(params='{"x": 1.0}', average_balance=0.9, objective=99.0)
    found = sheet("metric_by_k", pd.concat([cells, other]), ["lastfm"], y=["average_balance"])
    np.testing.assert_allclose(found.panels[0].lines[0].get_ydata(), [0.2, 0.3])
    assert any("lowest objective" in note for note in found.notes)
