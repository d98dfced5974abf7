"""Names of the tables and figures that can be made; imports nothing heavy, for the Snakefile reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper: its place among the reported numbers, and what to say about it.

    Attributes
    ----------
    paper, table, title : str
    own : str
        The paper's own method: its reported fairness error is the level for methods beyond the paper.
    beyond : tuple of str
        Methods of this project that stand beside the paper's, without reported numbers.
    stand_ins : mapping
        Data sets of the paper to those that stand in for them, in a row of their own.
    """

    paper: str
    table: str
    title: str
    own: str
    beyond: tuple[str, ...] = ()
    stand_ins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FigureKind:
    """A figure that is drawn once per data set.

    Attributes
    ----------
    stem : str
        File name; ``{dataset}`` is filled in.
    plot : str
        Which of `fairclust.report.figures.PLOTS` draws it.
    method, cost : str
        The method and the metric that it shows, where the plot is about one.
    datasets : tuple of str
        The only data sets that it is drawn for; empty: all of the run.
    """

    stem: str
    plot: str
    method: str = ""
    cost: str = ""
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Names:
    """What readers see instead of the names in the configuration."""

    datasets: Mapping[str, str]
    methods: Mapping[str, str]
    families: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> Names:
        """The names in a configuration, given as plain data."""
        datasets, methods = config.get("datasets", {}), config.get("methods", {})
        return cls(
            {
                name: spec["title"] + (f" ({spec['shown']})" if spec.get("shown") else "")
                for name, spec in datasets.items()
            },
            {name: spec.get("label") or name for name, spec in methods.items()},
            {name: spec.get("family") or "other" for name, spec in methods.items()},
        )

    def dataset(self, name: str) -> str:
        return self.datasets.get(name, name)

    def method(self, name: str) -> str:
        return self.methods.get(name, METHODS_ELSEWHERE.get(name, name))


# Columns of the papers whose methods a run may not have.
METHODS_ELSEWHERE = {
    "bera": "Bera et al. 2019",
    "backurs": "Backurs et al. 2019",
    "fair_sc": "Kleindessner et al. 2019",
    "vfc_kmeans": "VFC K-means",
    "vfc_kmedians": "VFC K-medians",
    "vfc_ncut": "VFC Ncut",
}
_STAND_INS = {"census_ii": "census_like"}
PAPER_TABLES = {
    "vfc_table2": PaperTable(
        "vfc", "2", "Fair K-medians against Backurs et al. 2019", "vfc_kmedians", stand_ins=_STAND_INS
    ),
    "vfc_table3": PaperTable(
        "vfc",
        "3",
        "Fair K-means against Bera et al. 2019",
        "vfc_kmeans",
        beyond=("vfc_kmeans_accelerated",),
        stand_ins=_STAND_INS,
    ),
    "vfc_table4": PaperTable(
        "vfc", "4", "Fair Ncut against Kleindessner et al. 2019", "vfc_ncut", stand_ins=_STAND_INS
    ),
}
TABLES = ("overview", "reproduction", *PAPER_TABLES)
_VFC = (("kmeans", "sse"), ("kmedians", "kmedians_cost"), ("ncut", "ncut"))
FIGURES = {
    "front": FigureKind("front_{dataset}", "front"),
    **{
        f"vfc_fig1_{name}": FigureKind(
            f"vfc_fig1_{{dataset}}_{name}", "convergence", f"vfc_{name}", cost, ("synthetic",)
        )
        for name, cost in _VFC
    },
    **{
        f"vfc_fig2_{name}": FigureKind(f"vfc_fig2_{{dataset}}_{name}", "lam_tradeoff", f"vfc_{name}", cost)
        for name, cost in _VFC
    },
    **{
        f"vfc_fig3_{name}": FigureKind(
            f"vfc_fig3_{{dataset}}_{name}", "cost_by_k", f"vfc_{name}", cost, ("bank_3_by_k",)
        )
        for name, cost in _VFC
    },
}


def figure_requests(kinds: Iterable[str], datasets: Iterable[str]) -> dict[str, tuple[str, str]]:
    """File stem to (kind, data set), for every figure of every data set that it is made for."""
    datasets = list(datasets)
    return {
        FIGURES[kind].stem.format(dataset=dataset): (kind, dataset)
        for kind in kinds
        for dataset in datasets
        if not FIGURES[kind].datasets or dataset in FIGURES[kind].datasets
    }
