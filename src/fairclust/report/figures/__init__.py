"""The figures of papers and of a run, drawn from cells, their steps and their labels. No method is fitted here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairclust.pipeline.papers import FigureSpec, MatchSpec
from fairclust.report.figures.clusters import draw_clusters, draw_group_shares
from fairclust.report.figures.drawing import FigureData, Plot
from fairclust.report.figures.fronts import draw_bands, draw_front
from fairclust.report.figures.lines import (
    draw_cost_by_k,
    draw_lam_tradeoff,
    draw_metric_by_k,
    draw_metric_by_size,
    draw_steps,
)
from fairclust.report.material import Material

PLOTS = {
    # A data set and K with at most two methods, as in a sweep over K, allows few comparisons.
    "front": Plot(draw_front, (3.7, 2.9), ("x", "y"), metrics=(), least_methods=3),
    "bands": Plot(
        draw_bands, (3.0, 2.5), ("x", "y"), ks="first", methods=True, metrics=(), row_per_dataset=True
    ),
    "lam_tradeoff": Plot(draw_lam_tradeoff, (3.1, 2.5), ("y",), methods=True),
    "cost_by_k": Plot(draw_cost_by_k, (3.5, 2.7), ("y",), ks="joined", methods=True, metrics=()),
    "metric_by_k": Plot(draw_metric_by_k, (3.5, 2.7), ("y",), ks="joined", metrics=()),
    "by_size": Plot(draw_metric_by_size, (3.5, 2.7), ("y",), metrics=(), joined=True),
    "convergence": Plot(draw_steps, (3.0, 2.4), methods=True, metrics=("objective",)),
    "terms": Plot(
        draw_steps, (3.0, 2.4), ks="first", methods=True, metrics=("clustering", "fairness"), per_row=4
    ),
    "clusters": Plot(draw_clusters, (2.6, 2.4), ks="first", methods=True, row_per_dataset=True),
    "group_shares": Plot(draw_group_shares, (3.0, 2.4), ks="first", methods=True, per_row=4),
}
"""The plots that a figure of a paper can name."""


def make_figure(
    material: Material, spec: FigureSpec, match: MatchSpec | None, stem: Path, formats: Sequence[str]
) -> None:
    """Draw a figure and write it as `stem` with each of the endings in `formats` (png, pdf, svg).

    `match` says how the table that `spec.table` names chooses settings. The cells are those that the figure needs.
    """
    FigureData(**vars(material), spec=spec, match=match).draw(PLOTS[spec.plot]).save(stem, formats)
