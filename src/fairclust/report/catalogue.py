"""Names of the tables and figures that can be made; imports nothing heavy, for the Snakefile reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any


@dataclass(frozen=True)
class Rule:
    """Which setting of a method's grid stands for it: the first in some order that is fair enough.

    Attributes
    ----------
    fairness : str
        The metric that has to reach a level.
    order : "lam" or str
        Smallest lambda first, or a metric: the cheapest first.
    """

    fairness: str = "fairness_error"
    order: str = "lam"


BY_LAM = Rule()


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper: its place among the reported numbers, and what to say about it.

    Attributes
    ----------
    paper, table, title : str
    own : str
        The paper's own method: its reported fairness is the level for methods beyond the paper.
    beyond : tuple of str
        Methods of this project that stand beside the paper's, without reported numbers.
    stand_ins : mapping
        Data sets of the paper to those that stand in for them, in rows of their own.
    rule : Rule
        How settings are chosen; the level is the value that the paper reports.
    level_table : str
        The table of the paper with the values of `rule.fairness`; empty: this one.
    by_method : bool
        A row for every method of a data set instead of columns: for tables with many methods.
    at_lam : bool
        Where the paper prints a lambda the cells of this lambda count, and no level.
    beside : tuple of str
        Columns shown without reported numbers. Relative times are those to the paper's own method.
    remarks : tuple of str
        Sentences printed below the table: what the paper leaves out, why numbers differ.
    """

    paper: str
    table: str
    title: str
    own: str
    beyond: tuple[str, ...] = ()
    stand_ins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rule: Rule = BY_LAM
    level_table: str = ""
    by_method: bool = False
    at_lam: bool = False
    beside: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureKind:
    """A figure that is drawn once per data set.

    Attributes
    ----------
    stem : str
        File name; ``{dataset}`` is filled in.
    plot : str
        Which of the `PLOTS` of `fairclust.report.figures` and `spectral_figures` draws it.
    method, cost : str
        The method and the metric that it shows, where the plot is about one.
    datasets : tuple of str
        The only data sets that it is drawn for; empty: all of the run.
    fairness : str
        The metric that a front shows against the cost.
    lam : float
        The largest lambda that it shows, where it shows one.
    methods : tuple of str
        The only methods that it shows; empty: all of the run.
    table : str
        The table whose reported numbers, or whose choice of settings, it shows.
    plane : bool
        Whether it shows the points themselves, as they are before scaling.
    across : str
        Beginning of the names of data sets that share one figure, instead of a figure for each.
    """

    stem: str
    plot: str
    method: str = ""
    cost: str = ""
    datasets: tuple[str, ...] = ()
    fairness: str = ""
    lam: float = inf
    methods: tuple[str, ...] = ()
    table: str = ""
    plane: bool = False
    across: str = ""


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

    def in_order(self, found: Iterable[str]) -> list[str]:
        """Methods as the configuration lists them, so that each looks alike in all pictures of a run."""
        found = set(found)
        return [name for name in self.methods if name in found] + sorted(found - set(self.methods))


