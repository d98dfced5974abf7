import numpy as np
import pandas as pd
import pytest
from a_paper import NAMES, reported, table
from frames import cell, frame

from fairclust.pipeline.papers import ClaimSpec
from fairclust.report.checks import CHECKS, ClaimError, Material
from fairclust.report.claims import CLAIM_COLUMNS, check_claim, load_claims, make_claims

NOTHING = pd.DataFrame(
    columns=["table", "dataset", "n_clusters", "method", "lam", "metric", "value", "decimals"]
)


def starts(method, values, metric="sse", dataset="town", lam=None, k=10, **more):
    for seed, value in enumerate(values):
        own = {name: one[seed] if isinstance(one, list) else one for name, one in more.items()}
        yield cell(dataset, method, k, lam, seed, **{"objective": 1.0, metric: value, **own})


def material(*cells, values=NOTHING, steps=(), tables=None):
    history = pd.DataFrame(steps, columns=["key", "step", "objective"])
    return Material(tables or {}, values, frame([one for some in cells for one in some]), history, NAMES)


def verdict(check, data, *, options=None, metrics=("sse",), methods=("own", "rival"), **more):
    """Return the verdict on a claim about Town and the text with its numbers."""
    claim = ClaimSpec.model_validate(
        {
            **{"text": "So.", "check": check, "datasets": ["town"], "methods": list(methods)},
            **{"metrics": list(metrics), "options": options or {}, **more},
        }
    )
    first = check_claim("c", claim, data)[0]
    return first.verdict, first.numbers


def test_compare():
    data = material(starts("own", [90.0, 110.0]), starts("rival", [105.0, 107.0]))
    found, numbers = verdict("compare", data)
    assert found == "holds"
    assert "Own 100.0 ± 14.1, best 90.0" in numbers and "ratio 0.943, at most 1 asked" in numbers
    assert verdict("compare", data, options={"factor": 0.9})[0] == "holds in part"  # only for its best start
    assert verdict("compare", data, options={"factor": 0.9, "agg": "best"})[0] == "holds"
    assert verdict("compare", data, options={"factor": 0.8})[0] == "does not hold"
    assert verdict("compare", data, methods=["rival", "own"])[0] == "does not hold"
    assert verdict("compare", data, methods=["own", "absent"]) == ("not tested", "absent is not in this run")
    assert verdict("compare", data, metrics=["ncut"])[0] == "not tested"


def test_a_claim_is_tested_at_the_k_with_most_of_its_methods():
    data = material(starts("own", [90.0]), starts("own", [50.0], k=2), starts("rival", [100.0]))
    found, numbers = verdict("compare", data)
    assert found == "holds" and "K = 2" not in numbers


def test_compare_metrics_that_should_be_high_and_negative_metrics():
    data = material(starts("own", [0.5, 0.5], "balance"), starts("rival", [0.4, 0.4], "balance"))
    assert verdict("compare", data, metrics=["balance"])[0] == "holds"
    assert verdict("compare", data, metrics=["balance"], options={"factor": 1.3})[0] == "does not hold"
    assert verdict("compare", data, metrics=["balance"], options={"direction": "lower"})[0] == "does not hold"
    # For a negative value, ten per cent better means -11 and not -9.
    likely = material(starts("own", [-10.5] * 2, "nll"), starts("rival", [-10.0] * 2, "nll"))
    assert verdict("compare", likely, metrics=["nll"], options={"factor": 0.9})[0] == "does not hold"
    assert verdict("compare", likely, metrics=["nll"], options={"factor": 0.96})[0] == "holds"


def test_compare_several_metrics_and_another_data_set():
    data = material(
        starts("own", [1.0] * 2, awd=0.5),
        starts("rival", [2.0] * 2, awd=0.1),
        starts("rival", [0.5], dataset="city"),
    )
    assert verdict("compare", data, metrics=["sse", "awd"])[0] == "holds in part"
    assert verdict("compare", data, options={"other_dataset": "city"})[0] == "does not hold"


