"""The figures of papers and of a run, drawn from cells, their steps and their labels. No method is fitted here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fairclust.pipeline.papers import FigureSpec, MatchSpec
from fairclust.report.figures.clusters import plot_clusters, plot_group_shares
from fairclust.report.figures.drawing import FigureData, Sheet
from fairclust.report.figures.fronts import plot_bands, plot_front
from fairclust.report.figures.lines import plot_by_size, plot_cost_by_k, plot_lam_tradeoff, plot_metric_by_k
from fairclust.report.figures.steps import plot_convergence, plot_terms
from fairclust.report.material import Material

PLOTS: dict[str, Callable[[FigureData], Sheet]] = {
    "front": plot_front,
    "bands": plot_bands,
    "lam_tradeoff": plot_lam_tradeoff,
    "cost_by_k": plot_cost_by_k,
    "metric_by_k": plot_metric_by_k,
    "by_size": plot_by_size,
    "convergence": plot_convergence,
    "terms": plot_terms,
    "clusters": plot_clusters,
    "group_shares": plot_group_shares,
}
"""The plots that a figure of a paper can name."""

NEEDS_Y = ("front", "bands", "lam_tradeoff", "cost_by_k", "metric_by_k", "by_size")
NEEDS_X = ("front", "bands")


def make_figure(
    material: Material, spec: FigureSpec, match: MatchSpec | None, stem: Path, formats: Sequence[str]
) -> None:
    """Draw a figure and write it as `stem` with each of the endings in `formats` (png, pdf, svg).

    `match` says how the table that `spec.table` names chooses settings. Only the data sets, methods and K that `spec`
    names are drawn.
    """
    cells = material.cells
    mine = cells.dataset.isin(spec.datasets)
    if spec.methods:
        mine &= cells.method.isin(spec.methods)
    if spec.n_clusters:
        mine &= cells.n_clusters.isin(spec.n_clusters)
    figure = FigureData(**{**vars(material), "cells": cells[mine]}, spec=spec, match=match)
    PLOTS[spec.plot](figure).save(stem, formats)