# Columns of the papers whose methods a run may not have.
METHODS_ELSEWHERE = {
    "bera": "Bera et al. 2019",
    "backurs": "Backurs et al. 2019",
    "fair_sc": "Kleindessner et al. 2019",
    "vfc_kmeans": "VFC K-means",
    "vfc_kmedians": "VFC K-medians",
    "vfc_ncut": "VFC Ncut",
    "fscun": "FSCUN",
    "fscn": "FSCN",
    "fac": "FAC",
    "frkm": "FrKM",
    "bfkm": "BFKM",
}
_STAND_INS = {"census_ii": ("census_like",)}
_BFKM = PaperTable(
    "bfkm",
    "III",
    "Clustering fairness",
    "bfkm",
    beyond=("price_kmeans",),
    rule=Rule("fairness_ratio", "sse"),
    by_method=True,
    remarks=(
        "The paper prints neither rho and lambda of FrKM and BFKM nor lambda of VFC: its numbers are points "
        "of fronts, of which the configuration's grids show more (figure bfkm_front).",
        "Here the best of several starts counts: k-means is cheaper than the paper's where that took a worse "
        "optimum, and so are FrKM and BFKM on Diabetic and Bank, where single random starts of one setting "
        "spread over more than the difference, and BFKM on Adult, where they spread over half of it or more.",
        "K-means on Census1990: the cheaper optimum has a cluster that lacks a group, hence FR 0. FAC: the "
        "bounds hold up to a point or two in every cluster, which moves FR where groups have few points.",
    ),
)
_FMC_STAND_INS = {"census_ii": ("census_like", "census_like_full"), "census_ii_std": ("census_like_std",)}
# What tells a fair clustering from components that have collapsed.
_COLLAPSE = ("soft_delta", "min_distance", "n_nonempty")
_FMC = PaperTable(
    "fmc",
    "3",
    "Fair clustering of numeric data",
    "fmc_em",
    beyond=(
        "fmc_smooth",
        "fmc_smooth_calibrated",
        "vfc_kmeans",
        "vfc_kmeans_accelerated",
        "backurs",
        "price_kmeans",
    ),
    rule=Rule("balance", "sse"),
    by_method=True,
    beside=("delta", *_COLLAPSE),
    remarks=(
        "FMC-EM and FMC-GD have the objective of the authors' program, which the paper's numbers come from; "
        "the smoothed variants have that of this project. The table states no lambda.",
        "K-means and the mixtures are single local optima in the paper, here the best of several starts; of "
        "the mixtures the start with the lowest objective counts, which need not be the cheapest.",
        "Components whose means coincide (smallest distance 0) are fair by their responsibilities on any "
        "data, and cost much.",
    ),
)
_FMC_CATEGORICAL = replace(
    _FMC,
    table="5",
    title="Categorical data",
    beyond=("fmc_smooth", "fmc_smooth_calibrated"),
    rule=Rule("balance", "nll"),
    beside=("soft_delta", "n_nonempty"),
    remarks=(
        "NLL is the mean negative log-likelihood of the fitted mixture, as the estimator states it.",
        "FMC-EM and FMC-GD have the objective of the authors' program. The table states no lambda.",
        "The objective holds down Delta of the responsibilities; that of the hard labels, which is beside "
        "the reported one, is larger.",
        "Adult's numbers come about only with sex, the group, among the features; its likeliest mixture "
        "splits by it.",
    ),
)
_FMC_CENSUS = PaperTable(
    "fmc",
    "2",
    "Mini-batches and sub-samples",
    "fmc_minibatch",
    stand_ins=_FMC_STAND_INS,
    rule=Rule("delta", "sse"),
    by_method=True,
    beside=("n_nonempty",),
    remarks=(
        "Seconds are those of the machine that ran the fits, the mean over the starts of the chosen setting; "
        "relative time is to mini-batches on the same data set. Mini-batches and sub-samples have the "
        "smoothed objective.",
        "Generated data stand in for the census; levels are the census' own. Delta is held down on a fixed "
        "sample of the rows; on the others it is larger by a multiple of one over the root of its size "
        "(Proposition 1), so the stand-in of 50,000 rows cannot be as fair as the census.",
    ),
)
PAPER_TABLES = {
    "vfc_table2": PaperTable(
        "vfc", "2", "Fair K-medians against Backurs et al. 2019", "vfc_kmedians", stand_ins=_STAND_INS
    ),
    "vfc_table3": PaperTable(
        "vfc",
        "3",
        "Fair K-means against Bera et al. 2019",
        "vfc_kmeans",
        beyond=("vfc_kmeans_accelerated", "price_kmeans"),
        stand_ins=_STAND_INS,
    ),
    "vfc_table4": PaperTable(
        "vfc", "4", "Fair Ncut against Kleindessner et al. 2019", "vfc_ncut", stand_ins=_STAND_INS
    ),
    "bfkm_table3": _BFKM,
    "bfkm_table4": replace(_BFKM, table="IV", title="Clustering quality", level_table="III"),
    "fmc_table1": replace(
        _FMC_CENSUS,
        table="1",
        title="Computation time",
        beyond=("vfc_kmeans_accelerated", "price_kmeans"),
        level_table="2",
        beside=("relative_seconds", "delta", "sse"),
    ),
    "fmc_table2": _FMC_CENSUS,
    "fmc_table3": _FMC,
    "fmc_table4": replace(
        _FMC_CENSUS, table="4", title="Mini-batches and sub-samples, rows not of unit length"
    ),
    "fmc_table5": _FMC_CATEGORICAL,
    "fmc_table6": replace(
        _FMC_CATEGORICAL,
        table="6",
        title="Categorical data, three groups",
        remarks=_FMC_CATEGORICAL.remarks[:3],
    ),
    "fmc_table7": replace(
        _FMC,
        table="7",
        title="Three groups",
        beyond=("fmc_smooth", "fmc_smooth_calibrated", "vfc_kmeans_accelerated", "price_kmeans"),
        at_lam=True,
        beside=_COLLAPSE,
        remarks=(
            "FMC-EM has the objective of the authors' program. Its two rows on each data set are not "
            "reproduced: starts at k-means and unit variance end in components whose means nearly coincide, "
            "at lower cost and higher Delta. The paper's costs of FMC-EM look like collapsed solutions: on "
            "Credit they are not far below that of a single cluster.",
            "The paper's Delta matches no definition tried; here it is the mean over pairs of groups, as its "
            "text has it.",
        ),
    ),
    "fmc_table8": PaperTable(
        "fmc",
        "8",
        "Accuracy with two clusters",
        "fmc_em_mixed",
        beyond=("fmc_smooth", "fmc_smooth_calibrated"),
        rule=Rule("balance"),
        by_method=True,
        at_lam=True,
        beside=("soft_delta", "n_nonempty"),
        remarks=(
            "Accuracy is the share of rows whose cluster is their class of income, clusters matched to "
            "classes in the best way; no method sees the classes.",
        ),
    ),
}
TABLES = ("overview", "reproduction", *PAPER_TABLES)
_GRAPHS = ("lastfm", "facebook")
_VFC = (("kmeans", "sse"), ("kmedians", "kmedians_cost"), ("ncut", "ncut"))
_BFKM_PLANE = ("elliptical", "ds577", "2d4c_no0", "2d4c_no1", "2d4c_no4")
_BFKM_OTHERS = ("bfkm_adult", "bfkm_bank", "bfkm_census1990", "bfkm_creditcard", "bfkm_diabetic")
_MIXTURES = ("mm_em", "mm_gd", "fmc_em", "fmc_gd", "fmc_smooth", "fmc_smooth_calibrated")
_FMC_FRONT = FigureKind(
    "",
    "front",
    cost="sse",
    methods=(
        *("kmeans", *_MIXTURES, "fmc_minibatch", "fca", "fca_relaxed", "backurs"),
        *("vfc_kmeans", "vfc_kmeans_accelerated", "price_kmeans", "price_balance", "price_gap"),
    ),
    table="fmc_table3",
    datasets=(
        *("adult", "bank_2", "credit_2", "bank_3", "credit_3", "adult_std", "bank_2_std", "credit_2_std"),
        *("census_ii", "census_like", "census_like_full", "census_ii_std", "census_like_std"),
    ),
)
FIGURES = {
    "front": FigureKind("front_{dataset}", "front", cost="sse", fairness="balance"),
    "bfkm_front": FigureKind(
        "bfkm_front_{dataset}",
        "front",
        cost="sse",
        fairness="fairness_ratio",
        table="bfkm_table3",
        datasets=(*_BFKM_PLANE, *_BFKM_OTHERS),
    ),
    # The paper's five, and one that needs no download.
    "bfkm_fig6": FigureKind(
        "bfkm_fig6_{dataset}",
        "clusters",
        table="bfkm_table3",
        plane=True,
        datasets=(*_BFKM_PLANE, "synthetic"),
    ),
    # Balance (Figure 5) and Delta (Figure 1) against cost; Figures 3, 6 and 7 on the other data sets.
    **{
        f"fmc_front_{name}": replace(_FMC_FRONT, stem=f"fmc_front_{name}_{{dataset}}", fairness=name)
        for name in ("balance", "delta")
    },
    # EM beside gradient, with bands over the starts: the paper's Figures 2 and 4.
    **{
        f"fmc_bands_{name}": FigureKind(
            f"fmc_bands_{name}_{{dataset}}",
            "bands",
            cost="sse",
            fairness=name,
            methods=("fmc_em", "fmc_gd", "fmc_smooth_calibrated"),
            datasets=("adult", "bank_2", "credit_2"),
        )
        for name in ("balance", "delta")
    },
    # By the number of clusters, by covariance, by steps, Delta against balance: the paper's Figures 8 to 11.
    **{
        f"fmc_fig8_{name}": FigureKind(
            f"fmc_fig8_{{dataset}}_{name}",
            "metric_by_k",
            cost=name,
            methods=("mm_em", "fmc_em"),
            datasets=("adult_by_k",),
        )
        for name in ("nll", "delta", "balance")
    },
    "fmc_fig9": FigureKind(
        "fmc_fig9_{dataset}",
        "front",
        cost="nll",
        fairness="balance",
        methods=("fmc_em", "fmc_gd", "fmc_em_diag", "fmc_gd_diag"),
        datasets=("adult", "bank_2", "credit_2"),
    ),
    "fmc_fig10": FigureKind(
        "fmc_fig10_{dataset}",
        "terms",
        "fmc_em",
        cost="nll",
        fairness="soft_delta",
        lam=5.0,
        datasets=("adult",),
    ),
    "fmc_fig11": FigureKind(
        "fmc_fig11_{dataset}",
        "front",
        cost="delta",
        fairness="balance",
        methods=("mm_em", "fmc_em"),
        datasets=("adult",),
    ),
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
    "msbm_error": FigureKind("msbm_error", "by_size", cost="clustering_error", across="msbm_"),
    "msbm_time": FigureKind("msbm_time", "by_size", cost="cpu_seconds", across="msbm_"),
    "graph_balance": FigureKind(
        "graph_balance_{dataset}", "metric_by_k", cost="average_balance", datasets=_GRAPHS
    ),
    "graph_shares": FigureKind("graph_shares_{dataset}", "group_shares", datasets=(*_GRAPHS, "msbm_1000")),
}


def figure_requests(kinds: Iterable[str], datasets: Iterable[str]) -> dict[str, tuple[str, str]]:
    """File stem to (kind, data set), for every figure of every data set that it is made for.

    A figure across data sets goes by the first of them.
    """
    kinds, datasets = list(kinds), list(datasets)
    requests = {
        FIGURES[kind].stem.format(dataset=dataset): (kind, dataset)
        for kind in kinds
        for dataset in datasets
        if (not FIGURES[kind].datasets or dataset in FIGURES[kind].datasets) and not FIGURES[kind].across
    }
    for kind in kinds:
        family = [name for name in datasets if FIGURES[kind].across and name.startswith(FIGURES[kind].across)]
        if family:
            requests[FIGURES[kind].stem] = (kind, family[0])
    return requests