@pytest.fixture
def fronts():
    return material(
        starts("own", [80.0] * 2, lam=1, fairness_error=0.5),
        starts("own", [100.0] * 2, lam=2, fairness_error=[0.01, 0.07]),
        starts("rival", [90.0] * 2, lam=1, fairness_error=0.5),
        starts("rival", [110.0] * 2, lam=2, fairness_error=0.05),
    )


def test_compare_at_equal_fairness(fronts):
    found, numbers = verdict("compare_at_equal", fronts, options={"level": 0.05})
    assert found == "holds" and numbers.startswith("at fairness error 0.05, SSE of Own 100.0")
    assert verdict("compare_at_equal", fronts, options={"level": 0.05, "factor": 0.9})[0] == "does not hold"
    # The level is that of the rival's fairest setting, of a named method, or of the paper.
    assert verdict("compare_at_equal", fronts, options={"level_from": "method"})[1].startswith(
        "at fairness error 0.05"
    )
    assert "error 0.04," in verdict("compare_at_equal", fronts, options={"level_from": "own"})[1]
    found, numbers = verdict("compare_at_equal", fronts, options={"level": 0.045})
    assert found == "holds in part" and "Rival does not reach the level (fairest: 0.0500)" in numbers
    assert (
        verdict("compare_at_equal", fronts, options={"level": 0.045}, methods=["rival", "own"])[0]
        == "does not hold"
    )
    assert verdict("compare_at_equal", fronts, options={"level": 0.001})[0] == "not tested"


def test_a_level_that_the_paper_reports(fronts, tmp_path):
    values = reported(
        tmp_path, "1,town,10,,rival,fairness_error,0.05,", "2,town,10,,rival,fairness_error,0.50,"
    )
    told = Material({"t": table(), "u": table(number="2")}, values, fronts.cells, fronts.steps, NAMES)
    assert (
        "at fairness error 0.055" in verdict("compare_at_equal", told, options={"level_from": "reported"})[1]
    )
    other = {"level_from": "reported", "table": "u"}
    assert "at fairness error 0.505" in verdict("compare_at_equal", told, options=other)[1]
    assert verdict("compare_at_equal", fronts, options={"level_from": "reported"})[0] == "not tested"


def test_never_rises():
    cells = list(starts("own", [1.0, 1.0]))
    falls = [(cells[0]["key"], step, value) for step, value in ((2, 9.0), (1, 10.0), (3, 9.0))]
    rises = [(cells[1]["key"], step, value) for step, value in ((1, 10.0), (2, 8.0), (3, 8.4))]
    assert verdict("never_rises", material(cells, steps=falls), methods=["own"]) == (
        "holds",
        "objective rises in none of 1 fits",
    )
    found, numbers = verdict("never_rises", material(cells, steps=[*falls, *rises]), methods=["own"])
    assert (
        found == "does not hold" and numbers == "objective rises in 1 of 2 fits, by at most 0.05 of its value"
    )
    data = material(cells, steps=rises)
    assert verdict("never_rises", data, methods=["own"], options={"tolerance": 0.06})[0] == "holds"
    assert verdict("never_rises", material(cells), methods=["own"])[0] == "not tested"


def test_reaching_a_level():
    data = material(
        starts("own", [0.04, 0.09], "delta", lam=1),
        starts("rival", [0.07, 0.07], "delta"),
        starts("plain", [0.01], "delta"),
    )

    def both(method):
        return [
            verdict(check, data, methods=method, metrics=["delta"], options={"level": 0.06})[0]
            for check in ("cannot_reach", "reaches")
        ]

    assert both(["rival"]) == ["holds", "does not hold"]
    assert both(["plain"]) == ["does not hold", "holds"]
    # A single start reaches it, the mean does not.
    assert both(["own"]) == ["holds in part", "holds in part"]
    assert both(["rival", "plain"]) == ["does not hold", "holds in part"]
    high = material(starts("own", [0.4] * 2, "balance"))
    options = {"level": 0.39}
    assert verdict("reaches", high, methods=["own"], metrics=["balance"], options=options)[0] == "holds"


