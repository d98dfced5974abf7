"""The plan: what each table, figure and paper needs, and which changes alter the parameters of which jobs."""

import json
import os
import time
from pathlib import Path

import pytest

from fairclust.datasets.spec import SourceSpec
from fairclust.metrics.table import METRICS
from fairclust.pipeline.blocks import block_params
from fairclust.pipeline.config import ConfigError, load_config
from fairclust.pipeline.reported import load_reported
from fairclust.pipeline.results_folder import write_digests
from fairclust.pipeline.rule_inputs import REMADE, RuleInputs
from small import GENERATED, small_config, small_paper
from working_folder import FAR

KMEANS = {"class": "fairclust.methods.KMeans"}
VFC = {"class": "fairclust.methods.VariationalFairKMeans", "grid": {"lam": [1, 10]}}
DEAR = {"kmedians_cost", "dunn_index", "ncut"}


def test_every_block_is_in_one_job(inputs):
    packed = [block for blocks in inputs.jobs.values() for block in blocks]
    assert sorted(block.stem for block in packed) == sorted(block.stem for block in inputs.blocks)
    for name, blocks in inputs.jobs.items():
        dataset, job = name.split("/")
        assert (dataset, job) == (blocks[0].dataset, f"{blocks[0].method}-{blocks[0].name}")
        assert inputs.minutes(dataset, job) <= inputs.config.jobs.minutes or len(blocks) == 1
        assert len({inputs.config.methods[block.method].input for block in blocks}) == 1


def paper(**changes):
    experiment = {"datasets": ["a", "b"], "methods": ["vfc", "kmeans"], "n_clusters": [2, 5], "seeds": 2}
    return small_paper(experiments=[experiment], **changes)


def config(folder, *, reported="", more=None, **changes):
    """Return two data sets, three methods, and a paper with a table, two figures and a claim."""
    (folder / "doe.csv").write_text("table,dataset,n_clusters,method,metric,value\n" + reported)
    products = {
        "reported": str(folder / "doe.csv"),
        "tables": {
            "t": {"number": "1", "title": "T", "ours": ["kmeans"], "stand_ins": {"a": ["b"]}, "match": {
                "fairness": "balance", "order": "lam"}}
        },
        "figures": {
            "front": {"plot": "front", "title": "F", "datasets": ["a"], "n_clusters": [5], "x": "dunn_index",
                      "y": ["delta"]},
            "points": {"plot": "clusters", "title": "P", "datasets": ["b"], "methods": ["vfc"], "points": True},
        },
    }  # fmt: skip
    raw = {
        "run": {"papers": ["doe"]},
        "datasets": {"a": GENERATED, "b": GENERATED},
        "methods": {"vfc": VFC, "kmeans": KMEANS},
        "papers": {"doe": paper(**{**products, **(more or {})})},
        "report": {"fronts": []},
        **changes,
    }
    load_reported.cache_clear()
    return load_config(raw)


ONE_ROW = "1,a,2,vfc,kmedians_cost,5.0\n"


def test_a_table_needs_the_blocks_of_its_rows(tmp_path):
    inputs = RuleInputs(config(tmp_path, reported=ONE_ROW))
    product = inputs.shown["doe"]["tables"]["t"]
    # It needs its row and that of our method, on its data set and on the stand-in, only with the K of the row.
    assert set(product.needs) == {(d, m, 2) for d in "ab" for m in ("vfc", "kmeans")}
    assert product.metrics >= {"kmedians_cost", "balance"}
    any_k = RuleInputs(config(tmp_path, reported="1,a,,vfc,sse,5.0\n"))
    assert {at[2] for at in any_k.shown["doe"]["tables"]["t"].needs} == {2, 5}


def test_a_table_without_any_planned_row_is_not_made(tmp_path):
    inputs = RuleInputs(config(tmp_path, reported="1,far,2,vfc,sse,5.0\n"))
    assert not inputs.shown.get("doe", {}).get("tables")
    assert not [file for file in inputs.targets() if "/doe/t" in file]


def test_a_reported_value_of_the_data_itself_needs_one_block_of_this_data(tmp_path):
    inputs = RuleInputs(config(tmp_path, reported="1,a,,data,n_nodes,400\n"))
    found = inputs.shown["doe"]["tables"]["t"].needs
    assert ("a", "vfc", 2) in found


def metrics(inputs, dataset, method, k):
    (block,) = [block for block in inputs.blocks if block.at == (dataset, method, k)]
    return set(inputs.metrics_of(block))


