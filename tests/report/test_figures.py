"""Every plot: what it draws, why a panel is empty, and that drawing it again writes the same bytes."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from frames import cell, frame, tradeoff
from PIL import Image

from fairclust.datasets.store import PreparedDataset, save_prepared
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import FigureSpec
from fairclust.pipeline.reported import NO_VALUES
from fairclust.pipeline.scores import write_fits
from fairclust.report.figures import PLOTS, FigureData, make_figure
from fairclust.report.material import Material

METHODS = {"kmeans": "K-means", "vfc_kmeans": "VFC", "bfkm": "BFKM", "spectral": "SC", "sfairsc": "s-FairSC"}
NAMES = Names(datasets={"adult": "Adult", "ds577": "DS-577"}, methods=METHODS)
AXES = {
    "front": {"x": "sse", "y": ["balance", "delta"]},
    "along_lam": {"y": ["sse", "fairness_error"]},
    "lines": {"x": "n_clusters", "y": ["sse"]},
}
NO_STEPS = pd.DataFrame(columns=["key", "step", "objective"])


def spec(plot, **more):
    return FigureSpec.model_validate(
        {"plot": plot, "title": "Figure 1", "datasets": ["adult"], **AXES.get(plot, {}), **more}
    )


def material_of(cells, steps=NO_STEPS, names=NAMES):
    return Material(NO_VALUES, cells, steps, names)


def sheet(plot, cells, *, steps=NO_STEPS, reported=NO_VALUES, planes=None, **more):
    material = replace(material_of(cells, steps), reported=reported, planes=planes or {})
    return FigureData(**vars(material), spec=spec(plot, **more)).draw(PLOTS[plot])


def words(found):
    found.lay_out()
    texts = [text for axes in found.figure.axes for text in (*axes.texts, axes.xaxis.label, axes.title)]
    return " ".join(text.get_text() for text in [*texts, *found.figure.texts]).replace("\n", " ")


@pytest.fixture
def cells():
    rows = []
    for dataset in ("adult", "ds577"):
        for k in (3, 5):
            rows += tradeoff(dataset, "kmeans", k)
            rows += tradeoff(dataset, "vfc_kmeans", k, lams=[0, 10, 20])
    for row in rows:
        row["counts"] = json.dumps({"a": [3] * row["n_clusters"], "b": [1] * row["n_clusters"]})
    return frame(rows)


@pytest.fixture
def steps(cells):
    return pd.DataFrame(
        [
            {"key": key, "step": n, "objective": 9.0 / n, "clustering": 8.0 / n, "nll": 7.0 / n}
            for key in cells.key
            for n in range(1, 5)
        ]
    )


EVIL = ("$\\input{a}$ & %", "_<b>_ $\\frac$ \x01", "$")


@pytest.mark.parametrize("plot", [plot for plot in PLOTS if plot != "clusters"])
def test_users_texts_are_drawn_as_they_are_and_a_rerun_writes_the_same_bytes(plot, cells, steps, tmp_path):
    names = Names(datasets={"adult": EVIL[0]}, methods=dict.fromkeys(METHODS, EVIL[1]))
    cells["counts"] = json.dumps({EVIL[0]: [3, 3, 3], EVIL[1]: [1, 1, 1]})
    cells["params"] = [json.dumps({"lam": lam, "a": f"{EVIL[0]} {lam}"}) for lam in cells.lam]
    title, formats = f"{EVIL[0]} {EVIL[2]}", ["png", "svg", *["pdf"] * (plot == "front")]
    more = {"datasets": ["adult", "absent"], "n_clusters": [3]}
    for folder in ("a", "b"):
        given = spec(plot, title=title, **more)
        make_figure(material_of(cells, steps, names), given, tmp_path / folder / "f", formats)
    for name in (f"f.{kind}" for kind in formats):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    # Matplotlib writes every text as a comment beside its shapes.
    builder = ElementTree.TreeBuilder(insert_comments=True)
    drawn = ElementTree.parse(tmp_path / "a/f.svg", ElementTree.XMLParser(target=builder))
    comments = {(node.text or "").strip() for node in drawn.iter(ElementTree.Comment)}
    assert title.replace("&", "&amp;") in comments


@pytest.mark.parametrize("plot", PLOTS)
def test_a_figure_says_why_it_has_no_data(plot, cells, steps, tmp_path):
    bad = cells.assign(status="skipped", reason="no network: x.csv\nmore")
    make_figure(material_of(cells[:0]), spec(plot), tmp_path / "f", ["png"])
    with Image.open(tmp_path / "f.png") as picture:
        assert picture.info["Comment"] == "nothing to show"
    assert "nothing to show" in words(sheet(plot, cells[:0]))
    text = words(sheet(plot, bad))
    assert "no network" in text and "more" not in text
    if plot != "clusters":  # which reads the points of Adult
        found = words(sheet(plot, cells, steps=steps, datasets=["adult", "absent"]))
        assert "absent" in found and "Adult" in found
        assert "no cell was run" in found or "not in this run" in found


def settings(*rows):
    """Make cells of BFKM on DS-577 from rho, lambda, fairness ratio, SSE and seed."""
    return frame(
        cell(
            "ds577", "bfkm", 3, lam, seed, params={"rho": rho}, fairness_ratio=ratio, sse=sse,
            objective=sse + rho, balance=ratio,
        )
        for rho, lam, ratio, sse, seed in rows
    )  # fmt: skip


GRID = [(500, 1, 0.7, 480.0, 0), (1800, 9, 0.805, 515.0, 0), (5000, 1, 0.9, 530.0, 0), (9, 1, 0.85, 540.0, 0)]
REPORTED = pd.DataFrame(
    [
        {"table": "III", "metric": "fairness_ratio", "value": 0.8042, "decimals": 4},
        {"table": "IV", "metric": "sse", "value": 516.0655, "decimals": 4},
    ]
).assign(dataset="ds577", n_clusters=3, method="bfkm", lam=np.nan)


def test_a_front_joins_undominated_points_and_marks_the_reported_point():
    axes = {"x": "sse", "y": ["fairness_ratio"], "datasets": ["ds577"]}
    found = sheet("front", settings(*GRID), reported=REPORTED, table="III", **axes)
    lines = [line for line in found.figure.axes[0].lines if len(line.get_xdata())]
    faint, front, reported = lines
    assert list(front.get_xdata()) == [480.0, 515.0, 530.0]
    assert list(front.get_ydata()) == [0.7, 0.805, 0.9]
    assert list(faint.get_xdata()) == [540.0]
    assert (*reported.get_xdata(), *reported.get_ydata()) == (516.0655, 0.8042)
    assert "hollow: reported by the paper" in words(found)
    without = sheet("front", settings(*GRID), reported=REPORTED, **axes)
    assert "hollow" not in words(without)


@pytest.mark.parametrize("method, cost, beyond", [("bfkm", 700.0, False), ("kmeans", 700.0, True)])
def test_limits_hold_the_reported_marks_or_a_note_names_them(method, cost, beyond):
    # Only methods with several settings decide on the limits.
    plain = cell("ds577", "kmeans", 3, fairness_ratio=0.1, sse=300.0, objective=300.0)
    both = pd.concat([settings(*GRID), frame([plain])])
    values = REPORTED.assign(value=[0.8042, cost], method=method)
    axes = {"x": "sse", "y": ["fairness_ratio"], "datasets": ["ds577"], "table": "III"}
    found = sheet("front", both, reported=values, **axes)
    assert (f"reported for {METHODS[method]}, beyond the panel: 700" in words(found)) == beyond
    drawn = [x for line in found.figure.axes[0].lines for x in line.get_xdata()]
    assert (cost in drawn) != beyond
    assert max(drawn) < found.figure.axes[0].get_xlim()[1] < 800


def test_fronts_of_many_metrics_have_a_row_for_each_k(cells):
    cells = cells.assign(fairness_error=cells.delta, awd=cells.delta)
    metrics = ["balance", "delta", "fairness_error", "awd"]
    found = sheet("front", cells, x="sse", y=metrics)
    found.lay_out()
    tops = [axes.get_position().y1 for axes in found.figure.axes]
    assert len(set(tops[:4])) == 1 and len(tops) == 8 and tops[4] < tops[0]
    width, height = found.figure.get_size_inches()
    assert height < width < 16


def test_a_panel_without_data_is_a_note_without_paths(cells):
    bad = cells[cells.dataset == "ds577"].assign(
        status="skipped", reason="source 'x': 'a/b.txt' is not there"
    )
    of_adult = cells[cells.dataset == "adult"]
    found = sheet("lines", pd.concat([of_adult, bad]), datasets=["adult", "ds577"], methods=["vfc_kmeans"])
    assert len(found.figure.axes) == 1
    assert "DS-577: nothing to show: skipped: source 'x': a file is not there" in words(found)
    some = cells.assign(balance=cells.balance.where(cells.n_clusters == 3))  # K = 5 has one of two metrics
    found = sheet("front", some[some.dataset == "adult"], datasets=["adult", "absent"])
    assert len(found.figure.axes) == 3
    assert "absent: nothing to show: no cell was run" in words(found)


def test_settings_that_leave_clusters_empty_are_no_front(cells):
    fair = (cells.method == "vfc_kmeans") & (cells.lam == 20)
    collapsed = cells.assign(
        n_nonempty=cells.n_clusters.where(~fair, 1), sse=cells.sse.where(~fair, 99_000.0),
    )  # fmt: skip
    found = sheet("front", collapsed, n_clusters=[3], datasets=["adult"])
    assert found.figure.axes[0].get_xlim()[1] < 2_000
    # Two panels for K = 3 and two for K = 5, one for each metric, have one note for each K.
    assert len(found.figure.axes) == 4
    note = "settings of VFC that leave clusters empty"
    assert found.notes[note] == ["1 of 3 (Adult, K = 3)", "1 of 3 (Adult, K = 5)"]
    assert f"{note}: 1 of 3 (Adult, K = 3); 1 of 3 (Adult, K = 5)" in words(found)


def test_where_no_setting_uses_all_clusters_a_note_says_so(cells):
    for plot in ("front", "lines"):
        found = words(sheet(plot, cells.assign(n_nonempty=cells.n_clusters - 1)))
        assert "nothing to show: there are only settings that leave clusters empty" in found
    few = cells[cells.lam > 0]
    assert "no setting with λ up to 1 was run that uses all clusters" in words(sheet("lines", few, lam=1.0))


def test_methods_are_drawn_in_the_order_of_the_figure(cells):
    for methods in (["vfc_kmeans", "kmeans"], ["kmeans", "vfc_kmeans"]):
        found = sheet("front", cells, methods=methods, n_clusters=[3])
        assert list(found.legend) == [METHODS[method] for method in methods]


def test_marks_are_means_over_the_starts_with_a_standard_deviation():
    starts = settings(
        (1, 1, 0.6, 100.0, 0), (1, 1, 0.8, 104.0, 1), (2, 1, 0.9, 120.0, 0), (2, 1, 0.9, 120.0, 1)
    )
    found = sheet("front", starts, x="sse", y=["balance"], datasets=["ds577"])
    front = next(line for line in found.figure.axes[0].lines if len(line.get_xdata()))
    np.testing.assert_allclose(front.get_xydata(), [[102, 0.7], [120, 0.9]])
    bars = [segment for part in found.figure.axes[0].collections for segment in part.get_segments()]
    spread = np.std([100, 104], ddof=1)
    assert any(np.allclose(bar, [[102 - spread, 0.7], [102 + spread, 0.7]]) for bar in bars)
    assert "means over 2 starts" in words(found)
    one = starts[starts.seed == 0].assign(dataset="adult")
    found = sheet("front", pd.concat([starts, one]), x="sse", y=["balance"], datasets=["ds577", "adult"])
    said = words(found)
    assert "marks: means over 1 to 2 starts" in said
    assert said.count("starts") == 1


def test_the_cost_and_the_error_along_lambda(cells):
    found = sheet("along_lam", cells[cells.dataset == "adult"], methods=["vfc_kmeans"])
    assert len(found.figure.axes) == 4  # K = 3 and K = 5
    cost, error = found.figure.axes[:2]
    at = cells[(cells.dataset == "adult") & (cells.n_clusters == 3) & (cells.method == "vfc_kmeans")]
    np.testing.assert_allclose(cost.lines[0].get_ydata(), at.groupby("lam").sse.mean())
    one = at[at.seed == 0].sort_values("lam")
    np.testing.assert_allclose(cost.lines[1].get_ydata(), one.sse)
    # At lambda 0 the error is infinite, so that the mean has a gap.
    np.testing.assert_array_equal(np.isnan(error.lines[0].get_ydata()), [True, False, False])
    assert "in up to 3 of 3 starts at λ = 0 (" in words(found)
    # Nor is a mean without its infinite starts drawn.
    some = at.copy()
    some.loc[(at.lam == 10) & (at.seed == 1), "fairness_error"] = np.inf
    found = sheet("along_lam", some, methods=["vfc_kmeans"])
    mean, one = (line.get_ydata() for line in found.figure.axes[1].lines)
    np.testing.assert_array_equal(np.isnan(mean), [True, True, False])
    np.testing.assert_array_equal(np.isnan(one), [True, False, False])
    for plot in ("front", "lines"):
        found = sheet(plot, some, y=["fairness_error"])
        assert [len(line.get_xdata()) for line in found.figure.axes[0].lines if len(line.get_xdata())] == [1]
        assert "settings of VFC whose mean is infinite, because a group" in words(found)


def test_a_constant_is_not_blown_up(cells):
    at = cells[(cells.method == "vfc_kmeans") & (cells.n_clusters == 3)].assign(sse=160.0)
    low, high = sheet("along_lam", at, methods=["vfc_kmeans"]).figure.axes[0].get_ylim()
    assert low < 157 and high > 163


def test_lines_over_k_are_those_of_each_lambda(cells):
    found = sheet("lines", cells, methods=["vfc_kmeans"], y=["sse", "delta"], datasets=["adult"])
    assert [len(axes.lines) for axes in found.figure.axes] == [3, 3]
    assert list(found.legend) == ["VFC, λ = 0", "VFC, λ = 10", "VFC, λ = 20"]
    assert list(found.figure.axes[0].lines[0].get_xdata()) == [3, 5]
    assert list(sheet("lines", cells, lam=15).legend) == ["K-means", "VFC, λ = 10"]
    # Collapsed fits are left out.
    lost = (cells.lam == 20) & (cells.n_clusters == 5)
    some = cells.assign(n_nonempty=cells.n_clusters.where(~lost, 1))
    found = sheet("lines", some, methods=["vfc_kmeans"], y=["sse"])
    assert list(found.figure.axes[0].lines[2].get_xdata()) == [3]
    assert "settings of VFC that leave clusters empty: 1 of 6" in words(found)


def test_steps_are_those_of_the_lambda_asked_for(cells, steps):
    for lam, key in ((None, 20), (15, 10)):
        found = sheet("steps", cells, steps=steps, methods=["vfc_kmeans"], n_clusters=[3], lam=lam)
        assert f"λ = {key}" in words(found)
        assert len(found.figure.axes[0].lines) == 3  # seeds
        np.testing.assert_allclose(found.figure.axes[0].lines[0].get_ydata(), [9, 4.5, 3, 2.25])


def test_terms_have_a_panel_for_each_name_even_if_it_is_not_recorded(cells, steps):
    found = sheet(
        "steps", cells, steps=steps, methods=["vfc_kmeans"], y=["nll", "clustering", "balance", "objective"],
    )  # fmt: skip
    assert [axes.get_ylabel() for axes in found.figure.axes if axes.lines] == [
        "NLL",
        "Clustering term",
        "Objective of the method",
    ]
    assert len(found.figure.axes) == 3
    assert "records no Balance at its steps" in words(found)


def test_points_are_drawn_from_stored_labels(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    groups = (np.arange(60) % 3).astype(np.int32)
    card = {"status": "ok", "rows": 60, "columns": ["x", "y"], "groups": [{"name": name} for name in "abc"]}
    save_prepared(PreparedDataset(X, groups, ("x", "y"), tuple("abc"), card), tmp_path / "plane")
    path = tmp_path / "fits/ds577/bfkm.parquet"
    balanced = settings(*GRID).assign(path=str(path))
    chosen = balanced[balanced.sse == 515.0].key.iloc[0]
    given = {
        "datasets": ["ds577"], "planes": {"ds577": tmp_path / "plane"}, "table": "IV",
        "reported": REPORTED, "y": ["fairness_ratio", "sse"],
    }  # fmt: skip
    record = {"key": chosen, "n_rows": 60, "status": "ok", "params": {}}
    labels = (np.arange(60) // 20).astype(np.uint8)
    write_fits(path, [(record, labels)])
    found = sheet("clusters", balanced, **given)
    assert "FR 0.8050, SSE 515.0" in words(found)
    drawn = found.figure.axes[0].collections
    assert [len(of_group.get_offsets()) for of_group in drawn] == [20, 20, 20]
    for group, of_group in enumerate(drawn):
        np.testing.assert_array_equal(of_group.get_offsets(), X[groups == group])
        _, colours = np.unique(of_group.get_facecolors(), axis=0, return_inverse=True)
        _, wanted = np.unique(labels[groups == group], return_inverse=True)
        assert len({*zip(colours, wanted, strict=True)}) == 3


@pytest.fixture
def sizes():
    """Cells of block models of two sizes and of a graph with two values of K."""
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


def test_one_figure_across_the_sizes_with_a_line_for_each_method(sizes):
    models = sizes[sizes.dataset != "lastfm"]
    asked = {"datasets": ["msbm_1000", "msbm_2000"], "y": ["clustering_error", "cpu_seconds"]}
    found = sheet("lines", models, x="n_rows", **asked)
    assert list(found.legend) == ["SC", "s-FairSC"]
    error, seconds = found.figure.axes
    # Means over two seeds, with a band of their standard deviation.
    np.testing.assert_allclose(error.lines[1].get_xydata(), [[1000, 0.025], [2000, 0.025]])
    band = error.collections[1].get_paths()[0].vertices[:, 1]
    assert band.max() - band.min() == pytest.approx(2 * np.std([0.02, 0.03], ddof=1))
    assert error.get_ylim()[0] == 0
    assert seconds.get_yscale() == "log"


def test_shares_are_those_of_the_best_start(sizes):
    found = sheet("group_shares", sizes, datasets=["lastfm"])
    assert len(found.figure.axes) == 2
    heights = [bar.get_height() for bar in found.figure.axes[0].patches]
    # Each of the three groups has three bars: one for the whole data and one for each of the two clusters.
    np.testing.assert_allclose(heights, [0.75] * 3 + [0.25] * 3 + [0] * 3)
    assert len({bar.get_x() for bar in found.figure.axes[0].patches}) == 3


def test_shares_without_a_table_are_those_of_the_largest_lambda(sizes):
    rows = [
        cell("lastfm", "sfairsc", 2, lam, objective=lam, counts=json.dumps(counts))
        for lam, counts in ((1, {"a": [1, 1], "b": [9, 1]}), (9, {"a": [9, 1], "b": [1, 1]}))
    ]
    found = sheet("group_shares", frame(rows), datasets=["lastfm"])
    assert [bar.get_height() for bar in found.figure.axes[0].patches][1] == pytest.approx(0.9)
    at_one = sheet("group_shares", frame(rows), datasets=["lastfm"], lam=5)
    assert [bar.get_height() for bar in at_one.figure.axes[0].patches][1] == pytest.approx(0.1)


def test_of_several_settings_at_one_lambda_the_lowest_objective_is_drawn(sizes):
    other = sizes.assign(params='{"x": 1.0}', average_balance=0.9, objective=99.0)
    found = sheet("lines", pd.concat([sizes, other]), datasets=["lastfm"], y=["average_balance"])
    np.testing.assert_allclose(found.figure.axes[0].lines[0].get_ydata(), [0.2, 0.3])
    assert any("lowest objective" in note for note in found.notes)