def test_faster():
    data = material(starts("own", [1, 1], seconds=[1.0, 3.0]), starts("rival", [1, 1], seconds=30.0))
    found, numbers = verdict("faster", data, metrics=[], options={"factor": 15})
    assert found == "holds" and numbers == "Own takes 2 s, Rival 30 s: ratio 15, 15 asked"
    assert verdict("faster", data, metrics=[], options={"factor": 20})[0] == "holds in part"
    found, numbers = verdict("faster", data, metrics=[], methods=["rival", "own"])
    assert found == "does not hold" and numbers.endswith("the order reverses")


def test_spread_over_seeds():
    data = material(starts("own", [100.0, 104.0]), starts("rival", [100.0, 120.0]), starts("plain", [1.0]))
    assert verdict("spread", data, methods=["own"])[0] == "holds"
    assert verdict("spread", data, methods=["own", "rival"])[0] == "holds in part"
    assert verdict("spread", data, methods=["rival"])[0] == "does not hold"
    assert verdict("spread", data, options={"factor": 0.3})[0] == "holds"
    assert verdict("spread", data, options={"factor": 0.1})[0] == "does not hold"
    assert verdict("spread", data, methods=["plain"])[0] == "not tested"


def test_no_small_clusters():
    rows = {"n_rows": 1000}
    data = material(
        starts("own", [104.0] * 2, smallest_cluster=[50, 60], **rows),
        starts("rival", [100.0] * 2, smallest_cluster=1, **rows),
    )
    metrics = ["smallest_cluster", "sse"]
    assert verdict("no_small_clusters", data, metrics=metrics, options={"share": 0.55})[0] == "holds"
    assert verdict("no_small_clusters", data, options={"share": 0.56})[0] == "holds in part"
    assert verdict("no_small_clusters", data, options={"share": 0.56, "factor": 1.0})[0] == "does not hold"
    assert verdict("no_small_clusters", data, methods=["rival"])[0] == "does not hold"


def test_the_order_of_a_table(tmp_path):
    lines = [
        f"1,town,10,,{name},sse,{value}," for name, value in (("own", 1.0), ("rival", 2.0), ("plain", 3.0))
    ]
    values = reported(tmp_path, *lines)
    tables = {"t": table(settings={"own": {}, "rival": {}, "plain": {}})}

    def order(own, rival, plain, **options):
        some = material(
            starts("own", [own]),
            starts("rival", [rival]),
            starts("plain", [plain]),
            values=values,
            tables=tables,
        )
        return verdict("same_order", some, methods=[], options={"table": "t", **options})

    assert order(10, 20, 30) == ("holds", "SSE of 3 methods: tau = 1.00")
    assert order(10, 30, 20) == ("holds in part", "SSE of 3 methods: tau = 0.33")
    assert order(10, 30, 20, tau=0.3)[0] == "holds"
    assert order(30, 20, 10)[0] == "does not hold"
    assert order(10, 20, 30, table="1")[0] == "holds"
    assert order(np.nan, np.nan, 30)[0] == "not tested"


@pytest.mark.parametrize(
    "power, found", [(0.5, "holds"), (0.6, "holds"), (0.1, "holds in part"), (-0.5, "does not hold")]
)
def test_falling_with_size(power, found):
    sizes = {"own": 100, "rival": 400, "plain": 1600}
    data = material(*(starts(name, [size**-power] * 2, "delta") for name, size in sizes.items()))
    options = {"methods": list(sizes), "metrics": ["delta"]}
    result, numbers = verdict("falls_with_size", data, options={"sizes": sizes}, **options)
    assert result == found and f"slope {-power:.2f}" in numbers
    # Sizes can also be a list in the order of the methods, or belong to data sets.
    assert verdict("falls_with_size", data, options={"sizes": [100, 400, 1600]}, **options)[0] == found
    across = material(
        *(starts("own", [size**-power] * 2, "delta", dataset=name) for name, size in sizes.items())
    )
    options = {"methods": ["own"], "metrics": ["delta"], "datasets": list(sizes)}
    assert verdict("falls_with_size", across, options={"sizes": sizes}, **options)[0] == found