def test_expensive_metrics_are_scored_only_where_something_shows_them(tmp_path):
    inputs = RuleInputs(config(tmp_path, reported=ONE_ROW, score={"dear_max_rows": 0}))
    for dataset in "ab":
        for method in ("vfc", "kmeans"):
            table, figure = metrics(inputs, dataset, method, 2), metrics(inputs, dataset, method, 5)
            assert table & DEAR == {"kmedians_cost"}
            assert figure & DEAR == ({"dunn_index"} if dataset == "a" else set())
    cheap = {name for name, metric in METRICS.items() if metric.needs == "table" and not metric.audit}
    assert all(cheap | {"sse"} <= metrics(inputs, d, "vfc", k) for d in "ab" for k in (2, 5))


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"score": {"metrics": ["ncut"], "dear_max_rows": 0}}, {"kmedians_cost", "ncut"}),
        ({"datasets": {"a": GENERATED, "b": {**GENERATED, "rows": 400}}}, DEAR),
        (
            {"score": {"dear_max_rows": 100}, "datasets": {"a": GENERATED, "b": {**GENERATED, "rows": 400}}},
            {"kmedians_cost"},
        ),
    ],
)  # fmt: skip
def test_expensive_metrics_are_scored_for_small_data_or_on_request(tmp_path, changes, expected):
    inputs = RuleInputs(config(tmp_path, reported=ONE_ROW, **changes))
    assert metrics(inputs, "b", "vfc", 2) & DEAR == expected


def test_audit_metrics_only_where_the_configuration_names_them(tmp_path):
    audit = {name for name, metric in METRICS.items() if metric.audit}
    small = {"datasets": {"a": GENERATED, "b": {**GENERATED, "rows": 400}}}
    inputs = RuleInputs(config(tmp_path, reported=ONE_ROW, **small))
    assert not metrics(inputs, "b", "vfc", 2) & audit
    asked = ["worst_group_cost", "absent_groups"]
    inputs = RuleInputs(config(tmp_path, reported=ONE_ROW, score={"metrics": asked}, **small))
    assert metrics(inputs, "b", "vfc", 2) & audit == set(asked)


CLAIM = {"text": "x", "check": "reaches", "datasets": ["b"], "methods": ["vfc"], "metrics": ["dunn_index"]}


def test_metrics_of_a_claim_are_scored_for_its_methods(tmp_path):
    inputs = RuleInputs(config(tmp_path, more={"claims": {"c": CLAIM}}, score={"dear_max_rows": 0}))
    assert "dunn_index" in metrics(inputs, "b", "vfc", 5)
    assert "dunn_index" not in metrics(inputs, "b", "kmeans", 5)
    assert "results/tables/doe/claims.csv" in inputs.tables_of("doe")
    # A claim about a table needs the cells and the metrics of the table, too.
    of_table = {**CLAIM, "options": {"table": "t"}}
    shown = RuleInputs(config(tmp_path, reported=ONE_ROW, more={"claims": {"c": of_table}})).shown["doe"]
    table, claim = shown["tables"]["t"], shown["claims"]["c"]
    assert set(claim.needs) == {*table.needs, ("b", "vfc", 2), ("b", "vfc", 5)} > set(table.needs)
    assert claim.metrics >= {*table.metrics, "dunn_index"}


def test_names_of_data_sets_say_what_is_shown_of_them(tmp_path):
    datasets = {"a": {**GENERATED, "shown": "400 rows"}, "b": GENERATED}
    assert RuleInputs(config(tmp_path, datasets=datasets)).names.datasets == {"a": "A (400 rows)", "b": "A"}


def all_params(inputs):
    """Return the parameters of every job of a run."""
    found = {}
    for block in inputs.blocks:
        found["fit", block.stem] = [block_params(block), inputs.request(block)]
        found["data", block.dataset] = inputs.dataset_digest(block.dataset)
    for name in inputs.jobs:
        found["job", name] = inputs.fit_digest(*name.split("/"))
    for paper in inputs.shown:
        found["paper", paper] = inputs.paper_digest(paper)
    found["page"] = inputs.page_digest()
    found["scores"] = inputs.configuration_digest()
    found["inputs"] = [inputs.targets(), inputs.packs()]
    return json.loads(json.dumps({str(key): value for key, value in found.items()}))


def test_a_wider_grid_changes_only_the_parameters_of_its_own_fits_and_of_the_report(tmp_path):
    before = all_params(RuleInputs(config(tmp_path, reported=ONE_ROW)))
    wide = {"vfc": {**VFC, "grid": {"lam": [1, 10, 100]}}, "kmeans": KMEANS}
    after = all_params(RuleInputs(config(tmp_path, reported=ONE_ROW, methods=wide)))
    different = {key for key in before if before[key] != after[key]}
    assert different == {
        "scores",
        "page",
        "('paper', 'doe')",
        "('job', 'a/vfc-k2')",
        *(f"('fit', '{d}/vfc/k{k}')" for d in "ab" for k in (2, 5)),
    }


@pytest.mark.parametrize(
    "method, message",
    [
        ({"class": "fairclust.methods.KMean"}, r"\.class: .*does not define 'KMean'; it defines"),
        ({"class": "nowhere.KMeans"}, r"\.class: .*no Python module 'nowhere'"),
        ({**VFC, "params": {"lamm": 1}}, ": .* takes no parameter 'lamm'; .*'lam'"),
        ({**KMEANS, "grid": {"n_clusters": [2]}}, ": the parameter 'n_clusters' is set for you"),
        (
            {**KMEANS, "params": {"random_state": 3}},
            ": the parameter 'random_state' is set for you; see run.seeds",
        ),
    ],
)
def test_a_class_that_does_not_exist_stops_the_plan(method, message):
    with pytest.raises(ConfigError, match=f"methods.m{message}"):
        RuleInputs(load_config(small_config(methods={"m": method}))).check_classes()


def replaced(path, text):
    """Replace a file by another one with an older time stamp."""
    path.write_text(text)
    os.utime(path, (1e9, 1e9))


def test_other_reported_values_change_the_parameters_of_the_paper(tmp_path):
    inputs = RuleInputs(config(tmp_path, reported=ONE_ROW, more={"claims": {"c": CLAIM}}))
    before = inputs.paper_digest("doe")
    replaced(tmp_path / "doe.csv", (tmp_path / "doe.csv").read_text().replace("5.0", "6.0"))
    assert inputs.paper_digest("doe") != before


def test_a_replaced_archive_changes_the_parameters_of_its_job(tmp_path):
    path = tmp_path / "own.zip"
    replaced(path, "one")
    own = {"path": str(path), "member": "a.csv"}
    table = {"title": "A", "source": "own", "sensitive": {"column": "sex"}, "n_clusters": 2}
    raw = small_config(sources={"own": own}, datasets={"a": table}, results=str(tmp_path / "results"))
    inputs = RuleInputs(load_config(raw))
    before = inputs.asked("own")
    record = tmp_path / "results/data/raw/own/source.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"status": "ok", "asked": before, "when": 0}))
    assert inputs.asked("own") == before
    replaced(path, "two")
    assert inputs.asked("own") != before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"asked": 1, "when": 2, "status": "ok"}', "\0"])
def test_a_damaged_record_of_a_download_is_ignored(tmp_path, content):
    inputs = RuleInputs(load_config(small_config(results=str(tmp_path))))
    (tmp_path / "data/raw/far").mkdir(parents=True)
    (tmp_path / "data/raw/far/source.json").write_text(content)
    inputs.config.sources["far"] = SourceSpec.model_validate(FAR)
    assert inputs.asked("far") == {"mirrors": [], "again": ""}


def test_a_failed_download_is_tried_again_after_an_hour_or_on_request(tmp_path):
    raw = small_config(sources={"far": FAR}, results=str(tmp_path))
    inputs = RuleInputs(load_config(raw))
    asked = {"mirrors": [], "again": ""}
    (tmp_path / "data/raw/far").mkdir(parents=True)
    record = tmp_path / "data/raw/far/source.json"
    record.write_text(json.dumps({"status": "unavailable", "asked": asked, "when": time.time()}))
    assert inputs.asked("far") == asked
    assert inputs.asked("far", at_once=True) != asked
    record.write_text(json.dumps({"status": "unavailable", "asked": asked, "when": time.time() - 4000}))
    assert inputs.asked("far") != asked


def test_provenance_keeps_only_used_settings_and_no_paths(tmp_path):
    extra = config(
        tmp_path, reported=ONE_ROW, mirror="/secret/place", methods={"vfc": VFC, "kmeans": KMEANS, "x": VFC}
    )
    kept = RuleInputs(extra).settings()
    assert set(kept["methods"]) == {"vfc", "kmeans"}
    assert "secret" not in json.dumps(kept)
    assert str(tmp_path) not in json.dumps(kept)


def test_two_modules_each_see_the_damage_in_their_own_results(tmp_path, monkeypatch):
    """Each has a prefix, so its results lie elsewhere than the configuration says."""
    monkeypatch.setenv(REMADE, "{}")
    config = load_config(small_config())
    places = [tmp_path / name / "results" for name in "ab"]
    for place in places:
        (place / "scores").mkdir(parents=True)
        for name in ("scores.csv", "runs.csv"):
            (place / "scores" / name).write_text("1")
        (place / "logs").mkdir()
        write_digests(
            [str(place / "scores" / name) for name in ("scores.csv", "runs.csv")], place / "logs/scores.log"
        )
    (places[1] / "scores/scores.csv").write_text("2")
    # The second time is as in the processes of jobs, which have the variable of the main process.
    for _ in range(2):
        assert [RuleInputs(config, place).remade("scores") for place in places] == [0, 1]
        (places[1] / "scores/scores.csv").unlink(missing_ok=True)


def test_papers_have_targets_of_their_own(inputs):
    for paper in inputs.config.run.papers:
        files = inputs.tables_of(paper) + inputs.figures_of(paper)
        assert files
        assert all(Path(file).parent.name == paper for file in files)
        assert set(files) < set(inputs.targets())