def test_a_claim_holds_only_if_it_holds_everywhere():
    some = [*starts("own", [1.0]), *starts("rival", [2.0])]
    other = [*starts("own", [3.0], dataset="city"), *starts("rival", [2.0], dataset="city")]
    datasets = {"datasets": ["town", "city"]}
    found, numbers = verdict("compare", material(some, other), **datasets)
    assert found == "holds in part" and "Town: SSE" in numbers and "City: SSE" in numbers
    # The claim does not hold on a data set that was not run.
    assert verdict("compare", material(some), **datasets)[0] == "holds in part"
    assert verdict("compare", material(other), **datasets)[0] == "does not hold"
    assert verdict("compare", material(some, other), datasets=["moon"])[0] == "not tested"
    by_k = [*some, *starts("own", [3.0], k=5), *starts("rival", [2.0], k=5)]
    found, numbers = verdict("compare", material(by_k))
    assert found == "holds in part" and "Town, K = 5: " in numbers
    assert verdict("compare", material(by_k), n_clusters=[10])[0] == "holds"


def test_the_setting_that_represents_a_method(fronts):
    # It is the cheapest setting unless the claim names a lambda or a fairness.
    assert "Own 80.0" in verdict("compare", fronts)[1]
    assert "Own 100.0" in verdict("compare", fronts, options={"lam": 2})[1]
    assert "Own 100.0" in verdict("compare", fronts, options={"fairness": "fairness_error", "level": 0.1})[1]
    assert "Own 100.0" in verdict("compare", fronts, options={"settings": {"own": {"lam": 2}}})[1]
    assert verdict("compare", fronts, options={"lam": 3})[0] == "not tested"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"check": "proves"}, "claims.c.check: there is no 'proves'"),
        ({"options": {"faktor": 2}}, "compare takes no 'faktor'"),
        ({"options": {"factor": "two"}}, "'factor' is 'two', expected a number"),
        ({"methods": ["own"]}, "compare needs 2"),
        ({"metrics": ["beauty"]}, "there is no metric 'beauty'"),
        ({"check": "reaches"}, "reaches needs 'level'"),
        ({"check": "same_order", "options": {"table": "9"}}, "there is no table '9'"),
        ({"check": "compare_at_equal"}, "needs 'level' or 'level_from'"),
        ({"check": "falls_with_size", "options": {"sizes": {"moon": 1, "own": 2, "rival": 3}}}, "moon"),
        ({"check": "falls_with_size", "options": {"sizes": [1, 2]}}, "three or more"),
    ],
)
def test_claims_that_no_check_accepts(change, message):
    with pytest.raises(ClaimError, match=message):
        verdict(
            **{"check": "compare", "data": material(starts("own", [1.0]), starts("rival", [1.0])), **change}
        )


def test_every_check_states_its_options():
    for check in CHECKS.values():
        text = check.function.__doc__ or ""
        for option in check.options:
            assert f"`{option}`" in text or option in ("agg", "factor"), (check, option)


def test_claims_are_written(tmp_path, fronts):
    claims = {
        "cheaper": ClaimSpec(
            text="Own is <cheaper>.", where="Table 1", check="compare", methods=["own", "rival"]
        ),
        "fair": ClaimSpec(text="Own is fair.", check="reaches", methods=["absent"], options={"level": 0.1}),
    }
    make_claims("p", "P", claims, {}, pd.DataFrame(), fronts.cells, fronts.steps, NAMES, tmp_path / "claims")
    found = load_claims(tmp_path / "claims.csv")
    assert list(found.columns) == CLAIM_COLUMNS
    together = found[found.dataset == ""].set_index("claim")
    assert together.verdict.to_dict() == {"cheaper": "holds", "fair": "not tested"}
    assert found[found.dataset == "town"].n_clusters.to_list() == [10]
    text = (tmp_path / "claims.md").read_text()
    assert "- 2 claims: 1 holds, 1 not tested." in text and "Own is &lt;cheaper&gt;." in text
    make_claims("p", "P", {}, {}, NOTHING, fronts.cells, fronts.steps, NAMES, tmp_path / "none")
    assert load_claims(tmp_path / "none.csv").empty
